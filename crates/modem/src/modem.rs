//! A modem emulator for tests in real time: the [emulated modem](airpace_diag::modem) at a pseudo-terminal or a TCP
//! port.
//!
//! ```text
//! packet source (replayed log, simulated cell) ──▶ Modem ◀──▶ Door ◀──▶ hosts, one after the other
//! ```
//!
//! The packet source (`speech` in [`serve`]) starts when the first host connects, and continues with or without a host.

mod door;
mod replay;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use airpace_core::Time;
use airpace_diag::command::Request;
use airpace_diag::{LogCode, LogPacket, Modem, ModemOptions, ModemStats, Radio, Stamp};
use airpace_rt::priority;

pub use door::Door;
pub use replay::{Cut, Recorded, Replay, ReplayOptions};

/// A packet that the emulated modem sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedPacket {
    /// Send time, relative to the start of the packet source.
    pub at: Time,
    /// Radio of the packet.
    pub radio: Radio,
    /// Log code, which identifies the content.
    pub code: LogCode,
    /// Time stamp of the packet.
    pub stamped: Stamped,
    /// Content.
    pub payload: Vec<u8>,
}

/// Time stamp of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamped {
    /// The stamp is kept unchanged.
    Kept(Stamp),
    /// The stamp is the wall-clock time at this time after the start of the packet source.
    At(Time),
}

/// The next item of a packet source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next packet.
    Packet(TimedPacket),
    /// The next packet does not exist yet.
    Later,
    /// The packet source has ended.
    End,
}

/// An event at the front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A host connected; the text is its address, if known.
    HostCame(Option<String>),
    /// The host disconnected. The modem keeps its masks.
    HostWent,
    /// A host made a request other than a drain.
    Asked(Request),
    /// The packet source has ended; the modem continues to respond.
    SpeechOver,
}

/// Statistics of a served packet source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServeStats {
    /// Counters of the modem.
    pub modem: ModemStats,
    /// Number of hosts that connected.
    pub hosts: u64,
    /// Maximum delay of a packet. A large value means that the packet source is too slow, or the machine is busy.
    pub latest: Duration,
}

/// Maximum interval between checks whether the service must end.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// Interval between requests to the packet source while its next packet does not exist yet.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// Maximum time for a host to read the last packets.
const FINAL_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Time from 1970-01-01 to 1980-01-06.
const EPOCH: Duration = Duration::from_secs(315_964_800);

