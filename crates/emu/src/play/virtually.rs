//! Packets through a network in virtual time.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Rate, Time};
use airpace_event::Fate;
use airpace_path::Network;

use super::schedule::Loaded;
use crate::crossing::{Arrival, End, Watcher, World};

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When its first copy was delivered.
    pub released: Option<Time>,
    /// [`Fate::Delivered`] if a copy was delivered, else what happened to it; `None` if it is still under way.
    pub fate: Option<Fate>,
    /// How many copies were delivered.
    pub copies: u32,
}

/// How long after the last packet the network is turned if some are still under way.
///
/// Chosen: more than any queue of a scenario lasts.
const LONGEST: Duration = Duration::from_secs(120);

/// How long it is turned at once.
const STEP: Duration = Duration::from_millis(500);

/// Lets each of these packets come to the network at its time. Those of one instant come in the order of the list.
pub fn cross(world: &World, packets: &[(Time, Arrival)]) -> Vec<Outcome> {
    let mut order: Vec<usize> = (0..packets.len()).collect();
    order.sort_by_key(|&place| packets[place].0);
    let mut outcomes = Outcomes { list: vec![Outcome::default(); packets.len()], ended: 0 };
    let mut crossing = world.begin::<usize>();
    let mut last = Time::ZERO;
    for place in order {
        let (at, arrival) = packets[place];
        last = at;
        crossing.push(at, arrival, place, &mut outcomes);
    }
    let mut now = last;
    while outcomes.ended < packets.len() && now - last < LONGEST {
        now += STEP;
        crossing.turn(now, &mut outcomes);
    }
    // Copies may follow.
    crossing.turn(now + STEP, &mut outcomes);
    outcomes.list
}

struct Outcomes {
    list: Vec<Outcome>,
    /// Packets of which at least one copy has ended its journey.
    ended: usize,
}

impl Outcome {
    /// Takes note that a copy has ended its journey.
    pub(super) fn end(&mut self, at: Time, fate: Fate) {
        if fate == Fate::Delivered {
            self.copies += 1;
            self.released = self.released.or(Some(at));
            self.fate = Some(fate);
        } else {
            self.fate = self.fate.or(Some(fate));
        }
    }
}

impl Watcher<usize> for Outcomes {
    fn ended(&mut self, end: End, place: &usize) {
        let outcome = &mut self.list[*place];
        self.ended += usize::from(outcome.fate.is_none());
        outcome.end(end.at, end.fate);
    }

    fn radio(&mut self, _: Time, _: &mut Network<usize, usize>) {}
}

/// The rate where a network tells none: wires without end.
///
/// Chosen: some packets per millisecond.
const OF_WIRES: Rate = Rate::from_bps(20_000_000);

/// The highest rate with which a schedule loads a network, over all devices and both directions.
///
/// Chosen: 100 Mbit/s, which one thread sends in time.
const MOST: Rate = Rate::from_bps(100_000_000);

/// What the empty network could carry in each direction of each device, on average over this time from the beginning;
/// devices share it. With a device, only this one, which has all of it.
pub fn capacities(world: &World, over: Duration, only: Option<DeviceId>) -> Vec<Loaded> {
    let mut seen =
        Capacities { bytes: vec![[Bytes::ZERO; 2]; world.devices], told: vec![[false; 2]; world.devices] };
    world.begin::<()>().turn(Time::ZERO + over, &mut seen);
    let is_loaded = |device: &usize| only.is_none_or(|only| usize::from(only.0) == *device);
    let loaded = (0..world.devices).filter(is_loaded);
    let share = 1.0 / loaded.clone().count().max(1) as f64;
    let ways = loaded.flat_map(|device| Direction::BOTH.map(|direction| (device, direction)));
    let mut loads: Vec<Loaded> = ways
        .map(|(device, direction)| {
            let rate = match seen.told[device][direction as usize] {
                true => Rate::from_bytes_per(seen.bytes[device][direction as usize], over),
                false => OF_WIRES,
            };
            Loaded { device: DeviceId(device as u16), direction, rate: rate.scaled(share) }
        })
        .collect();
    let total: f64 = loads.iter().map(|load| load.rate.as_mbps()).sum();
    if total > MOST.as_mbps() {
        loads.iter_mut().for_each(|load| load.rate = load.rate.scaled(MOST.as_mbps() / total));
    }
    loads
}

struct Capacities {
    bytes: Vec<[Bytes; 2]>,
    told: Vec<[bool; 2]>,
}

impl Watcher<()> for Capacities {
    fn ended(&mut self, _: End, (): &()) {}

    fn radio(&mut self, _: Time, network: &mut Network<(), ()>) {
        for capacity in network.capacities() {
            let (device, way) = (usize::from(capacity.device.0), capacity.direction as usize);
            self.bytes[device][way] += capacity.bytes;
            self.told[device][way] = true;
        }
    }
}
