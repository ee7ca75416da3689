//! Program side: connect to the daemon, subscribe to KPIs, read their values.
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

/// Maximum age of the heartbeat of a live daemon. The daemon writes a heartbeat every few milliseconds.
///
/// Chosen: many heartbeat intervals. A machine under load may delay a thread by tens of milliseconds.
pub const HEARTBEAT_LIMIT: Duration = Duration::from_millis(100);

/// Maximum age of the heartbeat at which readers still wait for the daemon.
///
/// Chosen: longer than [`HEARTBEAT_LIMIT`]. A waiting program has nothing else to do, so it can also wait for a daemon
/// that is delayed by the machine's load.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(1);

/// A value of a KPI at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The KPI's value, in its unit.
    pub value: f64,
    /// Sequence number of the reading within its KPI, from 1. Numbers that are missing between two received readings
    /// are those of readings that the reader missed.
    pub sequence: u64,
    /// Time of the measurement in ns since 1980-01-06, by the modem's clock; 0 if the packet has no timestamp.
    pub modem_ns: u64,
    /// Time at which the packet with this value was received completely, in ns of [`crate::clock`].
    pub arrival_ns: u64,
    /// Time of publication, in ns of [`crate::clock`].
    pub published_ns: u64,
    /// Subframe of the measurement, 10·SFN + subframe; `None` if the packet does not contain it.
    pub subframe: Option<u16>,
    /// Index of the carrier; 0 is the primary cell.
    pub carrier: u8,
    /// Index of the phone's radio (SIM), from 1.
    pub radio: u8,
    /// Whether readings may be missing between this reading and the previous reading, because the connection to the
    /// port or packets were lost.
    pub is_after_gap: bool,
    /// Number of gaps before this reading since the daemon started. If two readings have the same number, there is no
    /// gap between them.
    pub gaps: u64,
}

impl Reading {
    /// Time since the packet with this reading was received. Zero if the arrival time lies in the future, which a
    /// correct daemon never publishes.
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

/// Connection to a daemon. Any thread may call any method at any time.
///
/// The subscriptions of a connection end when the last clone and all [`Kpi`]s are dropped, or when the process ends.
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
    /// Connects to the daemon whose folder is `dir`; `None` means [`crate::default_dir`].
    ///
    /// # Errors
    /// [`Error::NoDaemon`] if no daemon answers there, [`Error::NotABoard`] or [`Error::Version`] if the shared-memory
    /// region cannot be read safely, and other errors that name the system call that failed.
    pub fn open(dir: Option<&Path>) -> Result<Od, Error> {
        let dir = match dir {
            Some(dir) => dir.to_owned(),
            None => crate::default_dir()?,
        };
        let mut client = Client::connect(&dir)?;
        let mapping = client.board()?;
        // The first call initialises the vDSO clock; later calls make no system call.
        now_ns();
        Ok(Od { shared: Arc::new(Shared { mapping, client: Mutex::new(client) }) })
    }

    /// Requests the list of KPIs that the daemon offers.
    pub fn kpis(&self) -> Result<Vec<KpiInfo>, Error> {
        self.shared.ask(Client::list)
    }

    /// Subscribes to a KPI, `NAME` or `NAME@RADIO`, until the returned value is dropped. Sends a request to the daemon.
    /// For a KPI that exists per carrier, `NAME` is the primary carrier's KPI, `NAME#1` the first secondary carrier's,
    /// and `NAME#all` contains the readings of all carriers.
    ///
    /// # Errors
    /// [`Error::Refused`] with the daemon's reason: an unknown KPI (`ENOENT`), or no free row for another KPI
    /// (`ENOSPC`).
    pub fn subscribe(&self, name: &str) -> Result<Kpi, Error> {
        let place = self.lease(name)?;
        Ok(Kpi { od: self.clone(), place })
    }

    /// Whether the daemon runs and its last heartbeat is younger than [`HEARTBEAT_LIMIT`]. Makes no system call.
    pub fn is_alive(&self) -> bool {
        self.silence().is_some_and(|silence| silence < HEARTBEAT_LIMIT)
    }

    /// Number of gaps (losses of the port or of packets) since the daemon started. Makes no system call.
    pub fn gaps(&self) -> u64 {
        self.shared.mapping.header().life.gaps.load(Ordering::Relaxed)
    }

    /// Waits until readings of any KPI were published after batch `seen` (0: any batch). Returns the number of the
    /// latest batch. This method is for programs that follow several KPIs: they read each KPI after every batch.
    ///
    /// # Errors
    /// As [`Kpi::wait`].
    pub fn wait_any(&self, seen: u32, timeout: Duration) -> Result<u32, Error> {
        self.wait_until(ALL_GROUPS, timeout, |batch| (batch != seen).then_some(batch))
    }

