//! The proxy of a split connection: forwards the bytes of the server leg in order.

use std::collections::{BTreeMap, VecDeque};

use airpace_core::Bytes;

/// The bytes that have arrived at a proxy, in the order in which the server sent them. A sender gives each retransmission a
/// new number, so the proxy knows which packet it copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct InOrder {
    /// Retransmissions: packet number, and number of the original packet.
    copies: BTreeMap<u64, u64>,
    /// The first packet that has not been forwarded.
    next: u64,
    /// From packet `next` on: the bytes of each packet that has arrived.
    arrived: VecDeque<Option<Bytes>>,
    forwarded: Bytes,
}

impl InOrder {
    /// Number of bytes that were forwarded.
    pub(crate) fn forwarded(&self) -> Bytes {
        self.forwarded
    }

    /// Notes that packet `number` retransmits `original`.
    pub(crate) fn note_copy(&mut self, number: u64, original: u64) {
        let original = self.copies.get(&original).copied().unwrap_or(original);
        self.copies.insert(number, original);
    }

    /// Notes that a packet has arrived. Returns the number of bytes that can be forwarded now.
    pub(crate) fn on_arrival(&mut self, number: u64, bytes: Bytes) -> Bytes {
        let original = self.copies.get(&number).copied().unwrap_or(number);
        if let Some(place) = original.checked_sub(self.next) {
            let place = place as usize;
            if self.arrived.len() <= place {
                self.arrived.resize(place + 1, None);
            }
            self.arrived[place] = Some(bytes);
        }
        let mut forwarded = Bytes::ZERO;
        loop {
            if self.copies.remove(&self.next).is_some() {
                // Its bytes are those of an earlier packet.
                self.arrived.pop_front();
            } else if let Some(Some(bytes)) = self.arrived.front() {
                forwarded += *bytes;
                self.arrived.pop_front();
            } else {
                self.forwarded += forwarded;
                return forwarded;
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1500);

    #[test]
    fn bytes_are_forwarded_in_order_and_once() {
        let mut proxy = InOrder::default();
        assert_eq!(proxy.on_arrival(0, PACKET), PACKET);
        assert_eq!(proxy.on_arrival(2, PACKET), Bytes::ZERO, "packet 1 is missing");
        proxy.note_copy(4, 1);
        assert_eq!(proxy.on_arrival(3, Bytes(700)), Bytes::ZERO);
        assert_eq!(proxy.on_arrival(4, PACKET), Bytes(3700), "the copy of packet 1 closes the gap");
        assert_eq!(proxy.on_arrival(1, PACKET), Bytes::ZERO, "the original is late");
        assert_eq!(proxy.on_arrival(2, PACKET), Bytes::ZERO, "a duplicate");
        assert_eq!(proxy.on_arrival(5, PACKET), PACKET);
        assert!(proxy.arrived.is_empty() && proxy.copies.is_empty());
    }

    #[test]
    fn a_copy_of_a_copy_stands_for_the_original() {
        let mut proxy = InOrder::default();
        proxy.note_copy(1, 0);
        proxy.note_copy(2, 1);
        assert_eq!(proxy.on_arrival(2, PACKET), PACKET);
        assert_eq!(proxy.on_arrival(1, PACKET), Bytes::ZERO, "its bytes have arrived");
        assert_eq!(proxy.on_arrival(3, PACKET), PACKET);
    }
}
