//! The learner of the paper: Allegro's, without the trials whose outcome is known.
//!
//! ```text
//!  SlowStart ──utility falls──▶ DecisionMode ──▶ RateAdjusting ⟲
//!                                    └─ RTT at its least: only upwards ─┘
//!                                    └─ queue full: only downwards ─────┘
//! ```
//!
//! `Climb` performs the trials; [`avoidance`] decides which directions are open.
//!
//! Source: MORC §3.1

use airpace_core::{Bytes, Rng};

use crate::controller::Inspect;
use crate::pcc::climb::{Climb, Open};
use crate::pcc::interval::Report;
use crate::pcc::trend::Trend;
use crate::pcc::{Learner, PathView, Pcc, Trial};

use super::avoidance::{self, Avoidance};

/// Length of an interval, in round trips.
///
/// Source: MORC §3.1 Intervals
const ROUND_TRIPS: f64 = 1.0;

/// Minimum number of packets in an interval.
///
/// Chosen: a rate cannot be measured with fewer packets. The minimum has an effect at rates below five packets per
/// round trip.
const MIN_PACKETS: f64 = 5.0;

/// Number of packets per round trip in the first interval.
///
/// Source: RFC 6928 §2
///
/// Chosen: MORC ran in a kernel, whose connections start with ten packets. Allegro's two packets would take two more
/// round trips.
const FIRST_PACKETS: f64 = 10.0;

/// Fastest fall of the round-trip time that counts, in seconds per second of sending.
///
/// Chosen: see [`throughput_mbps`].
const FASTEST_FALL: f64 = -0.5;

/// u = T · (1 − pL − pRTT), T in Mbit/s.
///
/// Source: MORC §3.1 Utility
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utility {
    /// RTTtarget − RTTmin.
    ///
    /// Source: MORC §3.1 RTTtarget
    pub target_ms: f64,
    /// pL per unit of loss rate.
    ///
    /// Source: MORC §3.1 pL
    pub loss_penalty: f64,
    /// pRTT per millisecond.
    ///
    /// Source: MORC §3.1 pRTT
    pub rtt_penalty_per_ms: f64,
}

impl Utility {
    /// The utility of an interval, if the minimum round-trip time is `rtt_min_ms`.
    ///
    /// T is the rate at which data arrived, not the rate at which the data was sent. If the sending rate exceeds the
    /// capacity, the queue grows, but T does not.
    ///
    /// Chosen: for an interval without a single ACK, T is the sending rate. With T = 0, an interval in which everything
    /// is lost would have a higher utility than an interval in which half is lost.
    pub fn of(&self, report: &Report, rtt_min_ms: f64) -> f64 {
        let received_mbps = if report.is_void() { report.sent_mbps } else { throughput_mbps(report) };
        let off_target_ms = (report.rtt_s * 1e3 - rtt_min_ms - self.target_ms).abs();
        received_mbps * (1.0 - self.loss_penalty * report.loss - self.rtt_penalty_per_ms * off_target_ms)
    }
}

/// Bytes sent and not lost, divided by the time in which they arrived. The time of arrival exceeds the sending time by
/// the growth of the round-trip time. If the round-trip time falls, the time of arrival is shorter than the sending
/// time.
///
/// Chosen: the growth is estimated by least squares and moved two standard errors towards zero. A cell releases packets
/// in bursts. Over one round trip, the spacing of the first and last ACK has an error of a tenth, which hides trials
/// that change the rate by one per cent.
///
/// Chosen: the round-trip time cannot fall faster than time passes; data that arrives in bursts counts as at most twice
/// the sent rate.
fn throughput_mbps(report: &Report) -> f64 {
    let Trend { slope, error } = report.trend;
    let growth = slope.signum() * (slope.abs() - 2.0 * error).max(0.0);
    report.acked_mbps / (1.0 + growth.max(FASTEST_FALL))
}

/// The controller of MORC.
pub fn new(mss: Bytes, rng: Rng, utility: Utility, avoidance: Option<Avoidance>) -> Pcc<Morc> {
    Pcc::new(mss, Morc { utility, avoidance, climb: Climb::new(rng), rtt_min_ms: None, arrived_before: 1.0 })
}

