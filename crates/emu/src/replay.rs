//! Replay of a record in virtual time: the same arrivals through the same network.
//!
//! The network reports its subframes and capacities during the replay, because composing them takes time that the run
//! does not have. A replay also detects a run whose network behaved differently.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, Time};
use airpace_event::{Capacity, Event, Fate};
use airpace_path::Network;
use airpace_path::trace::mmlink::Line;

use crate::crossing::{Arrival, End, Watcher, World};
use crate::record::{Entry, Record};

/// A packet's passage through the emulator, from interface to interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time at which the packet was read from the interface.
    pub arrived: Time,
    /// Time at which the network released or dropped the packet.
    pub due: Time,
    /// Time at which the packet had been written to the interface at the other end; `None` if it was dropped.
    pub out: Option<Time>,
    /// One-way delay of the packet through the idle network.
    pub propagation_delay: Duration,
    /// The device that sent or receives the packet.
    pub device: DeviceId,
    /// Direction of the packet.
    pub direction: Direction,
    /// Number of the packet among those of its device and direction.
    pub number: u64,
    /// Size of the packet.
    pub bytes: Bytes,
    /// Number of the packet's connection.
    pub connection: u32,
    /// Whether and why the packet was delivered or dropped.
    pub fate: Fate,
    /// Whether another copy of the packet was delivered before: wires may duplicate packets.
    pub duplicate: bool,
    /// Whether a queue set the packet's ECN field to CE.
    pub marked: bool,
}

/// Receives the events of a replay.
pub trait Reader {
    /// A packet left the network. Departures are reported in order of `due`.
    fn departed(&mut self, departure: &Departure);

    /// The network reported a subframe or a capacity, in order of time.
    fn told(&mut self, event: &Event<'_>);

    /// Returns whether [`Reader::linked`] is to be called.
    fn wants_lines(&self) -> bool {
        false
    }

    /// The link of a trace produced this line, in order of time for each direction.
    fn linked(&mut self, _direction: Direction, _line: Line) {}
}

/// The outcome of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Number of packets that arrived.
    pub arrived: u64,
    /// Number of packets that left or were dropped.
    pub ended: u64,
    /// Number of packets whose outcomes in the replay and in the record differ.
    pub differing: u64,
    /// End of the run; the time of the last arrival if the record is incomplete.
    pub over: Time,
}

/// The data that a replay attaches to a packet under way.
#[derive(Debug)]
struct Carried {
    at: Time,
    connection: u32,
    ecn: Ecn,
    /// Whether a copy of the packet was delivered.
    is_out: Cell<bool>,
}

/// The end of a packet's journey in the replay, with the data attached to the packet.
#[derive(Clone, Copy, Debug)]
struct Found {
    end: End,
    arrived: Time,
    connection: u32,
    duplicate: bool,
    marked: bool,
}

/// The reader, and the packets that left the network in the replay but whose entries in the record were not read yet.
struct Matching<'a> {
    reader: &'a mut dyn Reader,
    ends: VecDeque<Found>,
    wants_lines: bool,
}

impl Watcher<Carried> for Matching<'_> {
    fn ended(&mut self, end: End, carried: &Carried) {
        let &Carried { at: arrived, connection, ecn, .. } = carried;
        let duplicate = carried.is_out.replace(end.fate == Fate::Delivered || carried.is_out.get());
        let marked = end.packet.ecn != ecn;
        self.ends.push_back(Found { end, arrived, connection, duplicate, marked });
    }

    fn radio(&mut self, at: Time, network: &mut Network<Carried, Carried>) {
        for subframe in network.subframes() {
            self.reader.told(&Event::Subframe(&subframe));
        }
        for direction in Direction::BOTH.into_iter().filter(|_| self.wants_lines) {
            for line in network.link_lines(direction, at) {
                self.reader.linked(direction, line);
            }
        }
        let capacities: &[Capacity] = network.capacities();
        for &capacity in capacities {
            self.reader.told(&Event::Capacity(capacity));
        }
    }
}

/// Replays the record of a run.
///
/// # Errors
/// The record cannot be read.
pub fn replay(world: &World, record: &mut Record, reader: &mut dyn Reader) -> io::Result<Replayed> {
    let mut crossing = world.begin::<Carried>();
    crossing.network_mut().set_recording(true);
    let wants_lines = reader.wants_lines();
    if wants_lines {
        crossing.network_mut().watch_links();
    }
    let mut matching = Matching { reader, ends: VecDeque::new(), wants_lines };
    let mut replayed = Replayed::default();
    for entry in record.entries()? {
        match entry? {
            Entry::Arrived { at, device, direction, bytes, ecn, connection } => {
                let arrival = Arrival { device, direction, bytes, ecn };
                crossing.push(
                    at,
                    arrival,
                    Carried { at, connection, ecn, is_out: Cell::new(false) },
                    &mut matching,
                );
                replayed.arrived += 1;
                replayed.over = at;
            }
            Entry::Ended { due, out, device, direction, number, fate } => {
                crossing.turn(due, &mut matching);
                replayed.ended += 1;
                let Some(Found { end, arrived, connection, duplicate, marked }) = matching.ends.pop_front()
                else {
                    replayed.differing += 1;
                    continue;
                };
                let packet = end.packet;
                let same = (packet.device, end.direction, packet.number, end.fate, end.at)
                    == (device, direction, number, fate, due);
                replayed.differing += u64::from(!same);
                let departure = Departure {
                    arrived,
                    due: end.at,
                    out: out.filter(|_| end.fate == Fate::Delivered),
                    propagation_delay: crossing.propagation_delay(packet.device, end.direction, packet.bytes),
                    device: packet.device,
                    direction: end.direction,
                    number: packet.number,
                    bytes: packet.bytes,
                    connection,
                    fate: end.fate,
                    duplicate,
                    marked,
                };
                matching.reader.departed(&departure);
            }
            Entry::Over { at } => {
                crossing.turn(at, &mut matching);
                replayed.over = at;
            }
        }
    }
    // Packets that ended in the replay but not in the record.
    replayed.differing += matching.ends.len() as u64;
    Ok(replayed)
}
