//! The learner of the program that Vivace's authors published in 2018. Its states and rules differ from the paper's,
//! and so do its constants.
//!
//! ```text
//!  Starting ──utility falls──▶ Probing ⟲ change ≤ 10 % ──change > 10 %──▶ Moving ⟲ same sign and > 10 %
//!                                 ▲                                          │
//!                                 └───────────────── otherwise ──────────────┘
//! ```
//!
//! The difference between trials and base rate is at least 0.5 Mbit/s, as is each change of the rate, and the rate is
//! at least 1.3 Mbit/s. A flow therefore cannot stay at rates where noise hides the difference between its trials: at
//! low rates, the relative difference between the trials is large.
//!
//! Source: PCC-Uspace pcc-gradient/sender/app/pcc.h, branch NSDI-2018 (the program of 2018)
//!
//! Differs: the program counts packets down, so that an interval ends with its last packet. Here an interval ends after
//! the time in which this number of packets leaves at the interval's rate.

use airpace_core::Rng;

use crate::controller::Inspect;
use crate::pcc::interval::Report;
use crate::pcc::pairs::Pairs;
use crate::pcc::{Learner, PathView, Role, Tag, Trial};

use super::utility::Utility;

/// Half of the first interval's rate, in Mbit/s.
///
/// Source: PCC-Uspace pcc.h (2018)
const FIRST_MBPS: f64 = 0.8;

/// Minimum rate after the start (Mbit/s).
///
/// Source: PCC-Uspace pcc.h (2018)
const MIN_MBPS: f64 = 1.3;

/// Maximum rate (Mbit/s).
///
/// Source: PCC-Uspace pcc.h (2018)
const MAX_MBPS: f64 = 1024.0;

/// Relative difference between the rate of a trial and the base rate. The absolute difference is at least
/// [`MIN_STEP_MBPS`].
///
/// Source: PCC-Uspace pcc.h (2018)
const EPSILON: f64 = 0.05;

/// Minimum difference between the rate of a trial and the base rate, and minimum change of the rate (Mbit/s).
///
/// Source: PCC-Uspace pcc.h (2018)
const MIN_STEP_MBPS: f64 = 0.5;

/// Maximum change of the rate, relative to the rate: the initial maximum, and the growth of the maximum with each
/// change that reaches it.
///
/// Source: PCC-Uspace gradient_descent_pcc_client.cpp (2018)
const BOUNDARY: (f64, f64) = (0.05, 0.06);

/// Minimum relative increase of the rate that is followed by another step without trials.
///
/// Source: PCC-Uspace pcc.h (2018)
const LONG_CHANGE: f64 = 0.1;

/// Maximum number of lost packets per interval that is ignored in the start phase.
///
/// Source: PCC-Uspace pcc.h (2018)
const START_LOSSES: u64 = 50;

/// Minimum slope of round-trip times that counts in the start phase.
///
/// Source: PCC-Uspace pcc.h (2018)
const START_SLOPE: f64 = 0.2;

/// Loss rate above which the rate is halved at once.
///
/// Source: PCC-Uspace pcc.h (2018)
const EMERGENCY: f64 = 0.5;

/// If the loss rate over all trials of a decision does not exceed this value, all these trials are evaluated with the
/// same loss rate.
///
/// Source: PCC-Uspace pcc.h (2018)
const COMMON_LOSS: f64 = 0.01;

/// Minimum loss rate over the trials, and threshold of the difference in lost packets, from which on a decision can be
/// postponed because the losses contradict it.
///
/// Source: PCC-Uspace pcc.h (2018)
const DOUBT: (f64, f64) = (0.05, 2.0);

/// Minimum number of packets in an interval.
///
/// Source: PCC-Uspace pcc-gradient/sender/src/core.cpp (2018)
const MIN_PACKETS: f64 = 10.0;

/// Round-trip time (s) above which an interval is computed with a shorter time, and that shorter time (s).
///
/// Source: PCC-Uspace pcc-gradient/sender/src/core.cpp (2018)
const MAX_S: (f64, f64) = (1.0, 0.3);

/// The utility's unit of rate, in Mbit/s: two to the power of twenty bits per second.
///
/// Source: PCC-Uspace pcc.h (2018)
const UNIT_MBPS: f64 = 1.048_576;

/// The program's learner.
#[derive(Clone, Debug)]
pub struct Program {
    utility: Utility,
    rng: Rng,
    phase: Phase,
    rate_mbps: f64,
    change: Change,
    /// Number of decisions up to now. The number at the start of an interval is the interval's decision.
    decision: u32,
    /// Reports of intervals with a lower decision number than this do not halve the rate again.
    stopped: u32,
    /// Whether a decision is postponed if the losses contradict it.
    may_doubt: bool,
    /// Minimum rate (Mbit/s): the maximum of [`MIN_MBPS`] and the minimum rate of the path.
    least_mbps: f64,
    /// The mean round-trip time of the last report.
    rtt_s: Option<f64>,
    /// Results of this decision's trials up to now.
    seen: [Seen; 4],
}

