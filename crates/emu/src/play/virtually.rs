//! Simulation of packets through a network in virtual time.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Rate, Time};
use airpace_event::Fate;
use airpace_path::Network;

use super::schedule::Loaded;
use crate::crossing::{Arrival, End, Watcher, World};

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Time at which the first copy was delivered.
    pub released: Option<Time>,
    /// [`Fate::Delivered`] if a copy was delivered, otherwise the reason of the drop; `None` if the packet is still under
    /// way.
    pub fate: Option<Fate>,
    /// Number of delivered copies.
    pub copies: u32,
}

/// Maximum time for which the network runs on after the last packet was sent, while packets are still under way.
///
/// Chosen: longer than any queue of a scenario takes to drain.
const MAX_DRAIN: Duration = Duration::from_secs(120);

/// Step by which the network runs on.
const STEP: Duration = Duration::from_millis(500);

/// Sends each of these packets into the network at its time. Packets with equal times are sent in the order of the list.
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
    while outcomes.ended < packets.len() && now - last < MAX_DRAIN {
        now += STEP;
        crossing.turn(now, &mut outcomes);
    }
    // Further copies of the last packets may follow.
    crossing.turn(now + STEP, &mut outcomes);
    outcomes.list
}

struct Outcomes {
    list: Vec<Outcome>,
    /// Number of packets with at least one copy that was delivered or dropped.
    ended: usize,
}

impl Outcome {
    /// Notes that a copy was delivered or dropped.
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

/// Assumed rate where the network reports none, that is, where the path consists of wires without a rate limit.
///
/// Chosen: a few packets per millisecond.
const OF_WIRES: Rate = Rate::from_bps(20_000_000);

/// Maximum total rate of a schedule, over all devices and both directions.
///
/// Chosen: 100 Mbit/s, a rate at which one thread can send packets on time.
const MAX_TOTAL_RATE: Rate = Rate::from_bps(100_000_000);

/// Returns the rate that the idle network could carry in each direction of each device, averaged over `over` from the
/// start. The devices share the network's rate equally. If `only` is given, that device gets the full rate, and only its
/// directions are returned.
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
    if total > MAX_TOTAL_RATE.as_mbps() {
        loads.iter_mut().for_each(|load| load.rate = load.rate.scaled(MAX_TOTAL_RATE.as_mbps() / total));
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
