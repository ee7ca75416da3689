//! Reports of the phone's own grants, computed from the KPIs of a libOD daemon.
//!
//! The KPIs in libOD's shared memory are sums and states, not grants: total granted bytes, total received bytes,
//! queued bytes. Each report therefore contains the bytes granted since the previous report, in both directions, as
//! BISCAY's MAC summary does. A report has no PRBs and no grants of other users: BISCAY can use it, PBE-CC cannot.
//! The daemon's log packets contain more, but only the daemon receives them.
//!
//! Readers of the shared memory sleep in the kernel on a word of this memory (futex). Such a wait cannot be combined
//! with polling a socket. Therefore a separate thread reads, and sends the reports over a channel.
//!
//! Source: BISCAY §3.2.2

use std::path::PathBuf;
use std::time::Duration;

use airpace_core::{Bits, Bytes, Direction, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, DciFormat, OwnRadio, RadioReport, Rnti, Scope, Slot};
use od::{Kpi, Od, Reading};

use super::{Fed, Feeder};
use airpace_rt::clock;

/// RNTI of the reports. The KPIs do not contain the phone's RNTI.
///
/// Chosen: the lowest RNTI that a cell assigns, as in `airpace_diag`.
///
/// Source: TS 36.321 Table 7.1-1
const OWN: Rnti = Rnti(61);

/// The KPIs to read: byte counters by direction, and the bytes queued in the phone. A counter with `instead` is used
/// only until the counter that `instead` names has values. Many modems do not log the sums of their MAC layer.
const SUMS: [SumOf; 5] = [
    SumOf { name: "lte.ul.granted_bytes", direction: Direction::Uplink, instead: None },
    SumOf { name: "lte.ul.bytes", direction: Direction::Uplink, instead: Some("lte.ul.granted_bytes") },
    SumOf { name: "nr.ul.new_bytes", direction: Direction::Uplink, instead: None },
    SumOf { name: "lte.dl.bytes", direction: Direction::Downlink, instead: None },
    SumOf { name: "nr.dl.bytes", direction: Direction::Downlink, instead: None },
];
const WAITING: &str = "lte.ul.buffer";

/// Maximum wait for a batch of readings, after which the thread checks whether it must stop.
const LOOK: Duration = Duration::from_millis(100);

/// Interval between attempts to open a daemon that has disappeared.
const AGAIN: Duration = Duration::from_millis(200);

/// A report, and the arrival time of its newest reading (ns of libOD's clock).
type Told = (RadioReport, u64);

/// Source of reports that reads a libOD daemon.
#[derive(Debug)]
pub struct Board;

impl Board {
    /// Starts to read from the daemon whose folder is `dir`, or from the default daemon. The daemon need not run yet.
    ///
    /// # Errors
    /// The operating system has no thread or descriptor left.
    pub fn open(dir: Option<PathBuf>) -> std::io::Result<Fed> {
        let place = dir.as_ref().map_or(String::new(), |dir| format!(" in `{}`", dir.display()));
        Fed::start(format!("KPIs of libOD{place}"), "board", move |feeder| {
            while !feeder.is_over() {
                match Od::open(dir.as_deref()).and_then(|od| Subscribed::to(&od).map(|it| (od, it))) {
                    Ok((od, subscribed)) => {
                        feeder.open();
                        match follow(feeder, &od, subscribed) {
                            Some(error) => feeder.close(error),
                            None => return,
                        }
                    }
                    Err(error) => feeder.close(error),
                }
                std::thread::sleep(AGAIN);
            }
        })
    }
}

/// Sends reports until the daemon disappears. Returns the error, or `None` if nobody needs the reports any more.
fn follow(feeder: &mut Feeder, od: &Od, mut subscribed: Subscribed) -> Option<od::Error> {
    let mut seen = 0;
    while !feeder.is_over() {
        match od.wait_any(seen, LOOK) {
            Ok(batch) => seen = batch,
            Err(od::Error::TimedOut | od::Error::Interrupted) => continue,
            Err(error) => return Some(error),
        }
        let Some((mut report, arrival_ns)) = subscribed.report() else { continue };
        // libOD's clock continues while a phone is suspended; the monotonic clock does not.
        let came = clock::now() - Duration::from_nanos(od::clock::now_ns().saturating_sub(arrival_ns));
        report.time = came;
        // If a report does not fit into the channel, its bytes become part of the next report.
        if feeder.tell_as_it_is(came, report) {
            subscribed.told();
        }
    }
    None
}

/// A byte counter that a daemon may publish.
#[derive(Clone, Copy, Debug)]
struct SumOf {
    name: &'static str,
    direction: Direction,
    /// Name of the preferred counter, if this counter is only a substitute.
    instead: Option<&'static str>,
}