#[derive(Clone, Debug)]
enum Phase {
    /// Doubling the rate with each report.
    Starting { best: f64, is_begun: bool },
    /// Trying rates around the present rate.
    Probing { pairs: Pairs, distance_mbps: f64, reference: Option<Seen> },
    /// Following the gradient. Only an interval with the decision number `after` can be the `reference`.
    Moving { change_mbps: f64, is_begun: bool, reference: Option<Seen>, after: u32 },
}

/// The result of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rate_mbps: f64,
    sent_mbps: f64,
    slope: f64,
    packets: f64,
    lost: f64,
}

impl Seen {
    fn of(report: &Report, utility: &Utility) -> Seen {
        Seen {
            rate_mbps: report.trial.rate_mbps,
            sent_mbps: report.sent_mbps,
            slope: utility.slope_of(report),
            packets: report.packets as f64,
            lost: report.lost as f64,
        }
    }

    fn loss(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }
}

/// State that converts a gradient to a rate change.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    last_mbps: f64,
    amplifier: f64,
    hits: u32,
    /// Number of consecutive changes in the same direction.
    trend: u32,
    /// Number of sign changes that still prevent the amplifier from growing.
    swings: u32,
}

impl Change {
    /// Source: PCC-Uspace pcc.h (2018); the first step in one direction has the factor one
    fn next(&mut self, base_mbps: f64, gradient: f64) -> f64 {
        let flips = gradient * self.last_mbps < 0.0;
        let agrees = gradient * self.last_mbps > 0.0;
        if flips {
            (self.amplifier, self.hits) = (0.0, 0);
            self.swings = (self.swings + 1).min(2);
        }
        let a = self.amplifier;
        let mut change = gradient
            * match a {
                _ if a < 3.0 => a + 1.0,
                _ if a < 6.0 => 2.0 * a - 2.0,
                _ if a < 9.0 => 4.0 * a - 14.0,
                _ => 8.0 * a - 50.0,
            };
        if flips {
            self.trend = 0;
        } else if agrees {
            self.trend += 1;
            match self.swings {
                0 => self.amplifier += if a > 3.0 { 0.5 } else { 1.0 },
                _ => self.swings -= 1,
            }
        }
        let boundary = BOUNDARY.0 + BOUNDARY.1 * f64::from(self.hits);
        if change.abs() > boundary * base_mbps {
            change = boundary * base_mbps * change.signum();
            self.hits += 1;
        } else {
            self.hits = self.hits.saturating_sub(1);
        }
        if flips {
            self.hits = 0;
        }
        if change != 0.0 {
            change = change.abs().max(MIN_STEP_MBPS) * change.signum();
        }
        self.last_mbps = change;
        change
    }

    /// Discards the direction of earlier changes. The next decision has one pair of trials.
    fn forget(&mut self) {
        self.trend = 2;
        self.last_mbps = 0.0;
    }
}

impl Program {
    /// A new flow.
    pub fn new(rng: Rng, utility: Utility) -> Program {
        Program {
            utility,
            rng,
            phase: Phase::Starting { best: f64::NEG_INFINITY, is_begun: false },
            rate_mbps: FIRST_MBPS,
            change: Change::default(),
            decision: 0,
            stopped: 0,
            may_doubt: true,
            least_mbps: MIN_MBPS,
            rtt_s: None,
            seen: [Seen::default(); 4],
        }
    }

    fn utility_of(&self, seen: &Seen, loss: f64) -> f64 {
        self.utility.at(seen.sent_mbps / UNIT_MBPS, seen.slope, loss)
    }

    /// Starts trials around `rate_mbps`: two pairs, or one pair while the gradient keeps its sign.
    fn probe(&mut self, rate_mbps: f64) {
        self.rate_mbps = rate_mbps.clamp(self.least_mbps, MAX_MBPS);
        self.decision = self.decision.wrapping_add(1);
        let distance_mbps = (EPSILON * self.rate_mbps).max(MIN_STEP_MBPS);
        let pairs = if self.change.trend >= 1 { 1 } else { 2 };
        let pairs = Pairs::new(&mut self.rng, pairs, distance_mbps / self.rate_mbps);
        self.phase = Phase::Probing { pairs, distance_mbps, reference: None };
    }

