//! Attacks by strangers and by misbehaving peers have no effect except that they are counted.

use airpace_cc::endpoint::{AckFrame, Ranges};
use airpace_core::Rider;
use proptest::prelude::*;

use super::super::handshake::{self, Session};
use super::super::packet::{
    CLEAR, COOKIE, Clear, Cookie, Data, Frame, Gone, HELLO_BYTES, Hello, NONCE, SHORT_PROOF,
};
use super::super::seal::Sealer;
use super::*;
use crate::endpoint::{Figures, Ignored};

/// Returns the address of a stranger.
fn stranger(number: u32) -> SocketAddr {
    SocketAddr::from(([198, 51, (number >> 15) as u8, 100], 1 << 15 | number as u16))
}

fn all(ignored: Ignored) -> u64 {
    let Ignored { malformed, stray, forged, replayed, refused } = ignored;
    malformed + stray + forged + replayed + refused
}

fn hello(key: [u8; 16], number: u32, cookie: &[u8; COOKIE]) -> Vec<u8> {
    let nonce: [u8; NONCE] = std::array::from_fn(|place| (number >> (place % 4 * 8)) as u8);
    let (client, mut out) = (u64::from(number), vec![]);
    let proof = handshake::hello_proof(&Key::new(key), client, &nonce, cookie);
    Clear::Hello(Hello { client, nonce: &nonce, cookie, proof: &proof }).write(&mut out);
    out
}

/// Performs a client's handshake from a new address with the shared key, up to the Accept, but sends no sealed
/// packet.
fn half_open(world: &mut World, number: u32) {
    world.hand_over(SERVER, stranger(number), &hello(KEY, number, &[0; COOKIE]));
    world.drain();
    let answer = world.log.iter().rev().find(|(_, flight)| flight.to == stranger(number));
    let answer = answer.expect("a Hello is answered").1.bytes.clone();
    let Some(Clear::Cookie(Cookie { cookie, .. })) = Clear::read(&answer) else { panic!("no Cookie") };
    world.hand_over(SERVER, stranger(number), &hello(KEY, number, cookie));
    world.drain();
}

/// Returns those figures of the server's connection that strangers might change.
fn server(world: &mut World) -> Figures {
    world.connection(SERVER).figures()
}

/// Returns the packet keys of one endpoint, as an attacker with the shared key who saw the handshake can derive them.
fn sealer(world: &World, role: usize) -> (u64, Sealer) {
    let bytes = || world.log.iter().map(|(_, flight)| &flight.bytes[..]);
    let hello = bytes().find_map(|bytes| match Clear::read(bytes) {
        Some(Clear::Hello(hello)) => Some(*hello.nonce),
        _ => None,
    });
    let session = bytes().find_map(|bytes| match Clear::read(bytes) {
        Some(Clear::Accept(accept)) => Session::accepted(&Key::new(KEY), &hello?, &accept),
        _ => None,
    });
    let session = session.expect("there was a handshake");
    let mut sealer = Sealer::new(session.secret(&Key::new(KEY), role == CLIENT));
    sealer.skip_to(1 << 20);
    (if role == CLIENT { session.server } else { session.client }, sealer)
}

/// Returns a packet that `role` could have sent.
fn sealed((name, sealer): &mut (u64, Sealer), frame: Frame<'_>) -> Vec<u8> {
    let mut out = vec![];
    Clear::Sealed { connection: *name, counter: sealer.counter() }.write(&mut out);
    frame.write(&mut out);
    sealer.seal(&mut out, 0);
    out
}

fn ack(largest: u64, feedback: &[u8]) -> AckFrame {
    let mut ranges = Ranges::EMPTY;
    assert!(ranges.push(0, largest));
    let feedback = Rider::new(feedback).expect("short");
    AckFrame { number: 1 << 40, largest, ranges, ce: 0, feedback, window: None, delay: Duration::ZERO }
}

#[test]
fn who_does_not_know_the_key_costs_no_memory_and_gets_no_answer() {
    let mut world = World::in_the_middle(1, [2_000_000, 2_000_000]);
    let (before, sent) = (world.ends[SERVER].ignored(), world.log.len());
    for number in 0..10_000 {
        world.hand_over(SERVER, stranger(number), &hello([6; 16], number, &[number as u8; COOKIE]));
    }
    world.drain();
    assert_eq!(world.ends[SERVER].held(), 1);
    assert_eq!(world.ends[SERVER].ignored(), Ignored { forged: before.forged + 10_000, ..before });
    assert_eq!(world.log.len(), sent);
}

