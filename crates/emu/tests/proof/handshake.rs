//! A network that starts with the first data packet: earlier packets cross it, and are not in the record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_core::{Bytes, Direction, Time};
use airpace_emu::address::Space;
use airpace_emu::record::Spool;
use airpace_emu::turn::{Begins, Interfaces, Turn, Turned};
use airpace_rt::clock::Clock;

use super::replayed;
use super::turning::{interface, packet};
use super::worlds::{long_wire, lossy_wire};

/// One-way delay of the world.
const DELAY: Duration = Duration::from_millis(30);

#[test]
fn handshakes_cross_before_the_network_begins_with_the_first_data() {
    let world = long_wire(DELAY);
    let far_space = Space::ROOT;
    let device_space = far_space.device(1).expect("a device");
    let (far, server) = interface();
    let (port, phone) = interface();
    let folder = tempfile::tempdir().expect("a folder");
    let stop = Arc::new(AtomicBool::new(false));
    // The network's clock restarts, but `before` does not. Packets that crossed too early would make the difference of
    // the two clocks too small. A busy machine only delays packets, which makes the difference larger.
    let before = Clock::start();
    let turn = Turn {
        interfaces: Interfaces { devices: vec![(1, port)], far, space: far_space },
        spool: Spool::begin(folder.path()).expect("a record"),
        reports: None,
        clock: before,
        begins: Begins::WithData,
        stop: Arc::clone(&stop),
    };
    let up = |bytes, number| packet(device_space, far_space, bytes, airpace_core::Ecn::NotEct, false, number);
    let down =
        |bytes, number| packet(far_space, device_space, bytes, airpace_core::Ecn::NotEct, false, number);
    let mut room = [0; 2_000];
    let mut record = std::thread::scope(|scope| {
        let turning = scope.spawn(|| turn.run(&world));
        phone.send(&up(60, 1)).expect("a socket");
        assert_eq!(server.recv(&mut room).expect("a socket"), 60);
        server.send(&down(60, 2)).expect("a socket");
        assert_eq!(phone.recv(&mut room).expect("a socket"), 60);
        assert!(before.now() >= Time::ZERO + 2 * DELAY, "both crossed: {:?}", before.now());
        phone.send(&up(52, 3)).expect("a socket");
        assert_eq!(server.recv(&mut room).expect("a socket"), 52);
        server.send(&down(1_500, 4)).expect("a socket");
        assert_eq!(phone.recv(&mut room).expect("a socket"), 1_500);
        phone.send(&up(52, 5)).expect("a socket");
        assert_eq!(server.recv(&mut room).expect("a socket"), 52);
        stop.store(true, Ordering::Relaxed);
        let Turned { spool, .. } = turning.join().expect("the turning thread");
        spool.finish().expect("a record")
    });
    let (replayed, departures) = replayed(&world, &mut record);
    assert_eq!(replayed.differing, 0);
    let kinds: Vec<_> = departures.iter().map(|it| (it.direction, it.bytes)).collect();
    assert_eq!(kinds, [(Direction::Downlink, Bytes(1_500)), (Direction::Uplink, Bytes(52))]);
    // Three packets of the handshake had crossed before the clock restarted.
    let (anew, before) = (replayed.over, before.now());
    assert!(anew + 3 * DELAY <= before, "{anew:?} of {before:?}");
}

#[test]
fn a_handshake_that_gets_lost_gets_through_when_it_is_sent_again() {
    for seed in 1..=6 {
        let world = lossy_wire(Duration::from_millis(1), 0.5, seed);
        let far_space = Space::ROOT;
        let device_space = far_space.device(1).expect("a device");
        let (far, server) = interface();
        let (port, phone) = interface();
        let folder = tempfile::tempdir().expect("a folder");
        let stop = Arc::new(AtomicBool::new(false));
        let turn = Turn {
            interfaces: Interfaces { devices: vec![(1, port)], far, space: far_space },
            spool: Spool::begin(folder.path()).expect("a record"),
            reports: None,
            clock: Clock::start(),
            begins: Begins::WithData,
            stop: Arc::clone(&stop),
        };
        let mut room = [0; 2_000];
        let first = std::thread::scope(|scope| {
            let turning = scope.spawn(|| turn.run(&world));
            for bytes in [60, 1_500] {
                for number in 0..32 {
                    let sent =
                        packet(far_space, device_space, bytes, airpace_core::Ecn::NotEct, false, number);
                    server.send(&sent).expect("a socket");
                }
            }
            let first = phone.recv(&mut room).expect("a socket");
            stop.store(true, Ordering::Relaxed);
            turning.join().expect("the turning thread");
            first
        });
        assert_eq!(first, 60, "seed {seed}: data came, and no packet of 32 handshakes before it");
    }
}
