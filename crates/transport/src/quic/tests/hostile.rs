//! Datagrams from strangers.

use proptest::prelude::*;

use super::*;

/// Returns the first datagram of a new client.
fn initial() -> Vec<u8> {
    let mut client = QuicEndpoint::new(Config::default()).unwrap();
    let mut buffer = vec![];
    client.connect(Time::from_secs(1_000), SERVER.parse().unwrap()).unwrap();
    assert!(client.poll_transmit(Time::from_secs(1_000), &mut buffer).is_some());
    buffer
}

#[test]
fn ten_thousand_half_open_handshakes_do_not_stop_a_transfer() {
    let server = Config { retry: Retry::UnderLoad(20), most_handshakes: 50, ..config() };
    let mut pair = Pair::with(Path::clean(20), Config::default(), server);
    pair.connect();
    let now = pair.now;
    pair.connection(true).steer(now, scheme("cbr:rate_mbps=20").0);
    pair.work[1].to_send = pattern(40_000_000);
    pair.work[0].to_send = b"please".to_vec();
    let mut flood = QuicEndpoint::new(Config::default()).unwrap();
    let mut received = 0;
    let begun = pair.now;
    for index in 0..10_000u32 {
        let now = pair.now;
        flood.connect(now, SERVER.parse().unwrap()).unwrap();
        let mut buffer = vec![];
        while flood.poll_transmit(now, &mut buffer).is_some() {}
        received += buffer.len();
        let [_, high, middle, low] = index.to_be_bytes();
        let from = SocketAddr::from(([172, 16 + high, middle, low], 4_000));
        pair.server.handle(Inbound { received: now, from, to: None, ecn: Ecn::NotEct, bytes: &mut buffer });
        assert!(pair.server.half_open() <= 20, "more are asked for a proof, which costs no memory");
        assert!(pair.server.connections_held() <= 21);
        if index % 5 == 4 {
            pair.run_for(Duration::from_millis(1));
        }
    }
    assert!(pair.astray <= 3 * received, "{} bytes for {received}", pair.astray);
    let got = pair.work[0].got.len() as f64 * 8e-6 / (pair.now - begun).as_secs_f64();
    assert!(got > 18.0, "{got} Mbit/s of 20 went on");
    pair.work[1].to_send.truncate(pair.work[1].sent);
    pair.transfer(Duration::from_secs(30));
}

#[test]
fn without_proofs_handshakes_beyond_a_bound_are_refused_and_counted() {
    let server = Config { retry: Retry::UnderLoad(usize::MAX), most_handshakes: 50, ..config() };
    let mut server = QuicEndpoint::new(server).unwrap();
    for port in 1..=200 {
        let (received, from) = (Time::from_secs(1_000), SocketAddr::from(([172, 16, 0, 1], port)));
        server.handle(Inbound { received, from, to: None, ecn: Ecn::NotEct, bytes: &mut initial() });
    }
    assert_eq!((server.half_open(), server.ignored().refused), (50, 150));
    let mut now = Time::from_secs(1_000);
    while let Some(next) = server.poll_timeout() {
        now = now.max(next);
        server.handle_timeout(now);
        while server.poll_transmit(now, &mut vec![]).is_some() {}
    }
    assert_eq!((server.half_open(), server.connections_held()), (0, 0), "none stays for ever");
}

/// A certificate with many names takes several datagrams.
#[test]
fn an_unproven_address_is_sent_at_most_three_times_what_it_sent() {
    let names: Vec<String> = (0..400).map(|index| format!("name-{index}.example")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let identity = Identity::self_signed(&names).unwrap();
    let mut most = 0.0_f64;
    for (size, copies) in
        [(100, 1), (600, 1), (1199, 1), (1200, 1), (1200, 3), (1201, 1), (1350, 1), (1472, 2)]
    {
        let config = Config { identity: Some(identity.clone()), ..Config::default() };
        let mut server = QuicEndpoint::new(config).unwrap();
        let (mut now, from) = (Time::from_secs(1_000), SocketAddr::from(([172, 16, 0, 1], 99)));
        let mut datagram = initial();
        datagram.resize(size, 0);
        for _ in 0..copies {
            let bytes = &mut datagram.clone()[..];
            server.handle(Inbound { received: now, from, to: None, ecn: Ecn::NotEct, bytes });
        }
        let mut buffer = vec![];
        while let Some(next) = server.poll_timeout().filter(|next| *next < Time::from_secs(1_200)) {
            now = now.max(next);
            server.handle_timeout(now);
            while server.poll_transmit(now, &mut buffer).is_some() {}
        }
        assert!(buffer.len() <= 3 * size * copies, "{} bytes for {copies} times {size}", buffer.len());
        assert!(size >= 1200 || buffer.is_empty(), "a short one is no beginning of QUIC");
        most = most.max(buffer.len() as f64 / (size * copies) as f64);
    }
    assert!(most > 2.0, "the server had more to say, and was held: {most}");
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut pair = Pair::new(Path::clean(10));
    pair.connect();
    pair.run_for(Duration::from_millis(500));
    pair.work[0].to_send = pattern(20_000);
    pair.settle();
    let copies: Vec<_> = pair.wire.values().filter(|flying| flying.0).cloned().collect();
    assert!(copies.len() > 5);
    pair.run_for(Duration::from_secs(2));
    let before = pair.server.ignored();
    let (received, from) = (pair.now, pair.address);
    for (_, _, mut bytes, ecn) in copies.clone() {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        pair.server.handle(Inbound { received, from, to: None, ecn, bytes: &mut bytes });
    }
    let damaged = pair.server.ignored().forged - before.forged;
    assert_eq!(damaged, copies.len() as u64, "damaged ones");
    for (_, _, mut bytes, ecn) in copies.clone() {
        pair.server.handle(Inbound { received, from, to: None, ecn, bytes: &mut bytes });
    }
    let repeated = pair.server.ignored().forged - before.forged - damaged;
    assert_eq!(repeated, copies.len() as u64, "noq does not tell repeated ones from damaged ones");
    pair.transfer(Duration::from_secs(5));
    assert_eq!(pair.server.ignored().forged - before.forged, damaged + repeated, "and no others");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Damaged copies of real datagrams, and random ones, from the peer's address.
    #[test]
    fn damage_is_ignored_and_the_transfer_goes_on(
        seed: u64,
        junk in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..1500), 8),
    ) {
        let mut pair = Pair::new(Path::clean(10));
        pair.connect();
        pair.work[0].to_send = pattern(60_000);
        pair.work[1].to_send = pattern(60_000);
        let mut rng = Streams::new(seed).stream("damage");
        for piece in junk {
            let step = Duration::from_millis(rng.below(20));
            pair.run_for(step);
            let copies: Vec<_> = pair.wire.values().take(20).cloned().collect();
            for (to_server, from, mut bytes, ecn) in copies {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(3) {
                    0 => bytes[at] ^= 1 << rng.below(8),
                    1 => bytes.truncate(at),
                    _ => bytes.extend_from_slice(&piece),
                }
                let received = pair.now;
                pair.side(to_server).handle(Inbound { received, from, to: None, ecn, bytes: &mut bytes });
            }
            let (received, from) = (pair.now, pair.address);
            let mut piece = piece;
            pair.server.handle(Inbound { received, from, to: None, ecn: Ecn::Ce, bytes: &mut piece });
            pair.client.handle(Inbound { received, from: SERVER.parse().unwrap(), to: None, ecn: Ecn::Ect, bytes: &mut piece });
        }
        pair.transfer(Duration::from_secs(30));
        prop_assert!(pair.closed(false).is_none() && pair.closed(true).is_none());
    }
}
