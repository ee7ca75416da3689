//! The thread that runs a network in real time, with sockets in place of interfaces. The record agrees with a replay in
//! virtual time on a machine of any load, and packets leave with unchanged bytes.

use std::fs::File;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use airpace_core::{Direction, Ecn};
use airpace_emu::address::Space;
use airpace_emu::record::{Record, Spool};
use airpace_emu::turn::{Begins, Interfaces, Turn, Turned};
use airpace_emu::{Audit, World};
use airpace_rt::clock::Clock;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::replayed;
use super::worlds::{Coming, bursts, marking_link, packets, world};

/// Returns a UDP packet with a number as its payload.
pub fn packet(
    source: Space,
    destination: Space,
    bytes: usize,
    ecn: Ecn,
    is_v6: bool,
    number: u64,
) -> Vec<u8> {
    let ecn = match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect => 2,
        Ecn::Ce => 3,
    };
    let header_bytes = if is_v6 { 40 } else { 20 };
    let bytes = bytes.max(header_bytes + 16);
    let mut packet = vec![0; bytes];
    if is_v6 {
        let [source, destination]: [Ipv6Addr; 2] = [source, destination].map(Space::address_v6);
        packet[0] = 0x60;
        packet[1] = ecn << 4;
        packet[4..6].copy_from_slice(&((bytes - 40) as u16).to_be_bytes());
        packet[6] = 17;
        packet[8..24].copy_from_slice(&source.octets());
        packet[24..40].copy_from_slice(&destination.octets());
    } else {
        let [source, destination]: [Ipv4Addr; 2] = [source, destination].map(Space::address_v4);
        packet[0] = 0x45;
        packet[1] = ecn;
        packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
        packet[9] = 17;
        packet[12..16].copy_from_slice(&source.octets());
        packet[16..20].copy_from_slice(&destination.octets());
        let sum = !checksum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    packet[header_bytes + 8..header_bytes + 16].copy_from_slice(&number.to_be_bytes());
    packet
}

/// Returns the one's complement sum of a header; with a correct checksum, the sum is 0xffff.
///
/// Source: RFC 1071 §1
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// Returns both ends of an interface: the emulator's, and a program's.
pub fn interface() -> (File, UnixDatagram) {
    let (emulator, program) = UnixDatagram::pair().expect("sockets");
    emulator.set_nonblocking(true).expect("a socket");
    (File::from(OwnedFd::from(emulator)), program)
}

/// Results of a run.
struct Ran {
    record: Record,
    audit: Audit,
    /// Bytes of the packets that left the network, by direction.
    out: [Vec<Vec<u8>>; 2],
}

