//! Allegro's learner: after the start, it decides by trials whether to raise or to lower the rate, and continues in
//! this direction.
//!
//! ```text
//!  Starting ──utility falls──▶ DecisionMaking ──both pairs agree──▶ RateAdjusting
//!                                   ▲    └ no: wider trials            │
//!                                   └──────────utility falls───────────┘
//! ```
//!
//! MORC restricts the learner by [`Open`]: directions that are not worth a trial are not tried.

use airpace_core::Rng;

use crate::controller::Inspect;
use crate::pcc::interval::Report;
use crate::pcc::pairs::Pairs;
use crate::pcc::start::{Point, Start};
use crate::pcc::{PathView, Role, Tag};

/// Minimum relative difference between the rate of a trial and the base rate. It is also the increment of this
/// difference, and the unit of a step.
///
/// Source: Dong et al., NSDI 2015, §3.2 (ε from 0.01 to 0.05)
pub const EPSILON: f64 = 0.01;

/// Maximum relative difference between the rate of a trial and the base rate.
pub const WIDEST: f64 = 0.05;

/// Number of pairs per decision.
const PAIRS: usize = 2;

/// Maximum step, relative to the rate.
///
/// Chosen: the paper's n-th step of n % has no bound, and the hundredth step down would reach zero.
const MAX_STEP: f64 = 0.5;

/// If the ratio of the rate that fits the path to the present rate is below this value, the fitting rate is used at
/// once.
///
/// Chosen: MORC's example of a filling queue is 30 of 100 Mbit/s.
const FAR: f64 = 0.5;

/// The phase of the learner.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    /// Doubling the rate.
    Starting(Start),
    /// Trying higher and lower rates.
    Deciding(Pairs),
    /// Moving in one direction.
    Adjusting(Walk),
}

/// Steps in one direction, each longer than the previous one.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    is_up: bool,
    /// Whether the steps started without a decision, because the other direction was not worth a trial.
    is_forced: bool,
    /// Number of steps started.
    steps: u32,
    /// Rate and utility from which the last step started.
    from: Point,
    /// Whether an interval of the last step has started.
    is_begun: bool,
}

/// The directions that are worth a trial; at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Open {
    /// Whether a lower rate may have a higher utility.
    pub lower: bool,
    /// Whether a higher rate may have a higher utility.
    pub higher: bool,
    /// Whether twice the rate may have a higher utility.
    pub doubling: bool,
    /// The rate that the path can carry, if much less arrived than was sent.
    pub fits_mbps: Option<f64>,
}

impl Open {
    /// All directions may have a higher utility.
    pub const BOTH: Open = Open { lower: true, higher: true, doubling: true, fits_mbps: None };
}

/// The learner.
#[derive(Clone, Debug)]
pub struct Climb {
    rng: Rng,
    phase: Phase,
    /// The base rate of the trials (Mbit/s).
    rate_mbps: f64,
    /// The last utility found for the base rate.
    utility: f64,
    decision: u32,
}

impl Climb {
    /// The learner of a new connection.
    pub fn new(rng: Rng) -> Climb {
        Climb { rng, phase: Phase::Starting(Start::default()), rate_mbps: 0.0, utility: 0.0, decision: 0 }
    }

    /// The flow's random number generator, for the scheme's other random choices.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// The rate of the next interval, and its purpose.
    pub fn next(&mut self, first_mbps: f64, path: &PathView) -> (f64, Tag) {
        // The minimum rate of the path may have risen above this rate. Trials below the minimum rate would all have the
        // minimum rate.
        self.rate_mbps = path.bounded(self.rate_mbps);
        let (rate_mbps, role) = match &mut self.phase {
            Phase::Starting(start) if path.is_known => match start.next(first_mbps) {
                (rate_mbps, true) => (rate_mbps, Role::Step),
                (rate_mbps, false) => (rate_mbps, Role::Waiting),
            },
            Phase::Starting(_) => (first_mbps, Role::Waiting),
            Phase::Deciding(pairs) => match pairs.begin() {
                Some((place, factor)) => (self.rate_mbps * factor, Role::Probe(place)),
                None => (self.rate_mbps, Role::Waiting),
            },
            Phase::Adjusting(walk) if !walk.is_begun => {
                walk.is_begun = true;
                (self.rate_mbps, Role::Step)
            }
            Phase::Adjusting(_) => (self.rate_mbps, Role::Waiting),
        };
        (rate_mbps, Tag { decision: self.decision, role })
    }

