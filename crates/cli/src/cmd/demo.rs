//! `airpace demo`: the place to start.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_cc::SchemeSpec;
use airpace_core::{Rate, Streams};
use airpace_path::trace::synth::Model;
use anyhow::Context;

use super::Verdict;
use super::doctor::data_folder;
use super::matrix::{self, RunArgs};

/// Compares PBE-CC, BISCAY, MORC, BBR, CUBIC, Copa and an Oracle over a simulated cell and over a cellular trace, in under a minute.
///
/// The trace is a recording from the folder that AIRPACE_DATA names, if there is one; else it is made.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace demo\n         airpace demo --seeds 1..5 --out my-first-run")]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
}

/// The three systems, PBE-CC to its text as well, beside what they are compared with.
const SCHEMES: [&str; 8] = ["pbe", "pbe@paper", "biscay", "morc", "bbr", "cubic", "copa", "oracle"];
/// The recording that is taken if it is there: an LTE downlink, saturated, with strong swings.
const FAVOURITE: &str = "TMobile-LTE-short.down";
/// Another phone's traffic comes and goes: what tells schemes apart.
const CELL: &str = "competitor";

/// Runs it.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let trace = match recording() {
        Some(recording) => {
            args.run.say(out, &format!("Trace: the recording {}", recording.display()))?;
            recording
        }
        None => {
            let made = made_trace(Path::new("runs"))?;
            args.run.say(
                out,
                &format!("Trace: {}, made up (AIRPACE_DATA names no recordings)", made.display()),
            )?;
            made
        }
    };
    let trace =
        trace.to_str().context("the trace's path is not text; move it to a folder with a plain name")?;
    let choices = vec![
        args.run.choice(CELL, Vec::new())?,
        args.run.choice("trace", vec![("trace".to_owned(), trace.to_owned())])?,
    ];
    let schemes = SCHEMES.map(SchemeSpec::parse).into_iter().collect::<Result<_, _>>()?;
    matrix::run("demo", choices, schemes, &args.run, out)
}

/// A recorded trace, if there are any.
fn recording() -> Option<PathBuf> {
    let folder = data_folder()?.join("traces");
    let favourite = folder.join(FAVOURITE);
    if favourite.is_file() {
        return Some(favourite);
    }
    let paths = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "down")).min()
}

/// A trace of our own making below `folder`; the same every time.
fn made_trace(folder: &Path) -> anyhow::Result<PathBuf> {
    let trace = Model::Cellular.make(Rate::from_mbps(12.0), Duration::from_secs(60), &Streams::new(1))?;
    let path = folder.join("made-cellular-12mbps.down");
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, trace.to_mahimahi()))
        .with_context(|| format!("cannot write `{}`; start in a folder you may write to", path.display()))?;
    Ok(path)
}
