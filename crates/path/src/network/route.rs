//! Routes of a flow's packets, and the packets in flight on them.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::{Bytes, Direction, FlowId, Packet, Streams, Time};
use airpace_event::Fate;

use super::Load;
use super::flow_config::FlowConfig;
use super::in_flight::InFlight;
use super::last_hop::LastHop;
use super::plan::{NetworkPlan, forward_wire};
use crate::link::Link;
use crate::wire::{Wire, WirePlan};

/// A hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    Wire,
    Internet,
    /// The last hop.
    Radio,
}

/// A flow: its two routes, and the loads of its packets.
#[derive(Debug)]
pub(super) struct Flow<D, A> {
    pub(super) config: FlowConfig,
    /// The routes of the flow's packets, one per direction of travel.
    pub(super) routes: [Route; 2],
    pub(super) data: InFlight<D>,
    pub(super) acks: InFlight<A>,
}

/// The route of a flow's packets in one direction of travel. Each route has one wire, at its start or at its end.
#[derive(Debug)]
pub(super) struct Route {
    /// Index of the deadline of the route's wire among the network's deadlines.
    pub(super) place: usize,
    pub(super) first: Hop,
    /// For each kind of hop, the hop that follows it on the route; `None` if it is the last hop of the route.
    after: [Option<Hop>; 3],
    pub(super) wire: Wire,
    /// Whether the flow's data travels in this direction; otherwise its ACKs do.
    pub(super) carries_data: bool,
    /// Number of bytes of packets on the wire, if the wire is the first hop, without duplicates. `in_links` is the
    /// number of bytes on the hops other than the wire.
    pub(super) on_wire: Bytes,
    pub(super) in_links: Bytes,
    /// Number of duplicates that have left the wire.
    pub(super) duplicated: u64,
    /// Size of the flow's full-sized packets. `fixed_delay` is the delay of such a packet over the empty wire and the
    /// empty last hop.
    full_size: Bytes,
    fixed_delay: Duration,
    /// End time and duration of each recent crossing of the wire. `None` if they are not recorded.
    pub(super) crossings: Option<VecDeque<(Time, Duration)>>,
}

impl<D, A> Flow<D, A> {
    pub(super) fn new(plan: &NetworkPlan, index: usize, last_hop: &LastHop, streams: &Streams) -> Flow<D, A> {
        let flow = &plan.flows[index];
        let wire_delay = plan.wire_delay(flow, last_hop);
        let routes = Direction::BOTH.map(|direction| {
            let carries_data = direction == flow.direction;
            let (config, name) = match carries_data {
                true => (&plan.forward, forward_wire(FlowId(index as u16))),
                false => (&plan.reverse, format!("flow.{index}.reverse")),
            };
            let is_near = carries_data
                && direction == Direction::Downlink
                && plan.near.iter().any(|flow| usize::from(flow.0) == index);
            let config = if flow.has_plain_wires { &WirePlan::IDEAL } else { config };
            let config = match is_near {
                true => config.seen_from_far_end().unwrap_or(WirePlan::IDEAL),
                false => config.with_delay(wire_delay),
            };
            let wire = Wire::new(&config, streams, &name);
            let crosses_last_hop = flow.crosses_last_hop
                && plan.last_hop.carries(direction)
                && (carries_data || flow.acks_cross_cell);
            let crosses_internet = plan.crosses_internet(flow, direction);
            // Hops in the order from the server to the device.
            let mut hops = vec![Hop::Wire];
            hops.extend(crosses_internet.then_some(Hop::Internet));
            hops.extend(crosses_last_hop.then_some(Hop::Radio));
            if direction == Direction::Uplink {
                hops.reverse();
            }
            let mut after = [None; 3];
            for pair in hops.windows(2) {
                after[pair[0] as usize] = Some(pair[1]);
            }
            let mut route = Route {
                place: 0,
                first: hops[0],
                after,
                full_size: Bytes::ZERO,
                fixed_delay: Duration::ZERO,
                wire,
                carries_data,
                on_wire: Bytes::ZERO,
                in_links: Bytes::ZERO,
                duplicated: 0,
                crossings: None,
            };
            route.fixed_delay = route.delay_of(direction, flow.data_bytes, last_hop);
            route.full_size = flow.data_bytes;
            route
        });
        Flow { config: *flow, routes, data: InFlight::new(), acks: InFlight::new() }
    }