/// The learner of MORC.
#[derive(Clone, Debug)]
pub struct Morc {
    utility: Utility,
    avoidance: Option<Avoidance>,
    climb: Climb,
    /// RTTmin; `None` before the first report and after the path has become longer.
    rtt_min_ms: Option<f64>,
    /// Ratio of the received to the sent rate of the last interval.
    arrived_before: f64,
}

impl Morc {
    /// Updates RTTmin.
    ///
    /// Chosen: a path may become longer for good, and then every queue looks full. If the round-trip time is above the
    /// target although the sender already sends at its minimum rate, another cause than the sender must have made the
    /// queue, and the measurement of RTTmin restarts.
    fn track_rtt_min(&mut self, report: &Report, path: &PathView) -> f64 {
        let rtt_ms = report.rtt_s * 1e3;
        let rtt_min_ms = self.rtt_min_ms.unwrap_or(path.rtt_min.as_secs_f64() * 1e3).min(rtt_ms);
        let is_least = report.trial.rate_mbps <= path.least_mbps() * 1.001;
        let is_far = rtt_ms > rtt_min_ms + 2.0 * self.utility.target_ms;
        let rtt_min_ms = if is_least && is_far && !report.is_void() { rtt_ms } else { rtt_min_ms };
        self.rtt_min_ms = Some(rtt_min_ms);
        rtt_min_ms
    }
}

impl Learner for Morc {
    fn next(&mut self, path: &PathView) -> Trial {
        let first_mbps = path.mbps_of(FIRST_PACKETS, path.rtt);
        let (rate_mbps, tag) = self.climb.next(first_mbps, path);
        Trial { rate_mbps, span: path.span(ROUND_TRIPS, MIN_PACKETS, rate_mbps), tag }
    }

    fn learn(&mut self, report: &Report, path: &PathView) -> bool {
        let rtt_min_ms = self.track_rtt_min(report, path);
        let utility = self.utility.of(report, rtt_min_ms);
        let arrived_before = std::mem::replace(&mut self.arrived_before, avoidance::arrived(report));
        let open = self.avoidance.as_ref().map_or(Open::BOTH, |bounds| {
            avoidance::open(bounds, report, arrived_before, rtt_min_ms, self.utility.target_ms)
        });
        self.climb.learn(report, utility, open, path)
    }

