//! Counters of a run, from which the fate of every packet can be checked.

use airpace_core::Time;
use airpace_event::Fate;

/// Counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStats {
    /// Final time of the virtual clock.
    pub ended: Time,
    /// Whether the run was stopped before the scenario's end.
    pub interrupted: bool,
    /// Number of events that the recorder received.
    pub events: u64,
    /// Number of subframes that the cell ran.
    pub subframes: u64,
    /// Counters of each flow, in the order of the scenario's flows.
    pub flows: Vec<FlowStats>,
}

/// Numbers of data packets of one flow: `sent + duplicated` = `delivered` + all drops + `inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Packets that the sender put on the path.
    pub sent: u64,
    /// Copies of packets that wired links added.
    pub duplicated: u64,
    /// Packets that reached the receiver, including copies.
    pub delivered: u64,
    /// Packets that a full queue refused.
    pub queue_full: u64,
    /// Packets that active queue management dropped.
    pub aqm: u64,
    /// Packets that were lost on a wired link.
    pub wire_loss: u64,
    /// Packets that were lost because the last HARQ transmission of a transport block failed.
    pub harq_failure: u64,
    /// Packets that PDCP of a split bearer discarded, because they arrived after the reordering time.
    pub pdcp_discard: u64,
    /// Packets still under way at the end of the run.
    pub inside: u64,
    /// ACKs that the receiver put on the reverse path.
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
            Fate::PdcpDiscard => &mut self.pdcp_discard,
        } += 1;
    }

    /// Returns the number of packets that were lost or dropped.
    pub fn dropped(&self) -> u64 {
        self.queue_full + self.aqm + self.wire_loss + self.harq_failure + self.pdcp_discard
    }
}
