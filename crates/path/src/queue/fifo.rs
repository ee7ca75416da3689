//! Packets of a queue in order of arrival.

use std::collections::VecDeque;

use airpace_core::{Bytes, Packet, Time};

/// Packets in order, with the time of their arrival.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    packets: VecDeque<Queued>,
    bytes: Bytes,
    header: Bytes,
}

/// A queued packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The packet.
    pub packet: Packet,
    /// Time of the packet's arrival at the buffer.
    pub arrived: Time,
}

impl Fifo {
    pub fn new(header: Bytes) -> Fifo {
        Fifo { packets: VecDeque::new(), bytes: Bytes::ZERO, header }
    }

    pub fn push(&mut self, now: Time, packet: Packet) {
        self.bytes += self.size(&packet);
        self.packets.push_back(Queued { packet, arrived: now });
    }

    pub fn pop(&mut self) -> Option<Queued> {
        let first = self.packets.pop_front()?;
        self.bytes -= self.size(&first.packet);
        Some(first)
    }

    /// The packet at the head, which has waited longest.
    pub fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    pub fn size(&self, packet: &Packet) -> Bytes {
        packet.bytes + self.header
    }

    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub fn len(&self) -> u64 {
        self.packets.len() as u64
    }
}
