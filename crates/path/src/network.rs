//! Network of all links that a set of flows crosses, in both directions: wires, Internet queues, the last hop.
//!
//! ```text
//! data down:  push ─▶ wire ─▶ [internet] ─▶ last hop ─▶ pop          its ACKs:  push ─▶ [cell] ─▶ wire ─▶ pop
//! data up:    push ─▶ last hop ─▶ [internet] ─▶ wire ─▶ pop          its ACKs:  push ─▶ wire ─▶ [cell] ─▶ pop
//! ```
//!
//! A driver pushes packets into the network ([`Network::push`]). At every deadline ([`Network::poll_timeout`]) it pops all
//! outputs ([`Network::pop`]) until there are none, and then gets the next deadline. The network is the same for any
//! clock of the driver.

use airpace_core::{Bytes, Deadlines, DeviceId, Direction, FlowId, Packet, Streams, Time};
use airpace_event::{Capacity, Fate, Source, Subframe};
use airpace_radio::RadioReport;

use crate::link::{Exit, Link};
use crate::queue::Queue;

mod flow_config;
mod in_flight;
mod last_hop;
mod plan;
mod route;
mod truth;

pub use flow_config::{ACK_BYTES, DATA_BYTES, FlowConfig};
pub use last_hop::{CellService, CellularPlan, LastHopPlan, TracePlan};
pub use plan::{NetworkConfig, NetworkPlan};
pub use truth::{LinkState, SharedLink};

use last_hop::{LastHop, MILLISECOND};
use route::{Flow, Hop};

/// A network. Each data packet carries a value of type `D`, and each ACK a value of type `A`: a header, frame or bytes
/// of the driver, which the links do not read.
#[derive(Debug)]
pub struct Network<D, A> {
    flows: Vec<Flow<D, A>>,
    devices: Vec<DeviceWays>,
    /// The Internet's queues, by direction.
    queues: [Option<Queue>; 2],
    last_hop: LastHop,
    deadlines: Deadlines,
    /// For each deadline, the part of the network to which the deadline belongs.
    parts: Vec<Part>,
    draining: Draining,
    /// Result of [`Network::capacities`]. It is recomputed after each run of the last hop and at the start of each
    /// millisecond.
    capacities: Vec<Capacity>,
    has_subframes: bool,
}

/// Output of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output<'a, D, A> {
    /// A copy of a packet has left the network.
    Ended(Journey<'a, D, A>),
    /// The last hop has run: [`Network::subframes`], [`Network::capacities`] and [`Network::pop_report`] have new data.
    Radio,
    /// A millisecond starts. If the last hop has no subframes, the same methods have new data as after
    /// [`Output::Radio`].
    Millisecond,
}

/// A packet that has left the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Journey<'a, D, A> {
    /// The packet.
    pub packet: Packet,
    /// [`Fate::Delivered`] if it has reached the other endpoint.
    pub fate: Fate,
    /// The load that the packet carries.
    pub load: Load<&'a D, &'a A>,
}

/// Load of a flow's packet. Data travels in the flow's configured direction, ACKs travel in the opposite direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load<D, A> {
    /// Load of a data packet.
    Data(D),
    /// Load of an ACK.
    Ack(A),
}

/// A part of the network that has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Link(SharedPart),
    Millisecond,
    /// The wire of a flow in this direction.
    Wire(FlowId, Direction),
}

/// A link shared by flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SharedPart {
    Internet(Direction),
    LastHop,
}

/// The shared parts, in the order in which they are processed if several are due at the same time. Each part is
/// processed before the part from which it gets packets, so that packets leave before more packets arrive. Wires are
/// processed after all shared parts, because a wire can hold any number of packets.
const SHARED: [Part; 4] = [
    Part::Link(SharedPart::Internet(Direction::Uplink)),
    Part::Link(SharedPart::LastHop),
    Part::Link(SharedPart::Internet(Direction::Downlink)),
    Part::Millisecond,
];

/// The index of the start of a millisecond in [`SHARED`].
const MILLISECOND_PLACE: usize = 3;

/// The part from which [`Network::pop`] currently takes packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Draining {
    /// No part is being drained.
    No,
    /// This link is being drained; it may have more packets.
    Link(SharedPart),
    /// This wire is being drained; it has more packets.
    Wire(FlowId, Direction),
    /// The last hop is drained, and the driver may be popping its reports.
    LastHopReports,
    /// All parts are drained: the next call returns `None`.
    Over,
}

