//! `airpace trace`: summarises, converts, generates and checks link traces.

mod check;
mod convert;
mod info;
mod kpi;
mod synth;

use std::io::Write;
use std::path::{Path, PathBuf};

use airpace_core::Refused;
use airpace_path::trace::Trace;
use anyhow::Context;

use super::Verdict;
use super::outputs::{self, Named};
use crate::terminal::say;

/// Summarises, converts and generates traces of links, and checks their replay.
///
/// A trace is a file in mahimahi's format (one line per delivery opportunity of 1500 bytes: its time in ms) or a CSV table of
/// rates. `-` is standard input or output. Files compressed by gzip are decompressed.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace trace info TMobile-LTE-short.down")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Info(info::Args),
    Convert(convert::Args),
    Synth(synth::Args),
    Kpi(kpi::Args),
    Check(check::Args),
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    match &args.command {
        Command::Info(args) => info::run(args, out),
        Command::Convert(args) => convert::run(args, out),
        Command::Synth(args) => synth::run(args, out),
        Command::Kpi(args) => kpi::run(args, out),
        Command::Check(args) => check::run(args, out),
    }
}

/// Reads a trace in either format. Prints a note to standard error about values read from a table of rates.
fn read_trace(path: &Path, column: Option<&str>) -> anyhow::Result<Trace> {
    let (trace, table) =
        Trace::read(&read_bytes(path)?, column).with_context(|| path.display().to_string())?;
    if let Some(table) = table {
        say(format_args!("{}: {table}", path.display()));
    }
    Ok(trace)
}

/// Maximum size of a trace before and after decompression (bytes).
const MAX_BYTES: u64 = airpace_sim::scenario::MAX_RECORDING_BYTES;

/// Bytes of a file, or of standard input for `-`, decompressed if they are gzip. A file to which standard output is appended
/// is refused.
fn read_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let stdout = Named::new("standard output", Path::new("/dev/stdout"));
    outputs::check(&Named::inputs(&[path.to_owned()]), &[stdout])?;
    airpace_files::read_recording(path, MAX_BYTES).map_err(|error| {
        let remedy = airpace_files::recording_remedy(path, &error);
        Refused::new(format!("cannot read `{}`", path.display())).but(remedy.caused_by(error)).into()
    })
}

/// Returns an error if the output would replace an input.
fn check_out(path: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
    let outputs = if path == Path::new("-") { vec![] } else { vec![Named::by("--out", path)] };
    outputs::check(&Named::inputs(inputs), &outputs)
}

/// Writes the text to a file, or to `out` for `-`.
fn write_text(path: &Path, out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(out.write_all(text.as_bytes())?);
    }
    outputs::write("--out", path, text)
}