    /// Processes a report and its utility. Returns whether the rate changes now.
    pub fn learn(&mut self, report: &Report, utility: f64, open: Open, path: &PathView) -> bool {
        let tag = report.trial.tag;
        let point = Point { rate_mbps: report.trial.rate_mbps, utility };
        let is_starting = matches!(self.phase, Phase::Starting(_));
        // The rate that fits the path is used without trials, and regardless of the purpose of the interval.
        if let Some(fits_mbps) = open.fits_mbps.filter(|fits| !is_starting && *fits < FAR * self.rate_mbps) {
            return self.settle(Point { rate_mbps: fits_mbps, utility }, open, path);
        }
        if tag.decision != self.decision {
            return false;
        }
        match (&mut self.phase, tag.role) {
            (Phase::Starting(start), Role::Step) if !open.doubling => {
                let received_mbps = report.received_mbps.unwrap_or(point.rate_mbps);
                let rate_mbps = received_mbps.min(point.rate_mbps).min(start.best_mbps());
                self.settle(Point { rate_mbps, utility }, open, path)
            }
            (Phase::Starting(start), Role::Step) => match start.learn(point) {
                Some(best) => self.settle(best, open, path),
                None => start.was_held(),
            },
            (Phase::Deciding(_), _) if !(open.lower && open.higher) => {
                let here = Point { rate_mbps: self.rate_mbps, utility };
                self.forced_walk(here, open, path)
            }
            (Phase::Deciding(pairs), Role::Probe(place)) => {
                let Some(votes) = pairs.learn(place, utility) else { return false };
                let (pairs, epsilon) = (*pairs, pairs.epsilon());
                let (higher, lower) = pairs.means(|_, _| true).unwrap_or((utility, utility));
                match (votes.higher == PAIRS, votes.lower == PAIRS) {
                    (true, _) => self.decide(true, epsilon, higher, open, path),
                    (_, true) => self.decide(false, epsilon, lower, open, path),
                    _ => self.retry((epsilon + EPSILON).min(WIDEST)),
                }
            }
            (Phase::Adjusting(walk), Role::Step) => {
                let walk = *walk;
                let (onward, back) =
                    if walk.is_up { (open.higher, open.lower) } else { (open.lower, open.higher) };
                if walk.is_forced && walk.is_up && onward && back {
                    return self.settle(point, open, path);
                }
                // A step is not reversed while the opposite direction is not worth a trial.
                if onward && (utility > walk.from.utility || !back) {
                    self.step(Walk { from: point, is_begun: false, ..walk }, open, path)
                } else if back {
                    self.settle(walk.from, open, path)
                } else {
                    self.settle(point, open, path)
                }
            }
            _ => false,
        }
    }

    /// Lowers the requested rate to the sent rate, if the sender cannot send at the requested rate.
    pub fn cut_back(&mut self, rate_mbps: f64) -> bool {
        if matches!(self.phase, Phase::Starting(_)) || rate_mbps >= self.rate_mbps {
            return false;
        }
        self.rate_mbps = rate_mbps;
        self.retry(EPSILON)
    }

    /// Makes the rate of `point` the base of the next decision.
    fn settle(&mut self, point: Point, open: Open, path: &PathView) -> bool {
        self.rate_mbps = path.bounded(point.rate_mbps);
        self.utility = point.utility;
        if open.lower && open.higher {
            return self.retry(EPSILON);
        }
        self.forced_walk(point, open, path)
    }

    /// Starts a new series of trials.
    fn retry(&mut self, epsilon: f64) -> bool {
        self.decision = self.decision.wrapping_add(1);
        self.phase = Phase::Deciding(Pairs::new(&mut self.rng, PAIRS, epsilon));
        true
    }

    /// Starts steps in the direction on which both pairs of trials agree. The steps start from the better rate.
    fn decide(&mut self, is_up: bool, epsilon: f64, utility: f64, open: Open, path: &PathView) -> bool {
        let factor = if is_up { 1.0 + epsilon } else { 1.0 - epsilon };
        self.rate_mbps = path.bounded(self.rate_mbps * factor);
        self.utility = utility;
        let from = Point { rate_mbps: self.rate_mbps, utility };
        self.step(Walk { is_up, is_forced: false, steps: 0, from, is_begun: false }, open, path)
    }

    fn forced_walk(&mut self, from: Point, open: Open, path: &PathView) -> bool {
        self.step(Walk { is_up: open.higher, is_forced: true, steps: 0, from, is_begun: false }, open, path)
    }

    /// Starts the next step. The n-th step changes the rate by n per cent.
    ///
    /// Source: Dong et al., NSDI 2015, §3.2 (rate adjusting)
    fn step(&mut self, walk: Walk, open: Open, path: &PathView) -> bool {
        let steps = walk.steps + 1;
        let part = (f64::from(steps) * EPSILON).min(MAX_STEP);
        let rate_mbps = walk.from.rate_mbps * if walk.is_up { 1.0 + part } else { 1.0 - part };
        let rate_mbps = match open.fits_mbps {
            Some(fits_mbps) if !walk.is_up => rate_mbps.min(fits_mbps),
            _ => rate_mbps,
        };
        self.decision = self.decision.wrapping_add(1);
        self.utility = walk.from.utility;
        self.rate_mbps = path.bounded(rate_mbps);
        self.phase = Phase::Adjusting(Walk { steps, ..walk });
        true
    }

    /// Reports the state and the internal values.
    pub fn inspect(&self, out: &mut Inspect) {
        let (state, epsilon, steps) = match &self.phase {
            Phase::Starting(_) => ("Starting", f64::NAN, f64::NAN),
            Phase::Deciding(pairs) => ("DecisionMaking", pairs.epsilon() * 100.0, f64::NAN),
            Phase::Adjusting(walk) => {
                let steps = f64::from(walk.steps);
                ("RateAdjusting", f64::NAN, if walk.is_up { steps } else { -steps })
            }
        };
        let known = |value: f64| if matches!(self.phase, Phase::Starting(_)) { f64::NAN } else { value };
        out.state = state;
        out.value("base_mbps", known(self.rate_mbps));
        out.value("utility", known(self.utility));
        out.value("epsilon_percent", epsilon);
        out.value("steps", steps);
    }
}