    fn inspect(&self, out: &mut Inspect) {
        self.climb.inspect(out);
        out.state = match out.state {
            "Starting" => "SlowStart",
            "DecisionMaking" => "DecisionMode",
            state => state,
        };
        out.value("target_rtt_ms", self.rtt_min_ms.map_or(f64::NAN, |least| least + self.utility.target_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utility() -> Utility {
        Utility { target_ms: 60.0, loss_penalty: 10.0, rtt_penalty_per_ms: 5e-4 }
    }

    fn report(sent_mbps: f64, received_mbps: f64, loss: f64, rtt_ms: f64) -> Report {
        Report {
            trial: Trial { rate_mbps: sent_mbps, ..Trial::default() },
            sent_mbps,
            acked_mbps: sent_mbps * (1.0 - loss),
            received_mbps: Some(received_mbps),
            packets: 1000,
            lost: (1000.0 * loss) as u64,
            loss,
            rtt_s: rtt_ms * 1e-3,
            trend: Trend { slope: (sent_mbps * (1.0 - loss) / received_mbps - 1.0).max(0.0), error: 0.0 },
            ..Report::default()
        }
    }

    #[test]
    fn the_worked_examples_of_the_utility() {
        let of = |report| utility().of(&report, 30.0);
        assert!(
            (of(report(50.0, 50.0, 0.0, 90.0)) - 50.0).abs() < 1e-9,
            "on target and without loss, the utility is T"
        );
        assert!(
            (of(report(50.0, 50.0, 0.0, 91.0)) - 50.0 * 0.9995).abs() < 1e-9,
            "the penalty is 0.05 % per ms above the target"
        );
        assert!((of(report(50.0, 50.0, 0.0, 30.0)) - 50.0 * 0.97).abs() < 1e-9, "and below");
        assert!(
            (of(report(50.0, 50.0, 0.01, 90.0)) - 49.5 * 0.9).abs() < 1e-9,
            "a loss of 1 % costs a tenth"
        );
        assert!(of(report(100.0, 30.0, 0.0, 90.0)) < 30.1, "data that only fills a queue is no throughput");
        assert!(of(report(50.0, 25.0, 0.5, 90.0)) < 0.0, "the utility of a high loss is negative");
    }

    #[test]
    fn a_growth_that_may_be_chance_takes_nothing_from_the_throughput() {
        let clear = report(60.0, 50.0, 0.0, 90.0);
        let noisy = Report { trend: Trend { error: clear.trend.slope, ..clear.trend }, ..clear };
        assert!((throughput_mbps(&clear) - 50.0).abs() < 1e-9);
        assert!((throughput_mbps(&noisy) - 60.0).abs() < 1e-9);
    }

    #[test]
    fn the_loss_of_everything_is_worse_than_any_part_of_it() {
        let nothing = Report { received_mbps: None, ..report(50.0, 50.0, 1.0, 90.0) };
        let half = report(50.0, 25.0, 0.5, 90.0);
        assert!(utility().of(&nothing, 30.0) < utility().of(&half, 30.0));
    }

    #[test]
    fn directions_that_are_not_worth_a_trial_are_closed() {
        let open = |report| avoidance::open(&Avoidance::default(), &report, 1.0, 30.0, 60.0);
        let at_least = open(report(50.0, 50.0, 0.0, 30.5));
        assert!(!at_least.lower && at_least.higher, "at RTTmin, a lower rate gains nothing: {at_least:?}");
        assert_eq!(open(report(50.0, 50.0, 0.0, 90.0)), Open::BOTH);
        let full = open(report(50.0, 50.0, 0.0, 200.0));
        assert!(full.lower && !full.higher, "far above the target, only a lower rate is open: {full:?}");
        let short = open(report(50.0, 45.0, 0.1, 31.0));
        assert!(short.lower, "a queue may be too short to show in the round-trip time: {short:?}");
    }

    #[test]
    fn less_arriving_than_was_sent_is_believed_when_seen_twice() {
        let open = |before| {
            avoidance::open(&Avoidance::default(), &report(100.0, 30.0, 0.0, 80.0), before, 30.0, 60.0)
        };
        assert!(open(1.0).higher && open(1.0).fits_mbps.is_none(), "a single interval may be jitter");
        assert!(!open(1.0).doubling, "but slow start does not wait for a second interval");
        assert!(
            !open(0.4).higher && (open(0.4).fits_mbps.unwrap() - 40.0).abs() < 1e-9,
            "the higher of the two rates counts"
        );
    }

    #[test]
    fn a_path_that_has_become_longer_is_noticed_at_the_least_rate() {
        let path = PathView {
            rtt: std::time::Duration::from_millis(300),
            rtt_min: std::time::Duration::from_millis(30),
            is_known: true,
            mss: Bytes(1500),
        };
        let rng = airpace_core::Streams::new(1).stream("morc");
        let mut morc = Morc {
            utility: utility(),
            avoidance: None,
            climb: Climb::new(rng),
            rtt_min_ms: None,
            arrived_before: 1.0,
        };
        assert_eq!(
            morc.track_rtt_min(&report(50.0, 50.0, 0.0, 300.0), &path),
            30.0,
            "the flow's own queue does not change RTTmin"
        );
        let least = path.least_mbps();
        assert_eq!(
            morc.track_rtt_min(&report(least, least, 0.0, 300.0), &path),
            300.0,
            "with two packets per round trip, the queue is not the flow's own"
        );
        assert_eq!(
            morc.track_rtt_min(&report(50.0, 50.0, 0.0, 280.0), &path),
            280.0,
            "RTTmin is the least RTT from then on"
        );
    }
}
