//! `airpace kernel`: our schemes as congestion controls of this Linux kernel.

#[cfg(feature = "bpf")]
mod loaded;

use std::io::Write;
use std::path::PathBuf;

use airpace_cc::{SchemeError, SchemeSpec};

use super::Verdict;

/// How to build with the feature.
#[cfg(not(feature = "bpf"))]
const REMEDY: &str = "this program was built without the kernel's part: install clang, libelf-dev, zlib1g-dev and \
                      pkg-config and build with `--features bpf`, or start AIRPACE_FEATURES=bpf ./airpace. `airpace \
                      sim` and `airpace emu` do without it";

/// Runs a scheme in this Linux kernel: unmodified programs send by it.
///
/// As root, `load` brings BISCAY into the kernel and `feed` tells it what the radio grants, every millisecond. A
/// program chooses it for a socket (TCP_CONGESTION, `iperf3 -C biscay`), and needs no privileges for that. If the feed
/// is older than 100 ms, the kernel's own BBR controls. `unload` is safe while flows run.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace kernel load biscay && airpace kernel feed --mbps 20")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Loads a scheme; it stays until it is unloaded, or until the machine starts anew.
    Load {
        /// `biscay`, with options as in `airpace sim --scheme`.
        #[arg(default_value = "biscay", value_parser = biscay)]
        scheme: Box<SchemeSpec>,
    },
    /// Removes the scheme. Flows that use it keep it until they end.
    Unload,
    /// Says what is loaded, what its flows did and how old the feed is.
    Status {
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Tells the scheme what the radio grants, until its input ends or Ctrl-C.
    Feed(Feed),
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Feed {
    /// A socket of radio reports (`airpace emu --reports`), a file of them, or the radio of an ACK trace (`airpace sim
    /// --ack-trace`), which is played at its own pace; `-` for reports on standard input.
    #[arg(long, value_name = "FROM")]
    from: Option<PathBuf>,
    /// This bandwidth in Mbit/s all the time.
    #[arg(long, value_name = "RATE", value_parser = super::positive)]
    mbps: Option<f64>,
}

fn biscay(word: &str) -> Result<Box<SchemeSpec>, SchemeError> {
    SchemeSpec::parse(word).map(Box::new)
}

/// Runs the command.
#[cfg(feature = "bpf")]
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    match &args.what {
        What::Load { scheme } => loaded::load(scheme, out),
        What::Unload => loaded::unload(out),
        What::Status { json } => loaded::status(*json, out),
        What::Feed(Feed { from: Some(from), .. }) => loaded::feed(from, out),
        What::Feed(Feed { mbps, .. }) => loaded::feed_constant(mbps.unwrap_or_default(), out),
    }
}

/// Says what is missing.
#[cfg(not(feature = "bpf"))]
pub fn run(args: &Args, _: &mut dyn Write) -> anyhow::Result<Verdict> {
    match &args.what {
        What::Load { .. } | What::Unload | What::Status { .. } => {}
        What::Feed(Feed { from, mbps }) => debug_assert!(from.is_some() || mbps.is_some()),
    }
    anyhow::bail!(REMEDY)
}
