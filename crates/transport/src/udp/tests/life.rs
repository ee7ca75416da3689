//! Start, keep-alive and close of connections.

use super::*;

/// Returns a world with an established but idle connection.
fn idle(config: UdpConfig) -> World {
    let mut world = World::with(20, Network::default(), config, [KEY, KEY]);
    world.transfer([1_000, 1_000]);
    world.peers[CLIENT].closes = false;
    world.peers[SERVER].closes = false;
    for peer in &mut world.peers {
        // Prevent the end of the stream from being written.
        peer.finished = true;
    }
    world.run_until(ms(101_000), |_| false);
    assert!(world.peers.iter().all(|peer| peer.got.len() == 1_000 && peer.closed.is_none()));
    world
}

#[test]
fn who_has_another_key_is_told_so_in_a_sentence() {
    let mut world = World::with(21, Network::default(), UdpConfig::default(), [KEY, [6; 16]]);
    world.transfer([1_000, 0]);
    world.run_until(ms(200_000), |_| false);
    let Some(Closed::Failed(why)) = &world.peers[CLIENT].closed else { panic!("it is told") };
    assert_eq!(
        why,
        "it does not answer: nothing listens there, its UDP port is not open, or the key is another (a wrong key is not \
         answered)"
    );
    assert!(world.ends[SERVER].ignored().forged > 3);
    assert_eq!((world.ends[SERVER].held(), world.ends[CLIENT].held()), (0, 0));
}

#[test]
fn a_quiet_connection_lives_and_says_little() {
    let mut world = idle(UdpConfig::default());
    let sent = world.log.len();
    world.run_until(Time::from_secs(700), |_| false);
    assert!(world.peers.iter().all(|peer| peer.closed.is_none()));
    let said = world.log.len() - sent;
    assert!((40..=600).contains(&said), "{said} packets in ten minutes");
    world.peers[CLIENT].to_write.extend_from_slice(&[7; 500]);
    let id = world.peers[CLIENT].id.expect("connected");
    let World { now, ends, peers, .. } = &mut world;
    peers[CLIENT].turn(*now, &mut ends[CLIENT], id);
    world.drain();
    let end = world.now + Duration::from_millis(50);
    world.run_until(end, |_| false);
    assert_eq!(world.peers[SERVER].got[1_000..], [7; 500]);
}

#[test]
fn silence_ends_a_connection_soon_if_an_answer_is_awaited() {
    let UdpConfig { idle: idle_time, answer, .. } = UdpConfig::default();
    // Data travel in one direction only; the other endpoint waits for them.
    let mut world = World::in_the_middle(22, [0, 20_000_000]);
    world.network.outage = world.now..Time::NEVER;
    let begin = world.now;
    let mut ended = [Time::NEVER; 2];
    while world.now < begin + Duration::from_secs(100) && world.step() {
        for (ended, peer) in ended.iter_mut().zip(&world.peers) {
            *ended = if peer.closed.is_some() { (*ended).min(world.now) } else { *ended };
        }
    }
    for (peer, ended) in world.peers.iter().zip(ended) {
        assert_eq!(peer.closed, Some(Closed::Silence(answer)));
        assert!(ended <= begin + idle_time / 4 + answer + Duration::from_secs(1), "{ended}");
    }
    assert!(ended[SERVER] <= begin + answer + Duration::from_secs(1), "who sends knows first: {ended:?}");
    assert!(ended[SERVER] >= begin + answer - Duration::from_millis(50), "{ended:?}");
    assert!(world.ends.iter().all(|end| end.held() == 0 && end.poll_timeout().is_none()), "nothing is left");
}

#[test]
fn a_farewell_that_gets_lost_is_made_up_for() {
    let mut world = idle(UdpConfig::default());
    let now = world.now;
    world.network.outage = now..now + Duration::from_secs(8);
    world.connection(CLIENT).close(now, 0, "bye");
    world.drain();
    world.run_until(Time::from_secs(200), |world| world.peers[SERVER].closed.is_some());
    let Some(Closed::Failed(why)) = &world.peers[SERVER].closed else {
        panic!("{:?}", world.peers[SERVER].closed)
    };
    assert!(why.contains("does not know this connection any more"), "{why}");
    assert!(world.now < now + Duration::from_secs(16), "by the next question: {}", world.now);
    // Without an outage, the server is notified of the reason at once.
    let mut world = idle(UdpConfig::default());
    let now = world.now;
    world.connection(CLIENT).close(now, 3, "bye");
    world.drain();
    world.run_until(now + Duration::from_millis(20), |_| false);
    assert_eq!(world.peers[SERVER].closed, Some(Closed::ByPeer { code: 3, reason: "bye".to_owned() }));
}

