//! The path of data packets: from the sender onto the network, and from the network to the acker.

use airpace_cc::registry::DeviceFlows;
use airpace_core::{Direction, Packet};
use airpace_event::{Arrived, Event, Fate};
use airpace_path::network::{Journey, Load, Output};

use super::transfers::ReturnPacket;
use super::{Driver, Progress};
use crate::agenda::FlowPart;
use crate::error::MAX_UNDER_WAY;
use crate::transfers::Transfers;

/// Number of packets sent at one instant between two checks of the number of packets under way.
const LOOK_EVERY: u64 = 4_096;

impl Driver<'_> {
    /// Puts all packets that the sender of flow `index` may send now on the network.
    pub(super) fn transmit(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if !flow.has_started {
            return;
        }
        if flow.transfers.as_ref().is_some_and(Transfers::awaits_first_request) {
            self.agenda.set(FlowPart::Sender(index), flow.next_of_sender());
            return;
        }
        let sender_time = flow.sender_time(self.now);
        self.write_to_proxy(index);
        let mut sent = 0u64;
        loop {
            if sent % LOOK_EVERY == LOOK_EVERY - 1 && self.is_crowded() {
                break;
            }
            let flow = &mut self.flows[index];
            flow.traffic.top_up(&mut flow.sender);
            let Some(transmit) = flow.sender.poll_transmit(sender_time) else { break };
            let packet = Packet {
                flow: flow.id,
                device: flow.device,
                number: flow.connections.first_packet() + transmit.number,
                bytes: transmit.bytes,
                sent: self.now,
                ecn: transmit.ecn,
            };
            flow.stats.sent += 1;
            sent += 1;
            flow.note_copy(&transmit);
            if let Some(course) = self.foresight.gathered(index) {
                course.note_departure(self.now);
            }
            self.record(Event::Sent(packet));
            self.observe_sent(index, &packet);
            self.network.push(self.now, packet, Load::Data(transmit.header));
        }
        self.agenda.set(FlowPart::Sender(index), self.flows[index].next_of_sender());
    }

    /// Returns whether more than [`MAX_UNDER_WAY`] packets are under way; the run then ends.
    pub(super) fn is_crowded(&mut self) -> bool {
        self.crowded |= self.network.loads() > MAX_UNDER_WAY;
        self.crowded
    }

    /// Counts a packet that a device sends, if the device reports its flows to schemes.
    fn observe_sent(&mut self, index: usize, packet: &Packet) {
        let flow = &self.flows[index];
        if flow.device_receives() {
            return;
        }
        let device = &mut self.devices[usize::from(flow.device.0)];
        if !device.modem_listeners.is_empty() {
            let sent = &mut device.registry[Direction::Uplink as usize];
            sent.observe(self.now, &flow.key, flow.app, packet.bytes);
        }
    }

    /// Processes the network's due outputs.
    pub(super) fn drain_network(&mut self, progress: &mut Progress<'_>) -> std::ops::ControlFlow<()> {
        while let Some(output) = self.network.pop(self.now) {
            match output {
                Output::Ended(Journey { packet, fate: Fate::Delivered, load }) => {
                    let index = usize::from(packet.flow.0);
                    let flow = &mut self.flows[index];
                    match load {
                        Load::Data(header) => {
                            let device = &mut self.devices[usize::from(packet.device.0)];
                            let shared = match flow.device_receives() {
                                true => device.observe_received(self.now, flow, &packet),
                                // A server and a proxy have no radio, so their flows share no radio.
                                false => DeviceFlows::ALONE,
                            };
                            let is_duplicate = flow.arrive(self.now, &packet, header, shared);
                            self.record_arrival(packet, Fate::Delivered, is_duplicate);
                            self.count_arrival(index, &packet);
                            self.acknowledge(index);
                            self.forward_from_proxy(index, &packet);
                        }
                        // The ACK belongs to an earlier connection.
                        Load::Ack(&ReturnPacket::Ack { connection, .. })
                            if connection != flow.connections.number() => {}
                        Load::Ack(ReturnPacket::Ack { frame, .. }) => {
                            let clock = flow.sender_time(self.now);
                            let outcome = flow.sender.on_ack(clock, frame);
                            self.record_outcome(index, outcome.expect("an acker acknowledges what arrived"));
                            self.transmit(index);
                            self.make_room_at_proxy(index);
                        }
                        Load::Ack(&ReturnPacket::Request { transfer, feedback }) => {
                            self.answer(index, transfer, feedback.as_bytes());
                        }
                    }
                }
                Output::Ended(Journey { packet, fate, load: Load::Data(_) }) => {
                    self.flows[usize::from(packet.flow.0)].stats.ended(fate);
                    self.record_arrival(packet, fate, false);
                }
                Output::Ended(Journey { load: Load::Ack(_), .. }) => {}
                Output::Radio => self.hear_radio(),
                Output::Millisecond => {
                    self.is_crowded();
                    self.tick(progress)?;
                }
            }
        }
        std::ops::ControlFlow::Continue(())
    }

    fn record_arrival(&mut self, packet: Packet, fate: Fate, duplicate: bool) {
        let direction = self.flows[usize::from(packet.flow.0)].direction;
        let propagation_delay = self.network.propagation_delay(packet.flow, direction, packet.bytes);
        let time = self.now;
        self.record(Event::Arrived(Arrived { time, packet, fate, duplicate, propagation_delay }));
    }
}