#[test]
fn ten_thousand_half_open_handshakes_stop_no_transfer() {
    let quiet = {
        let mut world = World::in_the_middle(2, [8_000_000, 0]);
        world.run();
        world.now
    };
    let mut world = World::in_the_middle(2, [8_000_000, 0]);
    let most = UdpConfig::default().most_half_open;
    let (mut made, mut largest) = (0, 0);
    while world.peers.iter().any(|peer| peer.closed.is_none()) && world.step() {
        for _ in 0..20 {
            if made < 10_000 {
                half_open(&mut world, made);
                made += 1;
            }
        }
        largest = largest.max(world.ends[SERVER].held());
    }
    world.check("an attack");
    assert_eq!((made, largest), (10_000, most + 1), "the transfer's, and no more than are allowed");
    assert!(world.now < quiet + Duration::from_millis(100), "{} instead of {quiet}", world.now);
    assert_eq!(world.ends[SERVER].ignored().refused, 10_000 - most as u64);
    // No answer to a Hello is longer than the Hello.
    for number in 0..10_000 {
        let (from, to) = (2 * HELLO_BYTES, stranger(number));
        let answers = world.log.iter().skip(1).filter(|(_, flight)| flight.to == to);
        assert!(number % 500 != 0 || answers.map(|(_, flight)| flight.bytes.len()).sum::<usize>() <= from);
    }
    let end = world.now + Duration::from_secs(20);
    world.run_until(end, |_| false);
    assert_eq!(world.ends[SERVER].held(), 0, "all are forgotten");
}

/// An attacker on the path copies the client's packets, and sends the copies faster from another address. The server
/// must not flood that address.
#[test]
fn an_address_that_was_not_validated_gets_at_most_three_times_what_came_from_it() {
    let mut world = World::in_the_middle(3, [0, 4_000_000]);
    let victim = stranger(1);
    let (mut copied, begin) = (0, world.log.len());
    while world.now < ms(100_250) && world.step() {
        let to_server: Vec<Flight> =
            world.flights.values().filter(|flight| flight.to == world.server_at).cloned().collect();
        for flight in to_server {
            copied += flight.bytes.len();
            world.hand_over(SERVER, victim, &flight.bytes);
            world.drain();
        }
        let sent = world.log[begin..].iter().filter(|(_, flight)| flight.to == victim);
        let sent: usize = sent.map(|(_, flight)| flight.bytes.len()).sum();
        assert!(sent <= 3 * copied, "{sent} bytes for {copied}");
    }
    assert!(copied > 1_000 && world.log[begin..].iter().any(|(_, flight)| flight.to == victim));
    world.run();
    world.check("after the attack");
    assert_eq!(world.peers[SERVER].moved, []);
}

#[test]
fn a_second_copy_of_every_packet_changes_nothing() {
    let run = |replays| {
        let mut world = World::in_the_middle(4, [1_500_000, 1_500_000]);
        world.replays = replays;
        world.run();
        world.check("replays");
        world
    };
    let (once, mut twice) = (run(false), run(true));
    assert_eq!(once.now, twice.now);
    assert_eq!(once.log.len(), twice.log.len());
    for ((at, flight), (again_at, again)) in once.log.iter().zip(&twice.log) {
        assert!(at == again_at && flight.bytes == again.bytes, "a difference at {at}");
    }
    let [client, server] = twice.ends.each_mut().map(|end| end.ignored());
    let received = once.log.iter().filter(|(at, _)| *at > ms(100_150)).count() as u64;
    // Packets of the last round trip have not arrived when both connections are closed.
    assert!(client.replayed + server.replayed > received * 9 / 10, "{client:?} {server:?} of {received}");
}

