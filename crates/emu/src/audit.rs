//! Audit of a run: lateness of the hand-over of packets, and losses. The audit decides whether the run is fit, that is,
//! whether its figures may be used.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Maximum 99.9th percentile of the hand-over lateness of a fit run.
///
/// Chosen: one subframe, the time unit in which cells and traces transmit.
pub const MAX_LATENESS: Duration = Duration::from_millis(1);

/// Maximum absence of the emulator's thread from its interfaces in a fit run, for any traffic.
///
/// Chosen: a tenth of Linux's minimum retransmission timeout, so that an absence does not affect any program's timer.
pub const MAX_ABSENCE: Duration = Duration::from_millis(20);

/// Measurements taken during a run.
#[derive(Debug)]
pub(crate) struct Meter {
    lateness_ns: Histogram<u64>,
    wait_ns: Histogram<u64>,
    max_absence: Duration,
    /// Counters of packets and of other bytes.
    pub counts: Counts,
    /// Packets and bytes under way now.
    under_way: [u64; 2],
    most_under_way: [u64; 2],
}

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Packets that were read and put on the network.
    pub packets_in: u64,
    /// Packets that were written to the interface at the other end.
    pub packets_out: u64,
    /// Packets that the simulated network dropped.
    pub dropped: u64,
    /// Packets that an interface did not accept: its namespace was closing, or its memory was full.
    pub not_taken: u64,
    /// Inputs that are not a complete IP packet.
    pub garbage: u64,
    /// Packets to a broadcast or multicast address, including neighbour discovery.
    pub to_many: u64,
    /// Packets to an address that no device has.
    pub to_nobody: u64,
    /// IP fragments; they crossed the network like other packets.
    pub fragments: u64,
    /// Packets longer than 1500 bytes, the MTU of an interface; they crossed the network unchanged.
    pub jumbo: u64,
    /// Packets that were refused because too many bytes were already under way.
    pub refused: u64,
    /// Packets that an interface lost because the emulator did not read them in time.
    pub unread: u64,
    /// Packets that were handed over more than a millisecond late.
    pub missed_ticks: u64,
    /// Radio reports that were not delivered because their readers did not keep up.
    pub reports_lost: u64,
    /// Entries of the record that were lost because the disk did not keep up.
    pub record_lost: u64,
    /// Packets whose outcome differs in a replay in virtual time.
    pub differing: u64,
}

/// The audit of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// Median delay between the instant at which the network released a packet and its hand-over, in ms.
    pub lateness_p50_ms: f64,
    /// 99th percentile of this delay, in ms.
    pub lateness_p99_ms: f64,
    /// 99.9th percentile of this delay, in ms.
    pub lateness_p999_ms: f64,
    /// Maximum of this delay, in ms.
    pub lateness_max_ms: f64,
    /// Upper bound on the time that packets waited at an interface before they were read, in ms: 99.9th percentile.
    pub wait_p999_ms: f64,
    /// Maximum of this bound, in ms.
    pub wait_max_ms: f64,
    /// Longest absence of the emulator's thread from its interfaces, in ms.
    pub absence_max_ms: f64,
    /// Duration of the run, in s.
    pub seconds: f64,
    /// Share of one core that the emulator's thread used, 0 to 1. This share includes the kernel's work for sending and
    /// receiving.
    pub cpu: f64,
    /// Maximum number of packets under way.
    pub most_packets: u64,
    /// Maximum number of bytes under way.
    pub most_bytes: u64,
    /// Reason why the emulator's thread had no real-time priority; `None` if it had.
    pub not_real_time_because: Option<String>,
    /// Reason why the emulator's memory was not locked in RAM; `None` if it was.
    pub not_locked_because: Option<String>,
    /// Counters of the run.
    pub counts: Counts,
    /// Reasons why the run's figures must not be used; empty if the run is fit.
    pub unfit_because: Vec<String>,
}

impl Meter {
    pub(crate) fn new() -> Meter {
        // The histogram covers 1 ns to 60 s with three significant digits.
        let histogram = || Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are right");
        Meter {
            lateness_ns: histogram(),
            wait_ns: histogram(),
            max_absence: Duration::ZERO,
            counts: Counts::default(),
            under_way: [0; 2],
            most_under_way: [0; 2],
        }
    }

