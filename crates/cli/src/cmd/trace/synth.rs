//! `airpace trace synth`: a trace where no recording is at hand.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use airpace_core::{Rate, Streams};
use airpace_path::trace::Trace;
use airpace_path::trace::synth::{RandomWalk, constant, poisson};

use super::Verdict;

/// Makes a trace: chances to deliver that come as the model says, in mahimahi's form.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace trace synth --rate-mbps 12 --seconds 60 --out made.down\n         \
                         airpace trace synth --model constant --rate-mbps 12 | airpace trace info -"
)]
pub struct Args {
    /// How the rate moves.
    #[arg(long, value_enum, default_value_t = Model::Cellular)]
    model: Model,
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
enum Model {
    /// Chances at random, at a rate that wanders and at times stays away for some tenths of a second.
    Cellular,
    /// Chances at random, at a fixed rate.
    Poisson,
    /// Chances as even as milliseconds allow.
    Constant,
}

/// Makes the trace.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let streams = Streams::new(args.seed);
    let duration = Duration::from_secs(args.seconds.into());
    let trace = match args.model {
        Model::Cellular => cellular(args.rate_mbps, args.seconds, &streams)?,
        Model::Poisson => poisson(args.rate_mbps, duration, &mut streams.stream("trace.synth"))?,
        Model::Constant => constant(args.rate_mbps, duration)?,
    };
    super::write_text(&args.out, out, &trace.to_mahimahi())?;
    Ok(Verdict::Fine)
}

/// A link like a cellular one, around `rate`.
pub fn cellular(rate: Rate, seconds: u32, streams: &Streams) -> anyhow::Result<Trace> {
    let mbps = rate.as_mbps();
    // Chosen: the walk of Sprout's model, 200 on a scale from 0 to 1000 in one second, scaled to this rate; outages of
    // 0.3 s in the mean and not of 1 s, or a minute often has one that a transport does not survive.
    let walk = RandomWalk {
        start_mbps: mbps,
        max_mbps: 2.0 * mbps,
        volatility_mbps: 0.4 * mbps,
        outage_mean_ms: 300.0,
    };
    Ok(walk.generate(Duration::from_secs(seconds.into()), &mut streams.stream("trace.synth"))?)
}

fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<f64>() {
        Ok(mbps) if mbps > 0.0 && mbps <= 10_000.0 => Ok(Rate::from_mbps(mbps)),
        _ => Err("give a rate above 0 and up to 10000, in Mbit/s".to_owned()),
    }
}
