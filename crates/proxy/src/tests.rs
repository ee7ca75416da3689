//! Tests of the proxy over loopback sockets of this machine.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use airpace_core::Refused;
use proptest::prelude::*;

use super::*;

/// A running proxy, which stops on drop.
struct Running {
    at: SocketAddr,
    totals: Arc<Totals>,
    news: Receiver<Told>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Refused>>>,
}

fn config() -> Config {
    Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        door: Door::Asked,
        client_leg: None,
        server_leg: None,
        allow: Range::LOOPBACK.to_vec(),
        most: 100,
        idle: Duration::from_secs(3_600),
        server_queue: None,
        choose: |_, name| match name {
            "known" => Ok(()),
            _ => Err(io::Error::other(format!("the kernel does not take `{name}`"))),
        },
    }
}

impl Running {
    fn start(config: Config) -> Running {
        let proxy = Proxy::listen(config).unwrap();
        let (at, totals, stop) = (proxy.local(), Arc::<Totals>::default(), Arc::<AtomicBool>::default());
        let (tell, news): (Sender<Told>, _) = channel();
        let (hears, counts) = (Arc::clone(&stop), Arc::clone(&totals));
        let tell = std::sync::Mutex::new(tell);
        let thread = std::thread::spawn(move || {
            proxy.run(&hears, counts, move |news| _ = tell.lock().unwrap().send(news))
        });
        Running { at, totals, news, stop, thread: Some(thread) }
    }

    /// Opens a connection through the proxy by SOCKS5. Returns the SOCKS reply code if it is refused.
    fn socks(&self, to: SocketAddr) -> Result<TcpStream, u8> {
        let mut client = TcpStream::connect(self.at).unwrap();
        let SocketAddr::V4(to) = to else { panic!("an address of IPv4") };
        client.write_all(b"\x05\x01\x00").unwrap();
        let mut said = [0; 2];
        client.read_exact(&mut said).unwrap();
        assert_eq!(said, *b"\x05\x00");
        let question = [&b"\x05\x01\x00\x01"[..], &to.ip().octets(), &to.port().to_be_bytes()].concat();
        client.write_all(&question).unwrap();
        let mut said = [0; 10];
        client.read_exact(&mut said).unwrap();
        if said[1] == 0 { Ok(client) } else { Err(said[1]) }
    }

    fn closed(&self) -> Closed {
        match self.news.recv().unwrap().news {
            News::Closed(closed) => closed,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join().unwrap();
        if !std::thread::panicking() {
            ended.unwrap();
            assert_eq!(self.totals.active.load(Ordering::Relaxed), 0);
        }
    }
}

/// Starts a server that reads until the end of the stream, sends all the bytes back and closes.
fn server() -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut came = vec![];
        stream.read_to_end(&mut came).unwrap();
        stream.write_all(&came).unwrap();
    });
    (at, thread)
}

fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn an_end_passes_in_each_direction_by_itself_and_no_byte_is_lost() {
    let proxy = Running::start(config());
    let (at, serving) = server();
    let mut client = proxy.socks(at).unwrap();
    let sent: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    client.write_all(&sent).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut back = vec![];
    client.read_to_end(&mut back).unwrap();
    assert!(back == sent);
    serving.join().unwrap();
    let closed = proxy.closed();
    assert_eq!((closed.up, closed.down, closed.problem), (3_000_000, 3_000_000, None));
    assert_eq!(closed.target, Target::Address(at));
    assert_eq!(proxy.totals.connections.load(Ordering::Relaxed), 1);
}

