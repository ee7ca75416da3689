//! A simulated network that carries packets of real programs: one two-way flow per device.
//!
//! Runs in real time and in virtual time use the same [`Crossing`]. Every event is processed with its own timestamp, even
//! if the driver is late. The behaviour of the network therefore depends only on the arrival times.

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Streams, Time};
use airpace_event::Fate;
use airpace_path::network::{Load, Output};
use airpace_path::{Network, NetworkPlan};

/// The network plan of an emulated run, with the seed of its random numbers.
#[derive(Clone, Debug)]
pub struct World {
    /// A network with one two-way flow per device; the flow has the device's number.
    pub plan: NetworkPlan,
    /// Number of devices.
    pub devices: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// A running network. Each packet carries a load of type `L`.
#[derive(Debug)]
pub struct Crossing<L> {
    network: Network<L, L>,
    /// Per device and direction: the number of the next packet.
    numbers: Vec<[u64; 2]>,
    /// Per device: the direction that the network calls data.
    data: Vec<Direction>,
}

/// A packet that enters the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The device that sends or receives the packet.
    pub device: DeviceId,
    /// Direction of the packet.
    pub direction: Direction,
    /// Size of the whole IP packet.
    pub bytes: Bytes,
    /// ECN field of the packet.
    pub ecn: Ecn,
}

/// The end of a packet's journey through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Instant at which the network released or dropped the packet.
    pub at: Time,
    /// Direction of the packet.
    pub direction: Direction,
    /// The packet; its number counts the packets of its device and direction.
    pub packet: Packet,
    /// Whether and why the packet was delivered or dropped.
    pub fate: Fate,
}

/// Receives the events of a crossing while its network runs.
pub trait Watcher<L> {
    /// A packet was delivered or dropped.
    fn ended(&mut self, end: End, load: &L);

    /// The last hop has run, or a millisecond starts: [`Network::pop_report`], [`Network::capacities`] and
    /// [`Network::subframes`] return new items.
    fn radio(&mut self, at: Time, network: &mut Network<L, L>);
}

impl World {
    /// Creates the network in its initial state.
    pub fn begin<L>(&self) -> Crossing<L> {
        let order: Vec<usize> = (0..self.devices).collect();
        let network = Network::new(&self.plan, &order, &Streams::new(self.seed));
        let data = order.iter().map(|&device| network.direction_of_data(FlowId(device as u16))).collect();
        Crossing { network, numbers: vec![[0; 2]; self.devices], data }
    }
}

impl<L> Crossing<L> {
    /// Returns the time of the next event.
    pub fn poll_timeout(&self) -> Time {
        self.network.poll_timeout()
    }

    /// Puts a packet on the network. All events due at or before `now` are processed first, without this packet. The
    /// packets under way are therefore not affected by how late the driver is, and a record of arrivals is enough to
    /// reproduce the run. Returns the packet's number among those of its device and direction.
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

    /// Processes all events due at or before `now`, each with its own timestamp.
    pub fn turn(&mut self, now: Time, watcher: &mut impl Watcher<L>) {
        loop {
            let due = self.network.poll_timeout();
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

    /// Returns the one-way delay of a packet of this size if no other packet is under way.
    pub fn propagation_delay(
        &self,
        device: DeviceId,
        direction: Direction,
        bytes: Bytes,
    ) -> std::time::Duration {
        self.network.propagation_delay(FlowId(device.0), direction, bytes)
    }

    /// Returns the network.
    pub fn network_mut(&mut self) -> &mut Network<L, L> {
        &mut self.network
    }
}
