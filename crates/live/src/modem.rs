//! A modem to test against, on the wall clock: the [pure one](airpace_diag::modem) behind a pseudo-terminal or a TCP
//! port.
//!
//! ```text
//! Speech (a log replayed, a simulated cell) ──▶ Modem ◀──▶ Door ◀──▶ hosts, one after the other
//! ```
//!
//! What it has to say begins when the first host comes, and goes on whether one is there or not.

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

pub use door::Door;
pub use replay::{Cut, Recorded, Replay, ReplayOptions};

/// Something that a modem has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// When, since the speech began.
    pub at: Time,
    /// Whose.
    pub radio: Radio,
    /// What it reports.
    pub code: LogCode,
    /// Which time stamp it bears.
    pub stamped: Stamped,
    /// What it says.
    pub payload: Vec<u8>,
}

/// Which time stamp a packet bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamped {
    /// This.
    Kept(Stamp),
    /// The wall clock's at this time since the speech began.
    At(Time),
}

/// What comes next of a speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// This.
    Said(Said),
    /// It is not made yet.
    Later,
    /// Nothing: it is over.
    End,
}

/// Something that happened at the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A host came; from where, if that is known.
    HostCame(Option<String>),
    /// The host went. The modem keeps what it was told.
    HostWent,
    /// A host asked for something, drains left out.
    Asked(Request),
    /// All was said; the modem goes on to answer.
    AllSaid,
}

/// How the speech went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServeStats {
    /// What the modem did.
    pub modem: ModemStats,
    /// Hosts that came.
    pub hosts: u64,
    /// How late the latest packet was said: a speech that is made too slowly, or a busy machine.
    pub latest: Duration,
}

/// How long nothing is looked at, at most: the flag that ends it all.
const LOOKS_EVERY: Duration = Duration::from_millis(50);
/// How long to wait for what is not made yet.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// How long a host may take to read the last of what was said.
const LETS_READ: Duration = Duration::from_secs(10);
/// From 1970-01-01 to 1980-01-06.
const EPOCH: Duration = Duration::from_secs(315_964_800);

/// Lets hosts in, one after the other, until `is_over`, or, if `ends`, until all was said and sent to a host, or the host
/// that heard the end is gone.
///
/// # Errors
/// A door that breaks. Hosts that go are none.
pub fn serve(
    door: &mut Door,
    options: ModemOptions,
    ends: bool,
    mut speech: impl FnMut() -> Next,
    is_over: &AtomicBool,
    mut notice: impl FnMut(Notice),
) -> io::Result<ServeStats> {
    let mut modem = Modem::new(options);
    let opened = Instant::now();
    let mut begun: Option<Begin> = None;
    let mut next = Next::Later;
    let mut stats = ServeStats::default();
    let mut was_all_said = false;
    // Frames on their way to the host: as long as it does not take them, the modem keeps what comes after.
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
                    Next::Said(said) if begin.at + (said.at - Time::ZERO) <= now => {
                        stats.latest = stats.latest.max(now - (begin.at + (said.at - Time::ZERO)));
                        let Said { radio, code, .. } = *said;
                        let stamp = begin.stamp(said.stamped);
                        modem.feed(now, LogPacket { radio, code, stamp, payload: &said.payload });
                        next = Next::Later;
                    }
                    _ => break,
                }
            }
            if next == Next::End && !was_all_said {
                was_all_said = true;
                notice(Notice::AllSaid);
            }
        }
        if door.has_host() {
            while outgoing.is_empty() && modem.next_timer().is_some_and(|due| due <= now) {
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
        let is_told = outgoing.is_empty() && modem.next_timer().is_none();
        if ends && was_all_said && (is_told || !door.has_host()) {
            if let Err(error) = door.hand_over(LETS_READ) {
                // A host that went meanwhile has what it wanted.
                let is_gone = matches!(error.kind(), io::ErrorKind::NotConnected | io::ErrorKind::BrokenPipe);
                if !is_gone {
                    return Err(error);
                }
            }
            break;
        }
        let said = match (&next, begun) {
            (Next::Said(said), Some(begin)) => Some(begin.at + (said.at - Time::ZERO)),
            (Next::Later, Some(_)) => Some(now + ASKS_AGAIN_AFTER),
            _ => None,
        };
        let modem_due = modem.next_timer().filter(|_| door.has_host() && outgoing.is_empty());
        let due = said.into_iter().chain(modem_due).min();
        let wait = due.map_or(LOOKS_EVERY, |due| (due - (Time::ZERO + opened.elapsed())).min(LOOKS_EVERY));
        door.wait(wait, !outgoing.is_empty())?;
    }
    stats.modem = modem.stats();
    Ok(stats)
}

/// When a speech began, by two clocks.
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

/// Bytes that a host has not taken yet.
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

    /// Writes what the host takes now; whether it is still there.
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

/// Reads what the host said; whether it is still there.
fn read(door: &mut Door, buffer: &mut [u8], modem: &mut Modem, now: Time) -> bool {
    /// A host that never stops talking does not keep the modem from its own speech.
    const MOST_PIECES: usize = 16;
    for _ in 0..MOST_PIECES {
        match door.read(buffer) {
            Ok(Some(0)) | Err(_) => return false,
            Ok(Some(count)) => modem.push(now, &buffer[..count]),
            Ok(None) => return true,
        }
    }
    true
}
