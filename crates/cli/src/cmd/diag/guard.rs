//! `airpace diag guard`: the guard process of a daemon. The program starts it; users do not call it.

use std::os::fd::AsFd;

use anyhow::Context;

use crate::cmd::Verdict;

/// Restores a modem's settings if the daemon that started this guard dies.
///
/// `serve` and `watch` start the guard. It reads its instructions from standard input; its standard output is the port.
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
