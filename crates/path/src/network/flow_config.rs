//! Configuration of a flow, and the sizes of its packets.

use airpace_core::{Bytes, DeviceId, Direction};

/// Default size of a full-sized data packet on the wire.
///
/// Source: PBE-CC §4.1 (1500-byte packets)
pub const DATA_BYTES: Bytes = Bytes(1500);

/// Size of an ACK on the wire.
///
/// Chosen: 20 bytes of IP header, 8 bytes of UDP header, 32 bytes for ranges and feedback.
pub const ACK_BYTES: Bytes = Bytes(60);

/// Route and packet size of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowConfig {
    /// The device to which the flow belongs.
    pub device: DeviceId,
    /// The direction of the flow's data.
    pub direction: Direction,
    /// Whether the flow's ACKs cross the last hop too, if the last hop carries packets in the direction of ACKs.
    pub acks_cross_cell: bool,
    /// Whether the flow's data crosses the Internet queue.
    pub crosses_internet: bool,
    /// Whether the flow's packets cross the last hop; a flow to a proxy ends before it.
    pub crosses_last_hop: bool,
    /// Whether the flow's wires have a delay only, without the losses, jitter and rate of other wires.
    pub has_plain_wires: bool,
    /// Minimum round-trip time over the whole empty path, in ms.
    pub rtt_ms: f64,
    /// Bytes of the flow's full-sized data packets on the wire.
    pub data_bytes: Bytes,
}
