//! Transfers over impaired paths.

use super::*;
use crate::qlog::Folder;

fn lossy(loss: f64) -> Path {
    Path { loss, detour: (0.1, Duration::from_millis(15)), ..Path::clean(20) }
}

#[test]
fn bytes_of_both_directions_arrive_over_loss_and_reordering() {
    for loss in [0.0, 0.01, 0.05, 0.1] {
        let mut pair = Pair::new(lossy(loss));
        pair.connect();
        pair.work[0].to_send = pattern(300_000);
        pair.work[1].to_send = pattern(700_001);
        pair.transfer(Duration::from_secs(120));
        let figures = pair.connection(true).figures();
        assert_eq!(figures.stream_acknowledged, Bytes(700_001));
        assert_eq!(figures.stream_read, Bytes(300_000));
        assert!(figures.delivered.bytes > Bytes(700_001));
        assert!(loss == 0.0 || figures.lost.packets > 0, "losses are counted");
    }
}

#[test]
fn a_transfer_survives_an_outage_of_ten_seconds() {
    let mut pair = Pair::new(lossy(0.01));
    pair.connect();
    pair.path.dead = (pair.now + Duration::from_millis(200), pair.now + Duration::from_millis(10_200));
    pair.work[1].to_send = pattern(2_000_000);
    pair.work[0].to_send = b"please".to_vec();
    pair.transfer(Duration::from_secs(60));
    assert!(pair.closed(false).is_none() && pair.closed(true).is_none());
}

#[test]
fn a_silent_peer_ends_the_connection_after_a_minute() {
    let mut pair = Pair::new(Path::clean(20));
    pair.connect();
    pair.path.dead = (pair.now, Time::NEVER);
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.closed(true), Some(&Closed::Silence(Duration::from_secs(60))));
}

#[test]
fn a_server_that_is_started_again_with_the_same_key_says_so_at_once() {
    for (keys, is_told) in [([3, 3], true), ([3, 4], false)] {
        let of = |key: u8| Config { reset_key: Some([key; 64]), ..config() };
        let mut pair = Pair::with(Path::clean(20), Config::default(), of(keys[0]));
        pair.connect();
        let begin = pair.now;
        pair.connection(false).steer(begin, scheme("cbr:rate_mbps=5").0);
        pair.work[0].to_send = pattern(3_000_000);
        pair.run_for(Duration::from_millis(500));
        (pair.server, pair.work[1]) = (QuicEndpoint::new(of(keys[1])).unwrap(), Work::default());
        pair.run_for(Duration::from_secs(1));
        let why = pair.closed(false).map(Closed::to_string);
        assert_eq!(why.is_some(), is_told, "{why:?}");
        assert!(why.is_none_or(|why| why.contains("restarted")));
    }
}

/// Checks that almost no bytes count as in flight after all were acknowledged.
fn assert_settled(pair: &mut Pair) {
    let inflight = pair.connection(true).ledger().unwrap().inflight();
    assert!(inflight < Bytes(4_500), "{inflight:?} stay in the books");
}

#[test]
fn another_port_of_the_client_goes_on_and_is_told() {
    let mut pair = Pair::new(Path::clean(20));
    pair.connect();
    let begin = pair.now;
    pair.connection(true).steer(begin, scheme("cbr:rate_mbps=20").0);
    pair.work[1].to_send = pattern(3_000_000);
    pair.work[0].to_send = b"please".to_vec();
    pair.run_for(Duration::from_millis(150));
    pair.address = "10.0.0.2:6000".parse().unwrap();
    pair.transfer(Duration::from_secs(60));
    let moved = Event::Moved("10.0.0.2:6000".parse().unwrap());
    assert!(pair.told.iter().any(|(server, _, event)| *server && *event == moved), "{:?}", pair.told);
    assert_eq!(pair.connection(true).peer(), pair.address);
    assert_settled(&mut pair);
}

#[test]
fn another_address_of_the_client_begins_anew_and_loses_nothing() {
    let mut pair = Pair::new(Path::clean(20));
    pair.connect();
    let begin = pair.now;
    pair.connection(true).steer(begin, scheme("cbr:rate_mbps=20").0);
    pair.work[1].to_send = pattern(3_000_000);
    pair.work[0].to_send = b"please".to_vec();
    pair.run_for(Duration::from_millis(150));
    pair.address = "192.168.7.7:6000".parse().unwrap();
    let now = pair.now;
    pair.client.on_rebound(now);
    pair.transfer(Duration::from_secs(60));
    assert_eq!(pair.connection(true).peer(), pair.address);
    assert_settled(&mut pair);
}

