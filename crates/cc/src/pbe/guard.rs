//! Checks whether the path delivers what the receiver reports. A receiver that reports too much makes its sender fill
//! queues and take capacity from others.
//!
//! ```text
//!          three rounds of a full queue,
//!          less delivered than reported                  the queue was the flow's own
//! Trust ──────────────────────────────▶ Check ────────────────────────────────────────▶ Flagged
//!   ▲                                     │                                                │
//!   ├──────── any other explanation ──────┘                                                │
//!   └──────── ten seconds in which no more was reported than delivered ────────────────────┘
//! ```
//!
//! A round trip is evidence of a false report if all its packets waited in a queue, and the path delivered clearly less
//! than the receiver reported. In addition, the path must not have delivered the reported rate at any time of the last
//! seconds. An honest report is the sum of the PRBs that the device got and its share of the idle PRBs. In a cell in
//! which the device's packets wait, no PRBs are idle, so an honest report equals the delivery rate. There are
//! exceptions: while a scheduler serves the device less than its share, or before a bottleneck in the Internet has been
//! detected, an honest report is also too high, but not higher than an earlier delivery rate. In addition, the queue
//! may be caused by another flow, or be on the path of the ACKs. The check separates these cases: for some round trips,
//! the sender sends a little less than was delivered. If the queue is the flow's own, it then drains. Any other queue
//! stays.
//!
//! The guard cannot distinguish a false report from an honest report that exceeds the path's capacity. This happens
//! behind a link that is slightly narrower than the cell, so that its queue stays below PBE-CC's threshold. It also
//! happens if another flow fills the device's own queue (the report then promises half of the capacity) and lets it
//! drain just during the check. In these cases, too, BBR is a correct choice.
//!
//! Source: PBE-CC §7 (a server-side throughput estimator, like BBR's, that compares reported with actual throughput)
//! Chosen: all rules and numbers, since the paper gives none.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Time};

use crate::filter::WindowedMax;

/// Threshold of the round-trip time beyond RTprop above which a packet has waited in a queue.
///
/// Chosen: one retransmission and the jitter. The minimum round-trip time of a round must exceed this threshold, not
/// the time of a single packet. The sender does not know the radio of the receiver; on NR, where retransmissions follow
/// earlier, the guard needs a longer queue than necessary.
///
/// Source: PBE-CC §4.2.2 (a retransmission after 8 ms; jitter is at most 3 ms in 94.1 % of the time)
const NO_QUEUE: Duration = Duration::from_millis(8 + 3);

/// Minimum ratio of delivered to reported bytes of a round. A round with a lower ratio is evidence of a false report.
///
/// Chosen: estimates have a mean error of a few percent, and a receiver that reports 1.3 times the true capacity leads
/// to a ratio of 0.77.
const DELIVERED: f64 = 0.9;

/// Number of rounds with evidence after which the sender starts a check.
///
/// Chosen: together with the check, this takes less than ten round trips. A queue of fewer than three rounds may be
/// caused by a burst of other flows.
const ROUNDS: f64 = 3.0;

/// Decrement of the evidence counter per round without evidence.
///
/// Chosen: a receiver that sends false reports in bursts is detected if the bursts take more than a few percent of the
/// time.
const FORGIVEN: f64 = 1.0 / 16.0;

/// Minimum ratio of the recent maximum delivery rate to the reported rate. A lower ratio is evidence of a false report.
///
/// Chosen: closer to one than [`DELIVERED`], since the maximum of noisy rates is above their mean.
const PEAK_DELIVERED: f64 = 0.95;

/// Pacing gain of a check, relative to the delivery rate.
///
/// Chosen: low enough to keep an empty queue empty. [`CHECK_WINDOW`] drains the queue.
pub const CHECK_GAIN: f64 = 0.9;

