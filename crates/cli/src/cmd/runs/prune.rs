//! `airpace runs prune`: removes run folders that are no longer wanted.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::SystemTime;

use airpace_run::shelf::{Conditions, RemoveError, Shelf, ShelvedRun, point_latest_to};
use indicatif::DecimalBytes;
use serde_json::json;

use super::{as_json, refused, write};
use crate::cmd::Verdict;
use crate::explain::explained;
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
pub(super) fn run(args: &Args, found: Shelf, json: bool, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let (within, there) = (found.within.clone(), found.runs.len());
    let conditions = Conditions {
        incomplete: args.incomplete,
        older_than_days: args.older_than,
        keep: args.keep,
        latest: args.latest,
    };
    let chosen = found.chosen(&conditions, SystemTime::now());
    let bytes = DecimalBytes(chosen.iter().map(|run| run.bytes).sum());
    let folders = count(chosen.len() as u64, "run folder");
    if !json {
        for run in &chosen {
            write(run, out)?;
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
                    Err(error) => say(format_args!("{}: {}", run.path.display(), explained(error.as_ref()))),
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
    match super::within(within)?.runs.last() {
        Some(newest) => _ = point_latest_to(&newest.path),
        None => _ = fs::remove_file(within.join("latest")),
    }
    Ok(())
}

/// Removes the chosen folders, and prints one JSON object per folder with the outcome.
fn tell(
    chosen: &[ShelvedRun],
    remove: impl Fn(&ShelvedRun) -> anyhow::Result<bool>,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::Fine;
    for run in chosen {
        let removed = remove(run);
        let error = removed.as_ref().err().map(|error| explained(error.as_ref()));
        verdict = if error.is_some() { Verdict::Failed } else { verdict };
        let mut object = as_json(run);
        object["removed"] = json!(removed.unwrap_or(false));
        object["error"] = json!(error);
        writeln!(out, "{object}")?;
    }
    Ok(verdict)
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

/// Removes a run. Returns whether its folder was removed.
fn remove(run: &ShelvedRun) -> anyhow::Result<bool> {
    run.remove().map_err(|error| match error {
        RemoveError::Claimed(claimed) => refused(claimed),
        other => other.into(),
    })
}
