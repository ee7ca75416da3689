//! All bytes arrive under every network impairment.

use airpace_cc::schemes;

use super::*;

#[test]
fn both_directions_arrive_over_a_good_network() {
    let mut world = World::new(1, Network::default());
    world.transfer([3_000_000, 2_000_000]);
    world.run();
    world.check("a good network");
    assert!(world.now < Time::from_secs(102), "3 MB at 100 Mbit/s took until {}", world.now);
    assert_eq!(world.ends[SERVER].ignored(), Default::default());
}

#[test]
fn every_byte_survives_loss_damage_reordering_and_duplication() {
    for (seed, loss) in [(1, 0.0), (2, 0.01), (3, 0.05), (4, 0.1), (5, 0.2)] {
        let network = Network {
            loss,
            damage: loss / 4.0,
            duplication: 0.05,
            jitter: Duration::from_millis(4),
            ..Network::default()
        };
        let mut world = World::new(seed, network);
        world.transfer([300_000, 500_000]);
        world.run();
        world.check(&format!("loss {loss}"));
    }
}

#[test]
fn an_outage_of_ten_seconds_ends_nothing() {
    let outage = ms(100_500)..ms(110_500);
    let mut world = World::new(7, Network { outage, rate: Rate::from_mbps(10.0), ..Network::default() });
    world.transfer([2_000_000, 2_000_000]);
    world.run();
    world.check("an outage");
    assert!(world.now > ms(110_500), "the outage was in the middle");
    assert!(world.now < ms(125_000), "it goes on soon after the outage: {}", world.now);
}

#[test]
fn an_address_that_changes_in_the_middle_is_followed() {
    for rebinds in [false, true] {
        let mut world =
            World::new(8, Network { loss: 0.02, rate: Rate::from_mbps(20.0), ..Network::default() });
        world.transfer([0, 3_000_000]);
        world.run_until(ms(100_600), |_| false);
        world.client_at = address(1001);
        if rebinds {
            // A client that only receives sends a packet from its new address only because of this notification.
            world.ends[CLIENT].on_rebound(world.now);
        }
        world.run();
        world.check("a change of address");
        assert_eq!(world.peers[SERVER].moved, [address(1001)]);
        // A client that only receives and is not notified sends its keep-alive after a quarter of the idle timeout.
        let latest = if rebinds { ms(110_000) } else { ms(125_000) };
        assert!(world.now < latest, "{}", world.now);
    }
}

#[test]
fn every_scheme_carries_a_transfer_in_both_directions() {
    // The oracle requires knowledge that only a simulator has.
    for scheme in schemes::choices().into_iter().filter(|scheme| scheme != "oracle") {
        let mut world = World::new(9, Network { loss: 0.01, ..Network::default() });
        for peer in &mut world.peers {
            peer.scheme = Some(scheme.clone());
        }
        world.transfer([400_000, 400_000]);
        world.run();
        world.check(&scheme);
    }
}

#[test]
fn a_reader_that_stops_stops_the_sender_and_nothing_is_lost() {
    let mut world = World::new(10, Network { loss: 0.001, ..Network::default() });
    world.peers[SERVER].is_stuck = true;
    world.transfer([30_000_000, 0]);
    world.run_until(ms(130_000), |_| false);
    let waiting = world.connection(CLIENT).figures().stream_acknowledged;
    assert_eq!(waiting, UdpConfig::default().receive_buffer, "no more than the reader's buffer");
    world.peers[SERVER].is_stuck = false;
    let id = world.peers[SERVER].id.expect("connected");
    let World { now, ends, peers, .. } = &mut world;
    peers[SERVER].turn(*now, &mut ends[SERVER], id);
    world.drain();
    world.run();
    world.check("a slow reader");
}

#[test]
fn an_empty_transfer_ends_too() {
    let mut world = World::new(11, Network { loss: 0.2, ..Network::default() });
    world.transfer([0, 0]);
    world.run();
    world.check("nothing");
}

#[test]
fn what_a_controller_counts_is_what_is_on_the_wire() {
    for scheme in ["cubic", "pbe"] {
        let mut world = World::new(12, Network::default());
        world.peers[CLIENT].scheme = Some(scheme.to_owned());
        world.transfer([20_000_000, 0]);
        world.run_until(ms(100_600), |_| false);
        let figures = world.connection(CLIENT).figures();
        let is_data = |flight: &&Flight| flight.from == world.client_at && flight.bytes.len() > 400;
        let sizes: Vec<usize> = world
            .log
            .iter()
            .map(|(_, flight)| flight)
            .filter(is_data)
            .map(|flight| flight.bytes.len())
            .collect();
        // The two Hellos (1200 bytes) are excluded.
        let data: Vec<usize> = sizes.into_iter().filter(|size| *size != 1200).collect();
        assert!(data.len() > 20, "{scheme}: {} packets", data.len());
        assert!(
            data.iter().filter(|size| **size == 1472).count() * 20 > data.len() * 19,
            "{scheme}: full packets"
        );
        let on_wire: u64 = data.iter().map(|size| *size as u64 + 28).sum();
        assert_eq!(
            (figures.sent.packets, figures.sent.bytes),
            (data.len() as u64, Bytes(on_wire)),
            "{scheme}"
        );
    }
}

/// ACKs are sent at once, although the pacer releases a data packet only every 12 ms.
#[test]
fn acknowledgements_never_wait_for_the_pacer() {
    let mut world = World::new(13, Network::default());
    world.peers[CLIENT].scheme = Some("cbr:rate_mbps=1".to_owned());
    world.peers[SERVER].scheme = Some("cbr:rate_mbps=10".to_owned());
    world.transfer([200_000, 200_000]);
    world.run();
    world.check("two rates");
    let arrives = |(at, flight): &(Time, Flight)| {
        (flight.to == world.client_at && flight.bytes.len() == 1472)
            .then(|| *at + Duration::from_millis(10) + Network::default().rate.time_for(MSS))
    };
    let answered = |at: Time| {
        world.log.iter().any(|(sent, flight)| {
            flight.from == world.client_at
                && flight.bytes.len() < 100
                && (at..at + Duration::from_millis(1)).contains(sent)
        })
    };
    let arrivals: Vec<Time> = world.log.iter().filter_map(arrives).collect();
    assert!(arrivals.len() > 100 && arrivals.into_iter().all(answered));
}
