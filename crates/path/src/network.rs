//! All that the packets of some flows cross, in both directions: wires, queues of the Internet, the last hop.
//!
//! ```text
//! data down:  push ─▶ wire ─▶ [internet] ─▶ last hop ─▶ pop          its ACKs:  push ─▶ [cell] ─▶ wire ─▶ pop
//! data up:    push ─▶ last hop ─▶ [internet] ─▶ wire ─▶ pop          its ACKs:  push ─▶ wire ─▶ [cell] ─▶ pop
//! ```
//!
//! A driver puts packets on the network ([`Network::push`]). At every deadline ([`Network::next`]) it takes what comes out
//! ([`Network::pop`]) until there is nothing, and asks for the next deadline. Whatever clock the driver has, the network
//! is the same.

use airpace_core::{Deadlines, DeviceId, Direction, FlowId, Packet, Streams, Time};
use airpace_event::{Capacity, Fate, Source, Subframe};
use airpace_radio::RadioReport;

use crate::link::{Exit, Link};
use crate::queue::Queue;

mod in_flight;
mod last_hop;
mod plan;
mod route;
mod trace_radio;
mod truth;

pub use plan::{ACK_BYTES, DATA_BYTES, FlowConfig, LastHopPlan, NetworkConfig, NetworkPlan, TracePlan};
pub use truth::{LinkState, SharedLink};

use last_hop::{LastHop, MILLISECOND};
use route::{Flow, Hop, Route};

/// A network. Each data packet carries a `D` and each ACK an `A`, which the links do not look at: a driver's header, frame,
/// or bytes.
#[derive(Debug)]
pub struct Network<D, A> {
    flows: Vec<Flow<D, A>>,
    devices: Vec<DeviceWays>,
    /// The Internet's queues, by direction.
    queues: [Option<Queue>; 2],
    last_hop: LastHop,
    deadlines: Deadlines,
    /// Whose each deadline is.
    parts: Vec<Part>,
    /// Where a flow's wires come among those of the others.
    turn: Vec<usize>,
    draining: Draining,
    /// What could be carried lately, until the next is known.
    capacities: Vec<Capacity>,
    has_subframes: bool,
}

/// What comes out of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output<'a, D, A> {
    /// A copy of a packet has ended its journey.
    Ended(Journey<'a, D, A>),
    /// The last hop has run: [`Network::subframes`], [`Network::capacities`] and [`Network::pop_report`] have what is new.
    Radio,
    /// A millisecond begins. Where the last hop has no subframes, the same is new as with [`Output::Radio`].
    Millisecond,
}

/// The end of a journey.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Journey<'a, D, A> {
    /// The packet.
    pub packet: Packet,
    /// [`Fate::Delivered`] if it has reached the other end.
    pub fate: Fate,
    /// What it carries.
    pub load: Load<&'a D, &'a A>,
}

/// What a packet of a flow carries. Data goes the way that the flow's configuration says, ACKs the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load<D, A> {
    /// Of a data packet.
    Data(D),
    /// Of an ACK.
    Ack(A),
}

/// A part of the network that has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Internet(Direction),
    LastHop,
    Millisecond,
    /// The wire of a flow that leads this way.
    Wire(FlowId, Direction),
}

/// Parts that flows share, in the order in which they come at one instant: each before what feeds it, so that it has let go
/// of its packets before it gets more. Wires come after them: they have room for whatever they get.
const SHARED: [Part; 4] = [
    Part::Internet(Direction::Uplink),
    Part::LastHop,
    Part::Internet(Direction::Downlink),
    Part::Millisecond,
];

/// Where the draining of what is due stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Draining {
    /// Nothing is being drained.
    No,
    /// This part has not said yet that it has nothing more.
    Part(Part),
    /// The last hop has been drained, and its reports may have been popped.
    LastHopTold,
    /// The driver is to hear that there is nothing more.
    Over,
}

/// How a device's capacity is told.
#[derive(Debug, Default)]
struct DeviceWays {
    /// The ways in which it moves data; one that has no flow could receive.
    ways: Vec<Way>,
}

#[derive(Debug)]
struct Way {
    direction: Direction,
    /// Flows whose data goes this way.
    flows: u64,
    /// Whether any of them crosses the Internet's queue.
    crosses_internet: bool,
}

