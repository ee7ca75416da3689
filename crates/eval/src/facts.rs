//! What a judge must know of a run before its first event: which flows there are and when each is active.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, FlowId, Time};
use airpace_sim::scenario::Flow;
use airpace_sim::{Scenario, SchemeSpec};

/// What a judge needs to know of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// Name of the scenario.
    pub scenario: String,
    /// The scheme under test, as it was spelled; a flow that names its own scheme may run another.
    pub scheme: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// When the run ends.
    pub duration: Time,
    /// The flows, by rising [`FlowId`].
    pub flows: Vec<FlowFacts>,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFacts {
    /// Which.
    pub flow: FlowId,
    /// Its name, for people.
    pub name: String,
    /// Its device.
    pub device: DeviceId,
    /// Whether its data goes to its device or comes from there.
    pub direction: Direction,
    /// Its scheme, as it was spelled.
    pub scheme: String,
    /// Whether it takes all that it can get. Fairness is judged among such flows only: a flow with a rate of its own
    /// does not want an equal share.
    pub greedy: bool,
    /// When it has something to send: spans that rise and do not touch.
    pub active: Vec<Span>,
    /// All that it has to send, if that is limited. Its active time ends when that much has arrived.
    pub size: Option<Bytes>,
    /// How many transfers are due before the run's end; 0 for a flow that has none.
    pub transfers_due: u64,
}

/// The instants from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant inside.
    pub start: Time,
    /// The first instant after it.
    pub end: Time,
}

impl Span {
    /// Seconds inside.
    pub fn seconds(self) -> f64 {
        (self.end - self.start).as_secs_f64()
    }

    /// The part that is also inside `other`; empty if they do not meet.
    pub fn overlap(self, other: Span) -> Span {
        let start = self.start.max(other.start);
        Span { start, end: self.end.min(other.end).max(start) }
    }

    /// Whether every instant of `other` is inside.
    pub fn covers(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// What is known of a run of `scenario` with `under_test` before it begins.
pub fn of(scenario: &Scenario, under_test: &SchemeSpec, seed: u64) -> RunFacts {
    let duration = Time::ZERO + scenario.duration();
    let flows = scenario.flow.iter().enumerate().map(|(index, flow)| {
        let scheme = scenario.scheme_of(index, under_test);
        FlowFacts {
            flow: FlowId(index as u16),
            name: flow.label.clone(),
            device: DeviceId(flow.device),
            direction: flow.direction,
            greedy: flow.rate_mbps.is_none() && scheme.scheme().name != "cbr",
            scheme: scheme.text().to_owned(),
            active: active(flow, duration),
            size: flow.size(),
            transfers_due: transfers_due(flow, duration),
        }
    });
    RunFacts {
        scenario: scenario.name.clone(),
        scheme: under_test.text().to_owned(),
        seed,
        duration,
        flows: flows.collect(),
    }
}

/// The number of a flow's transfers that are due before the run's end or the flow's stop, also of those that have to wait
/// for the transfers before them until then.
fn transfers_due(flow: &Flow, duration: Time) -> u64 {
    let span = flow.stop().min(duration) - flow.start();
    match (flow.transfer_size(), flow.transfers_every()) {
        (None, _) => 0,
        (Some(_), None) => u64::from(!span.is_zero()),
        (Some(_), Some(every)) => span.as_nanos().div_ceil(every.as_nanos().max(1)) as u64,
    }
}

/// The spans in which a flow's application sends: from its start to its stop, `on_s` of every `on_s + off_s`. None for a
/// flow of several transfers: it is active while one is under way, which the run shows.
fn active(flow: &Flow, duration: Time) -> Vec<Span> {
    if flow.every_ms.is_some() {
        return Vec::new();
    }
    let (start, stop) = (flow.start(), flow.stop().min(duration));
    let (Some(on), Some(off)) = (flow.on_s, flow.off_s) else {
        return vec![Span { start, end: stop }];
    };
    let (on, off) = (Duration::from_secs_f64(on), Duration::from_secs_f64(off));
    let starts = std::iter::successors(Some(start), |start| Some(*start + on + off));
    starts
        .take_while(|start| *start < stop)
        .map(|start| Span { start, end: (start + on).min(stop) })
        .collect()
}
