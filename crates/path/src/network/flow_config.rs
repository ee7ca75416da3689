//! Configuration of a flow, and the sizes of its packets.

use airpace_core::{Bytes, DeviceId, Direction};

/// Default size of a full-sized data packet on the wire.
///
/// Source: PBE-CC §4.1 (1500-byte packets)
pub const DATA_BYTES: Bytes = Bytes(1500);

/// Size of an ACK on the wire.
///
/// Chosen: 20 IP, 8 UDP, 32 for ranges and feedback.
pub const ACK_BYTES: Bytes = Bytes(60);

/// Route and packet size of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowConfig {
    /// Its device.
    pub device: DeviceId,
    /// The direction of its data.
    pub direction: Direction,
    /// Whether its ACKs cross the last hop too, if the last hop carries their direction.
    pub acks_cross_cell: bool,
    /// Whether its data crosses the Internet queue.
    pub crosses_internet: bool,
    /// Minimum round-trip time over the whole empty path, in ms.
    pub rtt_ms: f64,
    /// Bytes of its full-sized data packets on the wire.
    pub data_bytes: Bytes,
}