/// A controller accepts feedback only if it is authentic and new.
#[test]
fn feedback_that_is_spoofed_cut_or_repeated_steers_nobody() {
    for scheme in ["pbe", "cubic", "morc"] {
        let mut world = World::new(5, Network::default());
        for peer in &mut world.peers {
            peer.scheme = Some(scheme.to_owned());
        }
        world.transfer([100_000, 8_000_000]);
        world.run_until(ms(100_150), |_| false);
        let (before, figures) = (world.ends[SERVER].ignored(), server(&mut world));
        let (name, _) = sealer(&world, CLIENT);
        let other = Session { client: 1, server: 2, client_nonce: [0; 16], server_nonce: [0; 16] };
        let mut strangers = (name, Sealer::new(other.secret(&Key::new(KEY), true)));
        strangers.1.skip_to(1 << 20);
        let mut fed = [0; 2];
        for feedback in [&[0; 8][..], &[255; 8], &[1, 0, 0, 0]] {
            let packet = sealed(&mut strangers, Frame::Ack(ack(30, feedback)));
            world.hand_over(SERVER, world.client_at, &packet);
            fed[0] += 1;
        }
        let genuine: Vec<Vec<u8>> = world
            .flights
            .values()
            .filter(|flight| flight.to == world.server_at)
            .map(|flight| flight.bytes.clone())
            .collect();
        assert!(!genuine.is_empty(), "{scheme}: ACKs are under way");
        for packet in &genuine {
            for length in CLEAR + 17..packet.len() {
                world.hand_over(SERVER, world.client_at, &packet[..length]);
                fed[0] += 1;
            }
        }
        let seen: Vec<Vec<u8>> = world
            .log
            .iter()
            .filter(|(at, flight)| flight.to == world.server_at && *at < ms(100_100))
            .map(|(_, flight)| flight.bytes.clone())
            .filter(|bytes| matches!(Clear::read(bytes), Some(Clear::Sealed { .. })))
            .collect();
        for packet in &seen {
            world.hand_over(SERVER, world.client_at, packet);
            fed[1] += 1;
        }
        let ignored = world.ends[SERVER].ignored();
        assert_eq!(
            [ignored.forged - before.forged, ignored.replayed - before.replayed],
            fed,
            "{scheme}: all are counted"
        );
        assert_eq!(server(&mut world), figures, "{scheme}: nothing has changed");
        world.run();
        world.check(scheme);
    }
}

/// The peer itself violates the protocol, with valid keys.
#[test]
fn a_peer_that_breaks_the_protocol_loses_its_connection_and_no_other() {
    let data = |number, offset, fin, bytes| {
        Frame::Data(Data { number, sent: ms(100_000), offset, header: &[], fin, bytes })
    };
    let cases = [
        (Frame::Ack(ack(1 << 30, &[])), "ACK"),
        (data(1 << 20, 1 << 40, false, b"x"), "sent more than the receive window allows"),
        (data(1 << 20, 0, true, b""), "behind its end"),
        (data(1 << 62, 0, false, b""), "no number"),
    ];
    for (frame, why) in cases {
        let mut world = World::in_the_middle(6, [2_000_000, 2_000_000]);
        let packet = sealed(&mut sealer(&world, CLIENT), frame);
        world.hand_over(SERVER, world.client_at, &packet);
        world.drain();
        match &world.peers[SERVER].closed {
            Some(Closed::Failed(text)) => {
                assert!(text.starts_with("the other side breaks the protocol: "), "{why}: {text}");
            }
            other => panic!("{why}: {other:?}"),
        }
    }
    let mut world = World::in_the_middle(6, [2_000_000, 2_000_000]);
    let (before, figures) = (world.ends[SERVER].ignored(), server(&mut world));
    let (name, mut sealer) = sealer(&world, CLIENT);
    let mut packet = vec![];
    Clear::Sealed { connection: name, counter: sealer.counter() }.write(&mut packet);
    packet.extend_from_slice(&[200, 1, 2]);
    sealer.seal(&mut packet, 0);
    world.hand_over(SERVER, world.client_at, &packet);
    assert_eq!(world.ends[SERVER].ignored(), Ignored { malformed: before.malformed + 1, ..before });
    assert_eq!(server(&mut world), figures, "a frame of another version is left alone");
}

