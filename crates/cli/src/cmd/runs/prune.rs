//! `airpace runs prune`: removes run folders that are no longer wanted.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airpace_run::RunFolder;
use indicatif::DecimalBytes;
use serde_json::json;

use super::{Claim, Found, Run, State, point_latest_to};
use crate::cmd::Verdict;
use crate::terminal::{count, say};

/// Removes the run folders that meet all given conditions: --incomplete, --older-than, --keep.
///
/// Removes the files that the run wrote, and then the folder if it is empty. Folders without a run, links and runs in
/// progress are never removed. The run to which `latest` points is removed only if it is incomplete, or with --latest.
/// `latest` then points to the newest remaining run.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace runs prune --incomplete\n         \
                         airpace runs prune --keep 5 --older-than 30 --dry-run",
    group = clap::ArgGroup::new("which").args(["incomplete", "older_than", "keep"]).required(true).multiple(true)
)]
pub struct Args {
    /// Removes runs that were stopped or failed before their end.
    #[arg(long)]
    incomplete: bool,
    /// Removes runs that started more than this number of days ago.
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
    /// Keeps the newest N runs.
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Also removes the complete run to which `latest` points.
    #[arg(long)]
    latest: bool,
    /// Lists the run folders that would be removed, and removes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Removes without a question.
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, found: Found, json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let (within, there) = (found.within, found.runs.len());
    let chosen = choose(found.runs, args, SystemTime::now());
    let bytes = DecimalBytes(chosen.iter().map(|run| run.bytes).sum());
    let folders = count(chosen.len() as u64, "run folder");
    if !json {
        for run in &chosen {
            run.write(out)?;
        }
        match chosen.len() {
            0 => writeln!(out, "None of {} would go.", count(there as u64, "run folder"))?,
            _ if args.dry_run => writeln!(out, "{folders}, {bytes}, would go.")?,
            _ => {}
        }
    }
    if chosen.is_empty() || args.dry_run {
        return if json { tell(&chosen, |_| Ok(false), out) } else { Ok(Verdict::Fine) };
    }
    if !args.yes && !is_confirmed(&format!("Remove {folders}, {bytes}?"), out)? {
        writeln!(out, "Nothing was removed.")?;
        return Ok(Verdict::Fine);
    }
    let verdict = match json {
        true => tell(&chosen, remove, out)?,
        false => {
            let mut removed = 0;
            for run in &chosen {
                match remove(run) {
                    Ok(true) => removed += 1,
                    Ok(false) => {
                        say(format_args!(
                            "{}: what the run wrote is gone; other files stay",
                            run.path.display()
                        ));
                    }
                    Err(error) => say(format_args!("{}: {error:#}", run.path.display())),
                }
            }
            writeln!(out, "{} removed.", count(removed, "run folder"))?;
            if removed == chosen.len() as u64 { Verdict::Fine } else { Verdict::Failed }
        }
    };
    if chosen.iter().any(|run| run.is_latest && !run.path.join("manifest.json").exists()) {
        mend_latest(&within)?;
    }
    Ok(verdict)
}

/// Points `latest` to the newest remaining run, or removes this link if no run remains. Called after the removal of the
/// run to which `latest` pointed.
fn mend_latest(within: &Path) -> anyhow::Result<()> {
    match Found::within(within)?.runs.last() {
        Some(newest) => _ = point_latest_to(&newest.path),
        None => _ = fs::remove_file(within.join("latest")),
    }
    Ok(())
}

/// Removes the chosen folders, and prints one JSON object per folder with the outcome.
fn tell(
    chosen: &[Run],
    remove: impl Fn(&Run) -> anyhow::Result<bool>,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::Fine;
    for run in chosen {
        let removed = remove(run);
        let error = removed.as_ref().err().map(|error| format!("{error:#}"));
        verdict = if error.is_some() { Verdict::Failed } else { verdict };
        let mut object = run.as_json();
        object["removed"] = json!(removed.unwrap_or(false));
        object["error"] = json!(error);
        writeln!(out, "{object}")?;
    }
    Ok(verdict)
}

/// The runs to which all given conditions apply, the oldest first.
fn choose(runs: Vec<Run>, args: &Args, now: SystemTime) -> Vec<Run> {
    let before = args.older_than.map(|days| {
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        since_1970.saturating_sub(Duration::from_secs(u64::from(days) * 86_400)).as_secs()
    });
    let first_kept = args.keep.map_or(runs.len(), |keep| runs.len().saturating_sub(keep));
    let is_chosen = |(at, run): &(usize, Run)| {
        run.state != State::Running
            && (args.latest || !run.is_latest || run.state == State::Incomplete)
            && (!args.incomplete || run.state == State::Incomplete)
            && before.is_none_or(|before| run.manifest.host.started_unix_s < before)
            && *at < first_kept
    };
    runs.into_iter().enumerate().filter(is_chosen).map(|(_, run)| run).collect()
}

/// Asks the question, and returns whether the user confirms.
///
/// # Errors
/// There is no terminal on which to ask.
fn is_confirmed(question: &str, out: &mut dyn Write) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        anyhow::bail!("there is no terminal to ask at; give --yes to remove, or --dry-run to look");
    }
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Removes the files of the run, and its folder if it is then empty. Returns whether the folder was removed.
fn remove(run: &Run) -> anyhow::Result<bool> {
    // Another run may have started in this folder since it was listed.
    let _claim = Claim::of(&run.path)?;
    Ok(RunFolder::open(&run.path)?.remove()?)
}
