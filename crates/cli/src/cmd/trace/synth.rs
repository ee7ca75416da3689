//! `airpace trace synth`: makes a trace, for use without a recording.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::{Rate, Streams};
use airpace_path::trace::KpiTrace;
use airpace_path::trace::synth::Model;
use serde_json::json;

use super::Verdict;
use crate::terminal::say;

/// Makes a trace: chances to deliver that come as the model says, in mahimahi's form.
///
/// It tells what the trace carries: in the mean, and within tenths of a second the least and the most; on standard error
/// where the trace itself goes to standard output.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace trace synth --mean-mbps 12 --seconds 60 --out made.down\n         \
                         airpace trace synth --model constant --mean-mbps 12 | airpace trace info -",
    group = clap::ArgGroup::new("rate").args(["mean_mbps", "rate_mbps"]).required(true)
)]
pub struct Args {
    /// How the rate moves.
    #[arg(long, value_enum, default_value_t = ModelArg::Cellular)]
    model: ModelArg,
    /// What the trace carries in the mean, in Mbit/s: it comes out so to the packet, whatever the model.
    #[arg(long, value_name = "MBPS", value_parser = rate)]
    mean_mbps: Option<Rate>,
    /// Instead of the mean, the rate that the model is given, in Mbit/s: constant and poisson hold it; cellular starts there,
    /// wanders between nothing and twice of it, and may carry half of it in the mean, or nearly twice.
    #[arg(long, value_name = "MBPS", value_parser = rate)]
    rate_mbps: Option<Rate>,
    /// Length in seconds.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Seed of the random numbers: the same seed makes the same trace.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The file to write; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Prints one JSON object that sums up the trace; --out then names a file for it.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ModelArg {
    /// Chances at random, at a rate that wanders and at times stays away for some tenths of a second.
    Cellular,
    /// Chances at random, at a fixed rate.
    Poisson,
    /// Chances as even as milliseconds allow.
    Constant,
}

/// The length of the windows whose lowest and highest rates are printed.
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
