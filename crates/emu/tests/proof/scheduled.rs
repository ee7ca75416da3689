//! A schedule in real time and in virtual time: the outcomes of its packets according to a record, and according to a
//! simulation of the same packets.

use std::net::IpAddr;

use airpace_core::{Direction, Time};
use airpace_emu::connections::Connections;
use airpace_emu::ip::FiveTuple;
use airpace_emu::play::player::PORT;
use airpace_emu::play::recorded::{Passage, passages};
use airpace_emu::play::schedule::{Planned, Schedule};
use airpace_emu::play::virtually::cross;
use airpace_emu::record::{Entry, Record, Spool};
use airpace_event::Fate;
use proptest::prelude::*;

use super::identity::{drive, in_order, lateness};
use super::worlds::{Coming, bursts, marking_link, packets, world};

/// The connections of a run: first that of the players, then one of another program.
fn connections() -> Connections {
    let address: IpAddr = "100.64.0.1".parse().expect("an address");
    let ends = |port| FiveTuple {
        protocol: 17,
        source: address,
        destination: address,
        source_port: port,
        destination_port: port,
    };
    let mut connections = Connections::default();
    assert_eq!([PORT, 53].map(|port| connections.number(ends(port))), [0, 1]);
    connections
}

/// A schedule of these packets, and the numbers of all of them in send order.
fn schedule(packets: &[Coming]) -> (Schedule, Vec<u32>) {
    let planned = packets.iter().map(|&Coming { at, arrival }| Planned {
        at,
        device: arrival.device,
        direction: arrival.direction,
        bytes: arrival.bytes,
    });
    (Schedule::of(planned.collect(), 0), (0..packets.len() as u32).collect())
}

fn rewritten(record: &mut Record, change: impl Fn(usize, Entry) -> Vec<Entry>) -> Record {
    let entries: Vec<Entry> = record.entries().unwrap().map(Result::unwrap).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::begin(folder.path()).unwrap();
    let changed = entries.into_iter().enumerate().flat_map(|(place, entry)| change(place, entry));
    changed.for_each(|entry| spool.push(entry));
    spool.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn sent_when_the_emulator_read_them_packets_fare_in_virtual_time_as_the_record_says(
        (world, packets) in world().prop_flat_map(|world| {
            let devices = world.devices;
            (Just(world), packets(devices))
        }),
        late in proptest::collection::vec(lateness(), 1..200),
    ) {
        let (mut record, _) = drive(&world, &packets, late.iter().copied().cycle(), in_order);
        let (schedule, sent) = schedule(&packets);
        let passages = passages(&schedule, &sent, &mut record, &connections()).unwrap();
        let arrivals: Vec<_> = passages
            .iter()
            .zip(&packets)
            .map(|(passage, packet)| (passage.entered.expect("all were read"), packet.arrival))
            .collect();
        let outcomes = cross(&world, &arrivals);
        prop_assert_eq!(outcomes.len(), packets.len());
        for (passage, virtually) in passages.iter().zip(&outcomes) {
            let Passage { outcome, out, .. } = passage;
            prop_assert!(virtually.fate.is_some(), "virtual time goes on until all have an end");
            prop_assert_eq!(outcome.released.is_some(), out.is_some());
            // The record may end before a packet, or the second copy of a packet, leaves the network.
            if outcome.fate == Some(Fate::Delivered) {
                prop_assert_eq!((outcome.released, outcome.fate), (virtually.released, virtually.fate));
            } else if outcome.fate.is_some() && virtually.copies == 0 {
                prop_assert_eq!(outcome.fate, virtually.fate);
            }
        }
    }
}

#[test]
fn packets_of_others_are_left_out_and_numbers_stay_those_of_the_schedule() {
    let packets = bursts();
    let (schedule, sent) = schedule(&packets);
    let (mut record, _) = drive(&marking_link(), &packets, [], in_order);
    let own = passages(&schedule, &sent, &mut record, &connections()).unwrap();
    assert!(own.iter().all(|passage| passage.entered.is_some() && passage.outcome.fate.is_some()));

    // Every tenth packet belongs to another connection; the schedule contains all others.
    let is_others = |number: u64| number % 10 == 3;
    let mut record = {
        let seen = std::cell::Cell::new([0u64; 2]);
        rewritten(&mut record, |_, entry| match entry {
            Entry::Arrived { at, device, direction, bytes, ecn, .. } => {
                let mut counts = seen.get();
                let number = counts[direction as usize];
                counts[direction as usize] += 1;
                seen.set(counts);
                let connection = u32::from(is_others(number));
                vec![Entry::Arrived { at, device, direction, bytes, ecn, connection }]
            }
            other => vec![other],
        })
    };
    let mut numbers = [0u64; 2];
    let kept = |number: &u32| {
        let direction = packets[*number as usize].arrival.direction as usize;
        numbers[direction] += 1;
        !is_others(numbers[direction] - 1)
    };
    let sent: Vec<u32> = sent.into_iter().filter(kept).collect();
    assert_eq!(sent.len(), 360);
    let fewer = passages(&schedule, &sent, &mut record, &connections()).unwrap();
    for (number, (passage, before)) in fewer.iter().zip(&own).enumerate() {
        let is_kept = sent.contains(&(number as u32));
        assert_eq!(*passage, if is_kept { *before } else { Passage::default() }, "packet {number}");
    }
}

#[test]
fn a_record_of_other_packets_than_were_sent_is_refused() {
    let packets = bursts();
    let (schedule, sent) = schedule(&packets);
    let (mut record, _) = drive(&marking_link(), &packets, [], in_order);
    let is_fifth_up = |place: &mut u32, entry: &Entry| {
        let is_up = matches!(entry, Entry::Arrived { direction: Direction::Uplink, .. });
        *place += u32::from(is_up);
        is_up && *place == 5
    };
    let place = std::cell::Cell::new(0);
    let mut without = rewritten(&mut record, |_, entry| {
        let mut count = place.get();
        let is_lost = is_fifth_up(&mut count, &entry);
        place.set(count);
        if is_lost { vec![] } else { vec![entry] }
    });
    let error = passages(&schedule, &sent, &mut without, &connections()).unwrap_err();
    assert!(error.to_string().contains("the emulator received other packets than were sent"), "{error}");
    // A packet that was sent after the last arrival and never arrived leaves no trace in the record.
    let last = sent.len() as u32 - 1;
    let direction = packets[last as usize].arrival.direction;
    let cut_at = Time::from_millis(last as u64 / 40 * 20 - 1);
    let mut cut = rewritten(&mut record, |_, entry| match entry {
        Entry::Arrived { at, direction: its, .. } if its == direction && at > cut_at => vec![],
        other => vec![other],
    });
    let passages = passages(&schedule, &sent, &mut cut, &connections()).unwrap();
    assert_eq!(passages[last as usize], Passage::default());
}
