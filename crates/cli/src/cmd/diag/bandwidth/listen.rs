//! Computation of the bandwidth from the packets of a live modem.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use airpace_modem::daemon::{Daemon, Notice};
use airpace_modem::reports::about_grants;
use airpace_modem::source::Source;
use anyhow::{Context, bail};

use super::super::input::Sink;
use super::super::port::{ListenArgs, parse_duration};
use super::Determine;
use crate::terminal::say;

/// Maximum number of log packets in the queue.
///
/// Chosen: the packets of a busy modem in ten seconds.
const ROOM: usize = 1 << 14;
/// Maximum wait for a packet between checks of the windows.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Options that apply only to a live modem.
#[derive(clap::Args)]
pub struct LiveArgs {
    /// Stops after this time, such as 10s.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, conflicts_with = "files")]
    span: Option<Duration>,
    /// For a port: maximum wait of a window for late packets.
    ///
    /// The modem logs a DCI immediately, and the result of the transport block some hundred milliseconds later.
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "200ms")]
    pub hold: Duration,
    #[command(flatten)]
    listen: ListenArgs,
}

/// Reads packets until it is stopped, and then restores the modem.
///
/// # Errors
/// The modem does not answer during its restoration, or the series cannot be written.
pub fn listen(source: Source, args: &LiveArgs, determine: &mut Determine<'_>) -> anyhow::Result<()> {
    let (sender, packets) = mpsc::sync_channel(ROOM);
    let mut options = args.listen.options(source, &about_grants(), None)?;
    options.packets = Some(sender);
    let daemon = Daemon::start(options)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    ctrlc::set_handler(move || {
        if over.swap(true, Ordering::Relaxed) {
            // The guard restores the modem.
            std::process::exit(2);
        }
    })
    .context("cannot listen to signals")?;
    let end = args.span.map(|span| Instant::now() + span);
    let mut outcome = Ok(());
    while outcome.is_ok() && !is_over.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
        match packets.recv_timeout(LOOK_EVERY) {
            Ok(packet) => {
                determine.packet(&packet.as_log_packet());
                packets.try_iter().for_each(|packet| determine.packet(&packet.as_log_packet()));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        for notice in daemon.notices().try_iter() {
            say(notice);
        }
        outcome = determine.pause();
    }
    // The modem is restored in every case, also after an error.
    daemon.leave();
    drop(packets);
    for notice in daemon.notices() {
        if matches!(notice, Notice::NotRestored | Notice::Broken(_)) {
            bail!("{notice}");
        }
    }
    outcome
}