/// Serves hosts, one after the other, until `is_over`. With `ends`, the function also returns when all packets were
/// sent to a host, or when the host that received the last packets is gone.
///
/// # Errors
/// The front end fails. A host that disconnects is not an error.
pub fn serve(
    door: &mut Door,
    options: ModemOptions,
    ends: bool,
    mut speech: impl FnMut() -> Next,
    is_over: &AtomicBool,
    mut notice: impl FnMut(Notice),
) -> io::Result<ServeStats> {
    // Short time slices make the emulated modem respond in time: a real modem does not wait for the host's processor.
    let _ = priority::request_short_slices();
    let mut modem = Modem::new(options);
    let opened = Instant::now();
    let mut begun: Option<Begin> = None;
    let mut next = Next::Later;
    let mut stats = ServeStats::default();
    let mut is_speech_over = false;
    // Frames to be sent to the host. Until the host accepts these frames, the modem keeps later frames.
    let mut outgoing = Outgoing::default();
    let mut incoming = [0; 4_096];
    while !is_over.load(Ordering::Relaxed) {
        let now = Time::ZERO + opened.elapsed();
        if let Some(begin) = begun {
            loop {
                if next == Next::Later {
                    next = speech();
                }
                match &next {
                    Next::Packet(packet) if begin.at + (packet.at - Time::ZERO) <= now => {
                        stats.latest = stats.latest.max(now - (begin.at + (packet.at - Time::ZERO)));
                        let TimedPacket { radio, code, .. } = *packet;
                        let stamp = begin.stamp(packet.stamped);
                        modem.feed(now, LogPacket { radio, code, stamp, payload: &packet.payload });
                        next = Next::Later;
                    }
                    _ => break,
                }
            }
            if next == Next::End && !is_speech_over {
                is_speech_over = true;
                notice(Notice::SpeechOver);
            }
        }
        if door.has_host() {
            while outgoing.is_empty() && modem.poll_timeout().is_some_and(|due| due <= now) {
                outgoing.clear();
                modem.pop(now, &mut outgoing.bytes);
            }
            let is_here = outgoing.write(door) && read(door, &mut incoming, &mut modem, now);
            modem.take_asked().into_iter().for_each(|request| notice(Notice::Asked(request)));
            if !is_here {
                door.close();
                modem.hang_up();
                outgoing.clear();
                notice(Notice::HostWent);
                continue;
            }
        } else if let Some(name) = door.try_open()? {
            stats.hosts += 1;
            begun.get_or_insert_with(|| Begin { at: now, unix: SystemTime::now() });
            notice(Notice::HostCame(name));
            continue;
        }
        let is_told = outgoing.is_empty() && modem.poll_timeout().is_none();
        if ends && is_speech_over && (is_told || !door.has_host()) {
            if let Err(error) = door.hand_over(FINAL_READ_TIMEOUT) {
                // A host that disconnected in the meantime needs no more data.
                let is_gone = matches!(error.kind(), io::ErrorKind::NotConnected | io::ErrorKind::BrokenPipe);
                if !is_gone {
                    return Err(error);
                }
            }
            break;
        }
        let sends_at = match (&next, begun) {
            (Next::Packet(packet), Some(begin)) => Some(begin.at + (packet.at - Time::ZERO)),
            (Next::Later, Some(_)) => Some(now + ASKS_AGAIN_AFTER),
            _ => None,
        };
        let modem_due = modem.poll_timeout().filter(|_| door.has_host() && outgoing.is_empty());
        let due = sends_at.into_iter().chain(modem_due).min();
        let wait = due.map_or(LOOKS_EVERY, |due| (due - (Time::ZERO + opened.elapsed())).min(LOOKS_EVERY));
        door.wait(wait, !outgoing.is_empty())?;
    }
    stats.modem = modem.stats();
    Ok(stats)
}

/// Start time of the packet source, on two clocks.
#[derive(Clone, Copy)]
struct Begin {
    at: Time,
    unix: SystemTime,
}

impl Begin {
    fn stamp(self, stamped: Stamped) -> Stamp {
        match stamped {
            Stamped::Kept(stamp) => stamp,
            Stamped::At(at) => {
                let unix = self.unix.duration_since(UNIX_EPOCH).unwrap_or(EPOCH);
                let nanos = unix.saturating_sub(EPOCH).as_nanos() as u64;
                Stamp::from_nanos(nanos.saturating_add(at.as_nanos()))
            }
        }
    }
}

/// Bytes that a host has not accepted yet.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    taken: usize,
}

impl Outgoing {
    fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.taken = 0;
    }

    /// Writes as many bytes as the host accepts now; returns whether the host is still connected.
    fn write(&mut self, door: &mut Door) -> bool {
        while !self.is_empty() {
            match door.write(&self.bytes[self.taken..]) {
                Ok(0) => return true,
                Ok(count) => self.taken += count,
                Err(_) => return false,
            }
        }
        true
    }
}

/// Reads the host's bytes; returns whether the host is still connected.
fn read(door: &mut Door, buffer: &mut [u8], modem: &mut Modem, now: Time) -> bool {
    /// Maximum number of reads per call. A host that never stops sending must not keep the modem from sending.
    const MAX_PIECES: usize = 16;
    for _ in 0..MAX_PIECES {
        match door.read(buffer) {
            Ok(Some(0)) | Err(_) => return false,
            Ok(Some(count)) => modem.push(now, &buffer[..count]),
            Ok(None) => return true,
        }
    }
    true
}
