//! Proxies: the bytes of a server leg go on over the leg to the device.

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Packet};
use airpace_scenario::Part;

use super::Driver;

impl Driver<'_> {
    /// Gives the bytes that have arrived at the proxy to the sender of the leg to the device.
    pub(super) fn forward_from_proxy(&mut self, index: usize, packet: &Packet) {
        let flow = &mut self.flows[index];
        let Part::ToProxy { device_leg, .. } = flow.part else { return };
        let bytes = flow.at_proxy.on_arrival(packet.number, packet.bytes);
        if bytes > Bytes::ZERO {
            let device_leg = usize::from(device_leg);
            self.flows[device_leg].sender.offer(bytes);
            self.transmit(device_leg);
        }
    }

    /// Lets the server of flow `index` write as much as the proxy has room for.
    ///
    /// Differs: the server knows the room at once. With a receive window, it would know half a round trip later.
    pub(super) fn write_to_proxy(&mut self, index: usize) {
        let Part::ToProxy { device_leg, buffer } = self.flows[index].part else { return };
        let sender = &self.flows[usize::from(device_leg)].sender;
        let Backlog::Limited(waiting) = sender.backlog() else { return };
        let leaving = waiting + sender.inflight();
        let flow = &mut self.flows[index];
        let coming = flow.written - flow.at_proxy.forwarded();
        let bytes = flow.traffic.take_most(buffer - (coming + leaving));
        if bytes > Bytes::ZERO {
            flow.written += bytes;
            flow.sender.offer(bytes);
        }
    }

    /// Lets the server send if the leg to the device, flow `index`, has made room at the proxy.
    pub(super) fn make_room_at_proxy(&mut self, index: usize) {
        if let Part::FromProxy { server_leg } = self.flows[index].part {
            self.transmit(usize::from(server_leg));
        }
    }
}
