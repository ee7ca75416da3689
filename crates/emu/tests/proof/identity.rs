//! Runs in real time and in virtual time use the same network. For any lateness of the driver, the recorded arrivals
//! produce the same departures, drops and marks in virtual time, to the nanosecond.

use std::time::Duration;

use airpace_core::{Bytes, DeviceId, Direction, Ecn, FlowId, Packet, Time};
use airpace_emu::World;
use airpace_emu::crossing::{Arrival, Crossing, End, Watcher};
use airpace_emu::record::{Entry, Record, Spool};
use airpace_event::Fate;
use airpace_path::Network;
use airpace_path::network::Load;
use proptest::prelude::*;

use super::replayed;
use super::worlds::{Coming, narrow_cell, packets, world};

/// Time for which a world runs on after its last packet.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Maximum number of packets read before due events are processed.
const READ_AT_ONCE: usize = 64;

/// Records the packets that leave the network, while the clock advances.
pub struct Writer {
    now: Time,
    spool: Spool,
    ended: u64,
}

impl Watcher<()> for Writer {
    fn ended(&mut self, end: End, (): &()) {
        assert!(end.at <= self.now, "nothing ends before its time");
        self.now += Duration::from_nanos(700);
        self.ended += 1;
        let (device, number) = (end.packet.device, end.packet.number);
        let out = (end.fate == Fate::Delivered).then_some(self.now);
        self.spool.push(Entry::Ended {
            due: end.at,
            out,
            device,
            direction: end.direction,
            number,
            fate: end.fate,
        });
    }

    fn radio(&mut self, _: Time, _: &mut Network<(), ()>) {}
}

/// The order in which a driver puts a packet on the network and records it.
pub fn in_order(crossing: &mut Crossing<()>, coming: &Coming, writer: &mut Writer) {
    let now = writer.now;
    crossing.push(now, coming.arrival, (), writer);
    note(coming, now, writer);
}

fn note(coming: &Coming, at: Time, writer: &mut Writer) {
    let Arrival { device, direction, bytes, ecn } = coming.arrival;
    writer.spool.push(Entry::Arrived { at, device, direction, bytes, ecn, connection: 0 });
}

/// Runs a world with a clock that is late by the next value of `lateness` at each step. Returns the record, and the
/// number of packets that were delivered or dropped.
pub fn drive(
    world: &World,
    packets: &[Coming],
    lateness: impl IntoIterator<Item = Duration>,
    mut put: impl FnMut(&mut Crossing<()>, &Coming, &mut Writer),
) -> (Record, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let spool = Spool::begin(folder.path()).expect("a record");
    let mut writer = Writer { now: Time::ZERO, spool, ended: 0 };
    let mut crossing = world.begin::<()>();
    let mut lateness = lateness.into_iter();
    let mut packets = packets.iter().peekable();
    let mut over = Time::ZERO + AFTERWARDS;
    loop {
        let due = packets.peek().map_or(Time::NEVER, |packet| packet.at).min(crossing.poll_timeout());
        if due > over && packets.peek().is_none() {
            break;
        }
        writer.now = writer.now.max(due) + lateness.next().unwrap_or_default();
        crossing.turn(writer.now, &mut writer);
        for _ in 0..READ_AT_ONCE {
            let Some(packet) = packets.next_if(|packet| packet.at <= writer.now) else { break };
            writer.now += Duration::from_micros(2);
            put(&mut crossing, packet, &mut writer);
            over = writer.now + AFTERWARDS;
        }
    }
    writer.now = writer.now.max(over);
    let end = writer.now;
    crossing.turn(end, &mut writer);
    writer.spool.push(Entry::Over { at: end });
    (writer.spool.finish().expect("a record"), writer.ended)
}