impl<D, A> Network<D, A> {
    /// The planned network with the random numbers of a run. `order` holds the numbers of all flows: where wires of several
    /// flows are due at the same instant, they come in this order.
    ///
    /// # Panics
    /// If `order` lacks a flow.
    pub fn new(plan: &NetworkPlan, order: &[usize], streams: &Streams) -> Network<D, A> {
        let last_hop = LastHop::new(&plan.last_hop, streams);
        let flows = (0..plan.flows.len()).map(|index| Flow::new(plan, index, &last_hop, streams)).collect();
        let queues = Direction::BOTH.map(|direction| {
            let is_taken = plan.flows.iter().any(|flow| flow.direction == direction);
            plan.internet.clone().filter(|_| is_taken)
        });
        let wires = |of: fn(&FlowConfig) -> Direction| {
            order.iter().map(move |&flow| Part::Wire(FlowId(flow as u16), of(&plan.flows[flow])))
        };
        let forward = wires(|flow| flow.direction);
        let reverse = wires(|flow| flow.direction.opposite());
        let parts: Vec<Part> = SHARED.into_iter().chain(forward).chain(reverse).collect();
        let mut turn = vec![usize::MAX; order.len()];
        for (place, &flow) in order.iter().enumerate() {
            turn[flow] = place;
        }
        assert!(!turn.contains(&usize::MAX) && turn.len() == plan.flows.len(), "every flow has a turn");
        let mut network = Network {
            devices: (0..plan.devices).map(|device| DeviceWays::new(plan, device)).collect(),
            deadlines: Deadlines::new(parts.len()),
            parts,
            turn,
            flows,
            queues,
            last_hop,
            draining: Draining::No,
            capacities: vec![],
            has_subframes: false,
        };
        network.set_deadline(Part::LastHop);
        network.deadlines.set(Part::Millisecond.shared_place(), Some(Time::ZERO));
        network
    }

    /// Puts a packet on the network.
    ///
    /// # Panics
    /// If the network does not know the packet's flow, or a flow's data packets or its ACKs are not numbered one by one.
    #[inline]
    pub fn push(&mut self, now: Time, packet: Packet, load: Load<D, A>) {
        let flow = &mut self.flows[usize::from(packet.flow.0)];
        let direction = flow.begin(&packet, load);
        let first = flow.routes[direction as usize].first;
        self.enter(now, direction, first, packet);
    }

    /// When [`Network::pop`] must next be called.
    #[inline]
    pub fn next(&self) -> Time {
        self.deadlines.first()
    }

