//! Modem port as a source of radio reports: the phone's own grants from the modem's log.
//!
//! The daemon's threads read the port and restore the modem, as for every live command; nothing is published. A
//! separate thread converts the log packets to reports.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use airpace_diag::Radio as OfModem;
use airpace_diag::grant::prompt::Prompt;
use airpace_feed::{Fed, Feeder, Radio};
use airpace_modem::daemon::{Daemon, Notice, Packet};
use airpace_modem::source::Source;
use airpace_rt::clock;
use anyhow::Context;

use crate::cmd::diag::port::{ListenArgs, about_grants};
use crate::terminal::say;

/// Maximum number of log packets in the queue.
///
/// Chosen: ten seconds of a busy modem.
const ROOM: usize = 1 << 14;

/// Maximum wait for a packet between checks for notices.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Reads reports from the modem at this port. A port that does not exist yet, or disappears, is opened when it exists.
///
/// # Errors
/// The port can never belong to a modem, or another program uses it.
pub fn open(text: &str, source: Source) -> anyhow::Result<Box<dyn Radio>> {
    let source = source.lasting();
    let name = format!("the modem at {source}");
    let (sender, packets) = mpsc::sync_channel(ROOM);
    let mut options = ListenArgs::default().options(source, &about_grants(), None)?;
    options.packets = Some(sender);
    let daemon = Daemon::start(options).with_context(|| {
        format!(
            "--radio {text} is no modem's port that can be read; if `airpace diag serve` reads the modem, give --radio od"
        )
    })?;
    let fed = Fed::start(name, "modem", move |feeder| {
        listen(feeder, &daemon, &packets);
    });
    Ok(Box::new(fed.context("the system has no thread left; end other programs")?))
}

fn listen(feeder: &mut Feeder, daemon: &Daemon, packets: &Receiver<Packet>) {
    // One converter for all sessions, so that the subframe index continues from one session to the next.
    let mut prompt = Prompt::new(OfModem::FIRST);
    while !feeder.is_over() {
        match packets.recv_timeout(LOOK_EVERY) {
            Ok(packet) => {
                prompt.push(&packet.as_log_packet());
                packets.try_iter().for_each(|packet| prompt.push(&packet.as_log_packet()));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        for notice in daemon.notices().try_iter() {
            match notice {
                Notice::Streaming(_) => feeder.open(),
                Notice::NotOpened(_) | Notice::Lost(_) | Notice::Failed(_) => feeder.close(notice),
                Notice::Broken(_) => feeder.end(notice),
                // Missing log codes are normal: no modem supports all of them.
                Notice::Opened
                | Notice::Missing(..)
                | Notice::Trouble(_)
                | Notice::Realtime(_)
                | Notice::Unguarded(_)
                | Notice::NotRestored => {}
            }
        }
        let came = clock::now();
        for report in prompt.take() {
            feeder.tell(came, report);
        }
    }
    daemon.leave();
    for notice in daemon.notices() {
        if matches!(notice, Notice::NotRestored) {
            say(notice);
        }
    }
}
