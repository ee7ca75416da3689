//! PCC Vivace: it changes the rate in the direction in which the utility rises (its gradient). The steps become larger
//! as long as the gradient keeps its sign.
//!
//! ```text
//!  Starting ──utility falls──▶ Probing ──gradient──▶ Moving ⟲ same sign
//!                                 ▲                     │
//!                                 └──── sign flips ─────┘
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`utility`] | the utility of an interval: rate, slope of round-trip times, loss |
//! | [`step`] | size of the rate change for a gradient: confidence amplifier and dynamic boundary |
//! | [`program`] | the learner of the published program of 2018 |
//!
//! The slope of round-trip times shows whether a queue grows, but not whether there is a constant queue. Vivace
//! therefore keeps a queue from growing, but does not reduce an existing queue. Noise of a tenth of the round-trip time
//! hides the slope.
//!
//! Source: Dong et al., PCC Vivace: Online-Learning Congestion Control, NSDI 2018

pub mod program;
pub mod step;
pub mod utility;

use airpace_core::{Bytes, Rng};

use crate::controller::{Controller, Inspect};
use crate::pcc::interval::Report;
use crate::pcc::pairs::{MAX_PAIRS, Pairs};
use crate::pcc::start::{Point, Start};
use crate::pcc::{Learner, PathView, Pcc, Role, Tag, Trial};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};

use program::Program;
use step::{Amplifier, Boundary, Stride};
use utility::{Slope, Utility};

/// The scheme `vivace`.
pub static SCHEME: Scheme = Scheme {
    name: "vivace",
    summary: "changes its rate along the gradient of a utility of rate, growth of delay, and loss",
    source: "Dong et al., PCC Vivace: Online-Learning Congestion Control, NSDI 2018",
    style: Style { colour: "#999933", marker: "arrow" },
    presets: &[
        Preset {
            name: "loss",
            summary: "the paper's Vivace-Loss: delay costs nothing",
            set: &[("latency_coefficient", "0")],
        },
        Preset {
            name: "pantheon",
            summary: "the published program of 2018, with its latency term",
            set: &[
                ("latency_coefficient", "11330"),
                ("slope", "quantised"),
                ("tolerated_loss", "0.03"),
                ("learner", "program"),
            ],
        },
        Preset {
            name: "uspace",
            summary: "the same program with its default settings: without its latency term",
            set: &[
                ("latency_coefficient", "0"),
                ("slope", "quantised"),
                ("tolerated_loss", "0.03"),
                ("learner", "program"),
            ],
        },
        Preset {
            name: "proteus",
            summary: "the program's later version: only growing delay counts, three pairs decide by majority",
            set: &[
                ("slope", "growth"),
                ("pairs", "3"),
                ("amplifier", "power"),
                ("least_step_mbps", "0.5"),
                ("least_mbps", "0.5"),
            ],
        },
    ],
    options: &[
        OptionSpec {
            name: "latency_coefficient",
            default: "900",
            summary: "cost of a round-trip time that grows by a second per second, per Mbit/s",
        },
        OptionSpec {
            name: "loss_coefficient",
            default: "11.35",
            summary: "cost of a loss of 100 %, per Mbit/s",
        },
        OptionSpec {
            name: "tolerated_loss",
            default: "0",
            summary: "below this share of loss, a loss of 100 % costs 1 per Mbit/s",
        },
        OptionSpec {
            name: "slope",
            default: "signed",
            summary: "RTT's slope: signed (below 0.01 none), quantised (steps of 0.02), growth (beyond its error)",
        },
        OptionSpec {
            name: "pairs",
            default: "1",
            summary: "pairs of trials that decide by majority, at most 3",
        },
        OptionSpec {
            name: "amplifier",
            default: "paper",
            summary: "confidence amplifier: paper (in four pieces), power (steps^1.2)",
        },
        OptionSpec {
            name: "boundary_step",
            default: "0.1",
            summary: "growth of the largest change per step",
        },
        OptionSpec { name: "least_step_mbps", default: "0", summary: "smallest change of the rate" },
        OptionSpec { name: "least_mbps", default: "0", summary: "smallest rate" },
        OptionSpec {
            name: "learner",
            default: "paper",
            summary: "paper; program: as the program of 2018, which has its own pairs, amplifier, steps and least rate",
        },
    ],
    takes_ran: true,
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let pairs = options.number("pairs", 1.0)?;
    if pairs > MAX_PAIRS as f64 || libm::trunc(pairs) != pairs {
        return Err(options.refuse("pairs", "1, 2 or 3"));
    }
    let profile = DelayProfile {
        utility: Utility {
            latency_coefficient: options.number("latency_coefficient", 0.0)?,
            loss_coefficient: options.number("loss_coefficient", 0.0)?,
            tolerated_loss: options.number("tolerated_loss", 0.0)?,
            slope: match options.text("slope") {
                "signed" => Slope::Signed,
                "quantised" => Slope::Quantised,
                "growth" => Slope::Growth,
                _ => return Err(options.refuse("slope", "`signed`, `quantised` or `growth`")),
            },
        },
        pairs: pairs as usize,
        amplifier: match options.text("amplifier") {
            "paper" => Amplifier::Pieces,
            "power" => Amplifier::Power,
            _ => return Err(options.refuse("amplifier", "`paper` or `power`")),
        },
        boundary: Boundary::new(options.number("boundary_step", 0.0)?),
        least_step_mbps: options.number("least_step_mbps", 0.0)?,
        least_mbps: options.number("least_mbps", 0.0)?,
    };
    let rng = setup.rng.clone();
    let controller: Box<dyn Controller> = match options.text("learner") {
        "paper" => Box::new(new(setup.mss, rng, profile)),
        "program" => Box::new(Pcc::new(setup.mss, Program::new(rng, profile.utility))),
        _ => return Err(options.refuse("learner", "`paper` or `program`")),
    };
    Ok(Ends { controller, receiver: None })
}