/// Reads packets until the run is over and none is left, and counts them.
fn read(program: &UnixDatagram, is_over: &AtomicBool, seen: &AtomicU64) -> Vec<Vec<u8>> {
    program.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket");
    let mut out = vec![];
    let mut room = vec![0; 2_000];
    loop {
        // Packets that were written before the end of the run can still be read after it.
        let was_over = is_over.load(Ordering::SeqCst);
        match program.recv(&mut room) {
            Ok(length) => {
                out.push(room[..length].to_vec());
                seen.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) if was_over => return out,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Condition for the end of a run.
enum Enough {
    /// This many packets have left the network.
    Out(u64),
    /// No packet has left the network for a while. Packets that are still under way are also under way in the record,
    /// so the tested results do not depend on the length of this time.
    Quiet,
}

/// Sends these packets to a world in real time, as fast as the sockets accept them but not before their times, and reads
/// the packets that leave.
fn run(world: &World, packets: &[Coming], enough: &Enough) -> Ran {
    let space = Space::ROOT;
    let (far, far_program) = interface();
    let (ports, programs): (Vec<File>, Vec<UnixDatagram>) = (0..world.devices).map(|_| interface()).unzip();
    let devices = ports.into_iter().enumerate().map(|(index, port)| (index as u8 + 1, port)).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let stop = Arc::new(AtomicBool::new(false));
    let turn = Turn {
        interfaces: Interfaces { devices, far, space },
        spool: Spool::begin(folder.path()).expect("a record"),
        reports: None,
        clock: Clock::start(),
        begins: Begins::AtOnce,
        stop: Arc::clone(&stop),
    };
    let is_over = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let turning = scope.spawn(move || turn.run(world));
        let (is_over, seen, far_program) = (&is_over, &seen, &far_program);
        let up = scope.spawn(move || read(far_program, is_over, seen));
        let down = programs.iter().map(|program| scope.spawn(move || read(program, is_over, seen)));
        let down: Vec<_> = down.collect();
        let mut at = airpace_core::Time::ZERO;
        for (number, coming) in packets.iter().enumerate() {
            std::thread::sleep(coming.at - at);
            at = coming.at;
            let index = usize::from(coming.arrival.device.0);
            let device = space.device(index as u8 + 1).expect("a device");
            let (program, source, destination) = match coming.arrival.direction {
                Direction::Uplink => (&programs[index], device, space),
                Direction::Downlink => (far_program, space, device),
            };
            let (bytes, ecn) = (coming.arrival.bytes.0 as usize, coming.arrival.ecn);
            let bytes = packet(source, destination, bytes, ecn, number % 2 == 1, number as u64);
            program.send(&bytes).expect("a socket");
        }
        let count = || seen.load(Ordering::Relaxed);
        match enough {
            Enough::Out(packets) => {
                while count() < *packets {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            Enough::Quiet => {
                let mut before = u64::MAX;
                while std::mem::replace(&mut before, count()) != count() {
                    std::thread::sleep(Duration::from_millis(1_500));
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let Turned { spool, audit, .. } = turning.join().expect("the turning thread");
        is_over.store(true, Ordering::SeqCst);
        let down = down.into_iter().flat_map(|thread| thread.join().expect("a reader")).collect();
        let up = up.join().expect("a reader");
        let mut out = [vec![], vec![]];
        out[Direction::Downlink as usize] = down;
        out[Direction::Uplink as usize] = up;
        Ran { record: spool.finish().expect("a record"), audit, out }
    })
}

#[test]
fn what_the_thread_did_is_what_virtual_time_says_whatever_the_world() {
    let mut runner = TestRunner::default();
    for _ in 0..4 {
        let worlds = world().prop_flat_map(|world| {
            let devices = world.devices;
            (Just(world), packets(devices))
        });
        let (world, packets) = worlds.new_tree(&mut runner).expect("a world").current();
        let Ran { mut record, audit, .. } = run(&world, &packets, &Enough::Quiet);
        assert_eq!(record.lost, 0);
        let (replayed, departures) = replayed(&world, &mut record);
        assert_eq!(replayed.arrived, packets.len() as u64, "every packet was read");
        assert_eq!(replayed.differing, 0, "{world:?}");
        assert_eq!(replayed.ended, departures.len() as u64);
        let counts = &audit.counts;
        assert_eq!((counts.garbage, counts.to_many, counts.to_nobody, counts.refused), (0, 0, 0, 0));
        assert_eq!(counts.packets_in, replayed.arrived);
        assert_eq!(counts.packets_out + counts.dropped + counts.not_taken, replayed.ended);
    }
}

#[test]
fn packets_come_out_whole_and_marked_where_a_queue_was_long() {
    let world = marking_link();
    let list = bursts();
    let Ran { mut record, out, .. } = run(&world, &list, &Enough::Out(list.len() as u64));
    let (replayed, departures) = replayed(&world, &mut record);
    assert_eq!((replayed.differing, replayed.arrived), (0, list.len() as u64));
    let mut marked = [0, 0];
    for direction in Direction::BOTH {
        let ends = departures.iter().filter(|it| it.direction == direction && it.out.is_some());
        let out = &out[direction as usize];
        assert_eq!(ends.clone().count(), out.len(), "all that was delivered came out");
        for (end, bytes) in ends.zip(out) {
            let is_v6 = bytes[0] >> 4 == 6;
            let place = if is_v6 { 48 } else { 28 };
            let number = u64::from_be_bytes(bytes[place..place + 8].try_into().unwrap()) as usize;
            let sent = &list[number].arrival;
            let ecn = if is_v6 { bytes[1] >> 4 & 3 } else { bytes[1] & 3 };
            let before = if sent.ecn == Ecn::Ect { 2 } else { 0 };
            assert_eq!(ecn, if end.marked { 3 } else { before }, "packet {number}");
            assert!(!end.marked || sent.ecn == Ecn::Ect, "who does not ask for marks gets none");
            assert_eq!(bytes.len() as u64, end.bytes.0);
            let device = Space::ROOT.device(1).expect("a device");
            let (source, destination) = match sent.direction {
                Direction::Uplink => (device, Space::ROOT),
                Direction::Downlink => (Space::ROOT, device),
            };
            let bytes_of_ecn = if end.marked { Ecn::Ce } else { sent.ecn };
            let expected = packet(source, destination, bytes.len(), bytes_of_ecn, is_v6, number as u64);
            assert!(*bytes == expected, "nothing but the mark and its checksum differs: packet {number}");
            assert!(is_v6 || checksum(&bytes[..20]) == 0xffff, "the checksum holds");
            marked[usize::from(is_v6)] += u64::from(end.marked);
            let ends = airpace_emu::ip::parse(bytes).expect("a packet").ends;
            assert_eq!(
                ends.source,
                if is_v6 { IpAddr::V6(source.address_v6()) } else { source.address_v4().into() }
            );
        }
    }
    assert!(marked.iter().all(|&marked| marked > 5), "packets of both families were marked: {marked:?}");
}