/// The directions for which a device's capacity is computed.
#[derive(Debug, Default)]
struct DeviceWays {
    /// Directions in which the device has flows; the downlink if the device has no flows.
    ways: Vec<Way>,
}

#[derive(Debug)]
struct Way {
    direction: Direction,
    /// Number of bytes per millisecond that the wires of the device's flows with data in this direction carry; `None`
    /// if a wire has no limit. It is used if there is no last hop.
    wires: Option<Bytes>,
    /// Whether one of the device's flows with data in this direction crosses the Internet's queue.
    crosses_internet: bool,
}

impl<D, A> Network<D, A> {
    /// Builds the network of `plan` with the random numbers of a run. `order` contains the numbers of all flows: if
    /// wires of several flows are due at the same time, they are processed in this order.
    ///
    /// # Panics
    /// If `order` lacks a flow.
    pub fn new(plan: &NetworkPlan, order: &[usize], streams: &Streams) -> Network<D, A> {
        let last_hop = LastHop::new(&plan.last_hop, &plan.flows, streams);
        let mut flows: Vec<Flow<D, A>> =
            (0..plan.flows.len()).map(|index| Flow::new(plan, index, &last_hop, streams)).collect();
        let queues = Direction::BOTH.map(|direction| {
            let is_taken = plan.is_two_way || plan.flows.iter().any(|flow| flow.direction == direction);
            let name = match direction {
                Direction::Downlink => "internet.down",
                Direction::Uplink => "internet.up",
            };
            plan.internet.clone().filter(|_| is_taken).map(|queue| queue.begin(streams, name))
        });
        let wires = |of: fn(&FlowConfig) -> Direction| {
            order.iter().map(move |&flow| Part::Wire(FlowId(flow as u16), of(&plan.flows[flow])))
        };
        let forward = wires(|flow| flow.direction);
        let reverse = wires(|flow| flow.direction.opposite());
        let parts: Vec<Part> = SHARED.into_iter().chain(forward).chain(reverse).collect();
        for (place, part) in parts.iter().enumerate() {
            if let Part::Wire(flow, direction) = *part {
                flows[usize::from(flow.0)].routes[direction as usize].place = place;
            }
        }
        let has_turn = |flow: &Flow<D, A>| flow.routes.iter().all(|route| route.place >= SHARED.len());
        assert!(flows.iter().all(has_turn) && order.len() == flows.len(), "every flow has a turn");
        let mut network = Network {
            devices: (0..plan.devices).map(|device| DeviceWays::new(plan, device)).collect(),
            deadlines: Deadlines::new(parts.len()),
            parts,
            flows,
            queues,
            last_hop,
            draining: Draining::No,
            capacities: vec![],
            has_subframes: false,
        };
        network.set_deadline(SharedPart::LastHop);
        network.deadlines.set(MILLISECOND_PLACE, Some(Time::ZERO));
        network
    }

    /// Pushes a packet into the network.
    ///
    /// # Panics
    /// If the packet's flow does not exist, or a flow's data packets or its ACKs are not numbered consecutively.
    #[inline(always)]
    pub fn push(&mut self, now: Time, packet: Packet, load: Load<D, A>) {
        let flow = &mut self.flows[usize::from(packet.flow.0)];
        let direction = flow.begin(&packet, load);
        let first = flow.routes[direction as usize].first;
        self.enter(now, direction, first, packet);
    }

