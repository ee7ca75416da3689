//! One endpoint of a bulk flow within an emulated run, for tests of the emulator by hand.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use airpace_emu::bulk::{Bulk, Part, Task};
use airpace_lab::inside;
use anyhow::Context;

use super::super::Verdict;

/// Runs one endpoint of a bulk flow within an emulated run.
///
/// It is for tests of the emulator by hand.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace emu-bulk listen 100.64.0.1:9 send 2", hide = true)]
pub struct Args {
    /// Whether this endpoint listens for the connection or opens it.
    #[arg(value_parser = part)]
    part: Part,
    /// The address of the listening endpoint.
    address: SocketAddr,
    /// Whether this endpoint sends or receives.
    #[arg(value_parser = task)]
    task: Task,
    /// Duration of the transfer in seconds.
    #[arg(value_parser = super::super::positive)]
    seconds: f64,
    /// The kernel's congestion control.
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Configures the network namespace so that buffers never limit the flow.
    #[arg(long)]
    wide: bool,
}

fn part(word: &str) -> Result<Part, String> {
    match word {
        "listen" => Ok(Part::Listen),
        "connect" => Ok(Part::Connect),
        _ => Err("give listen or connect".to_owned()),
    }
}

fn task(word: &str) -> Result<Task, String> {
    match word {
        "send" => Ok(Task::Send),
        "receive" => Ok(Task::Receive),
        _ => Err("give send or receive".to_owned()),
    }
}

/// Runs the endpoint until the transfer ends. A waiting endpoint prints that it listens, and a receiver prints its
/// goodput in Mbit/s.
///
/// # Errors
/// The connection cannot be opened, or a system call failed.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let bulk = Bulk {
        part: args.part,
        address: args.address,
        task: args.task,
        long: Duration::try_from_secs_f64(args.seconds).context("the time is too long")?,
        congestion_control: args.cc.clone(),
        is_wide: args.wide,
    };
    inside::bulk_flow(&bulk, out)?;
    Ok(Verdict::Fine)
}