/// Relative difference between the rate of a trial and the base rate.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §5
const EPSILON: f64 = 0.05;

/// Length of an interval, in round trips.
///
/// Source: Dong et al., PCC Vivace, NSDI 2018, §5
const ROUND_TRIPS: f64 = 1.0;

/// Minimum number of packets in an interval.
///
/// Chosen: a slope cannot be measured with fewer packets.
const MIN_PACKETS: f64 = 5.0;

/// The differences between the paper and its programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayProfile {
    /// The utility of an interval.
    pub utility: Utility,
    /// Number of pairs of trials per decision.
    pub pairs: usize,
    /// How the confidence factor grows with consecutive steps in one direction.
    pub amplifier: Amplifier,
    /// The maximum change of the rate per step.
    pub boundary: Boundary,
    /// Minimum change of the rate per step (Mbit/s).
    pub least_step_mbps: f64,
    /// Minimum sending rate (Mbit/s).
    pub least_mbps: f64,
}

/// The controller of Vivace.
pub fn new(mss: Bytes, rng: Rng, profile: DelayProfile) -> Pcc<Vivace> {
    let stride = Stride::new(profile.amplifier, profile.boundary, profile.least_step_mbps);
    let phase = Phase::Starting { start: Start::default(), is_doubted: false };
    Pcc::new(mss, Vivace { profile, rng, phase, stride, rate_mbps: 0.0, utility: 0.0, decision: 0 })
}

/// The learner of Vivace.
#[derive(Clone, Debug)]
pub struct Vivace {
    profile: DelayProfile,
    rng: Rng,
    phase: Phase,
    stride: Stride,
    /// The base rate of the trials (Mbit/s).
    rate_mbps: f64,
    /// The last utility found for the base rate.
    utility: f64,
    decision: u32,
}

/// The phase of the learner.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubling the rate.
    Starting {
        start: Start,
        /// Whether the last fall of utility may have been noise.
        is_doubted: bool,
    },
    /// Trying a higher and a lower rate.
    Probing(Pairs),
    /// Following the gradient between the last two rates.
    Moving {
        from: Point,
        /// Whether an interval at the new rate has started.
        is_begun: bool,
    },
}

impl Vivace {
    fn bounded(&self, mbps: f64, path: &PathView) -> f64 {
        path.bounded(mbps.max(self.profile.least_mbps))
    }

    /// Starts trials around `point`.
    fn probe(&mut self, point: Point) -> bool {
        self.rate_mbps = point.rate_mbps;
        self.utility = point.utility;
        self.decision = self.decision.wrapping_add(1);
        self.phase = Phase::Probing(Pairs::new(&mut self.rng, self.profile.pairs, EPSILON));
        true
    }