    /// Time of the next call of [`Network::pop`].
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.deadlines.first()
    }

    /// The next output at `now`. After `None`, [`Network::poll_timeout`] is up to date, and may return `now` again. `now` must
    /// not decrease from call to call.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<Output<'_, D, A>> {
        match self.draining {
            Draining::No => {
                let (due, place) = self.deadlines.next();
                if due > now {
                    return None;
                }
                match self.parts[place] {
                    // A driver may call late. Each millisecond nevertheless starts at its own time, and no millisecond
                    // is skipped.
                    Part::Millisecond => Some(self.begin_millisecond(due)),
                    Part::Link(link) => self.pop_link(now, link),
                    Part::Wire(flow, direction) => self.pop_wire(now, flow, direction),
                }
            }
            Draining::Link(link) => self.pop_link(now, link),
            Draining::Wire(flow, direction) => self.pop_wire(now, flow, direction),
            Draining::LastHopReports => {
                self.set_deadline(SharedPart::LastHop);
                self.draining = Draining::No;
                None
            }
            Draining::Over => {
                self.draining = Draining::No;
                None
            }
        }
    }

    /// [`Network::pop`] from a shared link.
    fn pop_link(&mut self, now: Time, link: SharedPart) -> Option<Output<'_, D, A>> {
        self.draining = Draining::Link(link);
        let hop = link.hop();
        while let Some((direction, Exit { packet, fate, .. })) = self.exit_of(link, now) {
            let flow = usize::from(packet.flow.0);
            match self.flows[flow].leave(now, direction, hop, &packet, fate) {
                Some(next) => self.enter(now, direction, next, packet),
                None => {
                    let load = self.flows[flow].load_of(direction, packet.number);
                    return Some(Output::Ended(Journey { packet, fate, load }));
                }
            }
        }
        if link == SharedPart::LastHop {
            return Some(self.end_of_last_hop(now));
        }
        self.set_deadline(link);
        self.draining = Draining::No;
        None
    }

    /// [`Network::pop`] from a wire.
    #[inline]
    fn pop_wire(&mut self, now: Time, id: FlowId, direction: Direction) -> Option<Output<'_, D, A>> {
        let flow = usize::from(id.0);
        loop {
            let route = &mut self.flows[flow].routes[direction as usize];
            let exit = route.wire.pop(now);
            let next = route.wire.poll_timeout();
            self.deadlines.set(route.place, next);
            let has_more = next.is_some_and(|next| next <= now);
            self.draining = if has_more { Draining::Wire(id, direction) } else { Draining::No };
            let Exit { packet, fate, .. } = exit?;
            match self.flows[flow].leave(now, direction, Hop::Wire, &packet, fate) {
                Some(next) => self.enter(now, direction, next, packet),
                None => {
                    let load = self.flows[flow].load_of(direction, packet.number);
                    return Some(Output::Ended(Journey { packet, fate, load }));
                }
            }
            if !has_more {
                return None;
            }
        }
    }

    /// Records of the subframe that the last hop has just run; empty while recording is off.
    pub fn subframes(&self) -> impl Iterator<Item = Subframe<'_>> {
        self.last_hop.subframes().take_while(|_| self.has_subframes)
    }

    /// Number of subframes that the last hop has run.
    pub fn subframes_run(&self) -> u64 {
        self.last_hop.subframes_run()
    }

    /// Capacity of the path for each device: over a cell, the capacity in the last subframe; otherwise, the capacity in
    /// the millisecond that starts. It is the minimum of the capacities of the last hop and of the Internet queue. For
    /// each device, the whole rate of the queue counts, because it is unknown how devices would have shared that rate.
    pub fn capacities(&self) -> &[Capacity] {
        &self.capacities
    }

    /// The next report to a device ([`Network::set_reported`]), with its source. The driver may modify the report, for
    /// example to model a device's clock.
    pub fn pop_report(&mut self) -> Option<(DeviceId, Source, &mut RadioReport)> {
        self.last_hop.pop_report()
    }

    /// Sets whether [`Network::subframes`] is recorded. Initially it is not recorded.
    pub fn set_recording(&mut self, is_recording: bool) {
        self.last_hop.set_recording(is_recording);
    }

    /// Sets whether a device receives the radio reports of this source; initially no device does.
    pub fn set_reported(&mut self, device: DeviceId, source: Source, is_reported: bool) {
        self.last_hop.set_reported(device, source, is_reported);
    }

    #[inline]
    fn enter(&mut self, now: Time, direction: Direction, hop: Hop, packet: Packet) {
        match hop {
            Hop::Wire => {
                let route = &mut self.flows[usize::from(packet.flow.0)].routes[direction as usize];
                route.wire.push(now, packet);
                self.deadlines.set(route.place, route.wire.poll_timeout());
            }
            Hop::Internet => {
                let queue = self.queues[direction as usize].as_mut();
                queue.expect("a route crosses queues that are there").push(now, packet);
                self.set_deadline(SharedPart::Internet(direction));
            }
            Hop::Radio => {
                if self.last_hop.push(now, direction, packet) {
                    self.set_deadline(SharedPart::LastHop);
                }
            }
        }
    }

    /// The next packet that leaves a link, with its direction.
    fn exit_of(&mut self, link: SharedPart, now: Time) -> Option<(Direction, Exit)> {
        match link {
            SharedPart::Internet(direction) => {
                Some((direction, self.queues[direction as usize].as_mut()?.pop(now)?))
            }
            SharedPart::LastHop => self.last_hop.pop(now),
        }
    }

    fn end_of_last_hop(&mut self, now: Time) -> Output<'_, D, A> {
        self.has_subframes = self.last_hop.end_of_drain(now);
        self.capacities.clear();
        if self.has_subframes {
            self.find_capacities(now);
        }
        // The deadline of the last hop depends on the reports that are popped now.
        self.draining = Draining::LastHopReports;
        Output::Radio
    }

    fn begin_millisecond(&mut self, now: Time) -> Output<'_, D, A> {
        self.last_hop.begin_millisecond(now);
        self.queues.iter_mut().flatten().for_each(|queue| queue.update_rate(now));
        self.has_subframes = false;
        self.capacities.clear();
        if !matches!(self.last_hop, LastHop::Cell(_)) {
            self.find_capacities(now);
        }
        self.deadlines.set(MILLISECOND_PLACE, Some(now + MILLISECOND));
        self.draining = Draining::Over;
        Output::Millisecond
    }

    fn find_capacities(&mut self, now: Time) {
        for (index, device) in self.devices.iter().enumerate() {
            let id = DeviceId(index as u16);
            for way in &device.ways {
                let (time, last_hop) = self.last_hop.capacity(now, way.direction, id, way.wires);
                let queue = self.queues[way.direction as usize].as_ref().filter(|_| way.crosses_internet);
                let internet = queue.and_then(Queue::rate).map(|rate| rate.bytes_in(MILLISECOND));
                if let Some(bytes) = [last_hop, internet].into_iter().flatten().min() {
                    let (span, direction) = (MILLISECOND, way.direction);
                    self.capacities.push(Capacity { time, span, device: id, direction, bytes });
                }
            }
        }
    }

    fn set_deadline(&mut self, link: SharedPart) {
        let deadline = match link {
            SharedPart::Internet(direction) => {
                self.queues[direction as usize].as_ref().and_then(Queue::poll_timeout)
            }
            SharedPart::LastHop => self.last_hop.poll_timeout(),
        };
        self.deadlines.set(link.place(), deadline);
    }
}