    /// Notes that the emulator's thread was absent from its interfaces for this long.
    pub(crate) fn absent(&mut self, absence: Duration) {
        self.max_absence = absence.max(self.max_absence);
    }

    /// Notes that a packet arrived, and the maximum time for which it may have waited at its interface.
    pub(crate) fn arrived(&mut self, bytes: u64, waited: Duration) {
        self.counts.packets_in += 1;
        self.wait_ns.saturating_record(waited.as_nanos() as u64);
        for (now, more) in self.under_way.iter_mut().zip([1, bytes]) {
            *now += more;
        }
        for (most, now) in self.most_under_way.iter_mut().zip(self.under_way) {
            *most = now.max(*most);
        }
    }

    pub(crate) fn ended(&mut self, bytes: u64) {
        // A wire may deliver a packet twice, so the counters saturate at 0.
        for (now, less) in self.under_way.iter_mut().zip([1, bytes]) {
            *now = now.saturating_sub(less);
        }
    }

    pub(crate) fn bytes_under_way(&self) -> u64 {
        self.under_way[1]
    }

    pub(crate) fn handed_over(&mut self, late: Duration) {
        self.counts.packets_out += 1;
        self.lateness_ns.saturating_record(late.as_nanos() as u64);
    }

    /// Returns the audit so far, before the run is judged.
    pub(crate) fn audit(&self, run: Duration, cpu: Duration) -> Audit {
        // An empty histogram returns 0.
        let ms = |histogram: &Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64 * 1e-6;
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| ms(&self.lateness_ns, quantile));
        Audit {
            lateness_p50_ms: p50,
            lateness_p99_ms: p99,
            lateness_p999_ms: p999,
            lateness_max_ms: self.lateness_ns.max() as f64 * 1e-6,
            wait_p999_ms: ms(&self.wait_ns, 0.999),
            wait_max_ms: self.wait_ns.max() as f64 * 1e-6,
            absence_max_ms: self.max_absence.as_secs_f64() * 1e3,
            seconds: run.as_secs_f64(),
            cpu: cpu.as_secs_f64() / run.as_secs_f64().max(1e-9),
            most_packets: self.most_under_way[0],
            most_bytes: self.most_under_way[1],
            not_real_time_because: None,
            not_locked_because: None,
            counts: self.counts,
            unfit_because: vec![],
        }
    }
}

impl Audit {
    /// Returns whether the run's figures may be used.
    pub fn is_fit(&self) -> bool {
        self.unfit_because.is_empty()
    }

