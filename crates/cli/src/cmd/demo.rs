//! `airpace demo`: a first comparison of schemes.

use std::io::Write;
use std::path::PathBuf;

use airpace_cc::SchemeSpec;
use airpace_lab::machine::data_folder;
use airpace_run::Choice;
use anyhow::Context;

use super::Verdict;
use super::matrix::{self, RunArgs};
use super::scenario::{self, Fitted, Sets};
use crate::terminal::fit;

/// Compares seven schemes over a simulated cell and over a cellular trace, in under a minute.
///
/// The schemes are PBE-CC (also as its paper describes it), BISCAY, MORC, BBR, CUBIC, Copa and an Oracle. The trace is a
/// recording from the folder that AIRPACE_DATA names, if the folder contains one; otherwise it is synthetic. A key that
/// --set gives is set in those of the two scenarios that have this key.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace demo\n         airpace demo --seeds 1..5 --out my-first-run\n         \
                         airpace demo --set cell.prbs=50"
)]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
}

/// The three systems (PBE-CC also as its paper describes it), and the schemes with which they are compared.
const SCHEMES: [&str; 8] = ["pbe", "pbe@paper", "biscay", "morc", "bbr", "cubic", "copa", "oracle"];
/// Name of the preferred recording, used if it exists: a saturated LTE downlink with strong rate variation.
const FAVOURITE: &str = "TMobile-LTE-short.down";
/// Scenario with the cell: the on-off traffic of another phone shows the differences between schemes.
const CELL: &str = "competitor";

/// Mean rate of a synthetic trace, in Mbit/s.
const MADE_MEAN_MBPS: &str = "12";

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let (key, value) = match recording() {
        Some(recording) => {
            let text = recording.to_str();
            let text = text.context("the trace's path is not text; move it to a folder with a plain name")?;
            args.run.say(out, &fit(&format!("Trace: the recording {text}")))?;
            ("trace", text.to_owned())
        }
        None => {
            args.run.say(
                out,
                &fit(&format!(
                    "Trace: made, {MADE_MEAN_MBPS} Mbit/s in the mean (AIRPACE_DATA names no recordings)"
                )),
            )?;
            ("trace.synth.mean_mbps", MADE_MEAN_MBPS.to_owned())
        }
    };
    let choices = choices(&[(CELL, vec![]), ("trace", vec![(key.to_owned(), value)])], args, out)?;
    let schemes = SCHEMES.map(SchemeSpec::parse).into_iter().collect::<Result<_, _>>()?;
    matrix::run("demo", choices, schemes, &args.run, out)
}

/// The scenarios, with the keys that the demo sets and with every --set that fits them. Prints a line about a --set
/// that does not fit all of them.
///
/// # Errors
/// A --set that fits no scenario.
fn choices(scenarios: &[(&str, Sets)], args: &Args, out: &mut dyn Write) -> anyhow::Result<Vec<Choice>> {
    let fitted = scenarios
        .iter()
        .map(|(name, own)| scenario::load_fitting(name, own, args.run.set()))
        .collect::<anyhow::Result<Vec<Fitted>>>()?;
    for set in args.run.set() {
        let left_out: Vec<(&str, &str)> = scenarios
            .iter()
            .zip(&fitted)
            .filter_map(|((name, _), fitted)| Some((*name, why_left_out(fitted, set)?)))
            .collect();
        if left_out.len() == scenarios.len() {
            let whys: Vec<String> = match left_out[..] {
                [(_, first), ref rest @ ..] if rest.iter().all(|(_, why)| *why == first) => {
                    vec![first.to_owned()]
                }
                _ => left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect(),
            };
            anyhow::bail!("--set {}={} fits no scenario of the demo: {}", set.0, set.1, whys.join("; "));
        }
        for (name, why) in left_out {
            args.run.say(out, &fit(&format!("--set {}={} is not for {name}: {why}", set.0, set.1)))?;
        }
    }
    Ok(scenarios
        .iter()
        .zip(fitted)
        .map(|((name, _), fitted)| Choice {
            argument: (*name).to_owned(),
            set: fitted.set,
            scenario: fitted.scenario,
        })
        .collect())
}

/// Why a --set was left out.
fn why_left_out<'a>(fitted: &'a Fitted, set: &(String, String)) -> Option<&'a str> {
    fitted.left_out.iter().find(|(group, _)| group.contains(set)).map(|(_, why)| why.as_str())
}

/// Path of a recorded trace, if one exists.
fn recording() -> Option<PathBuf> {
    let folder = data_folder()?.join("traces");
    let favourite = folder.join(FAVOURITE);
    if favourite.is_file() {
        return Some(favourite);
    }
    let paths = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "down")).min()
}