    /// Age of the last heartbeat; `None` if the daemon has stopped.
    fn silence(&self) -> Option<Duration> {
        let life = &self.shared.mapping.header().life;
        let heartbeat_ns = life.heartbeat_ns.load(Ordering::Relaxed);
        let is_running = life.state.load(Ordering::Relaxed) == RUNNING;
        is_running.then(|| Duration::from_nanos(now_ns().saturating_sub(heartbeat_ns)))
    }

    /// Requests a lease on a KPI; returns the KPI's row and generation.
    pub(crate) fn lease(&self, name: &str) -> Result<Place, Error> {
        let slot = self.shared.ask(|client| client.subscribe(name))?;
        match self.shared.mapping.row(slot) {
            // The generation stays the same as long as the lease lasts.
            Some(row) => Ok(Place { slot, generation: row.generation.load(Ordering::Relaxed) }),
            None => Err(Error::Protocol { line: format!("ok {slot}") }),
        }
    }

    /// Maximum number of rows.
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
        // Sequence numbers start at 1. A faulty daemon might publish 0.
        is_of_it.then(|| Reading::from_words(words)).filter(|reading| reading.sequence > 0)
    }

    /// Whether the row belongs to another KPI by now, because the daemon has closed the connection and thus ended the
    /// lease.
    fn is_lost(&self, place: Place) -> bool {
        self.shared.row(place.slot).generation.load(Ordering::Relaxed) != place.generation
    }

    /// Waits for a reading with a sequence number above `after`; see [`Kpi::wait`].
    pub(crate) fn wait(&self, place: Place, after: u64, timeout: Duration) -> Result<Reading, Error> {
        self.wait_until(group(place.slot), timeout, |_| {
            if self.is_lost(place) {
                return Some(Err(Error::Stale));
            }
            self.latest(place).filter(|reading| reading.sequence > after).map(Ok)
        })?
    }

    /// Sleeps until `look` returns a value. `look` is called with the number of the latest batch, at the start and
    /// after every batch with readings of these groups.
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
            // Load the counter before the call of `look`: a later batch changes the futex word, and the wait below then
            // returns immediately.
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
            // Sleep at most until the heartbeat would exceed `GIVE_UP_AFTER`.
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

/// Instant after a sleep of length `nap`, by the clock that futex timeouts use.
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
        // If a panic interrupted the client during an answer, the client has recorded this state and refuses further
        // requests.
        question(&mut self.client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn row(&self, slot: u32) -> &Row {
        self.mapping.row(slot).expect("the place was checked when it was leased")
    }
}

/// A subscription to a KPI. Dropping the subscription sends an `unsubscribe` request and waits for the answer.
#[derive(Debug)]
pub struct Kpi {
    od: Od,
    place: Place,
}

/// Row and generation of a leased KPI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub slot: u32,
    /// Generation that the row and its readings carry as long as the row belongs to this KPI.
    pub generation: u32,
}

impl Kpi {
    /// Returns the latest reading; `None` before the first reading. Makes no system call, takes no lock, and never
    /// waits.
    ///
    /// The reading may be old: [`Reading::age`] returns its age, and [`Od::is_alive`] returns whether newer readings
    /// can be expected. The reading may be older than the subscription if another program was subscribed to the KPI
    /// before. A daemon that has closed the connection may assign the row to another KPI. This method then returns
    /// `None` instead of the other KPI's readings.
    #[inline]
    pub fn latest(&self) -> Option<Reading> {
        self.od.latest(self.place)
    }

    /// Waits for a reading with a sequence number above `after` (0: any reading), and returns the latest reading.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: no such reading arrived in time. [`Error::Stale`]: the daemon has stopped, has sent no
    /// heartbeat for [`GIVE_UP_AFTER`], or has assigned the row to another KPI. [`Error::Interrupted`]: a signal
    /// arrived.
    pub fn wait(&self, after: u64, timeout: Duration) -> Result<Reading, Error> {
        self.od.wait(self.place, after, timeout)
    }

    /// Name of the KPI, with `@RADIO` unless it belongs to the first radio. Empty if the daemon wrote no name or has
    /// assigned the row to another KPI.
    pub fn name(&self) -> String {
        self.row().and_then(|row| row.name.get()).unwrap_or_default()
    }

    /// Unit of the values; empty for a plain number.
    pub fn unit(&self) -> String {
        self.row().and_then(|row| row.unit.get()).unwrap_or_default()
    }

    /// The KPI's row; `None` if the row belongs to another KPI by now.
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
        // The result is irrelevant: a daemon that has stopped has no leases, and a daemon that does not answer ends the
        // leases when the connection closes.
        let _ = self.od.release(self.place.slot);
    }
}
