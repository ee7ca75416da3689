//! Program that sends and receives the packets of a schedule on one host. `airpace emu agree` starts it.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use airpace_emu::play::player::{Part, Side, play};
use airpace_emu::play::schedule::Schedule;
use anyhow::Context;

use super::super::Verdict;

/// Maximum size of a schedule file (bytes).
///
/// Chosen: as many packets as a schedule may have, in lines of 40 bytes.
pub const MAX_BYTES: u64 = 800 << 20;

/// Sends and receives the packets of a schedule on one host.
///
/// `airpace emu agree` starts this program on each device and at the far end.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace emu-play --schedule s.csv --device 0 --peer 100.64.0.1 --start 5 --until 9",
    hide = true
)]
pub struct Args {
    /// The schedule, a table of `ms,bytes,direction,device`.
    #[arg(long, value_name = "FILE")]
    schedule: PathBuf,
    /// Index of the device on which this program runs; absent at the far end.
    #[arg(long)]
    device: Option<u16>,
    /// The address of the far end, or the addresses of the devices in order.
    #[arg(long, required = true)]
    peer: Vec<Ipv4Addr>,
    /// Start time of the schedule, in nanoseconds of the machine's monotonic clock.
    #[arg(long)]
    start: u64,
    /// End of reception, in nanoseconds of the machine's monotonic clock.
    #[arg(long)]
    until: u64,
}

/// Sends the packets of the schedule, and prints records of sent and received packets.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let name = args.schedule.display();
    let text = airpace_files::read_to_string(&args.schedule, MAX_BYTES)
        .with_context(|| format!("cannot read `{name}`; give a table of `ms,bytes,direction`"))?;
    let schedule = Schedule::parse(&text).with_context(|| name.to_string())?;
    let side = match args.device {
        Some(device) => Side::Device(device, args.peer[0]),
        None => Side::Far(args.peer.clone()),
    };
    let part = Part { side, start_ns: args.start, until_ns: args.until };
    let notes = play(&schedule, &part).context("cannot send or receive packets")?;
    out.write_all(notes.to_text().as_bytes())?;
    Ok(Verdict::Fine)
}
