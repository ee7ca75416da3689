//! Facts of a run that a judge needs before the first event: the flows and their active times.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, FlowId, Time};
use airpace_sim::scenario::Flow;
use airpace_sim::{Scenario, SchemeSpec};

/// Facts of a run that a judge needs before the first event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// Name of the scenario.
    pub scenario: String,
    /// The scheme under test, as spelled. A flow with its own scheme may run another one.
    pub scheme: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// End of the run.
    pub duration: Time,
    /// The flows, in ascending order of [`FlowId`].
    pub flows: Vec<FlowFacts>,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFacts {
    /// Id of the flow.
    pub flow: FlowId,
    /// Name of the flow, for people.
    pub name: String,
    /// Device of the flow.
    pub device: DeviceId,
    /// Downlink if data is sent to the device, uplink if data is sent by the device.
    pub direction: Direction,
    /// Scheme of the flow, as spelled.
    pub scheme: String,
    /// Whether the flow uses all available capacity. Fairness is computed over such flows only, because a flow with a
    /// limited rate does not need an equal share.
    pub greedy: bool,
    /// Periods in which the flow has data to send, ascending and with gaps in between.
    pub active: Vec<Span>,
    /// Total size of the data, if limited. The active time ends when all data has arrived.
    pub size: Option<Bytes>,
    /// Number of transfers that are due before the run's end; 0 for a flow without transfers.
    pub transfers_due: u64,
}

/// The half-open time range from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First instant of the range.
    pub start: Time,
    /// First instant after the range.
    pub end: Time,
}

impl Span {
    /// Length of the range, in seconds.
    pub fn seconds(self) -> f64 {
        (self.end - self.start).as_secs_f64()
    }

    /// Intersection with `other`; empty if the ranges are disjoint.
    pub fn overlap(self, other: Span) -> Span {
        let start = self.start.max(other.start);
        Span { start, end: self.end.min(other.end).max(start) }
    }

    /// Whether `other` lies completely inside this range.
    pub fn covers(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// Facts of a run of `scenario` with the scheme `under_test`.
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

/// Number of a flow's transfers that are due before the run's end or the flow's stop. Transfers that still wait for
/// earlier transfers at that time are included.
fn transfers_due(flow: &Flow, duration: Time) -> u64 {
    let span = flow.stop().min(duration) - flow.start();
    match (flow.transfer_size(), flow.transfers_every()) {
        (None, _) => 0,
        (Some(_), None) => u64::from(!span.is_zero()),
        (Some(_), Some(every)) => span.as_nanos().div_ceil(every.as_nanos().max(1)) as u64,
    }
}

/// Periods in which the flow's application sends: from start to stop, `on_s` of every `on_s + off_s`. Empty for a flow
/// with several transfers, which is active during each transfer; these periods are known only from the events.
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