    /// The next that comes out at `now`; after `None`, [`Network::next`] is up to date, and may be `now` again. `now` never
    /// decreases over the calls.
    pub fn pop(&mut self, now: Time) -> Option<Output<'_, D, A>> {
        let part = match self.draining {
            Draining::No => {
                let (due, place) = self.deadlines.next();
                if due > now {
                    return None;
                }
                match self.parts[place] {
                    // A driver may be late; milliseconds are whole all the same, and each comes once.
                    Part::Millisecond => return Some(self.begin_millisecond(due)),
                    part => part,
                }
            }
            Draining::Part(part) => part,
            Draining::LastHopTold => {
                self.set_deadline(Part::LastHop);
                self.draining = Draining::No;
                return None;
            }
            Draining::Over => {
                self.draining = Draining::No;
                return None;
            }
        };
        self.draining = Draining::Part(part);
        while let Some((direction, exit)) = self.exit_of(part, now) {
            let (flow, hop) = (usize::from(exit.packet.flow.0), part.hop());
            match self.flows[flow].leave(now, direction, hop, &exit) {
                Some(next) => self.enter(now, direction, next, exit.packet),
                None => {
                    let Exit { packet, fate, .. } = exit;
                    let load = self.flows[flow].load_of(direction, packet.number);
                    return Some(Output::Ended(Journey { packet, fate, load }));
                }
            }
        }
        if part == Part::LastHop {
            return Some(self.end_of_last_hop(now));
        }
        self.set_deadline(part);
        self.draining = Draining::No;
        None
    }

    /// What happened in the subframe that the last hop has just run; nothing while not recording.
    pub fn subframes(&self) -> impl Iterator<Item = Subframe<'_>> {
        self.last_hop.subframes().take_while(|_| self.has_subframes)
    }

    /// How many subframes the last hop has run.
    pub fn subframes_run(&self) -> u64 {
        self.last_hop.subframes_run()
    }

    /// What the path could carry for each device in the last subframe, or can carry in the millisecond that begins: its last
    /// hop or, where narrower, the Internet's queue (whole: it is not known who else could have used it).
    pub fn capacities(&self) -> &[Capacity] {
        &self.capacities
    }

    /// The next report that a device is told ([`Network::set_told`]), and by whom. The driver may change it, as a device's
    /// clock does.
    pub fn pop_report(&mut self) -> Option<(DeviceId, Source, &mut RadioReport)> {
        self.last_hop.pop_report()
    }

    /// Whether [`Network::subframes`] is kept; at first it is not.
    pub fn set_recording(&mut self, is_recording: bool) {
        self.last_hop.set_recording(is_recording);
    }

    /// Whether a device is told what this source says of its radio; at first none is.
    pub fn set_told(&mut self, device: DeviceId, source: Source, is_told: bool) {
        self.last_hop.set_told(device, source, is_told);
    }

    fn enter(&mut self, now: Time, direction: Direction, hop: Hop, packet: Packet) {
        let part = match hop {
            Hop::Wire => {
                self.route(packet.flow, direction).wire.push(now, packet);
                Part::Wire(packet.flow, direction)
            }
            Hop::Internet => {
                let queue = self.queues[direction as usize].as_mut();
                queue.expect("a route crosses queues that are there").push(now, packet);
                Part::Internet(direction)
            }
            Hop::Radio => {
                if !self.last_hop.push(now, direction, packet) {
                    return;
                }
                Part::LastHop
            }
        };
        self.set_deadline(part);
    }

    /// The next packet that leaves a part, and which way it goes.
    fn exit_of(&mut self, part: Part, now: Time) -> Option<(Direction, Exit)> {
        match part {
            Part::Internet(direction) => {
                Some((direction, self.queues[direction as usize].as_mut()?.pop(now)?))
            }
            Part::LastHop => self.last_hop.pop(now),
            Part::Wire(flow, direction) => Some((direction, self.route(flow, direction).wire.pop(now)?)),
            Part::Millisecond => None,
        }
    }

    fn end_of_last_hop(&mut self, now: Time) -> Output<'_, D, A> {
        self.has_subframes = self.last_hop.end_of_drain(now);
        self.capacities.clear();
        if self.has_subframes {
            self.find_capacities(now);
        }
        // Its deadline depends on which reports are popped now.
        self.draining = Draining::LastHopTold;
        Output::Radio
    }

    fn begin_millisecond(&mut self, now: Time) -> Output<'_, D, A> {
        self.last_hop.begin_millisecond(now);
        self.has_subframes = false;
        self.capacities.clear();
        if !matches!(self.last_hop, LastHop::Cell(_)) {
            self.find_capacities(now);
        }
        self.deadlines.set(Part::Millisecond.shared_place(), Some(now + MILLISECOND));
        self.draining = Draining::Over;
        Output::Millisecond
    }

    fn find_capacities(&mut self, now: Time) {
        for (index, device) in self.devices.iter().enumerate() {
            let id = DeviceId(index as u16);
            for way in &device.ways {
                let (time, last_hop) = self.last_hop.capacity(now, way.direction, id, way.flows);
                let queue = self.queues[way.direction as usize].as_ref().filter(|_| way.crosses_internet);
                let internet = queue.and_then(Queue::rate).map(|rate| rate.bytes_in(MILLISECOND));
                if let Some(bytes) = [last_hop, internet].into_iter().flatten().min() {
                    let (span, direction) = (MILLISECOND, way.direction);
                    self.capacities.push(Capacity { time, span, device: id, direction, bytes });
                }
            }
        }
    }

    fn route(&mut self, flow: FlowId, direction: Direction) -> &mut Route {
        &mut self.flows[usize::from(flow.0)].routes[direction as usize]
    }

    fn set_deadline(&mut self, part: Part) {
        let flows = self.turn.len();
        let (place, deadline) = match part {
            Part::Internet(direction) => {
                (part.shared_place(), self.queues[direction as usize].as_ref().and_then(Queue::next))
            }
            Part::LastHop => (part.shared_place(), self.last_hop.next()),
            Part::Wire(flow, direction) => {
                let index = usize::from(flow.0);
                let route = &self.flows[index].routes[direction as usize];
                let kind = if route.carries_data { 0 } else { flows };
                (SHARED.len() + kind + self.turn[index], route.wire.next())
            }
            Part::Millisecond => return,
        };
        self.deadlines.set(place, deadline);
    }
}

impl Part {
    /// The place of a part that flows share.
    fn shared_place(self) -> usize {
        match self {
            Part::Internet(Direction::Uplink) => 0,
            Part::LastHop => 1,
            Part::Internet(Direction::Downlink) => 2,
            Part::Millisecond | Part::Wire(..) => 3,
        }
    }

    fn hop(self) -> Hop {
        match self {
            Part::Internet(_) => Hop::Internet,
            Part::LastHop | Part::Millisecond => Hop::Radio,
            Part::Wire(..) => Hop::Wire,
        }
    }
}

impl DeviceWays {
    fn new(plan: &NetworkPlan, device: usize) -> DeviceWays {
        let way = |direction: Direction| {
            let flows = plan.flows.iter().filter(move |flow| usize::from(flow.device.0) == device);
            let flows: Vec<_> = flows.filter(|flow| flow.direction == direction).collect();
            let crosses_internet = flows.iter().any(|flow| plan.crosses_internet(flow));
            Way { direction, flows: flows.len() as u64, crosses_internet }
        };
        let [down, up] = Direction::BOTH.map(way);
        let mut ways = vec![];
        if down.flows > 0 || up.flows == 0 {
            ways.push(down);
        }
        if up.flows > 0 {
            ways.push(up);
        }
        DeviceWays { ways }
    }
}
