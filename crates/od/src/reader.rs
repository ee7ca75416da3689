//! The programs' side: open the daemon, subscribe to KPIs, read.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! let od = od::Od::open(None)?;
//! let rsrp = od.subscribe("lte.rsrp")?;
//! let mut seen = 0;
//! loop {
//!     let reading = rsrp.wait(seen, Duration::from_secs(1))?;
//!     println!("{} dBm, {:?} old", reading.value, reading.age());
//!     seen = reading.sequence;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), od::Error>(())
//! ```

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::board::{AFTER_GAP, GENERATION_BIT, HAS_SUBFRAME};
use crate::clock::now_ns;
use crate::control::{Client, KpiInfo};
use crate::error::Error;
use crate::layout::{ALL_GROUPS, READING_WORDS, RUNNING, Row, group};
use crate::map::Mapping;

/// How long a daemon may be silent before it counts as dead. It gives a sign of life every few milliseconds.
///
/// Chosen: many missed signs. A machine under load may delay a thread by tens of milliseconds.
pub const HEARTBEAT_LIMIT: Duration = Duration::from_millis(100);

/// How long a daemon may be silent before readers stop waiting for it.
///
/// Chosen: longer than [`HEARTBEAT_LIMIT`]: a program that has nothing else to do loses nothing by waiting for a daemon
/// that the machine's load delays.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(1);

/// A value of a KPI at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The KPI's value, in its unit.
    pub value: f64,
    /// Counts the readings of this KPI from 1. Numbers between two that a reader saw are readings that the reader
    /// missed.
    pub sequence: u64,
    /// When the modem measured it, in ns since 1980-01-06 by its own clock; 0 if the modem did not say.
    pub modem_ns: u64,
    /// When the packet that holds it had arrived completely, in ns of [`crate::clock`].
    pub arrival_ns: u64,
    /// When it was published, in ns of [`crate::clock`].
    pub published_ns: u64,
    /// Its subframe, 10·SFN + subframe, if the packet tells.
    pub subframe: Option<u16>,
    /// Index of the carrier, 0 the primary cell's.
    pub carrier: u8,
    /// The phone's radio (SIM), from 1.
    pub radio: u8,
    /// Whether readings were lost between this one and the previous one: the port was gone, or packets were lost.
    pub is_after_gap: bool,
    /// Gaps before this reading since the daemon started: two readings with the same number have no gap between them.
    pub gaps: u64,
}

impl Reading {
    /// How long ago the packet that holds it came in. Zero for a time in the future, which no sound daemon publishes.
    pub fn age(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.arrival_ns))
    }

    fn from_words(words: [u64; READING_WORDS]) -> Reading {
        let [value, modem_ns, arrival_ns, published_ns, last, gaps, sequence] = words;
        Reading {
            value: f64::from_bits(value),
            sequence,
            modem_ns,
            arrival_ns,
            published_ns,
            subframe: (last & HAS_SUBFRAME != 0).then_some((last >> 32) as u16),
            carrier: (last >> 16) as u8,
            radio: (last >> 24) as u8,
            is_after_gap: last & AFTER_GAP != 0,
            gaps,
        }
    }
}

/// A daemon that was opened. Any thread may call any method at any time.
///
/// Its subscriptions end when it and all its [`Kpi`]s are dropped, or when the process ends.
#[derive(Clone, Debug)]
pub struct Od {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    mapping: Mapping,
    client: Mutex<Client>,
}

impl Od {
    /// Opens the daemon whose folder is `dir`, or [`crate::default_dir`].
    ///
    /// # Errors
    /// [`Error::NoDaemon`] if no daemon answers there, [`Error::NotABoard`] or [`Error::Version`] if the board cannot
    /// be read safely, and other errors that name what the system refused.
    pub fn open(dir: Option<&Path>) -> Result<Od, Error> {
        let dir = match dir {
            Some(dir) => dir.to_owned(),
            None => crate::default_dir()?,
        };
        let mut client = Client::connect(&dir)?;
        let mapping = client.board()?;
        // The first look at the clock finds the kernel's clock page; later ones cost no system call.
        now_ns();
        Ok(Od { shared: Arc::new(Shared { mapping, client: Mutex::new(client) }) })
    }