    /// The route of the flow's data.
    pub(super) fn forward(&self) -> &Route {
        &self.routes[self.config.direction as usize]
    }

    /// Adds a packet that enters the network; returns its direction.
    #[inline(always)]
    pub(super) fn begin(&mut self, packet: &Packet, load: Load<D, A>) -> Direction {
        let direction = match load {
            Load::Data(load) => {
                self.data.push(packet.number, load);
                self.config.direction
            }
            Load::Ack(load) => {
                self.acks.push(packet.number, load);
                self.config.direction.opposite()
            }
        };
        let route = &mut self.routes[direction as usize];
        if route.wire_comes_first() {
            route.on_wire += packet.bytes;
        } else {
            route.in_links += packet.bytes;
        }
        direction
    }

    /// Records that a copy of a packet leaves a hop with this fate. Returns the next hop; `None` if the copy leaves the
    /// network.
    #[inline(always)]
    pub(super) fn leave(
        &mut self,
        now: Time,
        direction: Direction,
        hop: Hop,
        packet: &Packet,
        fate: Fate,
    ) -> Option<Hop> {
        let route = &mut self.routes[direction as usize];
        let next = route.after[hop as usize].filter(|_| fate == Fate::Delivered);
        let wire_comes_first = route.wire_comes_first();
        // If the wire is the last hop, a packet that is lost on an earlier hop never reaches the wire.
        if hop == Hop::Wire || (next.is_none() && !wire_comes_first) {
            let is_first = match route.carries_data {
                true => self.data.left_wire(packet.number),
                false => self.acks.left_wire(packet.number),
            };
            if hop == Hop::Wire {
                route.leave_wire(now, packet, is_first);
            }
        }
        let leaves_links = match wire_comes_first {
            true => next.is_none(),
            false => hop != Hop::Wire && next.is_none_or(|next| next == Hop::Wire),
        };
        if leaves_links {
            route.in_links -= packet.bytes;
        }
        next
    }

    /// The load of a copy that has left the network.
    #[inline]
    pub(super) fn load_of(&mut self, direction: Direction, number: u64) -> Load<&D, &A> {
        match self.routes[direction as usize].carries_data {
            true => Load::Data(self.data.ended(number)),
            false => Load::Ack(self.acks.ended(number)),
        }
    }
}

impl Route {
    pub(super) fn wire_comes_first(&self) -> bool {
        self.first == Hop::Wire
    }

    pub(super) fn crosses(&self, hop: Hop) -> bool {
        self.first == hop || self.after.contains(&Some(hop))
    }

    #[inline]
    fn leave_wire(&mut self, now: Time, packet: &Packet, is_first: bool) {
        self.duplicated += u64::from(!is_first);
        if !self.wire_comes_first() {
            return;
        }
        self.in_links += packet.bytes;
        if !is_first {
            return;
        }
        self.on_wire -= packet.bytes;
        if let Some(crossings) = &mut self.crossings {
            crossings.push_back((now, now - packet.sent));
        }
    }

    /// Delay of a packet of this size over the empty wire and the empty last hop.
    pub(super) fn fixed_delay(&self, direction: Direction, bytes: Bytes, last_hop: &LastHop) -> Duration {
        if bytes == self.full_size { self.fixed_delay } else { self.delay_of(direction, bytes, last_hop) }
    }

    fn delay_of(&self, direction: Direction, bytes: Bytes, last_hop: &LastHop) -> Duration {
        let radio = match self.crosses(Hop::Radio) {
            true => last_hop.base_delay(direction, bytes),
            false => Duration::ZERO,
        };
        self.wire.base_delay(bytes) + radio
    }
}
