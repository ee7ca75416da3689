//! Modem port as a source of live radio reports: the phone's own grants from the modem's log.
//!
//! The daemon's threads read the port and restore the modem, as for every live command; nothing is published. A
//! separate thread converts the log packets to reports.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use airpace_diag::grant::Grants;
use airpace_diag::grant::prompt::Prompt;
use airpace_diag::{Radio, log};
use airpace_feed::{Fed, Feeder};
use airpace_rt::clock;

use crate::daemon::{Daemon, Notice, Options, Packet, StartError};

/// Maximum number of log packets in the queue.
///
/// Chosen: ten seconds of a busy modem.
const ROOM: usize = 1 << 14;

/// Maximum wait for a packet between checks for notices.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Error that prevents reports from a modem.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The port can never belong to a modem, or another program uses it.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The operating system has no thread or descriptor left.
    #[error("the system has no thread left; end other programs")]
    Thread(#[source] io::Error),
}

/// One field of each packet about grants, as names of KPIs: for [`Options::kpis`], so that the daemon requests these
/// packets from the modem.
pub fn about_grants() -> Vec<String> {
    let codes: BTreeSet<_> = Grants::codes();
    let field = |code| log::code(code)?.layouts.first()?.root.fields.first();
    codes.into_iter().filter_map(|code| Some(format!("{code}:{}", field(code)?.name))).collect()
}

/// Reads reports from the modem at the port of these options, of which [`Options::kpis`] have to contain
/// [`about_grants`], and [`Options::packets`] is replaced. A port that does not exist yet, or disappears, is opened when it
/// exists. `not_restored` is called at the end if the modem did not respond to the requests that restore it.
///
/// # Errors
/// The port can never belong to a modem, another program uses it, or the system has no thread left.
pub fn open(mut options: Options, not_restored: impl Fn(Notice) + Send + 'static) -> Result<Fed, OpenError> {
    let name = format!("the modem at {}", options.source);
    let (sender, packets) = mpsc::sync_channel(ROOM);
    options.packets = Some(sender);
    let daemon = Daemon::start(options)?;
    let listen = move |feeder: &mut Feeder| {
        listen(feeder, &daemon, &packets);
        daemon.leave();
        daemon.notices().iter().filter(|notice| matches!(notice, Notice::NotRestored)).for_each(not_restored);
    };
    Fed::start(name, "modem", listen).map_err(OpenError::Thread)
}

fn listen(feeder: &mut Feeder, daemon: &Daemon, packets: &Receiver<Packet>) {
    // One converter for all sessions, so that the subframe index continues from one session to the next.
    let mut prompt = Prompt::new(Radio::FIRST);
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
}
