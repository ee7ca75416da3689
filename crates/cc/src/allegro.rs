//! PCC Allegro: it tries different sending rates and moves to the rates with a higher utility.
//!
//! Its first utility rewards throughput while the loss rate is below 5 %, and penalises higher loss rates. Random loss
//! therefore does not lower the rate, but a full queue does. This utility does not contain the delay, so the flow fills
//! any buffer. Two other utilities contain the delay.
//!
//! The learner is [`Climb`].
//!
//! Source: Dong et al., PCC: Re-architecting Congestion Control for Consistent High Performance, NSDI 2015
//!
//! Differs: reports are exact, because packets have numbers. The interval after a change of rate therefore need not be
//! left out.

use std::time::Duration;

use airpace_core::{Bytes, Rng};

use crate::controller::Inspect;
use crate::pcc::climb::{Climb, Open};
use crate::pcc::interval::Report;
use crate::pcc::{Learner, PathView, Pcc, Trial};
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};

/// The scheme `allegro`.
pub static SCHEME: Scheme = Scheme {
    name: "allegro",
    summary: "tries a higher and a lower rate and takes the one with more utility; ignores loss below 5 %",
    source: "Dong et al., PCC: Re-architecting Congestion Control for Consistent High Performance, NSDI 2015",
    style: Style { colour: "#DDCC77", marker: "pin" },
    presets: &[
        Preset {
            name: "latency",
            summary: "the paper's utility for interactive flows",
            set: &[("utility", "latency")],
        },
        Preset {
            name: "pantheon",
            summary: "as the program that Pantheon calls pcc, with its latency utility, intervals and cut-back",
            set: &[("utility", "pantheon"), ("interval", "pantheon"), ("cut_back_mbps", "30")],
        },
    ],
    options: &[
        OptionSpec {
            name: "utility",
            default: "safe",
            summary: "utility function: safe, latency (both of the paper), pantheon",
        },
        OptionSpec {
            name: "alpha",
            default: "100",
            summary: "how steeply utility falls at the tolerated loss",
        },
        OptionSpec { name: "tolerated_loss", default: "0.05", summary: "share of loss that costs little" },
        OptionSpec {
            name: "interval",
            default: "paper",
            summary: "paper: 1.7 to 2.2 round trips; pantheon: 1.5, 1.6 or 1.7, at least 5 ms",
        },
        OptionSpec {
            name: "cut_back_mbps",
            default: "off",
            summary: "if its rate exceeds what is really sent by this, it falls back to that; off: never",
        },
    ],
    takes_ran: false,
    build,
};

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let profile = DelayProfile {
        utility: match options.text("utility") {
            "safe" => Utility::Safe,
            "latency" => Utility::Latency,
            "pantheon" => Utility::Pantheon,
            _ => return Err(options.refuse("utility", "`safe`, `latency` or `pantheon`")),
        },
        alpha: options.number("alpha", 0.0)?,
        tolerated_loss: match options.number("tolerated_loss", 0.0)? {
            share if share <= 1.0 => share,
            _ => return Err(options.refuse("tolerated_loss", "a share from 0 to 1")),
        },
        spans: match options.text("interval") {
            "paper" => Spans::Paper,
            "pantheon" => Spans::Pantheon,
            _ => return Err(options.refuse("interval", "`paper` or `pantheon`")),
        },
        cut_back_mbps: match options.text("cut_back_mbps") {
            "off" => None,
            _ => Some(options.number("cut_back_mbps", 0.0)?),
        },
    };
    let controller = Box::new(new(setup.mss, setup.rng.clone(), profile));
    Ok(Ends { controller, receiver: None })
}

/// The utility of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utility {
    /// T · S(L − 0.05) − x · L.
    ///
    /// Source: Dong et al., NSDI 2015, §2.2
    Safe,
    /// (T · S(L − 0.05) · RTTₙ₋₁ / RTTₙ − x · L) / RTTₙ.
    ///
    /// Source: Dong et al., NSDI 2015, §4.4.1
    Latency,
    /// As [`Utility::Latency`], with a sigmoid of the ratio of round-trip times.
    ///
    /// Chosen: this reproduces the observed behaviour of the program that Pantheon runs as `pcc`.
    Pantheon,
}

/// Lengths of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spans {
    /// The time of ten packets, or 1.7 to 2.2 round trips drawn at random.
    ///
    /// Source: Dong et al., NSDI 2015, §3.1
    Paper,
    /// The time of ten packets, 5 ms, or 1.5, 1.6 or 1.7 round trips.
    Pantheon,
}

/// The differences between the paper and the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayProfile {
    /// The utility of an interval.
    pub utility: Utility,
    /// Steepness of the utility's sigmoid at the tolerated loss rate.
    pub alpha: f64,
    /// Share of lost packets that is tolerated.
    pub tolerated_loss: f64,
    /// Lengths of intervals.
    pub spans: Spans,
    /// Maximum difference by which the requested rate may exceed the sent rate (Mbit/s); `None`: no maximum.
    pub cut_back_mbps: Option<f64>,
}

impl DelayProfile {
    /// The utility of an interval. If nothing arrived, a faster interval has a lower utility.
    pub fn utility(&self, report: &Report) -> f64 {
        let Report { acked_mbps, sent_mbps, loss, rtt_s, previous_rtt_s, .. } = *report;
        let rtt_s = rtt_s.max(1e-4);
        let worth = acked_mbps * sigmoid(self.alpha * (loss - self.tolerated_loss));
        let harm = sent_mbps * loss;
        match self.utility {
            Utility::Safe => worth - harm,
            Utility::Latency => (worth * previous_rtt_s / rtt_s - harm) / rtt_s,
            Utility::Pantheon => (worth * sigmoid(10.0 * (1.0 - previous_rtt_s / rtt_s)) - harm) / rtt_s,
        }
    }
}

/// 1 / (1 + eʸ): one for large negative y, zero for large positive y.
fn sigmoid(y: f64) -> f64 {
    1.0 / (1.0 + libm::exp(y))
}

/// The controller of Allegro.
pub fn new(mss: Bytes, rng: Rng, profile: DelayProfile) -> Pcc<Allegro> {
    Pcc::new(mss, Allegro { profile, climb: Climb::new(rng) })
}

/// The learner of Allegro.
#[derive(Clone, Debug)]
pub struct Allegro {
    profile: DelayProfile,
    climb: Climb,
}

impl Learner for Allegro {
    fn next(&mut self, path: &PathView) -> Trial {
        let (rate_mbps, tag) = self.climb.next(path.least_mbps(), path);
        let span = match self.profile.spans {
            Spans::Paper => path.span(self.climb.rng().range(1.7, 2.2), 10.0, rate_mbps),
            Spans::Pantheon => {
                let round_trips = 1.5 + 0.1 * self.climb.rng().below(3) as f64;
                path.span(round_trips, 10.0, rate_mbps).max(Duration::from_millis(5))
            }
        };
        Trial { rate_mbps, span, tag }
    }

    fn learn(&mut self, report: &Report, path: &PathView) -> bool {
        let asked_mbps = report.trial.rate_mbps;
        if self.profile.cut_back_mbps.is_some_and(|most| asked_mbps > report.sent_mbps + most)
            && self.climb.cut_back(path.bounded(report.sent_mbps))
        {
            return true;
        }
        self.climb.learn(report, self.profile.utility(report), Open::BOTH, path)
    }

    fn inspect(&self, out: &mut Inspect) {
        self.climb.inspect(out);
    }
}