    /// The KPIs that the daemon offers. Asks the daemon.
    pub fn kpis(&self) -> Result<Vec<KpiInfo>, Error> {
        self.shared.ask(Client::list)
    }

    /// Subscribes to a KPI, `NAME` or `NAME@RADIO`, as long as the returned value lives. Asks the daemon. Of a KPI of
    /// each carrier, this is the primary's; `NAME#1` is the first secondary's, `NAME#all` all of them in one.
    ///
    /// # Errors
    /// [`Error::Refused`] with the daemon's reason: an unknown KPI (`ENOENT`), or no place for another one (`ENOSPC`).
    pub fn subscribe(&self, name: &str) -> Result<Kpi, Error> {
        let place = self.lease(name)?;
        Ok(Kpi { od: self.clone(), place })
    }

    /// Whether the daemon runs and has given a sign of life within [`HEARTBEAT_LIMIT`]. No system call.
    pub fn is_alive(&self) -> bool {
        self.silence().is_some_and(|silence| silence < HEARTBEAT_LIMIT)
    }

    /// How often the port or packets were lost since the daemon started. No system call.
    pub fn gaps(&self) -> u64 {
        self.shared.mapping.header().life.gaps.load(Ordering::Relaxed)
    }

    /// Waits until something was published after batch `seen`, for any KPI. Returns the number of the latest batch; 0
    /// is before the first. For programs that follow several KPIs: look at each of them after every batch.
    ///
    /// # Errors
    /// As [`Kpi::wait`].
    pub fn wait_any(&self, seen: u32, timeout: Duration) -> Result<u32, Error> {
        self.wait_until(ALL_GROUPS, timeout, |batch| (batch != seen).then_some(batch))
    }

    /// For how long the daemon has given no sign of life; `None` if it has stopped.
    fn silence(&self) -> Option<Duration> {
        let life = &self.shared.mapping.header().life;
        let heartbeat_ns = life.heartbeat_ns.load(Ordering::Relaxed);
        let is_running = life.state.load(Ordering::Relaxed) == RUNNING;
        is_running.then(|| Duration::from_nanos(now_ns().saturating_sub(heartbeat_ns)))
    }

    /// A lease on a KPI, by its place.
    pub(crate) fn lease(&self, name: &str) -> Result<Place, Error> {
        let slot = self.shared.ask(|client| client.subscribe(name))?;
        match self.shared.mapping.row(slot) {
            // The generation stays the same as long as the lease lasts.
            Some(row) => Ok(Place { slot, generation: row.generation.load(Ordering::Relaxed) }),
            None => Err(Error::Protocol { line: format!("ok {slot}") }),
        }
    }

    /// Places on the board.
    pub(crate) fn capacity(&self) -> u32 {
        self.shared.mapping.capacity()
    }

    pub(crate) fn release(&self, slot: u32) -> Result<(), Error> {
        self.shared.ask(|client| client.unsubscribe(slot))
    }

    #[inline]
    pub(crate) fn latest(&self, place: Place) -> Option<Reading> {
        let (_, words) = self.shared.row(place.slot).slot.read()?;
        let is_of_it = words[4] >> GENERATION_BIT == u64::from(place.generation);
        // No reading has number 0, whatever a false daemon writes.
        is_of_it.then(|| Reading::from_words(words)).filter(|reading| reading.sequence > 0)
    }

    /// Whether the place belongs to another KPI by now, because the daemon has ended the connection and with it the
    /// lease.
    fn is_lost(&self, place: Place) -> bool {
        self.shared.row(place.slot).generation.load(Ordering::Relaxed) != place.generation
    }

    /// The first reading beyond `after` that the reader sees; see [`Kpi::wait`].
    pub(crate) fn wait(&self, place: Place, after: u64, timeout: Duration) -> Result<Reading, Error> {
        self.wait_until(group(place.slot), timeout, |_| {
            if self.is_lost(place) {
                return Some(Err(Error::Stale));
            }
            self.latest(place).filter(|reading| reading.sequence > after).map(Ok)
        })?
    }