/// Subscriptions, and the state of their reports.
struct Subscribed {
    sums: Vec<(Kpi, Sum)>,
    waiting: Option<Kpi>,
    /// Modem time of the last report (ns).
    last_modem_ns: u64,
}

impl Subscribed {
    /// Subscribes to the counters.
    ///
    /// # Errors
    /// The daemon offers none of the counters, or has exited.
    fn to(od: &Od) -> Result<Subscribed, od::Error> {
        let mut refusal = None;
        let mut sums = vec![];
        for of in SUMS {
            match od.subscribe(of.name) {
                Ok(kpi) => sums.push((kpi, Sum::new(of))),
                Err(error) => refusal = Some(error),
            }
        }
        match refusal {
            Some(error) if sums.is_empty() => Err(error),
            _ => Ok(Subscribed { sums, waiting: od.subscribe(WAITING).ok(), last_modem_ns: 0 }),
        }
    }

    /// Returns a report of the bytes granted since the last report; `None` without a new reading.
    fn report(&mut self) -> Option<Told> {
        let mut newest: Option<Reading> = None;
        for (kpi, sum) in &mut self.sums {
            let Some(reading) = kpi.latest() else { continue };
            if sum.take(&reading) && newest.is_none_or(|newest| newest.modem_ns < reading.modem_ns) {
                newest = Some(reading);
            }
        }
        let newest = newest?;
        drop_worse(self.sums.iter_mut().map(|(_, sum)| sum));
        let modem_ns = newest.modem_ns.max(self.last_modem_ns);
        let bits = |wanted| {
            let of_way = self.sums.iter().filter(|(_, sum)| sum.of.direction == wanted);
            of_way.map(|(_, sum)| Bits(sum.untold * 8)).sum::<Bits>()
        };
        let queue =
            self.waiting.as_ref().and_then(Kpi::latest).map(|reading| Bytes(reading.value.max(0.0) as u64));
        let grants = [Direction::Downlink, Direction::Uplink].map(|way| (way, bits(way)));
        Some((report(modem_ns, grants, queue), newest.arrival_ns))
    }

    /// Notes that the last report was sent.
    fn told(&mut self) {
        self.sums.iter_mut().for_each(|(_, sum)| sum.untold = 0);
    }
}

/// A byte counter that increases as long as its daemon runs.
#[derive(Clone, Copy, Debug)]
struct Sum {
    of: SumOf,
    sequence: u64,
    last: Option<u64>,
    /// Increase that was not reported yet (bytes).
    untold: u64,
}

impl Sum {
    fn new(of: SumOf) -> Sum {
        Sum { of, sequence: 0, last: None, untold: 0 }
    }

    /// Processes the latest reading. Returns whether it contains an increase. The first reading only sets the base of
    /// the counter.
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

/// Discards the increase of a substitute counter if the preferred counter has values.
fn drop_worse<'a>(sums: impl Iterator<Item = &'a mut Sum>) {
    let mut sums: Vec<&mut Sum> = sums.collect();
    let heard: Vec<&str> = sums.iter().filter(|sum| sum.last.is_some()).map(|sum| sum.of.name).collect();
    for sum in &mut sums {
        if sum.of.instead.is_some_and(|better| heard.contains(&better)) {
            sum.untold = 0;
        }
    }
}

/// Composes the report of the bytes granted up to a time of the modem.
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
        symbols: None,
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

#[cfg(test)]
mod tests {
    use super::super::Radio;
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
        let mut sum = Sum::new(SUMS[0]);
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
    fn the_sum_of_blocks_counts_until_the_mac_s_own_is_heard() {
        let mut sums = [Sum::new(SUMS[0]), Sum::new(SUMS[1])];
        sums[1].take(&reading(1, 100.0));
        assert!(sums[1].take(&reading(2, 900.0)));
        drop_worse(sums.iter_mut());
        assert_eq!(sums.map(|sum| sum.untold), [0, 800], "nothing else is there");
        sums[0].take(&reading(3, 5_000.0));
        sums[1].take(&reading(3, 1_000.0));
        drop_worse(sums.iter_mut());
        assert_eq!(sums.map(|sum| sum.untold), [0, 0]);
        sums[0].take(&reading(4, 6_000.0));
        sums[1].take(&reading(4, 1_900.0));
        drop_worse(sums.iter_mut());
        assert_eq!(sums.map(|sum| sum.untold), [1_000, 0], "nothing counts twice");
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
        let heard = board.heard();
        while heard.problem().is_some_and(|why| why.contains("no report has arrived yet")) {
            std::thread::yield_now();
        }
        assert!(heard.problem().is_some_and(|why| why.contains("daemon")), "{:?}", heard.problem());
        assert_eq!((heard.opened(), heard.is_open()), (0, false));
    }
}