/// Window of a check, relative to the delivery rate times RTprop.
///
/// Chosen: as in BBR's drain. Other flows may take the capacity that this flow leaves unused; this flow's own queue
/// drains nevertheless.
pub const CHECK_WINDOW: f64 = 0.75;

/// Number of rounds after which a check ends without a result.
const CHECK_ROUNDS: u32 = 4;

/// Period over which the maximum delivery rate is taken. A report of at most this maximum is not false, even if the
/// path delivers less at present.
///
/// Chosen: long-term fair schedulers may leave a device unserved for 0.7 s, fading is slower than a round trip, and a
/// receiver in a full cell detects a bottleneck in the Internet by its share over two seconds.
const PEAK_WINDOW: Duration = Duration::from_secs(3);

/// Minimum interval over which a delivery rate is measured.
///
/// Chosen: a retransmission delays eight subframes of data and releases them in one burst.
const PEAK_SPAN: Duration = Duration::from_millis(100);

/// Period in which a flagged receiver must report no more than the path delivers before its reports are used again.
///
/// Chosen: as long as the minimum-delay windows of PBE-CC and BBR.
const HELD: Duration = Duration::from_secs(10);

/// Initial number of rounds between a check that found another explanation and the next check. The number doubles after
/// each such check.
///
/// Chosen: next to a flow that fills the same queue, a check every 32 rounds costs less than one percent.
const PAUSE_ROUNDS: u32 = 32;

/// The values of one ACK that the guard uses.
#[derive(Clone, Copy, Debug)]
pub struct Witness {
    /// Time at which the ACK arrived.
    pub now: Time,
    /// Whether this ACK starts a round.
    pub round_start: bool,
    /// Bytes newly acknowledged.
    pub acked: Bytes,
    /// The RTT sample of this ACK.
    pub rtt: Option<Duration>,
    /// The minimum round-trip time.
    pub rtprop: Duration,
    /// The rate that the sender may use according to the receiver's report.
    pub reported: Rate,
    /// Whether the application, not the path, limited the delivery.
    pub app_limited: bool,
}

/// The action that the sender must take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// No action.
    Nothing,
    /// Send at [`CHECK_GAIN`] times this rate until the next verdict. The rate is the measured delivery rate.
    Check(Rate),
    /// Accept the receiver's reports again.
    Release,
    /// Ignore the receiver's reports.
    Flag,
}

/// Measurements of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Start of the round; `None` for the first round, which is incomplete.
    began: Option<Time>,
    last: Time,
    delivered: Bytes,
    /// Reported rate, integrated over the round, in bytes.
    reported: f64,
    /// The lowest reported rate.
    least_reported: Option<Rate>,
    least_rtt: Option<Duration>,
    /// Sum and number of the round-trip time samples.
    rtts: (Duration, u32),
    app_limited: bool,
}

/// A check in progress.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// Thresholds of the minimum and of the mean round-trip time below which the queue has drained.
    emptied: (Duration, Duration),
    rounds: u32,
}

/// The state of the guard of one flow.
#[derive(Clone, Debug)]
pub struct Guard {
    round: Round,
    /// Maximum of the recent delivery rates.
    peak: WindowedMax<Rate, Time>,
    /// Start of the current delivery-rate interval, and the bytes delivered in it.
    counted: Option<(Time, Bytes)>,
    evidence: f64,
    check: Option<Check>,
    /// Number of rounds until evidence counts again. `next_pause` is the length of the next such pause, in rounds.
    pause: u32,
    next_pause: u32,
    /// Time of the last report of a flagged receiver that exceeded the delivery rate; `None` if the receiver is not
    /// flagged.
    lied: Option<Time>,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard {
            round: Round::default(),
            peak: WindowedMax::new(PEAK_WINDOW),
            counted: None,
            evidence: 0.0,
            check: None,
            pause: 0,
            next_pause: 0,
            lied: None,
        }
    }
}

impl Guard {
    /// Whether the receiver was found to report more than the path delivers.
    pub fn is_flagged(&self) -> bool {
        self.lied.is_some()
    }

