//! The proxy of a split connection, which sends the bytes of the server on to the device.

use std::collections::BTreeMap;

use airpace_core::Bytes;

/// The bytes that have arrived at a proxy.
///
/// Differs: TCP forwards bytes in order. Here, senders only count bytes, as everywhere in the simulator, so a lost packet delays
/// its own bytes, and not those behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtProxy {
    /// Retransmissions of packets that may still arrive: packet number, and number of the original packet.
    copies: BTreeMap<u64, u64>,
    /// For each packet: whether its bytes have arrived.
    brought: Vec<bool>,
    forwarded: Bytes,
}

impl AtProxy {
    /// Number of bytes that were forwarded.
    pub(crate) fn forwarded(&self) -> Bytes {
        self.forwarded
    }

    /// Notes that packet `number` retransmits `original`.
    pub(crate) fn note_copy(&mut self, number: u64, original: u64) {
        let original = self.copies.get(&original).copied().unwrap_or(original);
        self.copies.insert(number, original);
    }

    /// Notes that a packet has arrived. Returns the number of bytes that go on: none if they have arrived before.
    pub(crate) fn on_arrival(&mut self, number: u64, bytes: Bytes) -> Bytes {
        let original = self.copies.get(&number).copied().unwrap_or(number) as usize;
        if self.brought.len() <= original {
            self.brought.resize(original + 1, false);
        }
        if std::mem::replace(&mut self.brought[original], true) {
            return Bytes::ZERO;
        }
        self.forwarded += bytes;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1500);

    #[test]
    fn bytes_are_forwarded_once() {
        let mut proxy = AtProxy::default();
        assert_eq!(proxy.on_arrival(0, PACKET), PACKET);
        assert_eq!(proxy.on_arrival(2, Bytes(700)), Bytes(700), "packet 1 is late");
        assert_eq!(proxy.on_arrival(2, Bytes(700)), Bytes::ZERO, "a duplicate");
        proxy.note_copy(3, 1);
        proxy.note_copy(4, 3);
        assert_eq!(proxy.on_arrival(4, PACKET), PACKET, "the copy of a copy");
        assert_eq!(proxy.on_arrival(1, PACKET), Bytes::ZERO, "the original");
        assert_eq!(proxy.on_arrival(3, PACKET), Bytes::ZERO, "the first copy");
        assert_eq!(proxy.forwarded(), Bytes(3700));
    }
}