#[test]
fn a_reader_who_pauses_stops_the_sender_and_then_gets_all() {
    let mut pair = Pair::new(Path::clean(5));
    pair.connect();
    pair.connection(true).steer(Time::from_secs(1_000), scheme("cbr:rate_mbps=800").0);
    pair.work[0].reads_nothing = true;
    pair.work[0].to_send = b"please".to_vec();
    pair.work[1].to_send = pattern(60_000_000);
    pair.run_for(Duration::from_secs(3));
    assert!(pair.work[1].sent < 60_000_000, "the writer is held");
    let arrived: u64 = pair.connection(false).streams.values().map(|inflow| inflow.waiting()).sum();
    assert!(arrived <= u64::from(16u32 << 20) + (8 << 20) + 1472, "{arrived} bytes wait");
    pair.work[0].reads_nothing = false;
    pair.transfer(Duration::from_secs(60));
}

#[test]
fn thousands_of_gaps_do_not_end_the_connection() {
    let mut pair = Pair::new(Path { loss: 0.3, ..Path::clean(50) });
    pair.connect();
    let now = pair.now;
    pair.connection(true).steer(now, scheme("cbr:rate_mbps=200").0);
    pair.work[0].to_send = b"please".to_vec();
    pair.work[1].to_send = pattern(10_000_000);
    pair.transfer(Duration::from_secs(60));
}

#[test]
fn a_server_may_ask_for_a_proof_of_the_address_first() {
    let server = Config { retry: Retry::Always, ..config() };
    let mut pair = Pair::with(Path::clean(20), Config::default(), server);
    pair.connect();
    pair.work[0].to_send = pattern(10_000);
    pair.transfer(Duration::from_secs(5));
}

#[test]
fn keys_can_be_changed_while_bytes_flow() {
    let mut pair = Pair::new(lossy(0.02));
    pair.connect();
    assert!(
        !pair.connection(false).update_keys(),
        "the client does not know yet that the server has them all"
    );
    pair.work[0].to_send = pattern(2_000_000);
    for _ in 0..5 {
        pair.run_for(Duration::from_millis(400));
        if !pair.work[0].is_flushed {
            assert!(pair.connection(false).update_keys());
        }
    }
    pair.transfer(Duration::from_secs(60));
}

#[test]
fn both_sides_know_the_same_binding_and_no_two_connections_do() {
    let mut bindings = vec![];
    for _ in 0..2 {
        let mut pair = Pair::new(Path::clean(1));
        pair.connect();
        let binding = pair.connection(true).binding();
        assert_eq!(pair.connection(false).binding(), binding);
        bindings.push(binding);
    }
    assert_ne!(bindings[0], bindings[1]);
    assert!(!bindings.contains(&[0; 32]));
}

#[test]
fn closing_tells_the_peer_why() {
    let mut pair = Pair::new(Path::clean(10));
    pair.connect();
    let now = pair.now;
    pair.connection(false).close(now, 7, "enough");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.closed(false), Some(&Closed::Here));
    assert_eq!(pair.closed(true), Some(&Closed::ByPeer { code: 7, reason: "enough".to_owned() }));
    assert!(pair.client.connections_held() == 0 && pair.server.connections_held() == 0, "both forget it");
}

#[test]
fn streams_of_hq_interop_are_told_apart() {
    let hq = |config: Config| Config { alpns: vec![HQ_INTEROP.to_vec()], ..config };
    let mut pair = Pair::with(lossy(0.02), hq(Config::default()), hq(config()));
    pair.connect();
    let now = pair.now;
    let client = pair.connection(false);
    let ids = [client.open_stream().unwrap(), client.open_stream().unwrap()];
    for (id, text) in ids.iter().zip(["GET /a\r\n", "GET /b\r\n"]) {
        assert_eq!(client.write_stream(now, *id, text.as_bytes()), Ok(8));
        client.finish_stream(now, *id);
    }
    pair.run_for(Duration::from_secs(2));
    let server = pair.connection(true);
    let mut opened = vec![];
    while let Some(news) = server.poll_stream() {
        if let StreamNews::Opened(id) = news {
            opened.push(id);
        }
    }
    assert_eq!(opened, ids);
    let now = Time::from_secs(1_003);
    for (id, text) in ids.iter().zip(["GET /a\r\n", "GET /b\r\n"]) {
        let mut buffer = [0; 64];
        assert_eq!(server.read_stream(now, *id, &mut buffer), Ok(Read::Bytes(8)));
        assert_eq!(&buffer[..8], text.as_bytes());
        assert_eq!(server.read_stream(now, *id, &mut buffer), Ok(Read::End));
    }
}