    /// Processes a report of `reported` from a flagged receiver while the path delivers at most `delivered`. Returns
    /// whether the receiver's reports are used again.
    ///
    /// Chosen: a receiver that continues to send false reports, even in bursts, is never trusted again. If a receiver's
    /// report was correct for the cell but too high for a slightly narrower link elsewhere, the receiver is trusted
    /// again once that link has more capacity.
    pub fn on_held(&mut self, now: Time, reported: Rate, delivered: Rate) -> bool {
        let Some(lied) = &mut self.lied else { return true };
        if reported.scaled(DELIVERED) > delivered {
            *lied = now;
        }
        if now - *lied < HELD {
            return false;
        }
        *self = Guard::default();
        true
    }

    /// Processes one ACK while the flow uses its receiver's reports or checks them.
    pub fn on_ack(&mut self, seen: &Witness) -> Verdict {
        self.measure(seen);
        let verdict = if seen.round_start { self.on_round(seen) } else { Verdict::Nothing };
        let round = &mut self.round;
        round.reported += (seen.now - round.last).as_secs_f64() * seen.reported.as_bps() as f64 / 8.0;
        round.last = seen.now;
        round.least_reported = [round.least_reported, Some(seen.reported)].into_iter().flatten().min();
        round.delivered += seen.acked;
        round.least_rtt = [round.least_rtt, seen.rtt].into_iter().flatten().min();
        if let Some(rtt) = seen.rtt {
            round.rtts = (round.rtts.0 + rtt, round.rtts.1 + 1);
        }
        round.app_limited |= seen.app_limited;
        verdict
    }

    /// Discards the measurements of the current round. Called when the flow no longer uses its receiver's reports for a
    /// reason other than the guard.
    pub fn interrupt(&mut self) {
        self.round = Round::default();
        self.counted = None;
        self.check = None;
    }

    /// Updates the delivery rate of the path.
    fn measure(&mut self, seen: &Witness) {
        match &mut self.counted {
            None => self.counted = Some((seen.now, Bytes::ZERO)),
            Some((since, bytes)) => {
                *bytes += seen.acked;
                if seen.now - *since >= PEAK_SPAN {
                    self.peak.update(seen.now, Rate::from_bytes_per(*bytes, seen.now - *since));
                    self.counted = Some((seen.now, Bytes::ZERO));
                }
            }
        }
    }

    /// Evaluates the round that has just ended.
    fn on_round(&mut self, seen: &Witness) -> Verdict {
        let next = Round { began: Some(seen.now), last: seen.now, ..Round::default() };
        let over = std::mem::replace(&mut self.round, next);
        let (Some(began), Some(least_rtt)) = (over.began, over.least_rtt) else { return Verdict::Nothing };
        if let Some(check) = &mut self.check {
            check.rounds += 1;
            let mean_rtt = over.rtts.0 / over.rtts.1.max(1);
            let is_emptied = least_rtt <= check.emptied.0 && mean_rtt <= check.emptied.1;
            if !is_emptied && check.rounds < CHECK_ROUNDS {
                return Verdict::Nothing;
            }
            return self.end_check(is_emptied, seen.now);
        }
        if self.pause > 0 {
            self.pause -= 1;
            return Verdict::Nothing;
        }
        let span = seen.now - began;
        let is_queued = least_rtt > seen.rtprop + NO_QUEUE;
        if over.app_limited || !is_queued || !self.is_too_much(&over, span) {
            self.evidence = (self.evidence - FORGIVEN).max(0.0);
            return Verdict::Nothing;
        }
        self.evidence += 1.0;
        if self.evidence < ROUNDS {
            return Verdict::Nothing;
        }
        let least = seen.rtprop + (least_rtt - seen.rtprop) / 4;
        self.check = Some(Check { emptied: (least, least + NO_QUEUE), rounds: 0 });
        Verdict::Check(Rate::from_bytes_per(over.delivered, span))
    }