/// Lateness of a wake-up: mostly small, sometimes large, and occasionally very large.
pub fn lateness() -> impl Strategy<Value = Duration> {
    prop_oneof![
        3 => (0u64..100).prop_map(Duration::from_micros),
        2 => (100u64..5_000).prop_map(Duration::from_micros),
        1 => (5u64..200).prop_map(Duration::from_millis),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn whatever_a_late_driver_records_is_what_virtual_time_says(
        (world, packets) in world().prop_flat_map(|world| {
            let devices = world.devices;
            (Just(world), packets(devices))
        }),
        late in proptest::collection::vec(lateness(), 1..200),
    ) {
        let (mut record, ended) = drive(&world, &packets, late.iter().copied().cycle(), in_order);
        let (replayed, departures) = replayed(&world, &mut record);
        prop_assert_eq!(replayed.differing, 0);
        prop_assert_eq!(replayed.arrived, packets.len() as u64, "all were read");
        prop_assert_eq!(replayed.ended, ended);
        prop_assert_eq!(departures.len() as u64, ended);
        for departure in &departures {
            prop_assert!(departure.arrived <= departure.due);
            prop_assert_eq!(departure.out.is_some(), departure.fate == Fate::Delivered);
        }
    }
}

/// Packets in both directions, a few per millisecond, with more uplink traffic than the narrow cell carries.
fn steady() -> Vec<Coming> {
    let mut packets = vec![];
    for number in 0..600u64 {
        let direction = if number % 3 == 0 { Direction::Downlink } else { Direction::Uplink };
        let arrival = Arrival { device: DeviceId(0), direction, bytes: Bytes(1_000), ecn: Ecn::NotEct };
        packets.push(Coming { at: Time::from_micros(number * 370), arrival });
    }
    packets
}

#[test]
fn a_driver_that_let_packets_in_before_what_was_due_would_be_found_out() {
    let (world, packets) = (narrow_cell(), steady());
    // The driver is delayed between the start of a millisecond and the reading of packets, while the clock advances. If
    // the modem's transmissions of that time are not processed first, they occupy buffer space that the new packets need.
    let away = Duration::from_micros(1_300);
    let mut numbers = [0; 2];
    let (mut record, ended) = drive(&world, &packets, [], |crossing, coming, writer| {
        writer.now += away;
        let (now, Arrival { device, direction, bytes, ecn }) = (writer.now, coming.arrival);
        let number = numbers[direction as usize];
        numbers[direction as usize] += 1;
        let packet = Packet { flow: FlowId(0), device, number, bytes, sent: now, ecn };
        let load = if direction == Direction::Downlink { Load::Data(()) } else { Load::Ack(()) };
        crossing.network_mut().push(now, packet, load);
        note(coming, now, writer);
        crossing.turn(now, writer);
    });
    let (wrong, _) = replayed(&world, &mut record);
    assert_eq!((wrong.arrived, wrong.ended), (600, ended));
    assert!(wrong.differing > 50, "only {} packets differ", wrong.differing);

    let (mut record, ended) = drive(&world, &packets, [], |crossing, coming, writer| {
        writer.now += away;
        in_order(crossing, coming, writer);
    });
    let (right, _) = replayed(&world, &mut record);
    assert_eq!((right.arrived, right.ended, right.differing), (600, ended, 0));
}

#[test]
fn a_packet_that_left_at_another_time_or_in_another_way_is_counted() {
    let (world, packets) = (narrow_cell(), steady());
    let (mut record, _) = drive(&world, &packets, [], in_order);
    let entries: Vec<Entry> = record.entries().unwrap().map(Result::unwrap).collect();
    let changed = |change: &dyn Fn(usize, Entry) -> Option<Entry>| {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::begin(folder.path()).unwrap();
        let kept = entries.iter().enumerate().filter_map(|(place, &entry)| change(place, entry));
        kept.for_each(|entry| spool.push(entry));
        replayed(&world, &mut spool.finish().unwrap()).0.differing
    };
    let some = entries.iter().position(|entry| matches!(entry, Entry::Ended { .. })).unwrap() + 40;
    let place = (some..).find(|&place| matches!(entries[place], Entry::Ended { .. })).unwrap();
    let with =
        |of: &dyn Fn(Entry) -> Entry| changed(&|at, entry| Some(if at == place { of(entry) } else { entry }));
    assert_eq!(changed(&|_, entry| Some(entry)), 0);
    assert_eq!(
        with(&|entry| match entry {
            Entry::Ended { due, out, device, direction, number, .. } =>
                Entry::Ended { due, out, device, direction, number, fate: Fate::WireLoss },
            other => other,
        }),
        1
    );
    assert!(
        with(&|entry| match entry {
            Entry::Ended { due, out, device, direction, number, fate } =>
                Entry::Ended { due: due + Duration::from_nanos(1), out, device, direction, number, fate },
            other => other,
        }) >= 1
    );
    assert!(changed(&|at, entry| Some(entry).filter(|_| at != place)) >= 1, "an end that is missing");
}
