//! `airpace report`: regenerates the page of a run folder.

use std::io::Write;
use std::path::PathBuf;

use airpace_run::{RunFolder, shell};
use anyhow::bail;
use serde_json::json;

use super::Verdict;
use crate::called;

/// Regenerates report.html of a run folder from its tables.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace report runs/latest")]
pub struct Args {
    /// A run folder of `airpace sim`, `airpace demo` or `airpace emu`.
    #[arg(default_value = "runs/latest", value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
    /// Prints one JSON object: the page's path, and whether the run is complete.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    if let Ok(Some(sweep)) = airpace_run::sweep::manifest(&args.folder) {
        let folder = shell::quote(&args.folder.to_string_lossy());
        let command = called::typed(&sweep.command);
        bail!("this is a sweep; its own command makes the page again: {command} --out {folder}");
    }
    let folder = RunFolder::open(&args.folder)?;
    let is_complete = folder.manifest()?.complete;
    let page = airpace_page::write(&args.folder)?;
    if args.json {
        writeln!(out, "{}", json!({ "report": page, "complete": is_complete }))?;
        return Ok(Verdict::Fine);
    }
    if !is_complete {
        writeln!(out, "This run was interrupted: the page shows what had ended before.")?;
    }
    writeln!(out, "Report: {}", page.display())?;
    Ok(Verdict::Fine)
}
