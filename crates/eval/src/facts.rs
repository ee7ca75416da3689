//! What a judge must know of a run before its first event: who the flows are and when each is active.

use airpace_core::{Bytes, DeviceId, FlowId, Time};

/// A run, as far as judging it goes.
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
    /// What people call it.
    pub name: String,
    /// The device that it ends at.
    pub device: DeviceId,
    /// Its scheme, as it was spelled.
    pub scheme: String,
    /// Whether it takes all that it can get; fairness is judged among such flows only, for one that has a rate
    /// of its own wants no equal share.
    pub greedy: bool,
    /// When it has something to send: spans that rise and do not touch.
    pub active: Vec<Span>,
    /// All that it has to send, if that is limited: its active time ends when so much has arrived.
    pub size: Option<Bytes>,
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
