//! `airpace diag guard`: a process beside a daemon. The program starts it; users do not call it.

use std::os::fd::AsFd;

use anyhow::Context;

use crate::cmd::Verdict;

/// Gives a modem back as it was if the daemon beside which it was started dies. `serve` and `watch` start it.
///
/// What to do comes on standard input, the port is standard output.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace diag serve --port /dev/ttyUSB2", hide = true)]
pub struct Args {}

/// Runs the guard.
pub fn run(_: &Args) -> anyhow::Result<Verdict> {
    // Signals that end the daemon must not end its guard.
    ctrlc::set_handler(|| {}).context("cannot keep signals off")?;
    let port = std::io::stdout().as_fd().try_clone_to_owned().context("cannot take over the port")?;
    airpace_modem::guard::stand(std::io::stdin().lock(), port).context("cannot give the modem back")?;
    Ok(Verdict::Fine)
}