#[test]
fn the_restart_of_one_side_is_noticed_by_the_other() {
    for (role, other) in [(SERVER, CLIENT), (CLIENT, SERVER)] {
        for key in [KEY, [6; 16]] {
            let mut world = World::in_the_middle(23, [20_000_000, 20_000_000]);
            let config = UdpConfig { accepts: role == SERVER, ..UdpConfig::default() };
            world.ends[role] = UdpEndpoint::with_secret(Key::new(key), config, &[99; 32]);
            let begin = world.now;
            world.run_until(Time::from_secs(300), |world| world.peers[other].closed.is_some());
            let (took, closed) = (world.now - begin, world.peers[other].closed.clone());
            if key == KEY {
                assert!(
                    matches!(&closed, Some(Closed::Failed(why)) if why.contains("restarted")),
                    "{closed:?}"
                );
                assert!(took < Duration::from_millis(100), "{took:?}");
            } else {
                let answer = UdpConfig::default().answer;
                assert_eq!(closed, Some(Closed::Silence(answer)), "nobody can know what it is");
                assert!(took <= answer + Duration::from_secs(1), "{took:?}");
            }
            // The client's endpoint can connect to the restarted server.
            let connects = world.ends[CLIENT].connect(world.now, world.server_at);
            world.peers = [(); 2].map(|()| Peer { sip: 70_000, ..Peer::default() });
            world.peers[CLIENT].id = connects.ok();
            world.drain();
            let end = world.now + Duration::from_secs(2);
            world.run_until(end, |world| world.peers[SERVER].id.is_some());
            assert_eq!(world.peers[SERVER].id.is_some(), key == KEY);
        }
    }
}

#[test]
fn packets_over_ipv6_are_as_long_as_counted() {
    let mut world = World::new(24, Network { loss: 0.01, ..Network::default() });
    let at = |last| SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 4433));
    (world.client_at, world.server_at) = (at(1), at(2));
    world.transfer([1_000_000, 1_000_000]);
    world.run_until(ms(100_600), |_| false);
    let figures = world.connection(CLIENT).figures();
    world.run();
    world.check("IPv6");
    let of_client = world.log.iter().filter(|(_, flight)| flight.from == at(1));
    let longest = of_client.map(|(_, flight)| flight.bytes.len()).max();
    assert_eq!(longest, Some(1_500 - 48));
    assert!(figures.sent.bytes.0 > figures.sent.packets * 1_400, "{figures:?}");
}

/// One endpoint with 200 connections to another endpoint, each with different bytes in both directions.
#[test]
fn two_hundred_connections_at_once_keep_their_bytes_apart() {
    const MANY: u64 = 200;
    let mut ends = [CLIENT, SERVER].map(|role| {
        let config = UdpConfig { accepts: role == SERVER, ..UdpConfig::default() };
        UdpEndpoint::with_secret(Key::new(KEY), config, &[role as u8; 32])
    });
    let at = [address(1000), address(2000)];
    let mut now = Time::from_secs(100);
    let mut rng = Streams::new(25).stream("network");
    let ids: Vec<_> = (0..MANY).map(|_| ends[CLIENT].connect(now, at[SERVER]).expect("room")).collect();
    let bytes_of = |number: u64| noise(number + 1, 20_000 + number as usize);
    let mut written: BTreeMap<(usize, ConnectionId), (Vec<u8>, usize)> =
        ids.iter().zip(0..).map(|(id, number)| ((CLIENT, *id), (bytes_of(number), 0))).collect();
    let mut got: BTreeMap<(usize, ConnectionId), Vec<u8>> = BTreeMap::new();
    let (mut flights, mut flown, mut complete, mut buffer) = (BTreeMap::new(), 0u64, 0, vec![]);
    while complete < 2 * MANY && now < Time::from_secs(160) {
        for role in [CLIENT, SERVER] {
            loop {
                if let Some((id, event)) = ends[role].poll_event() {
                    assert!(!matches!(event, Event::Closed(_)), "{event:?}");
                    let Some(connection) = ends[role].connection(id) else { continue };
                    let mut room = vec![0; 30_000];
                    loop {
                        match connection.read(now, &mut room).expect("it is not over") {
                            Read::Bytes(count) => {
                                got.entry((role, id)).or_default().extend_from_slice(&room[..count]);
                            }
                            Read::Nothing => break,
                            Read::End => {
                                let all = got.remove(&(role, id)).unwrap_or_default();
                                if all.is_empty() {
                                    break;
                                }
                                complete += 1;
                                let number = all.len() as u64 - 20_000;
                                assert!(all == bytes_of(number), "{number}");
                                if role == SERVER {
                                    // The server echoes the bytes.
                                    written.insert((role, id), (all, 0));
                                } else {
                                    assert_eq!(ids[number as usize], id);
                                }
                                break;
                            }
                        }
                    }
                    if let Some((bytes, done)) = written.get_mut(&(role, id)) {
                        if *done < bytes.len() {
                            *done += connection.write(now, &bytes[*done..]).expect("it is open");
                        }
                        if *done == bytes.len() {
                            connection.finish(now);
                        }
                    }
                    continue;
                }
                let Some(outbound) = ends[role].poll_transmit(now, &mut buffer) else { break };
                for bytes in buffer.chunks(outbound.segment.unwrap_or(buffer.len())) {
                    flown += 1;
                    if !rng.chance(0.01) {
                        flights.insert((now + Duration::from_millis(10), flown), (1 - role, bytes.to_vec()));
                    }
                }
                buffer.clear();
            }
        }
        let due = ends.iter().filter_map(|end| end.poll_timeout());
        let next = flights.first_key_value().map(|((at, _), _)| *at).into_iter().chain(due).min();
        now = now.max(next.expect("something happens"));
        while let Some(entry) = flights.first_entry()
            && entry.key().0 <= now
        {
            let (role, mut bytes) = entry.remove();
            let from = at[1 - role];
            ends[role].handle(Inbound { received: now, from, to: None, ecn: Ecn::NotEct, bytes: &mut bytes });
        }
        ends.iter_mut().for_each(|end| end.handle_timeout(now));
    }
    assert_eq!(complete, 2 * MANY);
    assert!(now < Time::from_secs(105), "{now}");
}