#[test]
fn full_packets_are_as_large_as_the_path_allows() {
    for (most, expected) in [(1472, 1472), (1400, 1200)] {
        let mut pair = Pair::new(Path { most, ..Path::clean(20) });
        pair.connect();
        pair.work[1].to_send = pattern(2_000_000);
        pair.work[0].to_send = b"please".to_vec();
        pair.transfer(Duration::from_secs(60));
        let begun = pair.sent[0].at;
        let late =
            pair.sent.iter().filter(|sent| sent.from_server && sent.at > begun + Duration::from_millis(300));
        let largest = late.filter(|sent| sent.bytes <= most).map(|sent| sent.bytes).max();
        assert_eq!(largest, Some(expected), "a path of {most} bytes");
    }
}

#[test]
fn both_ends_of_a_connection_log_the_same_packets() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let logs = folders.each_ref().map(|folder| Folder::new(folder.path()).unwrap());
    let client = Config { qlog: Some(logs[0].clone()), ..Config::default() };
    let server = Config { qlog: Some(logs[1].clone()), retry: Retry::Always, ..config() };
    let mut pair = Pair::with(lossy(0.02), client, server);
    pair.connect();
    pair.work[0].to_send = pattern(200_000);
    pair.transfer(Duration::from_secs(20));
    drop(pair);
    let [client, server] = folders.each_ref().map(|folder| {
        let mut files = std::fs::read_dir(folder.path()).unwrap();
        let text = std::fs::read_to_string(files.next().unwrap().unwrap().path()).unwrap();
        assert!(files.next().is_none(), "one connection");
        let records = text.split('\x1e').skip(1).map(|record| serde_json::from_str(record).expect(record));
        records.collect::<Vec<serde_json::Value>>()
    });
    assert_eq!(client[0]["trace"]["common_fields"], server[0]["trace"]["common_fields"], "one name");
    let of = |log: &[serde_json::Value], name: &str| -> Vec<serde_json::Value> {
        log.iter().filter(|event| event["name"] == name).map(|event| event["data"].clone()).collect()
    };
    // Received packets equal sent packets frame by frame, except the ACK delay before its unit is known.
    let said = |packets: &[serde_json::Value], kind: &str| -> BTreeMap<u64, serde_json::Value> {
        let packets = packets.iter().filter(|packet| packet["header"]["packet_type"] == kind);
        let number = |packet: &serde_json::Value| packet["header"]["packet_number"].as_u64();
        packets.filter_map(|packet| Some((number(packet)?, packet.clone()))).collect()
    };
    for (from, to) in [(&client, &server), (&server, &client)] {
        let (sent, received) = (of(from, "transport:packet_sent"), of(to, "transport:packet_received"));
        for kind in ["initial", "handshake", "1RTT"] {
            let (sent, received) = (said(&sent, kind), said(&received, kind));
            assert!(!received.is_empty(), "{kind}");
            assert!(received.iter().all(|(number, packet)| sent.get(number) == Some(packet)), "{kind}");
            assert!(kind != "1RTT" || received.len() < sent.len(), "a fiftieth was lost");
        }
        let parameters = of(to, "transport:parameters_set");
        assert_eq!((&parameters[0]["owner"], &parameters[1]["owner"]), (&"local".into(), &"remote".into()));
        let (mut own, peers) = (of(from, "transport:parameters_set")[0].clone(), parameters[1].clone());
        own["owner"] = "remote".into();
        assert_eq!(own, peers);
    }
    let is_retry = |packet: &serde_json::Value| packet["header"]["packet_type"] == "retry";
    assert_eq!(of(&client, "transport:packet_received").iter().filter(|packet| is_retry(packet)).count(), 1);
    let sent = said(&of(&client, "transport:packet_sent"), "1RTT");
    let lost = of(&client, "recovery:packet_lost");
    assert!(!lost.is_empty());
    for lost in lost {
        let number = lost["header"]["packet_number"].as_u64().unwrap();
        assert_eq!(sent[&number]["raw"], lost["raw"], "packet {number}");
    }
    let metrics = of(&client, "recovery:metrics_updated");
    let windows = metrics.iter().filter_map(|metrics| metrics["congestion_window"].as_u64());
    assert!(windows.filter(|window| *window > 1500).count() > 10, "the controller's window is in the log");
    assert_eq!(logs.map(|folder| folder.failed()), [0, 0]);
}