    /// Determines whether the run is fit. Every reason against it is one sentence.
    pub fn judge(&mut self) {
        let counts = &self.counts;
        let most_ms = MAX_LATENESS.as_secs_f64() * 1e3;
        let mut reasons = vec![];
        let how = match &self.not_real_time_because {
            None => {
                "the machine is too busy, its timers are too coarse, or the emulator was stopped".to_owned()
            }
            Some(why) => format!("its thread has no real-time priority ({why})"),
        };
        // The first of these reasons has the cause and the remedy, which are the same for all.
        let mut advice = Some(format!(": {how}; end other programs, or allow it real-time priority"));
        let mut once = || advice.take().unwrap_or_default();
        if self.lateness_p999_ms > most_ms {
            reasons.push(format!(
                "a packet in a thousand was handed over more than {:.1} ms late (at most {most_ms} ms){}",
                self.lateness_p999_ms,
                once()
            ));
        }
        if self.wait_p999_ms > most_ms {
            reasons.push(format!(
                "a packet in a thousand may have waited {:.1} ms before the emulator read it (at most {most_ms} ms){}",
                self.wait_p999_ms,
                once()
            ));
        }
        if self.absence_max_ms > MAX_ABSENCE.as_secs_f64() * 1e3 {
            reasons.push(format!(
                "the emulator stood still for {:.0} ms (at most {} ms){}",
                self.absence_max_ms,
                MAX_ABSENCE.as_millis(),
                once()
            ));
        }
        if counts.packets_in == 0 {
            reasons.push(
                "no packet entered the network, so there is nothing to measure; if the program was to use $AIRPACE_BASE, put \
                 its line in single quotes: in double quotes, the shell replaces the variable before it is set"
                    .to_owned(),
            );
        }
        for (count, what) in [
            (
                counts.unread,
                "packets were lost at an interface because the emulator did not read them in time",
            ),
            (
                counts.refused,
                "packets were refused because too much was under way; bound the scenario's queues",
            ),
            (counts.not_taken, "packets were not taken by the interface at the other end"),
            (counts.record_lost, "lines of the record were lost because the disk did not keep up"),
            (
                counts.differing,
                "packets went another way than in a replay of the same arrivals; please report this",
            ),
        ] {
            if count > 0 {
                reasons.push(format!("{count} {what}"));
            }
        }
        self.unfit_because = reasons;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_came_late_or_lost_something_is_unfit_and_says_why() {
        let mut meter = Meter::new();
        meter.arrived(40, Duration::ZERO);
        for _ in 0..10_000 {
            meter.handed_over(Duration::from_micros(80));
        }
        let mut audit = meter.audit(Duration::from_secs(10), Duration::from_secs(2));
        audit.judge();
        assert!(audit.is_fit(), "{:?}", audit.unfit_because);
        assert!((audit.cpu - 0.2).abs() < 1e-9 && (audit.lateness_p999_ms - 0.08).abs() < 1e-3);

        for _ in 0..20 {
            meter.handed_over(Duration::from_micros(1_500));
        }
        meter.counts.unread = 3;
        let mut audit = meter.audit(Duration::from_secs(10), Duration::from_secs(2));
        audit.not_real_time_because = Some("Operation not permitted".to_owned());
        audit.judge();
        let [late, unread] = &audit.unfit_because[..] else { panic!("{:?}", audit.unfit_because) };
        assert!(late.contains("1.5 ms late") && late.contains("no real-time priority"), "{late}");
        assert!(unread.starts_with("3 packets were lost at an interface"), "{unread}");
    }

    #[test]
    fn a_run_without_packets_measures_nothing() {
        let mut audit = Meter::new().audit(Duration::ZERO, Duration::ZERO);
        audit.judge();
        assert!(audit.cpu == 0.0 && audit.lateness_max_ms == 0.0 && audit.wait_p999_ms == 0.0);
        let [why] = &audit.unfit_because[..] else { panic!("{:?}", audit.unfit_because) };
        assert!(why.contains("$AIRPACE_BASE") && why.contains("single quotes"), "{why}");
    }

    #[test]
    fn a_run_that_stood_still_is_unfit_whatever_the_traffic() {
        for packets in [1, 100, 1_000_000] {
            let mut meter = Meter::new();
            for _ in 0..packets {
                meter.arrived(84, Duration::from_micros(50));
                meter.handed_over(Duration::from_micros(50));
            }
            meter.absent(Duration::from_millis(300));
            meter.absent(Duration::from_micros(80));
            let mut audit = meter.audit(Duration::from_secs(600), Duration::ZERO);
            audit.judge();
            let [why] = &audit.unfit_because[..] else { panic!("{:?}", audit.unfit_because) };
            assert!(why.starts_with("the emulator stood still for 300 ms (at most 20 ms)"), "{why}");
        }
    }

    #[test]
    fn packets_that_waited_before_they_were_read_make_a_run_unfit() {
        let mut meter = Meter::new();
        for place in 0..100 {
            meter.arrived(84, Duration::from_micros(if place == 50 { 5_000 } else { 50 }));
            meter.handed_over(Duration::from_micros(50));
        }
        let mut audit = meter.audit(Duration::from_secs(10), Duration::ZERO);
        audit.judge();
        let [why] = &audit.unfit_because[..] else { panic!("{:?}", audit.unfit_because) };
        assert!(why.contains("may have waited 5.0 ms"), "{why}");
    }

    #[test]
    fn the_most_under_way_is_kept() {
        let mut meter = Meter::new();
        meter.arrived(1500, Duration::ZERO);
        meter.arrived(500, Duration::ZERO);
        meter.ended(1500);
        meter.ended(1500);
        meter.arrived(40, Duration::ZERO);
        let audit = meter.audit(Duration::from_secs(1), Duration::ZERO);
        assert_eq!((audit.most_packets, audit.most_bytes, meter.bytes_under_way()), (2, 2000, 40));
    }
}