    /// Changes the rate from `from` in the direction of `gradient`.
    fn follow(&mut self, from: Point, gradient: f64, path: &PathView) -> bool {
        let change = self.stride.next(from.rate_mbps, gradient);
        let rate_mbps = self.bounded(from.rate_mbps + change, path);
        // At the limit of the permitted rates, no further move is possible.
        if (rate_mbps - from.rate_mbps).abs() < 1e-9 {
            self.stride.reset();
            return self.probe(from);
        }
        self.rate_mbps = rate_mbps;
        self.utility = from.utility;
        self.decision = self.decision.wrapping_add(1);
        self.phase = Phase::Moving { from, is_begun: false };
        true
    }

    /// Processes a utility in the start phase that is below the best utility so far.
    ///
    /// Source: Dong et al., PCC Vivace, NSDI 2018, §4.3 (double check of noise in latency)
    fn doubt(&mut self, report: &Report, best: Point) -> bool {
        let Phase::Starting { start, is_doubted } = &mut self.phase else { return false };
        if *is_doubted || report.lost > 0 {
            return self.probe(best);
        }
        *is_doubted = true;
        start.again();
        self.decision = self.decision.wrapping_add(1);
        true
    }
}

impl Learner for Vivace {
    fn next(&mut self, path: &PathView) -> Trial {
        let first_mbps = path.least_mbps().max(self.profile.least_mbps);
        // The minimum rate of the path may have risen above this rate. Trials below the minimum rate would all have the
        // minimum rate.
        self.rate_mbps = self.bounded(self.rate_mbps, path);
        let (rate_mbps, role) = match &mut self.phase {
            Phase::Starting { start, .. } if path.is_known => match start.next(first_mbps) {
                (rate_mbps, true) => (rate_mbps, Role::Step),
                (rate_mbps, false) => (rate_mbps, Role::Waiting),
            },
            Phase::Starting { .. } => (first_mbps, Role::Waiting),
            Phase::Probing(pairs) => match pairs.begin() {
                Some((place, factor)) => (self.rate_mbps * factor, Role::Probe(place)),
                None => (self.rate_mbps, Role::Waiting),
            },
            Phase::Moving { is_begun, .. } if !*is_begun => {
                *is_begun = true;
                (self.rate_mbps, Role::Step)
            }
            Phase::Moving { .. } => (self.rate_mbps, Role::Waiting),
        };
        let span = path.span(ROUND_TRIPS, MIN_PACKETS, rate_mbps);
        Trial { rate_mbps, span, tag: Tag { decision: self.decision, role } }
    }

    fn learn(&mut self, report: &Report, path: &PathView) -> bool {
        let tag = report.trial.tag;
        if tag.decision != self.decision {
            return false;
        }
        let utility = self.profile.utility.of(report);
        let point = Point { rate_mbps: report.trial.rate_mbps, utility };
        match (&mut self.phase, tag.role) {
            (Phase::Starting { start, is_doubted }, Role::Step) => match start.learn(point) {
                Some(best) => self.doubt(report, best),
                None => {
                    *is_doubted = false;
                    start.was_held()
                }
            },
            (Phase::Probing(pairs), Role::Probe(place)) => {
                let Some(votes) = pairs.learn(place, utility) else { return false };
                let pairs = *pairs;
                let is_up = votes.higher > votes.lower;
                let here = Point { rate_mbps: self.rate_mbps, utility: self.utility };
                match pairs.means(|higher, lower| if is_up { higher > lower } else { lower > higher }) {
                    Some((higher, lower)) if votes.higher != votes.lower => {
                        let gradient = (higher - lower) / (2.0 * EPSILON * self.rate_mbps);
                        let from = Point { utility: (higher + lower) / 2.0, ..here };
                        self.follow(from, gradient, path)
                    }
                    _ => self.probe(here),
                }
            }
            (Phase::Moving { from, .. }, Role::Step) => {
                let from = *from;
                let gradient = (utility - from.utility) / (point.rate_mbps - from.rate_mbps);
                if self.stride.agrees(gradient) {
                    return self.follow(point, gradient, path);
                }
                self.stride.reset();
                self.probe(from)
            }
            _ => false,
        }
    }

    fn inspect(&self, out: &mut Inspect) {
        let is_starting = matches!(self.phase, Phase::Starting { .. });
        out.state = match self.phase {
            Phase::Starting { .. } => "Starting",
            Phase::Probing(_) => "Probing",
            Phase::Moving { .. } => "Moving",
        };
        let known = |value: f64| if is_starting { f64::NAN } else { value };
        out.value("base_mbps", known(self.rate_mbps));
        out.value("utility", known(self.utility));
        out.value("steps", self.stride.steps());
        out.value("boundary_percent", self.stride.boundary() * 100.0);
    }
}