    /// Changes the rate to `rate_mbps`. The utility at this rate determines the next decision.
    fn step(&mut self, rate_mbps: f64, change_mbps: f64, reference: Option<Seen>) {
        let after = self.decision;
        self.decision = self.decision.wrapping_add(1);
        self.rate_mbps = rate_mbps.min(MAX_MBPS);
        self.phase = Phase::Moving { change_mbps, is_begun: false, reference, after };
    }

    /// Decides after all trials are known.
    fn decide(&mut self, pairs: &Pairs, distance_mbps: f64, seen: &[Seen], reference: Option<Seen>) {
        let total = |value: fn(&Seen) -> f64| seen.iter().map(value).sum::<f64>();
        let loss = total(|seen| seen.lost) / total(|seen| seen.packets).max(1.0);
        let mut known = *pairs;
        let mut votes = None;
        let (mut lost_higher, mut lost_lower) = (0.0, 0.0);
        for (place, trial) in seen.iter().enumerate() {
            let loss = if loss <= COMMON_LOSS { loss } else { trial.loss() };
            votes = known.learn(place as u8, self.utility_of(trial, loss));
            *(if trial.rate_mbps > self.rate_mbps { &mut lost_higher } else { &mut lost_lower }) +=
                trial.lost;
        }
        let mut balance = votes.map_or(0, |votes| votes.higher as i64 - votes.lower as i64);
        let is_odd =
            lost_lower - lost_higher > DOUBT.1 && balance > 0 && lost_higher > 0.0 && loss >= DOUBT.0;
        if is_odd && self.may_doubt {
            balance = 0;
        } else if is_odd {
            self.change.trend = 2;
        }
        self.may_doubt = !(is_odd && self.may_doubt);
        let (Some((higher, lower)), true) = (known.means(|_, _| true), balance != 0) else {
            self.change.forget();
            return self.probe(self.rate_mbps);
        };
        let change = self.change.next(self.rate_mbps, (higher - lower) / (2.0 * distance_mbps));
        if change <= LONG_CHANGE * self.rate_mbps {
            self.probe(self.rate_mbps + change);
        } else {
            self.step(self.rate_mbps + change, change, reference);
        }
    }

    /// Decides after the utility of a step is known.
    fn decide_after_step(&mut self, from: Seen, here: Seen, before_mbps: f64) {
        let rise = self.utility_of(&here, here.loss()) - self.utility_of(&from, from.loss());
        let change = self.change.next(self.rate_mbps, rise / (here.rate_mbps - from.rate_mbps));
        // Source: PCC-Uspace pcc.h (2018; it adds the losses of the second interval where its packets would be expected)
        let loss = (from.lost + here.lost) / (from.packets + here.lost).max(1.0);
        let contradicts = (from.rate_mbps - here.rate_mbps) * (from.loss() - here.loss()) < 0.0;
        if contradicts && ((from.lost - here.lost).abs() > DOUBT.1 || loss >= DOUBT.0) {
            self.change.forget();
            self.probe(self.rate_mbps);
        } else if change * before_mbps <= 0.0 {
            self.probe(self.rate_mbps + change);
        } else if change <= LONG_CHANGE * self.rate_mbps {
            self.change.trend = 2;
            self.probe(self.rate_mbps + change);
        } else {
            self.step(here.rate_mbps + change, change, Some(here));
        }
    }
}

impl Learner for Program {
    fn next(&mut self, path: &PathView) -> Trial {
        self.least_mbps = path.least_mbps().clamp(MIN_MBPS, MAX_MBPS);
        let (rate_mbps, role) = match &mut self.phase {
            Phase::Starting { is_begun: false, .. } if !path.is_known => {
                (2.0 * self.rate_mbps, Role::Waiting)
            }
            Phase::Starting { is_begun, .. } if !*is_begun => {
                *is_begun = true;
                self.rate_mbps = (2.0 * self.rate_mbps).min(MAX_MBPS);
                (self.rate_mbps, Role::Step)
            }
            Phase::Probing { pairs, .. } => match pairs.begin() {
                Some((place, factor)) => (self.rate_mbps * factor, Role::Probe(place)),
                None => (self.rate_mbps, Role::Waiting),
            },
            Phase::Moving { is_begun, .. } if !*is_begun => {
                *is_begun = true;
                (self.rate_mbps, Role::Step)
            }
            Phase::Starting { .. } | Phase::Moving { .. } => (self.rate_mbps, Role::Waiting),
        };
        let rtt_s = self.rtt_s.unwrap_or(path.rtt.as_secs_f64());
        let rtt_s = if rtt_s > MAX_S.0 { MAX_S.1 } else { rtt_s };
        let span = path.span(rtt_s / path.rtt.as_secs_f64().max(1e-4), MIN_PACKETS, rate_mbps);
        Trial { rate_mbps, span, tag: Tag { decision: self.decision, role } }
    }

