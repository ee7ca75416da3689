//! The path of acknowledgements: from the acker back to the sender.

use std::time::Duration;

use airpace_core::{Bytes, Ecn, Packet};
use airpace_path::network::{ACK_BYTES, Load};

use super::Driver;
use super::transfers::ReturnPacket;
use crate::agenda::FlowPart;

impl Driver<'_> {
    /// Advances the receiver of flow `index` to the reading of the receiver's clock, sends the due ACK, if any, and
    /// sets the receiver's next deadline.
    pub(super) fn acknowledge(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let clock = flow.receiver_time(self.now);
        flow.acker.handle_timeout(clock);
        let ack = flow.acker.poll_ack(clock);
        // The wait is a duration of the receiver's clock, used as true time: where the clock drifts, a further wait
        // follows.
        let due = flow.acker.poll_timeout().map(|due| self.now + (due - clock).max(Duration::from_nanos(1)));
        self.agenda.set(FlowPart::Acker(index), due);
        let Some(mut frame) = ack else { return };
        frame.feedback = flow.told(self.now, frame.feedback);
        flow.stats.acks += 1;
        if self.ack_outage.iter().any(|outage| outage.covers(self.now)) {
            return;
        }
        let back = ReturnPacket::Ack { connection: flow.connections.number(), frame };
        self.send_back(index, ACK_BYTES, back);
    }

    /// Puts a packet from the receiver to the sender on the network.
    pub(super) fn send_back(&mut self, index: usize, bytes: Bytes, back: ReturnPacket) {
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
