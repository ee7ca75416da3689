//! `airpace runs`: lists run folders.

mod prune;

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_run::shelf::{Claim, Claimed, Shelf, ShelvedRun};
use airpace_run::shell::seeds_text;
use anyhow::anyhow;
use chrono::DateTime;
use indicatif::DecimalBytes;
use serde_json::json;

use super::Verdict;
use crate::called;
use crate::explain::failed;
use crate::terminal::{Paint, columns, fit, hang};

/// Lists the run folders with their start times, commands, states and sizes.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace runs\n         airpace runs prune --incomplete")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The folder that contains the run folders.
    #[arg(long = "in", value_name = "DIR", default_value = "runs", global = true)]
    within: PathBuf,
    /// Prints one JSON object per run folder.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    Prune(prune::Args),
}

/// Lists the run folders, or removes some of them.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let found = within(&args.within)?;
    match &args.command {
        Some(Command::Prune(prune)) => prune::run(prune, found, args.json, out),
        None => list(&found, args, out),
    }
}

/// The run folders of a folder; none if nothing was run in the usual folder yet.
fn within(within: &Path) -> anyhow::Result<Shelf> {
    Shelf::within(within, within == Path::new("runs")).map_err(|error| {
        let doing = format!("cannot read the folder `{}`", within.display());
        failed(doing, &error, "give --in the folder that contains run folders")
    })
}

/// Claims a folder for a run.
///
/// # Errors
/// Another run writes into the folder.
pub fn claim(folder: &Path) -> anyhow::Result<Claim> {
    Claim::of(folder).map_err(refused)
}

/// The error for a folder into which another run writes.
fn refused(claimed: Claimed) -> anyhow::Error {
    anyhow!("{claimed}, or give --out another folder")
}

fn list(found: &Shelf, args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    if args.json {
        for run in &found.runs {
            writeln!(out, "{}", as_json(run))?;
        }
        return Ok(Verdict::Fine);
    }
    for run in &found.runs {
        write(run, out)?;
    }
    let bytes = found.runs.iter().map(|run| run.bytes).sum();
    let place = args.within.display();
    let closing = match found.runs.len() {
        0 => format!(
            "No run folders in `{place}`; {}, {} and {} make them in `runs`.",
            called::command("demo"),
            called::command("sim"),
            called::command("emu")
        ),
        1 => format!("1 run folder in `{place}`, {}.", DecimalBytes(bytes)),
        many => format!("{many} run folders in `{place}`, {}.", DecimalBytes(bytes)),
    };
    writeln!(out, "{}", fit(&closing))?;
    Ok(Verdict::Fine)
}

/// Prints a run.
fn write(run: &ShelvedRun, out: &mut dyn Write) -> std::io::Result<()> {
    let (columns, paint) = (columns(), Paint::stdout());
    let latest = if run.is_latest { ", latest" } else { "" };
    let facts = format!("{}, {}, {}{latest}", started(run), run.state.word(), DecimalBytes(run.bytes));
    let head = hang(&format!("{}  ", run.name), &facts, 4, columns);
    writeln!(out, "{}", head.replacen(&run.name, &paint.bold(&run.name), 1))?;
    let list = |words: &[String]| words.join(", ");
    let what = format!(
        "{}; {}; seeds {}",
        list(&run.scenarios()),
        list(&run.schemes()),
        seeds_text(&run.manifest.seeds)
    );
    writeln!(out, "{}", hang("", &what, 4, columns))?;
    writeln!(out, "{}", hang("", &run.manifest.host.command, 4, columns))
}

/// A run as a JSON object.
fn as_json(run: &ShelvedRun) -> serde_json::Value {
    json!({
        "name": run.name,
        "folder": run.path,
        "started_unix_s": run.manifest.host.started_unix_s,
        "command": run.manifest.host.command,
        "scenarios": run.scenarios(),
        "schemes": run.schemes(),
        "seeds": run.manifest.seeds,
        "state": run.state.word(),
        "bytes": run.bytes,
        "latest": run.is_latest,
    })
}

/// Start time of the run.
fn started(run: &ShelvedRun) -> String {
    let seconds = i64::try_from(run.manifest.host.started_unix_s).unwrap_or(i64::MAX);
    let started = DateTime::from_timestamp(seconds, 0);
    started.map_or_else(|| "–".to_owned(), |started| started.format("%Y-%m-%d %H:%M UTC").to_string())
}
