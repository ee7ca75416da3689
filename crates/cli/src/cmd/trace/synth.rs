//! `airpace trace synth`: a trace where no recording is at hand.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use airpace_core::{Rate, Streams};
use airpace_path::trace::synth::Model;

use super::Verdict;

/// Makes a trace: chances to deliver that come as the model says, in mahimahi's form.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace trace synth --rate-mbps 12 --seconds 60 --out made.down\n         \
                         airpace trace synth --model constant --rate-mbps 12 | airpace trace info -"
)]
pub struct Args {
    /// How the rate moves.
    #[arg(long, value_enum, default_value_t = ModelArg::Cellular)]
    model: ModelArg,
    /// The rate in Mbit/s: the cellular model starts there and wanders between nothing and twice of it.
    #[arg(long, value_name = "MBPS", value_parser = rate)]
    rate_mbps: Rate,
    /// Length in seconds.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Seed of the random numbers: the same seed makes the same trace.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The file to write; `-` is standard output.
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
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

/// Makes the trace.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let model = match args.model {
        ModelArg::Cellular => Model::Cellular,
        ModelArg::Poisson => Model::Poisson,
        ModelArg::Constant => Model::Constant,
    };
    let duration = Duration::from_secs(args.seconds.into());
    let trace = model.make(args.rate_mbps, duration, &Streams::new(args.seed))?;
    super::write_text(&args.out, out, &trace.to_mahimahi())?;
    Ok(Verdict::Fine)
}

fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<f64>() {
        Ok(mbps) if mbps > 0.0 && mbps <= 10_000.0 => Ok(Rate::from_mbps(mbps)),
        _ => Err("give a rate above 0 and up to 10000, in Mbit/s".to_owned()),
    }
}
