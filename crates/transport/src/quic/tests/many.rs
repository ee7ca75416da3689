//! Many connections, address changes, and connections that one endpoint has removed.

use super::*;

#[test]
fn two_hundred_connections_at_once_each_bring_their_own_bytes() {
    const MANY: usize = 200;
    let at: SocketAddr = SERVER.parse().unwrap();
    let mut now = Time::from_secs(5);
    let mut server = QuicEndpoint::new(config()).unwrap();
    let mut clients: Vec<QuicEndpoint> = vec![];
    let mut got = vec![Vec::new(); MANY];
    let mut flushed = 0;
    let text = |index: usize| pattern(20_000 + index * 97);
    for _ in 0..MANY {
        let mut client = QuicEndpoint::new(Config::default()).unwrap();
        client.connect(now, at).unwrap();
        clients.push(client);
    }
    let address = |index: usize| SocketAddr::from(([10, 1, (index / 100) as u8, (index % 100) as u8], 700));
    for _ in 0..4_000 {
        for (index, client) in clients.iter_mut().enumerate() {
            client.handle_timeout(now);
            while let Some((id, event)) = client.poll_event() {
                let connection = client.connection(id).unwrap();
                match event {
                    Event::Connected => {
                        let bytes = text(index);
                        assert_eq!(connection.write(now, &bytes), Ok(bytes.len()));
                        connection.finish(now);
                    }
                    Event::Flushed => flushed += 1,
                    Event::Closed(why) => panic!("{index}: {why}"),
                    _ => {}
                }
            }
            let mut buffer = vec![];
            while let Some(outbound) = client.poll_transmit(now, &mut buffer) {
                for bytes in buffer.chunks_mut(outbound.segment.unwrap_or(65_536)) {
                    let from = address(index);
                    server.handle(Inbound { received: now, from, to: None, ecn: Ecn::NotEct, bytes });
                }
                buffer.clear();
            }
        }
        server.handle_timeout(now);
        while let Some((id, _)) = server.poll_event() {
            let Some(connection) = server.connection(id) else { continue };
            let peer = connection.peer();
            let index = clients.iter().zip(0..).position(|(_, index)| address(index) == peer).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(Read::Bytes(count)) = connection.read(now, &mut buffer) {
                got[index].extend_from_slice(&buffer[..count]);
            }
        }
        let mut buffer = vec![];
        while let Some(outbound) = server.poll_transmit(now, &mut buffer) {
            let index = (0..MANY).find(|index| address(*index) == outbound.to).unwrap();
            for bytes in buffer.chunks_mut(outbound.segment.unwrap_or(65_536)) {
                clients[index].handle(Inbound { received: now, from: at, to: None, ecn: Ecn::NotEct, bytes });
            }
            buffer.clear();
        }
        now += Duration::from_millis(1);
        if flushed == MANY {
            break;
        }
    }
    assert_eq!(flushed, MANY, "all were acknowledged");
    for (index, got) in got.iter().enumerate() {
        assert!(*got == text(index), "{index}: {} bytes", got.len());
    }
}

#[test]
fn a_transfer_runs_over_ipv6_with_packets_of_the_same_size() {
    let path = Path { most: 1452, loss: 0.01, ..Path::clean(10) };
    let addresses = ["[2001:db8::2]:5000", "[2001:db8::1]:4433"];
    let mut pair = Pair::between(path, Config::default(), config(), addresses);
    pair.connect();
    pair.work[0].to_send = pattern(200_000);
    pair.work[1].to_send = pattern(2_000_000);
    pair.transfer(Duration::from_secs(60));
    let largest = pair.sent.iter().filter(|sent| sent.from_server).map(|sent| sent.bytes).max();
    assert_eq!(largest, Some(1452), "with IPv6 and UDP it is 1500 bytes");
    let sent = pair.connection(true).figures().sent;
    assert!(sent.bytes.0 as f64 / sent.packets as f64 > 1400.0, "{sent:?}");
}

#[test]
fn who_sends_to_a_forgotten_connection_is_told_that_it_is_forgotten() {
    let mut pair = Pair::new(Path::clean(10));
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    // The server's close is lost, and the client sends nothing until the server has removed the connection.
    pair.path.dead = (pair.now, pair.now + Duration::from_secs(5));
    let now = pair.now;
    pair.connection(true).close(now, 0, "");
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.server.connections_held(), 0);
    assert!(pair.closed(false).is_none(), "the client knows nothing of it");
    let strays = pair.server.ignored().stray;
    pair.work[0].to_send = pattern(3_000);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(
        pair.closed(false).map(ToString::to_string).as_deref(),
        Some(
            "the other side does not know this connection any more, perhaps as it was restarted; connect again"
        )
    );
    assert!(pair.server.ignored().stray > strays);
}
