//! Data packets: from the sender over wire, Internet and last hop to the acker.

use std::time::Duration;

use airpace_cc::registry::DeviceFlows;
use airpace_core::{Direction, Packet};
use airpace_event::{Arrived, Event, Fate};
use airpace_path::Link;

use super::Driver;
use crate::agenda::Part;
use crate::prepare::MOST_UNDER_WAY;

/// Packets that are sent at one instant before somebody asks how many are under way.
const LOOK_EVERY: u64 = 4_096;

impl Driver<'_> {
    /// Puts on the path whatever the sender may send now.
    pub(super) fn transmit(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if !flow.has_started {
            return;
        }
        let sender_time = flow.sender_time(self.now);
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
                number: transmit.number,
                bytes: transmit.bytes,
                sent: self.now,
                ecn: transmit.ecn,
            };
            self.stats.events += 1;
            self.recorder.record(Event::Sent(packet));
            flow.headers.push(packet.number, transmit.header);
            flow.stats.sent += 1;
            sent += 1;
            if flow.wire_first {
                flow.on_wire += packet.bytes;
                flow.forward.push(self.now, packet);
            } else {
                flow.in_links += packet.bytes;
                self.observe_sent(index, &packet);
                self.enter_last_hop(Direction::Uplink, packet);
            }
        }
        let flow = &self.flows[index];
        if sent > 0 {
            self.agenda.set(Part::Forward(index), flow.forward.next());
        }
        self.agenda.set(Part::Sender(index), flow.next_of_sender());
    }

    /// Whether more packets are under way than memory should hold: the run ends then.
    pub(super) fn is_crowded(&mut self) -> bool {
        let under_way: usize = self.flows.iter().map(|flow| flow.headers.kept()).sum();
        self.crowded |= under_way > MOST_UNDER_WAY;
        self.crowded
    }

    /// A device that confides in its schemes counts what all of its flows send.
    fn observe_sent(&mut self, index: usize, packet: &Packet) {
        let flow = &self.flows[index];
        let device = &mut self.devices[usize::from(flow.device.0)];
        if !device.confidants.is_empty() {
            let sent = &mut device.registry[Direction::Uplink as usize];
            sent.observe(self.now, &flow.key, flow.app, packet.bytes);
        }
    }

    pub(super) fn drain_forward(&mut self, index: usize) {
        while let Some(exit) = self.flows[index].forward.pop(self.now) {
            let flow = &mut self.flows[index];
            let packet = exit.packet;
            flow.leave_wire(self.now, &packet);
            let direction = flow.direction;
            match (exit.fate, flow.wire_first) {
                (Fate::Delivered, true) => self.enter_internet(direction, packet),
                (Fate::Delivered, false) => self.arrive(packet),
                (fate, true) => self.drop_in_links(packet, fate),
                (fate, false) => {
                    flow.end_journey(&packet, fate);
                    self.record_arrival(packet, fate, false);
                }
            }
        }
        self.agenda.set(Part::Forward(index), self.flows[index].forward.next());
    }

    pub(super) fn drain_internet(&mut self, direction: Direction) {
        let which = direction as usize;
        while let Some(exit) = self.internet[which].as_mut().and_then(|queue| queue.pop(self.now)) {
            match exit.fate {
                Fate::Delivered => self.leave_internet(direction, exit.packet),
                fate => self.drop_in_links(exit.packet, fate),
            }
        }
        let next = self.internet[which].as_ref().and_then(|queue| queue.next());
        self.agenda.set(Part::Internet(direction), next);
    }

    fn enter_internet(&mut self, direction: Direction, packet: Packet) {
        match &mut self.internet[direction as usize] {
            Some(queue) if self.flows[usize::from(packet.flow.0)].crosses_internet => {
                queue.push(self.now, packet);
                self.agenda.set(Part::Internet(direction), queue.next());
            }
            _ => self.leave_internet(direction, packet),
        }
    }

    fn leave_internet(&mut self, direction: Direction, packet: Packet) {
        match direction {
            Direction::Downlink => self.enter_last_hop(direction, packet),
            Direction::Uplink => self.leave_links(packet),
        }
    }

    fn enter_last_hop(&mut self, direction: Direction, packet: Packet) {
        if self.hop.push(self.now, direction, packet) {
            self.agenda.set(Part::LastHop, self.hop.next());
        } else {
            self.leave_last_hop(direction, packet);
        }
    }

    pub(super) fn leave_last_hop(&mut self, direction: Direction, packet: Packet) {
        match direction {
            Direction::Downlink => self.leave_links(packet),
            Direction::Uplink => self.enter_internet(direction, packet),
        }
    }

    /// The links that flows share are behind a packet.
    fn leave_links(&mut self, packet: Packet) {
        let index = usize::from(packet.flow.0);
        let flow = &mut self.flows[index];
        flow.in_links -= packet.bytes;
        if flow.wire_first {
            self.arrive(packet);
        } else {
            flow.forward.push(self.now, packet);
            self.agenda.set(Part::Forward(index), flow.forward.next());
        }
    }

    pub(super) fn drop_in_links(&mut self, packet: Packet, fate: Fate) {
        self.flows[usize::from(packet.flow.0)].lose_in_links(&packet, fate);
        self.record_arrival(packet, fate, false);
    }

    fn arrive(&mut self, packet: Packet) {
        let index = usize::from(packet.flow.0);
        let flow = &mut self.flows[index];
        let shared = match flow.direction {
            Direction::Downlink => {
                let device = &mut self.devices[usize::from(packet.device.0)];
                let received = &mut device.registry[Direction::Downlink as usize];
                received.observe(self.now, &flow.key, flow.app, packet.bytes);
                received.view(self.now, &flow.key)
            }
            // A server has no radio that its flows would share.
            Direction::Uplink => DeviceFlows::ALONE,
        };
        let is_duplicate = flow.arrive(self.now, &packet, shared);
        self.record_arrival(packet, Fate::Delivered, is_duplicate);
        self.acknowledge(index);
    }

    fn record_arrival(&mut self, packet: Packet, fate: Fate, duplicate: bool) {
        let flow = &self.flows[usize::from(packet.flow.0)];
        let queue = self.internet[flow.direction as usize].as_ref().filter(|_| flow.crosses_internet);
        let propagation_delay = flow.fixed_delay(packet.bytes, &self.hop)
            + queue.map_or(Duration::ZERO, |queue| queue.base_delay(packet.bytes));
        let time = self.now;
        self.record(Event::Arrived(Arrived { time, packet, fate, duplicate, propagation_delay }));
    }
}
