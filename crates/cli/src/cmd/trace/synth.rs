//! `airpace trace synth`: generates a synthetic trace, for use without a recording.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::{Rate, Streams};
use airpace_path::trace::KpiTrace;
use airpace_path::trace::synth::Model;
use serde_json::json;

use super::Verdict;
use crate::terminal::say;

/// Generates a trace in mahimahi's format, with delivery opportunities drawn from a model.
///
/// Prints the trace's mean rate, and the minimum and maximum of the rate over 100 ms. These figures go to standard error if
/// the trace itself goes to standard output.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace trace synth --mean-mbps 12 --seconds 60 --out made.down\n         \
                         airpace trace synth --model constant --mean-mbps 12 | airpace trace info -",
    group = clap::ArgGroup::new("rate").args(["mean_mbps", "rate_mbps"]).required(true)
)]
pub struct Args {
    /// Model of the rate's variation.
    #[arg(long, value_enum, default_value_t = ModelArg::Cellular)]
    model: ModelArg,
    /// Mean rate of the trace in Mbit/s, which every model meets to within one packet.
    #[arg(long, value_name = "MBPS", value_parser = rate)]
    mean_mbps: Option<Rate>,
    /// Rate parameter of the model in Mbit/s, instead of the mean.
    ///
    /// The models constant and poisson keep this rate. The rate of cellular starts there and varies between zero and twice
    /// this rate; its mean may be half of this rate, or nearly twice.
    #[arg(long, value_name = "MBPS", value_parser = rate)]
    rate_mbps: Option<Rate>,
    /// Duration of the trace in seconds.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Seed of the random numbers: the same seed gives the same trace.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The file to write; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Prints one JSON object that summarises the trace; requires a file as --out.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ModelArg {
    /// Random opportunities at a varying rate, with outages of some tenths of a second.
    Cellular,
    /// Random opportunities at a constant rate.
    Poisson,
    /// Opportunities spaced as evenly as the resolution of 1 ms permits.
    Constant,
}

/// Length of the windows for the printed minimum and maximum rate.
const WINDOW: Duration = Duration::from_millis(100);

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let is_piped = args.out == Path::new("-");
    if args.json && is_piped {
        anyhow::bail!(
            "standard output cannot hold both the trace and --json; give --out a file for the trace"
        );
    }
    let model = match args.model {
        ModelArg::Cellular => Model::Cellular,
        ModelArg::Poisson => Model::Poisson,
        ModelArg::Constant => Model::Constant,
    };
    let (duration, streams) = (Duration::from_secs(args.seconds.into()), Streams::new(args.seed));
    let trace = match (args.mean_mbps, args.rate_mbps) {
        (Some(mean), _) => model.with_mean(mean, duration, &streams)?,
        (None, rate) => model.with_rate(rate.unwrap_or(Rate::ZERO), duration, &streams)?,
    };
    super::write_text(&args.out, out, &trace.to_mahimahi())?;

    let info = trace.info();
    let windows = KpiTrace::of(&trace, WINDOW);
    let mbps = || windows.values().iter().map(|(_, rate)| rate.as_mbps());
    let (least, most) = (mbps().fold(f64::INFINITY, f64::min), mbps().fold(0.0, f64::max));
    if args.json {
        let object = json!({
            "seconds": info.seconds,
            "mean_mbps": info.mean_mbps,
            "least_mbps_100ms": least,
            "most_mbps_100ms": most,
            "out": args.out,
        });
        writeln!(out, "{object}")?;
        return Ok(Verdict::Fine);
    }
    let told = format!(
        "{:.3} s with {:.3} Mbit/s in the mean; over 100 ms {least:.1} to {most:.1} Mbit/s",
        info.seconds, info.mean_mbps
    );
    if is_piped {
        say(format_args!("made {told}"));
    } else {
        writeln!(out, "{}: {told}", args.out.display())?;
    }
    Ok(Verdict::Fine)
}

fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<f64>() {
        Ok(mbps) if mbps > 0.0 && mbps <= 10_000.0 => Ok(Rate::from_mbps(mbps)),
        _ => Err("give a rate above 0 and up to 10000, in Mbit/s".to_owned()),
    }
}
