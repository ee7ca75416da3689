//! Acknowledgements: from the acker back to the sender.

use std::time::Duration;

use airpace_core::{Ecn, Packet};
use airpace_path::network::{ACK_BYTES, Load};

use super::Driver;
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
        let Some(frame) = ack else { return };
        flow.stats.acks += 1;
        if self.ack_outage.iter().any(|outage| outage.covers(self.now)) {
            return;
        }
        let packet = Packet {
            flow: flow.id,
            device: flow.device,
            number: flow.acks_on_path,
            bytes: ACK_BYTES,
            sent: self.now,
            ecn: Ecn::NotEct,
        };
        flow.acks_on_path += 1;
        self.network.push(self.now, packet, Load::Ack(frame));
    }
}
