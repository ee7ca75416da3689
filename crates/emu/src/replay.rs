//! A record turned again in virtual time: the same arrivals through the same network.
//!
//! The network tells its subframes and capacities here, which takes no time from the run itself; and a run whose network
//! did anything else than this one is found out.

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

/// A packet's way through the emulator, from interface to interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When it was read from the interface.
    pub arrived: Time,
    /// When the network let it go or dropped it.
    pub due: Time,
    /// When it had been written to the interface at the other end; `None` if it was dropped.
    pub out: Option<Time>,
    /// How long it takes through the empty network.
    pub propagation_delay: Duration,
    /// The device at one end.
    pub device: DeviceId,
    /// Which way it went.
    pub direction: Direction,
    /// Its number among those of its device and direction.
    pub number: u64,
    /// Its size.
    pub bytes: Bytes,
    /// The number of its connection.
    pub connection: u32,
    /// What happened to it.
    pub fate: Fate,
    /// Whether a copy of it had come out before: wires may make copies.
    pub duplicate: bool,
    /// Whether a queue marked it as having met congestion.
    pub marked: bool,
}

/// The reader of a replay.
pub trait Reader {
    /// A packet left. Departures come in order of `due`.
    fn departed(&mut self, departure: &Departure);

    /// The network told something of its own: subframes and capacities, in order of time.
    fn told(&mut self, event: &Event<'_>);

    /// Whether [`Reader::linked`] is to be called.
    fn wants_lines(&self) -> bool {
        false
    }

    /// The link of a trace did this, in order of time for each direction.
    fn linked(&mut self, _direction: Direction, _line: Line) {}
}

/// The outcome of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that left or were dropped.
    pub ended: u64,
    /// Those of which the replay says something else than the record.
    pub differing: u64,
    /// When the run was over; the last entry's time if the record is not whole.
    pub over: Time,
}

/// What a replay knows of a packet under way.
#[derive(Debug)]
struct Carried {
    at: Time,
    connection: u32,
    ecn: Ecn,
    /// Whether a copy of it has come out.
    is_out: Cell<bool>,
}

/// The end of a packet that the replay has found, with what the packet carried.
#[derive(Clone, Copy, Debug)]
struct Found {
    end: End,
    arrived: Time,
    connection: u32,
    duplicate: bool,
    marked: bool,
}

/// The reader, and the ends of packets that the replay has found and the record has not told yet.
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

/// Turns the record of a run again.
///
/// # Errors
/// If the record cannot be read.
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
    // What the replay let go and the record does not have.
    replayed.differing += matching.ends.len() as u64;
    Ok(replayed)
}