    fn learn(&mut self, report: &Report, _path: &PathView) -> bool {
        self.rtt_s = Some(report.rtt_s);
        let tag = report.trial.tag;
        let here = Seen::of(report, &self.utility);
        if here.loss() > EMERGENCY && tag.decision >= self.stopped {
            self.probe(0.5 * self.rate_mbps);
            self.stopped = self.decision;
            return false;
        }
        let is_current = tag.decision == self.decision;
        match (&mut self.phase, tag.role) {
            (Phase::Starting { best, is_begun }, Role::Step) => {
                let lost = report.lost.saturating_sub(START_LOSSES) as f64;
                let slope = if here.slope.abs() < START_SLOPE { 0.0 } else { here.slope };
                let utility =
                    self.utility.at(here.sent_mbps / UNIT_MBPS, slope, lost / here.packets.max(1.0));
                if *best > utility {
                    self.probe(0.5 * self.rate_mbps);
                } else {
                    (*best, *is_begun) = (utility, false);
                }
            }
            (Phase::Probing { pairs, distance_mbps, reference }, role) if is_current => match role {
                Role::Probe(place) => {
                    self.seen[usize::from(place) % 4] = here;
                    let (pairs, distance_mbps) = (*pairs, *distance_mbps);
                    let trials = pairs.trials();
                    if usize::from(place) + 1 == trials {
                        let (seen, reference) = (self.seen, *reference);
                        self.decide(&pairs, distance_mbps, &seen[..trials], reference);
                    }
                }
                _ => *reference = Some(here),
            },
            (Phase::Moving { change_mbps, reference, .. }, Role::Step) if is_current => {
                let (reference, before_mbps) = (*reference, *change_mbps);
                match reference {
                    Some(from) if from.rate_mbps != here.rate_mbps => {
                        self.decide_after_step(from, here, before_mbps);
                    }
                    // There is no interval at the rate before the step with which the result could be compared.
                    _ => self.probe(self.rate_mbps),
                }
            }
            (Phase::Moving { reference, after, .. }, Role::Waiting) if tag.decision == *after => {
                *reference = Some(here);
            }
            _ => {}
        }
        // The current interval never ends early.
        false
    }

    fn inspect(&self, out: &mut Inspect) {
        let is_starting = matches!(self.phase, Phase::Starting { .. });
        out.state = match self.phase {
            Phase::Starting { .. } => "Starting",
            Phase::Probing { .. } => "Probing",
            Phase::Moving { .. } => "Moving",
        };
        out.value("base_mbps", if is_starting { f64::NAN } else { self.rate_mbps });
        out.value("change_mbps", self.change.last_mbps);
        out.value("amplifier", self.change.amplifier);
        out.value("boundary_percent", (BOUNDARY.0 + BOUNDARY.1 * f64::from(self.change.hits)) * 100.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_bounded_and_never_small() {
        let mut change = Change::default();
        let steps: Vec<f64> = (0..4).map(|_| libm::round(change.next(100.0, 1e6) * 10.0) / 10.0).collect();
        assert_eq!(steps, [5.0, 11.0, 17.0, 23.0], "the boundary widens where it is hit");
        assert_eq!(change.next(100.0, -1e6), -5.0, "a flip narrows it");
        assert_eq!(Change::default().next(100.0, 1e-9), 0.5);
        assert_eq!(Change::default().next(2.0, -1e-9), -0.5, "also where it is a quarter of the rate");
        assert_eq!(Change::default().next(2.0, 0.0), 0.0);
    }

    #[test]
    fn confidence_waits_for_two_steps_after_a_flip() {
        let mut change = Change::default();
        let mut amplifiers = vec![];
        for gradient in [1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0] {
            change.next(1e6, gradient);
            amplifiers.push(change.amplifier);
        }
        assert_eq!(amplifiers, [0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0]);
        assert_eq!(change.trend, 3, "so the next trials are one pair");
    }

    #[test]
    fn trials_are_half_a_megabit_apart_at_least() {
        let utility = Utility {
            latency_coefficient: 0.0,
            loss_coefficient: 11.35,
            tolerated_loss: 0.03,
            slope: super::super::utility::Slope::Quantised,
        };
        let mut learner = Program::new(airpace_core::Streams::new(1).stream("program"), utility);
        for (rate_mbps, least) in [(0.1, 0.5), (3.0, 0.5), (40.0, 2.0)] {
            learner.probe(rate_mbps);
            let Phase::Probing { distance_mbps, .. } = learner.phase else { panic!("trials") };
            assert!((distance_mbps - least).abs() < 1e-9, "{distance_mbps} at {rate_mbps}");
        }
        learner.probe(0.1);
        assert_eq!(learner.rate_mbps, MIN_MBPS);
    }
}
