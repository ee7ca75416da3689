//! Acknowledgements: from the acker back to the sender.

use std::time::Duration;

use airpace_core::{Bytes, Ecn, Packet};
use airpace_path::network::{ACK_BYTES, Load};

use super::Driver;
use super::transfers::Back;
use crate::agenda::Part;

impl Driver<'_> {
    /// Lets the receiver half know what its clock shows, puts the ACK that is due, if one is, on the network, and waits for
    /// the next.
    pub(super) fn acknowledge(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let clock = flow.receiver_time(self.now);
        flow.acker.on_timeout(clock);
        let ack = flow.acker.poll_ack(clock);
        // A span of the receiver's clock is taken for one of true time: where it drifts, the rest is waited for again.
        let due = flow.acker.next().map(|due| self.now + (due - clock).max(Duration::from_nanos(1)));
        self.agenda.set(Part::Acker(index), due);
        let Some(mut frame) = ack else { return };
        frame.feedback = flow.told(self.now, frame.feedback);
        flow.stats.acks += 1;
        if self.ack_outage.iter().any(|outage| outage.covers(self.now)) {
            return;
        }
        let back = Back::Ack { connection: flow.connections.number(), frame };
        self.send_back(index, ACK_BYTES, back);
    }

    /// Puts a packet from the receiver's end to the sender's on the network.
    pub(super) fn send_back(&mut self, index: usize, bytes: Bytes, back: Back) {
        let flow = &mut self.flows[index];
        let packet = Packet {
            flow: flow.id,
            device: flow.device,
            number: flow.acks_on_path,
            bytes,
            sent: self.now,
            ecn: Ecn::NotEct,
        };
        flow.acks_on_path += 1;
        self.network.push(self.now, packet, Load::Ack(back));
    }
}
