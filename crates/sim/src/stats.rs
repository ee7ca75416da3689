//! What a run did, counted: enough to check that no packet came from or went to nowhere.

use airpace_core::Time;
use airpace_event::Fate;

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Where the virtual clock stopped.
    pub ended: Time,
    /// Whether it was stopped before the scenario's end.
    pub interrupted: bool,
    /// Events recorded.
    pub events: u64,
    /// Subframes of the cell.
    pub subframes: u64,
    /// Counts of each flow, in the scenario's order.
    pub flows: Vec<FlowStats>,
}

/// Data packets of one flow: `sent + duplicated` = `delivered` + all drops + `inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Put on the path.
    pub sent: u64,
    /// Copies that wires added.
    pub duplicated: u64,
    /// Reached the device, copies included.
    pub delivered: u64,
    /// Refused by a full queue.
    pub queue_full: u64,
    /// Dropped by active queue management.
    pub aqm: u64,
    /// Lost on a wire.
    pub wire_loss: u64,
    /// Given up by HARQ.
    pub harq_failure: u64,
    /// Still under way at the end.
    pub inside: u64,
    /// ACKs put on the way back.
    pub acks: u64,
}

impl FlowStats {
    pub(crate) fn ended(&mut self, fate: Fate) {
        *match fate {
            Fate::Delivered => &mut self.delivered,
            Fate::QueueFull => &mut self.queue_full,
            Fate::Aqm => &mut self.aqm,
            Fate::WireLoss => &mut self.wire_loss,
            Fate::HarqFailure => &mut self.harq_failure,
        } += 1;
    }

    /// All packets that did not reach the device.
    pub fn dropped(&self) -> u64 {
        self.queue_full + self.aqm + self.wire_loss + self.harq_failure
    }
}
