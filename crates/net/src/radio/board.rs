//! Reports of the phone's own grants, made from the KPIs of a libOD daemon.
//!
//! A board has sums and states, not grants: how many bytes were granted and received so far, how many wait. So a report
//! says how much was granted since the last one, in both directions, as BISCAY's MAC summary does. It has no PRBs, and
//! nobody else's grants: BISCAY can use it, PBE-CC cannot. A daemon's log packets have more, but only the daemon gets
//! them.
//!
//! Readers of a board sleep in the kernel on a word of its memory, which cannot be waited for together with a socket. So
//! a thread of its own reads, and tells over a channel.
//!
//! Source: BISCAY §3.2.2

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_core::{Bits, Bytes, Direction, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, RadioReport, Rnti, Scope, Slot};
use od::{Kpi, Od, Reading};
use rustix::event::{EventfdFlags, eventfd};

use super::{Heard, Radio};

/// The RNTI of the reports: a board does not tell the phone's.
///
/// Chosen: the first that a cell gives out, as in `airpace_diag`.
///
/// Source: TS 36.321 Table 7.1-1
const OWN: Rnti = Rnti(61);

/// The KPIs that are read: sums of bytes by direction, and what waits in the phone.
const SUMS: [(&str, Direction); 4] = [
    ("lte.ul.granted_bytes", Direction::Uplink),
    ("nr.ul.new_bytes", Direction::Uplink),
    ("lte.dl.bytes", Direction::Downlink),
    ("nr.dl.bytes", Direction::Downlink),
];
const WAITING: &str = "lte.ul.buffer";

/// How long the thread waits for a batch before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// How long it waits before a daemon that is gone is looked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// Reports that wait for the turning thread. Further ones are lost, and their bytes are in the next.
const MOST_WAITING: usize = 1_024;

/// A report, and when its reading came, in nanoseconds of libOD's clock.
type Told = (RadioReport, u64);

/// Reports from a libOD daemon.
#[derive(Debug)]
pub struct Board {
    reports: Receiver<Told>,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    dir: Option<PathBuf>,
    heard: Arc<Heard>,
    bell: OwnedFd,
    is_over: AtomicBool,
    problem: Mutex<Option<String>>,
}

impl Board {
    /// Reports from the daemon whose folder is `dir`, or from the one that programs find without being told. It need not
    /// run yet.
    ///
    /// # Errors
    /// If the operating system has no thread or descriptor left.
    pub fn open(dir: Option<PathBuf>) -> std::io::Result<Board> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Shared {
            dir,
            heard: Arc::default(),
            bell,
            is_over: AtomicBool::new(false),
            problem: Mutex::new(Some("it was not looked for yet".to_owned())),
        };
        let (shared, (send, reports)) = (Arc::new(shared), sync_channel(MOST_WAITING));
        let of_reader = Arc::clone(&shared);
        let reader =
            std::thread::Builder::new().name("board".to_owned()).spawn(move || of_reader.read(&send))?;
        Ok(Board { reports, shared, reader: Some(reader) })
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn say(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    fn read(&self, send: &SyncSender<Told>) {
        while !self.is_over() {
            let error =
                match Od::open(self.dir.as_deref()).and_then(|od| Subscribed::to(&od).map(|it| (od, it))) {
                    Ok((od, subscribed)) => {
                        self.heard.open();
                        self.say(None);
                        let error = self.follow(&od, subscribed, send);
                        self.heard.close();
                        error
                    }
                    Err(error) => Some(error),
                };
            self.say(error.map(|error| error.to_string()));
            if !self.is_over() {
                std::thread::sleep(AGAIN);
            }
        }
    }

    /// Tells what the board says, until it says no more. Returns why.
    fn follow(&self, od: &Od, mut subscribed: Subscribed, send: &SyncSender<Told>) -> Option<od::Error> {
        let mut seen = 0;
        while !self.is_over() {
            match od.wait_any(seen, LOOK) {
                Ok(batch) => seen = batch,
                Err(od::Error::TimedOut | od::Error::Interrupted) => continue,
                Err(error) => return Some(error),
            }
            let Some(told) = subscribed.report() else { continue };
            match send.try_send(told) {
                Ok(()) => {
                    subscribed.told();
                    // It fails only if it has been rung 2^64 times.
                    let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
                }
                Err(_) => self.heard.count_unreadable(),
            }
        }
        None
    }
}

/// Subscriptions, and what was told of them.
struct Subscribed {
    sums: Vec<(Kpi, Sum)>,
    waiting: Option<Kpi>,
    /// The last reading that was told.
    last_modem_ns: u64,
}

impl Subscribed {
    /// # Errors
    /// If the daemon has none of the sums, or is gone.
    fn to(od: &Od) -> Result<Subscribed, od::Error> {
        let mut refusal = None;
        let mut sums = vec![];
        for (name, direction) in SUMS {
            match od.subscribe(name) {
                Ok(kpi) => sums.push((kpi, Sum::new(direction))),
                Err(error) => refusal = Some(error),
            }
        }
        match refusal {
            Some(error) if sums.is_empty() => Err(error),
            _ => Ok(Subscribed { sums, waiting: od.subscribe(WAITING).ok(), last_modem_ns: 0 }),
        }
    }