#[test]
fn http_connects_too_and_what_came_early_is_passed_on() {
    let proxy = Running::start(config());
    let (at, serving) = server();
    let mut client = TcpStream::connect(proxy.at).unwrap();
    write!(client, "CONNECT localhost:{} HTTP/1.1\r\nHost: x\r\n\r\nearly", at.port()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert_eq!(said, "HTTP/1.1 200 Connection established\r\n\r\nearly");
    serving.join().unwrap();
    assert_eq!(proxy.closed().up, 5);
}

#[test]
fn a_reset_is_passed_on_as_a_reset() {
    let proxy = Running::start(config());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = proxy.socks(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&server, Some(Duration::ZERO)).unwrap();
    drop(server);
    let error = client.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(proxy.closed().problem.is_some());
}

#[test]
fn refusals_say_why() {
    let proxy = Running::start(config());
    assert_eq!(proxy.socks(nobody()).unwrap_err(), 5);
    assert_eq!(proxy.socks(proxy.at).unwrap_err(), 2);
    let said = |told: Told| match told.news {
        News::Refused { why, .. } => why,
        other => panic!("{other:?}"),
    };
    assert!(said(proxy.news.recv().unwrap()).to_string().contains("refused"));
    assert!(said(proxy.news.recv().unwrap()).to_string().contains("proxy itself"));
    let mut client = TcpStream::connect(proxy.at).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut heard = String::new();
    client.read_to_string(&mut heard).unwrap();
    assert!(heard.starts_with("HTTP/1.1 405 "), "{heard}");
    assert!(said(proxy.news.recv().unwrap()).to_string().contains("something other"));
    assert_eq!(proxy.totals.refused.load(Ordering::Relaxed), 3);

    let strict = Running::start(Config { allow: vec![Range::parse("192.0.2.0/24").unwrap()], ..config() });
    assert_eq!(TcpStream::connect(strict.at).unwrap().read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(said(strict.news.recv().unwrap()).to_string().contains("not allowed"));
}

#[test]
fn a_client_without_a_place_is_reset_and_reported() {
    let proxy = Running::start(Config { most: 1, ..config() });
    let (at, serving) = server();
    let first = proxy.socks(at).unwrap();
    let mut second = TcpStream::connect(proxy.at).unwrap();
    let refused = second.read(&mut [0; 2]).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionReset);
    let News::Refused { why, .. } = proxy.news.recv().unwrap().news else { panic!("no refusal") };
    assert!(why.to_string().contains("all 1 connections are in use"), "{why}");
    drop(first);
    serving.join().unwrap();
    proxy.closed();
    // The slot becomes free shortly after the report.
    while proxy.totals.active.load(Ordering::Relaxed) > 0 {
        std::thread::yield_now();
    }
    let (at, serving) = server();
    let third = std::iter::repeat_with(|| TcpStream::connect(proxy.at).unwrap()).find_map(|mut stream| {
        stream.write_all(b"\x05\x01\x00").ok()?;
        stream.read_exact(&mut [0; 2]).ok()
    });
    assert_eq!(third, Some(()));
    drop(TcpStream::connect(at));
    serving.join().unwrap();
}

#[test]
fn a_connection_that_carries_nothing_ends_and_that_is_reported() {
    let proxy = Running::start(Config { idle: Duration::from_millis(50), ..config() });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = proxy.socks(listener.local_addr().unwrap()).unwrap();
    let error = client.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(proxy.closed().problem.as_deref(), Some("nothing was received for 0 s"));
}

#[test]
fn a_client_that_takes_nothing_leaves_the_bytes_with_the_server() {
    let proxy = Running::start(Config { server_queue: Some(64 << 10), ..config() });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = proxy.socks(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.set_nonblocking(true).unwrap();
    // Write until the server's socket accepts no more. The proxy relays only the part that the client's kernel accepts.
    let block: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let (mut sent, mut full) = (0, 0);
    while full < 20 {
        match server.write(&block[sent % block.len()..]) {
            Ok(count) => (sent, full) = (sent + count, 0),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                full += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    // The client receives all of the data once it reads.
    drop(server);
    let mut came = vec![];
    client.read_to_end(&mut came).unwrap();
    assert_eq!(came.len(), sent);
    assert!(came.iter().enumerate().all(|(at, byte)| *byte == block[at % block.len()]));
    // The direction from the client to the server stays open until the client is dropped.
    drop(client);
    assert_eq!(proxy.closed().down, sent as u64);
}

#[test]
fn what_cannot_be_is_said_when_it_begins() {
    let said = |config: Config| Proxy::listen(config).err().unwrap();
    assert!(said(Config { client_leg: Some("none".into()), ..config() }).to_string().contains("`none`"));
    assert!(said(Config { server_leg: Some("none".into()), ..config() }).to_string().contains("`none`"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    assert!(said(Config { listen, ..config() }).to_string().contains("is taken"));
    let elsewhere = "192.0.2.1:9".parse().unwrap();
    assert!(
        said(Config { listen: elsewhere, ..config() }).to_string().contains("no address of this machine")
    );
    let legs = Some("known".to_owned());
    Proxy::listen(Config { client_leg: legs.clone(), server_leg: legs, ..config() }).unwrap();
}

#[test]
fn ranges_are_what_they_say() {
    let within = |range: &str, address: &str| Range::parse(range).unwrap().contains(address.parse().unwrap());
    assert!(within("192.0.2.0/24", "192.0.2.255") && !within("192.0.2.0/24", "192.0.3.0"));
    assert!(within("192.0.2.0/24", "::ffff:192.0.2.7"));
    assert!(within("0.0.0.0/0", "203.0.113.9") && !within("0.0.0.0/0", "2001:db8::1"));
    assert!(within("::/0", "2001:db8::1") && within("2001:db8::1", "2001:db8::1"));
    for wrong in ["", "192.0.2.0/33", "::/129", "example.org", "192.0.2.0/x"] {
        assert!(Range::parse(wrong).unwrap_err().to_string().contains("192.0.2.0/24"), "{wrong}");
    }
}

proptest! {
    /// A range contains exactly the addresses whose leading bits equal those of the range.
    #[test]
    fn a_range_holds_what_begins_as_it_does(own: u32, other: u32, bits in 0u8..=32) {
        let range = Range { address: IpAddr::V4(own.into()), bits };
        let same = (own ^ other).leading_zeros() >= u32::from(bits);
        prop_assert_eq!(range.contains(IpAddr::V4(other.into())), same);
    }
}
