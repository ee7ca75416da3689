//! A network that packets of real programs cross: one two-way flow for each device.
//!
//! Real time and virtual time turn the same [`Crossing`]: every deadline is carried out at its own time, however late the
//! driver comes, so that what the network does depends only on when packets arrived.

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Streams, Time};
use airpace_event::Fate;
use airpace_path::network::{Load, Output};
use airpace_path::{Network, NetworkPlan};

/// The plan of a crossing, with the seed of its random numbers.
#[derive(Clone, Debug)]
pub struct World {
    /// A network with one two-way flow for each device, whose number is that of the device.
    pub plan: NetworkPlan,
    /// How many devices it has.
    pub devices: usize,
    /// Seed of its random numbers.
    pub seed: u64,
}

/// A network under way. Each packet carries an `L`.
#[derive(Debug)]
pub struct Crossing<L> {
    network: Network<L, L>,
    /// For each device, the numbers of the next packets by direction.
    numbers: Vec<[u64; 2]>,
    /// For each device, the direction that the network calls data.
    data: Vec<Direction>,
}

/// A packet that comes to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The device at one end.
    pub device: DeviceId,
    /// Which way it goes.
    pub direction: Direction,
    /// Its size: the whole IP packet.
    pub bytes: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// A packet that has ended its journey through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When the network let it go or dropped it.
    pub at: Time,
    /// Which way it went.
    pub direction: Direction,
    /// The packet; its number counts those of its device and direction.
    pub packet: Packet,
    /// What happened to it.
    pub fate: Fate,
}

/// What is told of a crossing while it is turned.
pub trait Watcher<L> {
    /// A packet has ended its journey.
    fn ended(&mut self, end: End, load: &L);

    /// The last hop has run, or a millisecond begins: [`Network::pop_report`], [`Network::capacities`] and
    /// [`Network::subframes`] have what is new.
    fn radio(&mut self, at: Time, network: &mut Network<L, L>);
}

impl World {
    /// The network at its beginning.
    pub fn begin<L>(&self) -> Crossing<L> {
        let order: Vec<usize> = (0..self.devices).collect();
        let network = Network::new(&self.plan, &order, &Streams::new(self.seed));
        let data = order.iter().map(|&device| network.direction_of_data(FlowId(device as u16))).collect();
        Crossing { network, numbers: vec![[0; 2]; self.devices], data }
    }
}

impl<L> Crossing<L> {
    /// When something is next due.
    pub fn next(&self) -> Time {
        self.network.next()
    }

    /// A packet comes. What was due at or before `now` is carried out first, and then the packet is put on the network:
    /// so whatever was under way meets the network as it was without the packet, however late the driver comes, and a
    /// record of arrivals is enough to have the same run again. Returns the packet's number among those of its device and
    /// direction.
    pub fn push(&mut self, now: Time, arrival: Arrival, load: L, watcher: &mut impl Watcher<L>) -> u64 {
        self.turn(now, watcher);
        let Arrival { device, direction, bytes, ecn } = arrival;
        let index = usize::from(device.0);
        let number = self.numbers[index][direction as usize];
        self.numbers[index][direction as usize] += 1;
        let packet = Packet { flow: FlowId(device.0), device, number, bytes, sent: now, ecn };
        let load = if direction == self.data[index] { Load::Data(load) } else { Load::Ack(load) };
        self.network.push(now, packet, load);
        number
    }

    /// Carries out everything that is due at or before `now`, each at its own time.
    pub fn turn(&mut self, now: Time, watcher: &mut impl Watcher<L>) {
        loop {
            let due = self.network.next();
            if due > now {
                return;
            }
            while let Some(output) = self.network.pop(due) {
                match output {
                    Output::Ended(journey) => {
                        let packet = journey.packet;
                        let data = self.data[usize::from(packet.device.0)];
                        let (direction, load) = match journey.load {
                            Load::Data(load) => (data, load),
                            Load::Ack(load) => (data.opposite(), load),
                        };
                        watcher.ended(End { at: due, direction, packet, fate: journey.fate }, load);
                    }
                    Output::Radio | Output::Millisecond => watcher.radio(due, &mut self.network),
                }
            }
        }
    }

    /// How long a packet of this size takes from end to end if nothing else is under way.
    pub fn propagation_delay(
        &self,
        device: DeviceId,
        direction: Direction,
        bytes: Bytes,
    ) -> std::time::Duration {
        self.network.propagation_delay(FlowId(device.0), direction, bytes)
    }

    /// The network.
    pub fn network_mut(&mut self) -> &mut Network<L, L> {
        &mut self.network
    }
}
