//! Interval between KPIs, their latency, and the CPU cost of the daemon that publishes them, with an emulated modem.

mod emulator;
mod kinds;
mod measure;
mod page;

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::LabError;
use crate::part::Executable;
pub use emulator::Load;
pub use kinds::number_of_kinds;
pub use measure::{Outcome, Percentiles, as_csv};
pub use page::page;

/// Maximum interval between KPIs with draining that meets the goal (ms).
///
/// Source: BISCAY §5.1 Fig. 4a (one millisecond for the drain, ten for the modem's own report)
const GAP_GOAL_MS: f64 = 11.0;
/// Bounds of the interval between KPIs without draining, relative to the time for which the modem keeps packets.
///
/// Source: BISCAY §5.1 Fig. 4a (about a second, for a modem that keeps them for a second)
const BUFFERED_GOAL: [f64; 2] = [0.9, 1.1];
/// Maximum latency from arrival to reader that meets the goal (µs): median and 99th percentile.
const LATENCY_GOALS_US: [f64; 2] = [50.0, 1_000.0];
/// Maximum share of a core for the daemon at 1,000 packets per second, in percent.
const CPU_GOAL_PERCENT: f64 = 2.0;

/// Load, duration and options of the measurements.
#[derive(Clone, Debug)]
pub struct Request {
    /// Packets that the modem sends.
    pub load: Load,
    /// Interval between drains in the first measurement, as the option of the daemon.
    pub drain: String,
    /// Duration of each of the two measurements.
    pub span: Duration,
    /// Whether the daemon runs with real-time priority and locked memory.
    pub wants_realtime: bool,
}

/// Results of the measurements.
pub struct Granularity {
    /// The results with draining, then the results without draining.
    pub outcomes: [Outcome; 2],
    /// The goals, each with its value.
    pub goals: Vec<Goal>,
}

/// A goal, and the value that was measured.
pub struct Goal {
    /// The measured quantity, with its unit.
    pub what: &'static str,
    /// The measured value.
    pub found: f64,
    /// Lower bound; `None` if there is none.
    pub at_least: Option<f64>,
    /// Upper bound.
    pub at_most: f64,
}

impl Goal {
    /// Whether the value is within its bounds.
    pub fn is_met(&self) -> bool {
        self.at_least.is_none_or(|bound| bound <= self.found) && self.found <= self.at_most
    }

    /// The bounds of the value, as text.
    pub fn bounds(&self) -> String {
        match self.at_least {
            Some(least) => format!("{least} to {}", self.at_most),
            None => format!("at most {}", self.at_most),
        }
    }
}

/// Measures with draining, and then without. `tick` receives whether the modem is drained, and the time since the start of
/// this measurement.
///
/// # Errors
/// The daemon does not start, or stops too early, or fewer than two readings arrive.
pub fn measure(
    executable: &Executable,
    request: &Request,
    tick: &dyn Fn(bool, Duration),
) -> Result<Granularity, LabError> {
    let one = |drain| measure::measure(executable, request, drain, |done| tick(drain, done));
    let outcomes = [one(true)?, one(false)?];
    let goals = goals(&outcomes, request.load.hold);
    Ok(Granularity { outcomes, goals })
}

/// The goals, for the measurements with and without draining.
fn goals([drained, buffered]: &[Outcome; 2], buffer: Duration) -> Vec<Goal> {
    let at_most = |what, found, at_most| Goal { what, found, at_least: None, at_most };
    let (gap, latency) = (drained.gaps_ms(), drained.latencies_us());
    let [least, most] = BUFFERED_GOAL.map(|share| (share * buffer.as_secs_f64() * 1e3).round());
    vec![
        at_most("ms between RSRPs with draining, 90 %", gap.p90, GAP_GOAL_MS),
        at_most("ms between RSRPs with draining, 99 %", gap.p99, GAP_GOAL_MS),
        Goal {
            what: "ms between RSRPs without, median",
            found: buffered.gaps_ms().p50,
            at_least: Some(least),
            at_most: most,
        },
        at_most("µs from arrival to reader, median", latency.p50, LATENCY_GOALS_US[0]),
        at_most("µs from arrival to reader, 99 %", latency.p99, LATENCY_GOALS_US[1]),
        at_most("% of a core for the daemon", drained.cpu_percent, CPU_GOAL_PERCENT),
    ]
}

/// The results in the form of `summary.json`.
pub fn summary(outcomes: &[Outcome], goals: &[Goal]) -> Value {
    let percentiles = |of: &Percentiles| json!({"p50": of.p50, "p90": of.p90, "p99": of.p99, "max": of.max, "count": of.count});
    let outcome = |outcome: &Outcome| {
        json!({
            "drains": outcome.drains,
            "gap_ms": percentiles(&outcome.gaps_ms()),
            "arrival_to_reader_us": percentiles(&outcome.latencies_us()),
            "modem_to_reader_ms": percentiles(&outcome.ages_ms()),
            "cpu_percent": outcome.cpu_percent,
            "wakes_per_s": outcome.wakes_per_s,
            "packets_per_s": outcome.packets_per_s,
            "drains_per_s": outcome.drains_per_s,
            "is_realtime": outcome.is_realtime,
        })
    };
    let goals: Vec<_> = goals
        .iter()
        .map(|goal| {
            json!({
                "what": goal.what, "found": goal.found, "at_least": goal.at_least, "at_most": goal.at_most,
                "met": goal.is_met(),
            })
        })
        .collect();
    json!({"measurements": outcomes.iter().map(outcome).collect::<Vec<_>>(), "goals": goals})
}