    /// Whether the reports exceed the delivery rate of the round, and also every recent delivery rate. Every report of
    /// the round, or half of the mean report, must exceed the recent delivery rates. (Honest reports fluctuate, too.)
    fn is_too_much(&self, round: &Round, span: Duration) -> bool {
        let least = round.least_reported.map_or(0.0, |least| least.as_bps() as f64 / 8.0);
        let mean = round.reported / span.as_secs_f64().max(1e-9);
        let most = self.peak.get().map_or(0.0, |peak| peak.as_bps() as f64 / 8.0);
        let is_short = (round.delivered.0 as f64) < round.reported * DELIVERED;
        is_short && most < least.max(0.5 * mean) * PEAK_DELIVERED
    }

    fn end_check(&mut self, is_emptied: bool, now: Time) -> Verdict {
        self.check = None;
        self.evidence = 0.0;
        if is_emptied {
            self.lied = Some(now);
            return Verdict::Flag;
        }
        self.next_pause = (self.next_pause * 2).max(PAUSE_ROUNDS);
        self.pause = self.next_pause;
        Verdict::Release
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTPROP: Duration = Duration::from_millis(40);

    /// A path of `capacity` with a receiver that reports `factor` times the capacity. The queue is the flow's own, or a
    /// constant queue of another flow. Each step is one round trip; the sender has a window of the reported rate times
    /// RTprop.
    struct Path {
        guard: Guard,
        now: Time,
        checked: Option<Rate>,
        /// Every verdict other than `Nothing`, and the number of its round.
        verdicts: Vec<(u32, Verdict)>,
        rounds: u32,
    }

    impl Path {
        fn new() -> Path {
            let guard = Guard::default();
            Path { guard, now: Time::from_secs(1), checked: None, verdicts: Vec::new(), rounds: 0 }
        }

        fn run(&mut self, rounds: u32, capacity: Rate, factor: f64, foreign: Duration) -> &mut Path {
            for _ in 0..rounds {
                self.round(capacity, capacity.scaled(factor), foreign, false);
            }
            self
        }

        fn round(&mut self, capacity: Rate, reported: Rate, foreign: Duration, app_limited: bool) {
            let sent = match self.checked {
                Some(delivered) => delivered.scaled(CHECK_WINDOW).min(capacity),
                None => reported,
            };
            let window = sent.bytes_in(RTPROP);
            let rtt = RTPROP.max(capacity.time_for(window)) + foreign;
            self.rounds += 1;
            // Little's law: queue = inflight / rate.
            let delivered = Rate::from_bytes_per(window, rtt);
            for ack in 0..20 {
                self.now += rtt / 20;
                let seen = Witness {
                    now: self.now,
                    round_start: ack == 0,
                    acked: delivered.bytes_in(rtt / 20),
                    rtt: Some(rtt),
                    rtprop: RTPROP,
                    reported,
                    app_limited,
                };
                let verdict = self.guard.on_ack(&seen);
                match verdict {
                    Verdict::Nothing => continue,
                    Verdict::Check(delivered) => self.checked = Some(delivered),
                    Verdict::Release | Verdict::Flag => self.checked = None,
                }
                self.verdicts.push((self.rounds, verdict));
            }
        }
    }

    #[test]
    fn a_lie_is_checked_and_flagged_within_ten_rounds() {
        for factor in [1.4, 2.0, 4.0, 100.0] {
            let mut path = Path::new();
            path.run(30, Rate::from_mbps(60.0), 1.0, Duration::ZERO);
            assert_eq!(path.verdicts, [], "the truth is no reason");
            path.run(10, Rate::from_mbps(60.0), factor, Duration::ZERO);
            let [(_, Verdict::Check(delivered)), (flagged, Verdict::Flag), ..] = path.verdicts[..] else {
                panic!("{factor} times: {:?}", path.verdicts)
            };
            assert!((delivered.as_mbps() / 60.0 - 1.0).abs() < 0.01, "{factor} times: {delivered:?}");
            assert!(flagged <= 40 && path.guard.is_flagged());
        }
    }

    #[test]
    fn who_is_held_is_believed_again_after_ten_seconds_without_a_lie() {
        let mut path = Path::new();
        path.run(10, Rate::from_mbps(60.0), 4.0, Duration::ZERO);
        let (guard, began) = (&mut path.guard, path.now);
        let told = |guard: &mut Guard, ms: u64, mbps: f64| {
            guard.on_held(began + Duration::from_millis(ms), Rate::from_mbps(mbps), Rate::from_mbps(60.0))
        };
        assert!(!told(guard, 9_000, 60.0));
        assert!(!told(guard, 9_500, 240.0), "one more lie");
        assert!(!told(guard, 19_400, 60.0) && guard.is_flagged());
        assert!(told(guard, 19_600, 60.0) && !guard.is_flagged());
    }

    #[test]
    fn a_fall_of_the_capacity_is_no_lie() {
        let mut path = Path::new();
        path.run(30, Rate::from_mbps(60.0), 1.0, Duration::ZERO);
        // For four rounds, the path delivers a fifth of the reported rate. The reported rate does not exceed earlier
        // delivery rates.
        path.run(4, Rate::from_mbps(12.0), 5.0, Duration::ZERO);
        path.run(30, Rate::from_mbps(12.0), 1.0, Duration::ZERO);
        assert_eq!(path.verdicts, []);
    }

    #[test]
    fn a_queue_of_others_is_checked_more_and_more_rarely() {
        let mut path = Path::new();
        path.run(1_000, Rate::from_mbps(60.0), 1.0, Duration::from_millis(80));
        let checks: Vec<u32> = path
            .verdicts
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Check(_)))
            .map(|(round, _)| *round)
            .collect();
        assert!(!path.guard.is_flagged() && (3..=6).contains(&checks.len()), "{checks:?}");
        let pauses: Vec<u32> = checks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses.windows(2).all(|pair| pair[1] > pair[0]), "{pauses:?}");
    }

    #[test]
    fn what_the_application_limits_says_nothing() {
        let mut path = Path::new();
        let (capacity, reported) = (Rate::from_mbps(60.0), Rate::from_mbps(240.0));
        (0..99).for_each(|_| path.round(capacity, reported, Duration::ZERO, true));
        assert_eq!(path.verdicts, []);
    }

    proptest! {
        #[test]
        fn who_reports_no_more_than_the_path_gives_is_never_checked(
            course in prop::collection::vec((1.0f64..400.0, 0.2f64..=1.0), 1..80),
        ) {
            let mut path = Path::new();
            for (mbps, part) in course {
                path.run(1, Rate::from_mbps(mbps), part, Duration::ZERO);
            }
            prop_assert_eq!(&path.verdicts[..], &[]);
        }

        #[test]
        fn whatever_comes_a_check_ends(
            course in prop::collection::vec((1.0f64..400.0, 0.1f64..20.0, 0u64..200), 1..200),
        ) {
            let mut path = Path::new();
            for (mbps, factor, foreign_ms) in course {
                path.run(1, Rate::from_mbps(mbps), factor, Duration::from_millis(foreign_ms));
            }
            for pair in path.verdicts.chunks(2) {
                prop_assert!(matches!(pair[0].1, Verdict::Check(_)));
                if let [(began, _), (ended, verdict)] = pair {
                    prop_assert!(matches!(verdict, Verdict::Flag | Verdict::Release));
                    prop_assert!(ended - began <= CHECK_ROUNDS);
                }
            }
            prop_assert_eq!(path.guard.is_flagged(), path.verdicts.iter().any(|(_, verdict)| *verdict == Verdict::Flag));
        }
    }
}
