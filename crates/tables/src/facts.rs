//! Facts of a run that a judge needs before the first event (the flows and their active times), and the key of a run.

use airpace_core::{Bytes, DeviceId, Direction, FlowId, Time};

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
    /// Number of the primary carrier of the device; `None` if the last hop is no cell.
    pub primary: Option<u8>,
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

/// Key of a run within a folder: tables of different runs have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey<'a> {
    /// Name of the scenario.
    pub scenario: &'a str,
    /// The scheme under test, as spelled.
    pub scheme: &'a str,
    /// Seed of the run.
    pub seed: u64,
}

impl RunFacts {
    /// Key of the run.
    pub fn key(&self) -> RunKey<'_> {
        RunKey { scenario: &self.scenario, scheme: &self.scheme, seed: self.seed }
    }
}
