//! Acknowledgements: from the acker back to the sender.

use std::time::Duration;

use airpace_core::{Direction, Ecn, Packet};
use airpace_event::Fate;
use airpace_path::Link;

use super::Driver;
use crate::agenda::Part;
use crate::flow::ACK_BYTES;
use crate::scenario::AckPath;

impl Driver<'_> {
    /// Lets the receiver half know what its clock shows, puts the ACK that is due, if one is, on the path back, and waits
    /// for the next.
    pub(super) fn acknowledge(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let clock = flow.receiver_time(self.now);
        flow.acker.on_timeout(clock);
        let ack = flow.acker.poll_ack(clock);
        // A span of the receiver's clock is taken for one of true time: where it drifts, the rest is waited for again.
        let due = flow.acker.next().map(|due| self.now + (due - clock).max(Duration::from_nanos(1)));
        self.agenda.set(Part::Acker(index), due);
        let Some(frame) = ack else { return };
        flow.stats.acks += 1;
        if self.ack_outage.iter().any(|outage| outage.covers(self.now)) {
            return;
        }
        let number = flow.acks_on_path;
        flow.acks_on_path += 1;
        flow.frames.push(number, frame);
        let ack = Packet {
            flow: flow.id,
            device: flow.device,
            number,
            bytes: ACK_BYTES,
            sent: self.now,
            ecn: Ecn::NotEct,
        };
        match (flow.ack_path, flow.direction) {
            (AckPath::Cell, Direction::Downlink) => self.ack_enters_cell(Direction::Uplink, ack),
            _ => self.ack_enters_wire(ack),
        }
    }

    fn ack_enters_wire(&mut self, ack: Packet) {
        let index = usize::from(ack.flow.0);
        let flow = &mut self.flows[index];
        flow.reverse.push(self.now, ack);
        self.agenda.set(Part::Reverse(index), flow.reverse.next());
    }

    pub(super) fn drain_reverse(&mut self, index: usize) {
        while let Some(exit) = self.flows[index].reverse.pop(self.now) {
            let flow = &mut self.flows[index];
            flow.frames.left_wire(exit.packet.number);
            match (exit.fate, flow.ack_path, flow.direction) {
                (Fate::Delivered, AckPath::Cell, Direction::Uplink) => {
                    self.ack_enters_cell(Direction::Downlink, exit.packet);
                }
                (fate, ..) => self.end_ack(index, exit.packet.number, fate),
            }
        }
        self.agenda.set(Part::Reverse(index), self.flows[index].reverse.next());
    }

    fn ack_enters_cell(&mut self, direction: Direction, ack: Packet) {
        self.hop.push(self.now, direction, ack);
        self.agenda.set(Part::LastHop, self.hop.next());
    }

    /// An ACK that went this way over the cell has crossed it or was lost.
    pub(super) fn ack_leaves_cell(&mut self, direction: Direction, ack: Packet, fate: Fate) {
        let index = usize::from(ack.flow.0);
        match (direction, fate) {
            (Direction::Uplink, Fate::Delivered) => self.ack_enters_wire(ack),
            (Direction::Uplink, fate) => {
                // It never gets to the wire.
                self.flows[index].frames.left_wire(ack.number);
                self.end_ack(index, ack.number, fate);
            }
            (Direction::Downlink, fate) => self.end_ack(index, ack.number, fate),
        }
    }

    /// A copy of an ACK reaches the sender, or is lost.
    fn end_ack(&mut self, index: usize, number: u64, fate: Fate) {
        let flow = &mut self.flows[index];
        let now = flow.sender_time(self.now);
        let frame = flow.frames.ended(number);
        if fate == Fate::Delivered {
            let outcome = flow.sender.on_ack(now, frame).expect("an acker acknowledges what arrived");
            self.record_outcome(outcome);
            self.transmit(index);
        }
    }
}