impl SharedPart {
    /// The link's index in [`SHARED`].
    fn place(self) -> usize {
        match self {
            SharedPart::Internet(Direction::Uplink) => 0,
            SharedPart::LastHop => 1,
            SharedPart::Internet(Direction::Downlink) => 2,
        }
    }

    fn hop(self) -> Hop {
        match self {
            SharedPart::Internet(_) => Hop::Internet,
            SharedPart::LastHop => Hop::Radio,
        }
    }
}

impl DeviceWays {
    fn new(plan: &NetworkPlan, device: usize) -> DeviceWays {
        let flows = |direction: Direction| {
            let flows = plan.flows.iter().filter(move |flow| usize::from(flow.device.0) == device);
            let flows = flows.filter(|flow| flow.crosses_last_hop);
            flows.filter(move |flow| plan.is_two_way || flow.direction == direction)
        };
        let way = |direction: Direction| {
            let carried = |flow| Some(plan.rate_of_wire(flow, direction)?.bytes_in(MILLISECOND));
            let wires = match flows(direction).next() {
                Some(_) => flows(direction).map(carried).sum(),
                None => plan.forward.rate().map(|_| Bytes::ZERO),
            };
            let crosses_internet = flows(direction).any(|flow| plan.crosses_internet(flow, direction));
            Way { direction, wires, crosses_internet }
        };
        let [has_down, has_up] = Direction::BOTH.map(|direction| flows(direction).next().is_some());
        let is_taken = |direction| match direction {
            Direction::Downlink => has_down || !has_up,
            Direction::Uplink => has_up,
        };
        DeviceWays { ways: Direction::BOTH.into_iter().filter(|&it| is_taken(it)).map(way).collect() }
    }
}