#[test]
fn a_flood_for_unknown_connections_is_answered_now_and_then() {
    let mut world = World::in_the_middle(9, [2_000_000, 2_000_000]);
    let (name, packet) = (77, [0; 60]);
    let flood = |world: &mut World| {
        let sent = world.log.len();
        for counter in 0..5_000 {
            let mut bytes = vec![];
            Clear::Sealed { connection: name, counter }.write(&mut bytes);
            bytes.extend_from_slice(&packet);
            world.hand_over(SERVER, stranger(1), &bytes);
            world.drain();
        }
        world.log[sent..].iter().filter(|(_, flight)| flight.to == stranger(1)).count()
    };
    assert_eq!(flood(&mut world), 400);
    assert_eq!(flood(&mut world), 0);
    assert_eq!(world.ends[SERVER].ignored().stray, 10_000);
    world.run();
    world.check("a flood");
    world.now += Duration::from_secs(1);
    assert_eq!(flood(&mut world), 400);
}

/// A sender without the proof cannot close a connection.
#[test]
fn nobody_can_say_for_another_that_a_connection_is_gone() {
    let mut world = World::in_the_middle(7, [2_000_000, 2_000_000]);
    let (name, _) = sealer(&world, CLIENT);
    let before = world.ends[CLIENT].ignored();
    let mut say = |connection, counter, proof: [u8; SHORT_PROOF]| {
        let mut packet = vec![];
        Clear::Gone(Gone { connection, counter, proof: &proof }).write(&mut packet);
        world.hand_over(CLIENT, world.server_at, &packet);
    };
    let proof = |key, of_server, counter| handshake::gone_proof(&Key::new(key), of_server, name, counter);
    say(name, 3, [0; SHORT_PROOF]);
    say(name, 3, proof([6; 16], true, 3));
    say(name, 3, proof(KEY, true, 4));
    // The client's own Gone, for one of its packets that was reflected to it.
    say(name, 3, proof(KEY, false, 3));
    // A Gone for a packet that was never sent.
    say(name, 1 << 30, proof(KEY, true, 1 << 30));
    say(name ^ 1, 3, proof(KEY, true, 3));
    let ignored = world.ends[CLIENT].ignored();
    assert_eq!((ignored.forged, ignored.stray), (before.forged + 5, before.stray + 1));
    world.run();
    world.check("lies");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Random bytes, and packets damaged on the path, are counted and change nothing.
    #[test]
    fn what_is_no_packet_changes_nothing(
        noise in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..40),
        forms in prop::collection::vec((8u8..14, prop::collection::vec(any::<u8>(), 0..1300)), 0..20),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u8..), 1..60),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..60),
        role in 0usize..2,
        seed: u64,
    ) {
        let mut world = World::in_the_middle(seed % 1_000, [2_000_000, 2_000_000]);
        let at = [world.client_at, world.server_at][role];
        let from = [world.server_at, world.client_at][role];
        // Hellos are excluded: a Hello damaged in its padding, or repeated, is answered like every Hello.
        let genuine: Vec<Vec<u8>> = world
            .log
            .iter()
            .filter(|(_, flight)| flight.to == at && !matches!(Clear::read(&flight.bytes), Some(Clear::Hello(_))))
            .map(|(_, flight)| flight.bytes.clone())
            .collect();
        let mut packets = noise;
        packets.extend(forms.into_iter().map(|(form, bytes)| [vec![form], bytes].concat()));
        for (which, place, change) in damages {
            let mut packet = which.get(&genuine).clone();
            let place = place.index(packet.len());
            packet[place] ^= change;
            packets.push(packet);
        }
        for (which, length) in cuts {
            let packet = which.get(&genuine);
            packets.push(packet[..length.index(packet.len())].to_vec());
        }
        let (before, figures) = (world.ends[role].ignored(), world.connection(role).figures());
        let held = world.ends[role].held();
        for packet in &packets {
            world.hand_over(role, from, packet);
            prop_assert!(world.ends[role].poll_event().is_none());
        }
        prop_assert_eq!(all(world.ends[role].ignored()), all(before) + packets.len() as u64);
        prop_assert_eq!(world.connection(role).figures(), figures);
        prop_assert_eq!(world.ends[role].held(), held);
        let mut buffer = vec![];
        let most: usize = packets.iter().map(Vec::len).sum();
        let mut answered = 0;
        while let Some(outbound) = world.ends[role].poll_transmit(world.now, &mut buffer) {
            prop_assert_eq!(outbound.to, from);
            answered += buffer.len();
            buffer.clear();
        }
        prop_assert!(answered <= most, "answers are shorter than what they answer");
        world.run();
        world.check("damage");
    }
}
