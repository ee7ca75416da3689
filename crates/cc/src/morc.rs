//! MORC: PCC for mobile networks. MORC aims at a queue that is neither empty nor long.
//!
//! If the queue is not empty, the link can use additional capacity before the sender can detect it. A short queue keeps
//! the delay low. The utility is therefore maximal at a round-trip time of RTTmin + 60 ms.
//!
//! | module | content |
//! | --- | --- |
//! | [`ahead`] | the learner of `morc`: the rate that is best a few intervals ahead |
//! | [`target`] | the target of the queueing delay |
//! | [`mod@profile`] | options that users may set |
//! | [`look`] | measures received rate and queueing delay from ACKs, twice per round trip |
//! | [`losses`] | distinguishes buffer overflows from random losses |
//! | `start` | progress of slow start |
//! | [`rival`] | detects other flows that do not drain their queue |
//! | [`trials`] | the learner of the paper (`morc@paper`): Allegro's, without useless trials |
//! | [`avoidance`] | decides which trials are left out |
//!
//! `docs/papers/morc-departures.md` gives the reason and the gain of each departure of `morc` from the paper.
//!
//! Source: MORC §3.1

pub mod ahead;
pub mod avoidance;
pub mod look;
pub mod losses;
pub mod profile;
pub mod rival;
mod start;
pub mod target;
pub mod trials;

use std::time::Duration;

use crate::controller::Controller;
use crate::scheme::{Ends, OptionSpec, Options, Preset, Scheme, SchemeError, Setup, Style};

use avoidance::Avoidance;
use profile::Profile;
use target::Shape;
use trials::Utility;

/// The scheme `morc`.
pub static SCHEME: Scheme = Scheme {
    name: "morc",
    summary: "MORC: PCC for mobile networks; keeps a short queue, tolerates loss, drains it so that flows agree",
    source: "MORC (PCC for mobile networks)",
    style: Style { colour: "#E69F00", marker: "diamond" },
    presets: &[Preset {
        name: "paper",
        summary: "the text: Allegro's trials on MORC's utility, without useless ones",
        set: &[("learner", "trials")],
    }],
    options: &[
        OptionSpec {
            name: "learner",
            default: "ahead",
            summary: "ahead: the best rate a few round trips ahead; trials: the text's",
        },
        OptionSpec {
            name: "target_ms",
            default: "60",
            summary: "target: the least round-trip time plus this (ahead: at 10 Mbit/s)",
        },
        OptionSpec {
            name: "octave_ms",
            default: "10",
            summary: "ahead: how much shorter the target is at twice the rate",
        },
        OptionSpec {
            name: "dry_most",
            default: "2",
            summary: "ahead: a queue that runs dry multiplies the target by this at most; 1: never",
        },
        OptionSpec {
            name: "ahead_loops",
            default: "3",
            summary: "ahead: how far it looks, in multiples of the least round-trip time plus the target",
        },
        OptionSpec {
            name: "window_targets",
            default: "2",
            summary: "ahead: the window has room for this many targets of queue; 0: two round trips, as PCC's",
        },
        OptionSpec {
            name: "boost",
            default: "on",
            summary: "ahead: rise faster while the queue stays empty",
        },
        OptionSpec {
            name: "memory_loops",
            default: "4",
            summary: "ahead: over an empty queue, go back to the best rate of this many loops; 0: do not",
        },
        OptionSpec {
            name: "drain_s",
            default: "2",
            summary: "ahead: drain a queue that was not empty for this long; 0: never",
        },
        OptionSpec {
            name: "drain_above",
            default: "2",
            summary: "ahead: drain a queue of more than this many targets; 0: never",
        },
        OptionSpec {
            name: "overflow",
            default: "on",
            summary: "ahead: aim below a buffer that overflows, and drain it",
        },
        OptionSpec {
            name: "rival",
            default: "on",
            summary: "ahead: compete with flows that do not drain the queue",
        },
        OptionSpec {
            name: "loss_penalty",
            default: "10",
            summary: "trials: cost of a loss of 100 %, as multiple of the throughput",
        },
        OptionSpec {
            name: "rtt_penalty_per_ms",
            default: "0.0005",
            summary: "trials: cost of each millisecond off the target, as share of the throughput",
        },
        OptionSpec {
            name: "avoidance",
            default: "on",
            summary: "trials: leave out those that are unlikely to help; off: always try both directions",
        },
    ],
    takes_ran: false,
    build,
};

/// The profile of the learner `ahead`, read from the options.
///
/// # Errors
/// An option has an invalid value.
pub fn profile(options: &Options) -> Result<Profile, SchemeError> {
    let unless_zero = |name| options.number(name, 0.0).map(|value| (value > 0.0).then_some(value));
    Ok(Profile {
        shape: Shape {
            target_ms: options.number("target_ms", 0.0)?,
            octave_ms: options.number("octave_ms", 0.0)?,
            dry_most: options.number("dry_most", 1.0)?,
        },
        ahead_loops: options.number("ahead_loops", 0.5)?,
        window_targets: unless_zero("window_targets")?,
        boost: options.switch("boost")?,
        memory_loops: options.number("memory_loops", 0.0)?,
        drain: unless_zero("drain_s")?.map(Duration::from_secs_f64),
        drain_above: unless_zero("drain_above")?,
        overflow: options.switch("overflow")?,
        rival: options.switch("rival")?,
    })
}

fn build(setup: &Setup, options: &Options) -> Result<Ends, SchemeError> {
    let utility = Utility {
        target_ms: options.number("target_ms", 0.0)?,
        loss_penalty: options.number("loss_penalty", 0.0)?,
        rtt_penalty_per_ms: options.number("rtt_penalty_per_ms", 0.0)?,
    };
    let avoidance = options.switch("avoidance")?.then(Avoidance::default);
    let profile = profile(options)?;
    let controller: Box<dyn Controller> = match options.text("learner") {
        "ahead" => Box::new(ahead::new(setup.mss, profile)),
        "trials" => Box::new(trials::new(setup.mss, setup.rng.clone(), utility, avoidance)),
        _ => return Err(options.refuse("learner", "`ahead` or `trials`")),
    };
    Ok(Ends { controller, receiver: None })
}
