//! Packet descriptors on a path. Links never see the payload; a driver stores the payload under the packet's number.

use crate::time::Time;
use crate::units::Bytes;

/// Identifies one transport flow of a run: the index of the flow's `[[flow]]` in the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u16);

/// Identifies one mobile device of a run: the index of the device's `[[device]]` in the scenario. A device has one
/// queue per cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// The descriptor of one packet on one direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The flow of the packet.
    pub flow: FlowId,
    /// The mobile device that sends or receives the flow. The packet waits in the queue of this device.
    pub device: DeviceId,
    /// Packet number. It increases by one per packet of this flow and direction, and is never reused.
    pub number: u64,
    /// Size of the whole IP packet.
    pub bytes: Bytes,
    /// Time at which the sender passed the packet to the path, by the run's true clock.
    pub sent: Time,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

/// Explicit congestion notification: whether a queue may mark the packet instead of dropping it, and whether a queue
/// has marked it.
///
/// Source: RFC 3168 §5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecn {
    /// The transport does not support ECN.
    #[default]
    NotEct,
    /// The transport supports ECN.
    Ect,
    /// A queue has marked the packet because of congestion.
    Ce,
}

impl Packet {
    /// Marks the packet as CE (congestion experienced). Returns false if the transport does not support ECN.
    pub fn mark(&mut self) -> bool {
        if self.ecn == Ecn::Ect {
            self.ecn = Ecn::Ce;
        }
        self.ecn == Ecn::Ce
    }
}

/// Header option of a packet: a scheme's header on data packets, the scheme's feedback on ACKs.
///
/// Contains at most [`Rider::CAPACITY`] bytes without allocation, so that packets stay plain data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rider {
    len: u8,
    bytes: [u8; Rider::CAPACITY],
}

impl Rider {
    /// Maximum size of a header option in bytes; enough for Sprout's eight-tick forecast.
    pub const CAPACITY: usize = 47;
    /// The empty header option.
    pub const EMPTY: Rider = Rider { len: 0, bytes: [0; Rider::CAPACITY] };

    /// Creates a header option from `bytes`; `None` if `bytes` are more than [`Rider::CAPACITY`].
    #[inline]
    pub fn new(bytes: &[u8]) -> Option<Rider> {
        let mut rider = Rider::EMPTY;
        rider.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        rider.len = bytes.len() as u8;
        Some(rider)
    }

    /// The content of the header option.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Default for Rider {
    #[inline]
    fn default() -> Rider {
        Rider::EMPTY
    }
}

impl std::fmt::Debug for Rider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rider({:02x?})", self.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rider_holds_what_fits_and_refuses_more() {
        assert_eq!(Rider::new(&[1, 2, 3]).unwrap().as_bytes(), [1, 2, 3]);
        assert!(Rider::new(&[0; Rider::CAPACITY + 1]).is_none());
        assert!(Rider::EMPTY.as_bytes().is_empty());
    }
}