    /// Sleeps until `look`, which gets the batch's number, returns something. Wakes at every batch that has something
    /// of these groups.
    fn wait_until<T>(
        &self,
        groups: u32,
        timeout: Duration,
        look: impl Fn(u32) -> Option<T>,
    ) -> Result<T, Error> {
        let groups = NonZeroU32::new(groups).unwrap_or(NonZeroU32::MAX);
        let batches = &self.shared.mapping.header().news.batches;
        let deadline_ns = now_ns().saturating_add(timeout.as_nanos().try_into().unwrap_or(u64::MAX));
        loop {
            // Before looking: a batch that comes after the look changes the word, and then the sleep below does not
            // begin.
            let batch = batches.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if let Some(seen) = look(batch) {
                return Ok(seen);
            }
            let silence = self.silence().filter(|silence| *silence < GIVE_UP_AFTER).ok_or(Error::Stale)?;
            let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
            if left.is_zero() {
                return Err(Error::TimedOut);
            }
            // Not beyond the time at which the daemon would be given up.
            let nap = left.min(GIVE_UP_AFTER - silence);
            let until = monotonic_after(nap);
            match futex::wait_bitset(batches, futex::Flags::empty(), batch, Some(&until), groups) {
                Ok(()) | Err(Errno::AGAIN | Errno::TIMEDOUT) => {}
                Err(Errno::INTR) => return Err(Error::Interrupted),
                Err(errno) => return Err(Error::System { doing: "waiting for a reading", errno }),
            }
        }
    }
}

/// The instant after a nap, by the clock of timed sleeps.
fn monotonic_after(nap: Duration) -> Timespec {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = now.tv_nsec + i64::from(nap.subsec_nanos());
    Timespec {
        tv_sec: now.tv_sec + nap.as_secs() as i64 + nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    }
}

impl Shared {
    fn ask<T>(&self, question: impl FnOnce(&mut Client) -> Result<T, Error>) -> Result<T, Error> {
        // If a panic interrupted the client during an answer, the client knows that and refuses.
        question(&mut self.client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn row(&self, slot: u32) -> &Row {
        self.mapping.row(slot).expect("the place was checked when it was leased")
    }
}

/// A subscription to a KPI. It ends when this is dropped: the drop tells the daemon, and waits for its answer.
#[derive(Debug)]
pub struct Kpi {
    od: Od,
    place: Place,
}

/// The place of a leased KPI on the board.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub slot: u32,
    /// The number that the row and its readings carry as long as they belong to this KPI.
    pub generation: u32,
}

impl Kpi {
    /// The latest reading; `None` before the first. No system call, no lock, never waits.
    ///
    /// The reading may be old: its age tells how old, and [`Od::is_alive`] tells whether a newer one can be expected. A
    /// reading from before the subscription may be there too, if another program was subscribed then. A daemon that has
    /// ended the connection may give the place to another KPI. Readings of that KPI are not returned: `None`.
    #[inline]
    pub fn latest(&self) -> Option<Reading> {
        self.od.latest(self.place)
    }

    /// Waits for a reading beyond sequence number `after` (0: any), and returns the latest.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if none came in time. [`Error::Stale`] at once when the daemon stops, and [`GIVE_UP_AFTER`]
    /// its last sign of life when it dies. [`Error::Interrupted`] after a signal.
    pub fn wait(&self, after: u64, timeout: Duration) -> Result<Reading, Error> {
        self.od.wait(self.place, after, timeout)
    }

    /// Its name on the board, with the radio unless that is the first. Empty if the daemon wrote no name, or has given
    /// the place to another KPI.
    pub fn name(&self) -> String {
        self.row().and_then(|row| row.name.get()).unwrap_or_default()
    }

    /// Unit of its values; empty for a plain number.
    pub fn unit(&self) -> String {
        self.row().and_then(|row| row.unit.get()).unwrap_or_default()
    }

    /// Its row, as long as the row belongs to this KPI.
    fn row(&self) -> Option<&Row> {
        (!self.od.is_lost(self.place)).then(|| self.od.shared.row(self.place.slot))
    }

    /// The daemon that publishes this KPI.
    pub fn od(&self) -> &Od {
        &self.od
    }
}

impl Drop for Kpi {
    fn drop(&mut self) {
        // A daemon that is gone has no leases. A daemon that does not answer drops them with the connection.
        let _ = self.od.release(self.place.slot);
    }
}