    /// What has been granted since the last report; `None` if nothing new is known.
    fn report(&mut self) -> Option<Told> {
        let mut newest: Option<Reading> = None;
        for (kpi, sum) in &mut self.sums {
            let Some(reading) = kpi.latest() else { continue };
            if sum.take(&reading) && newest.is_none_or(|newest| newest.modem_ns < reading.modem_ns) {
                newest = Some(reading);
            }
        }
        let newest = newest?;
        let modem_ns = newest.modem_ns.max(self.last_modem_ns);
        let bits = |wanted| {
            let of_way = self.sums.iter().filter(|(_, sum)| sum.direction == wanted);
            of_way.map(|(_, sum)| Bits(sum.untold * 8)).sum::<Bits>()
        };
        let queue =
            self.waiting.as_ref().and_then(Kpi::latest).map(|reading| Bytes(reading.value.max(0.0) as u64));
        let grants = [Direction::Downlink, Direction::Uplink].map(|way| (way, bits(way)));
        Some((report(modem_ns, grants, queue), newest.arrival_ns))
    }

    /// The last report was handed over.
    fn told(&mut self) {
        self.sums.iter_mut().for_each(|(_, sum)| sum.untold = 0);
    }
}

/// A sum of bytes that only grows, as long as its daemon runs.
#[derive(Clone, Copy, Debug)]
struct Sum {
    direction: Direction,
    sequence: u64,
    last: Option<u64>,
    /// What it grew by that was not told.
    untold: u64,
}

impl Sum {
    fn new(direction: Direction) -> Sum {
        Sum { direction, sequence: 0, last: None, untold: 0 }
    }

    /// Takes the latest reading. Returns whether it is new. The first only says where the sum stands.
    fn take(&mut self, reading: &Reading) -> bool {
        if reading.sequence == self.sequence || reading.value.is_nan() || reading.value < 0.0 {
            return false;
        }
        self.sequence = reading.sequence;
        let total = reading.value as u64;
        let grown = self.last.map(|last| total.saturating_sub(last));
        self.last = Some(total);
        self.untold += grown.unwrap_or(0);
        grown.is_some()
    }
}

/// What was granted up to a time of the modem.
fn report(modem_ns: u64, grants: [(Direction, Bits); 2], queue: Option<Bytes>) -> RadioReport {
    let dci = |(direction, bits)| Dci {
        rnti: OWN,
        direction,
        format: if direction == Direction::Uplink { DciFormat::F0 } else { DciFormat::F1 },
        tbs: [bits, Bits::ZERO],
        layers: 1,
        ..Dci::default()
    };
    RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(modem_ns / 1_000_000),
        time: Time::ZERO,
        scope: Scope::Own,
        carrier_prbs: None,
        cfi: None,
        dcis: grants.into_iter().filter(|(_, bits)| *bits > Bits::ZERO).map(dci).collect(),
        own: Some(OwnRadio {
            rnti: OWN,
            active: true,
            sinr_db: None,
            bits_per_prb: None,
            decoded: None,
            uplink_queue: queue,
        }),
        layer: BitLayer::Physical,
    }
}

impl Radio for Board {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.bell.as_fd())
    }

    fn take(&mut self, now: Time, each: &mut dyn FnMut(RadioReport)) {
        let _ = rustix::io::read(&self.shared.bell, &mut [0; 8]);
        let of_board = od::clock::now_ns();
        for (mut report, arrival_ns) in self.reports.try_iter().take(MOST_WAITING) {
            report.time = now - Duration::from_nanos(of_board.saturating_sub(arrival_ns));
            self.shared.heard.hear(now, &report);
            each(report);
        }
    }

    fn next(&self) -> Option<Time> {
        None
    }

    fn heard(&self) -> Arc<Heard> {
        Arc::clone(&self.shared.heard)
    }

    fn describe(&self) -> String {
        let place = self.shared.dir.as_ref().map_or(String::new(), |dir| format!(" in `{}`", dir.display()));
        match &*self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(problem) => format!("KPIs of libOD{place}: not there ({problem}); it is looked for"),
            None => format!("KPIs of libOD{place}"),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(sequence: u64, value: f64) -> Reading {
        Reading {
            value,
            sequence,
            modem_ns: sequence * 1_000_000,
            arrival_ns: 0,
            published_ns: 0,
            subframe: None,
            carrier: 0,
            radio: 1,
            is_after_gap: false,
            gaps: 0,
        }
    }

    #[test]
    fn a_sum_tells_what_it_grew_by_and_nothing_twice() {
        let mut sum = Sum::new(Direction::Uplink);
        assert!(!sum.take(&reading(5, 7_000.0)), "what was granted before is not known");
        assert!(!sum.take(&reading(5, 7_000.0)));
        assert!(sum.take(&reading(6, 7_500.0)));
        assert!(sum.take(&reading(9, 9_000.0)), "readings between were missed, and their bytes are in it");
        assert_eq!(sum.untold, 2_000);
        sum.untold = 0;
        assert!(sum.take(&reading(10, 100.0)), "the daemon's sum began anew");
        assert!(!sum.take(&reading(11, f64::NAN)));
        assert!(sum.take(&reading(12, 150.0)));
        assert_eq!(sum.untold, 50);
    }

    #[test]
    fn a_report_has_own_grants_only() {
        let grants = [(Direction::Downlink, Bits(0)), (Direction::Uplink, Bits(8_000))];
        let report = report(12_345_678_900, grants, Some(Bytes(77)));
        assert_eq!((report.slot.subframe(), report.scope), (12_345, Scope::Own));
        assert_eq!(report.dcis.len(), 1);
        assert_eq!((report.dcis[0].direction, report.dcis[0].bits()), (Direction::Uplink, Bits(8_000)));
        assert_eq!(report.own.unwrap().uplink_queue, Some(Bytes(77)));
    }

    #[test]
    fn a_daemon_that_is_not_there_is_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut board = Board::open(Some(folder.path().join("none"))).unwrap();
        board.take(Time::from_secs(1), &mut |_| panic!("nothing was granted"));
        assert!(board.describe().contains("it is looked for"), "{}", board.describe());
        assert_eq!(board.heard().opened(), 0);
    }
}
