//! `airpace runs prune`: removes run folders that are not wanted any more.

use std::fs;
use std::io::{IsTerminal, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airpace_eval::RunFolder;
use indicatif::DecimalBytes;
use serde_json::json;

use super::{Claim, Found, Run, State};
use crate::cmd::Verdict;
use crate::terminal::{count, say};

/// Removes run folders: those to which all of --incomplete, --older-than and --keep apply that are given.
///
/// It removes what a run wrote, and then its folder if nothing else is in it. It never touches a folder that is no run's, a
/// link, a run that is going on, or (without --latest) the run that `latest` leads to.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace runs prune --incomplete\n         \
                         airpace runs prune --keep 5 --older-than 30 --dry-run",
    group = clap::ArgGroup::new("which").args(["incomplete", "older_than", "keep"]).required(true).multiple(true)
)]
pub struct Args {
    /// Those that were stopped or failed before their end.
    #[arg(long)]
    incomplete: bool,
    /// Those that were begun more than so many days ago.
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,
    /// Those before the newest N.
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Also the one that `latest` leads to.
    #[arg(long)]
    latest: bool,
    /// Says what would go, and removes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Does not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Removes them.
pub(super) fn run(args: &Args, found: Found, json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let latest = found.within.join("latest");
    let chosen = choose(found.runs, args, SystemTime::now());
    let bytes = DecimalBytes(chosen.iter().map(|run| run.bytes).sum());
    let folders = count(chosen.len() as u64, "run folder");
    if !json {
        for run in &chosen {
            run.write(out)?;
        }
        if chosen.is_empty() || args.dry_run {
            writeln!(out, "{folders}, {bytes}, would go.")?;
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
    // A link that leads nowhere helps nobody.
    if latest.is_symlink() && !latest.exists() {
        let _ = fs::remove_file(&latest);
    }
    Ok(verdict)
}

/// One object per chosen folder, with what came of it.
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

/// Those to which all that was asked for applies, the oldest first.
fn choose(runs: Vec<Run>, args: &Args, now: SystemTime) -> Vec<Run> {
    let before = args.older_than.map(|days| {
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        since_1970.saturating_sub(Duration::from_secs(u64::from(days) * 86_400)).as_secs()
    });
    let first_kept = args.keep.map_or(runs.len(), |keep| runs.len().saturating_sub(keep));
    let is_chosen = |(at, run): &(usize, Run)| {
        run.state != State::Running
            && (args.latest || !run.is_latest)
            && (!args.incomplete || run.state == State::Incomplete)
            && before.is_none_or(|before| run.manifest.host.started_unix_s < before)
            && *at < first_kept
    };
    runs.into_iter().enumerate().filter(is_chosen).map(|(_, run)| run).collect()
}

/// Whether the user says yes.
///
/// # Errors
/// Nobody to ask.
fn is_confirmed(question: &str, out: &mut dyn Write) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        anyhow::bail!("nobody is there to be asked; give --yes to remove, or --dry-run to look");
    }
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Removes what the run wrote, and its folder: whether nothing else was in it.
fn remove(run: &Run) -> anyhow::Result<bool> {
    // It may have been taken for another run since it was looked at.
    let _claim = Claim::of(&run.path)?;
    Ok(RunFolder::open(&run.path)?.remove()?)
}
