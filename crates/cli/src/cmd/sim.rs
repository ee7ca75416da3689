//! `airpace sim`: runs schemes × seeds in one scenario.

mod ack_trace;

use std::io::Write;
use std::path::PathBuf;

use airpace_cc::{SchemeError, SchemeSpec};
use anyhow::bail;

use super::matrix::{self, RunArgs};
use super::{Verdict, complete};

/// Runs a scenario on a virtual clock and compares schemes in it.
///
/// Prints a table, writes a run folder (Parquet tables, summary.json, report.html) and prints the folder's name. The same
/// scenario, schemes and seeds give the same bytes on any machine and for any --jobs.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace sim competitor --scheme pbe,bbr,cubic --seeds 1..3\n         \
                         airpace sim trace --set trace=FILE.down --scheme pbe,bbr\n         \
                         airpace sim stationary-idle --set cell.prbs=50 --set flow.0.rtt_ms=162")]
pub struct Args {
    /// A name from `airpace list scenarios`, or a TOML file.
    #[arg(add = complete::scenario())]
    scenario: String,
    #[arg(
        long = "scheme",
        value_name = "SCHEMES",
        value_delimiter = ',',
        value_parser = scheme,
        add = complete::schemes(),
        help = "Schemes to compare, separated by commas: NAME[+ran][@PRESET][:OPTION=VALUE]…; `all` is every scheme, \
                `presets` also every `+ran` variant and every preset [default: those of the scenario]"
    )]
    schemes: Vec<Schemes>,
    /// Writes the inputs and outputs of one flow's controller (one scheme, one seed).
    ///
    /// The file is text with a line per event; `airpace_cc::ack_trace` describes its format. The run is repeated to write
    /// the file.
    #[arg(long, value_name = "FILE")]
    ack_trace: Option<PathBuf>,
    /// The flow for --ack-trace, counted from 0 in the order of the scenario.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "ack_trace")]
    ack_trace_flow: usize,
    #[command(flatten)]
    run: RunArgs,
}

/// The schemes that one word of `--scheme` names.
#[derive(Clone)]
struct Schemes(Vec<SchemeSpec>);

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let schemes: Vec<SchemeSpec> = args.schemes.iter().flat_map(|Schemes(named)| named.clone()).collect();
    for (index, scheme) in schemes.iter().enumerate() {
        let is_first = schemes[..index].iter().all(|other| other.text() != scheme.text());
        anyhow::ensure!(is_first, "scheme `{}` is named twice; name it once", scheme.text());
    }
    let choices = args.run.choices(&args.scenario)?;
    let name = match &choices[..] {
        [only] => only.scenario.name.clone(),
        // A folder that holds all variants has the name that they share.
        _ => args.run.choice(&args.scenario)?.scenario.name.clone(),
    };
    if let Some(file) = &args.ack_trace {
        let ([scheme], [choice], [seed]) = (&schemes[..], &choices[..], args.run.seeds()) else {
            bail!(
                "--ack-trace is of one run: give it one --scheme, one seed and a scenario without variants"
            );
        };
        ack_trace::write(file, choice, scheme, *seed, args.ack_trace_flow)?;
    }
    matrix::run(&name, choices, schemes, &args.run, out)
}

fn scheme(word: &str) -> Result<Schemes, SchemeError> {
    SchemeSpec::named(word).map(Schemes)
}
