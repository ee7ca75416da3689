//! Tests of the event loop thread over the loopback interface, and of measured flows in virtual time, with a minimal
//! endpoint.

#[path = "../examples/rates/plain.rs"]
mod plain;

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use airpace_cc::controller;
use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Bytes, Ecn, Refused, Streams, Time};
use airpace_feed::{Lines, Place, Radio};
use airpace_radio::{BitLayer, CarrierId, RadioReport, Scope, Slot, line};
use airpace_rt::clock;
use airpace_transfer::bulk::{Bulk, Flow, Hooks, Order, Outcome, Sample, Traffic};
use airpace_transport::app::App;
use airpace_transport::both::{Both, Transport};
use airpace_transport::endpoint::{ConnectionId, Endpoint, Event, Inbound, MSS, Outbound};
use airpace_transport::key::Key;
use airpace_transport::quic::{self, Identity, QuicEndpoint};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn, Turned};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};
use plain::Plain;
use rustix::event::{PollFd, PollFlags, poll};

/// Builds schemes by name and sends the counters of every sample to a channel.
struct Schemes(Sender<(ConnectionId, u64, u64)>);

impl Hooks for Schemes {
    fn controller(&mut self, scheme: &str) -> Result<Box<dyn controller::Controller>, Refused> {
        Ok(build(scheme)?.controller)
    }

    fn receiver(&mut self, scheme: &str) -> Result<Option<Box<dyn controller::Receiver>>, Refused> {
        Ok(build(scheme)?.receiver)
    }

    fn record(&mut self, sample: &Sample<'_>) {
        let figures = &sample.figures;
        let _ = self.0.send((sample.connection, figures.received.bytes.0, figures.delivered.packets));
    }
}

fn build(scheme: &str) -> Result<airpace_cc::scheme::Ends, Refused> {
    let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
    let setup = Setup::new(MSS, Streams::new(1).stream("test"));
    spec.build(&setup).map_err(|error| error.to_string()).map_err(Refused::from)
}

fn order(flow: Flow, traffic: Traffic) -> Order {
    Order { flow, scheme: "cbr:rate_mbps=400".to_owned(), traffic }
}

fn socket() -> Socket {
    Socket::bind("127.0.0.1:0".parse().unwrap(), Buffers::default()).unwrap()
}

type Done = Turned<Plain, Bulk<Schemes>>;

/// Runs an application and its endpoint on a separate thread.
fn spawn<E, A>(
    socket: Socket,
    endpoint: E,
    app: A,
    radios: Vec<Box<dyn Radio>>,
) -> (JoinHandle<Turned<E, A>>, Arc<Control>)
where
    E: Endpoint + Send + 'static,
    A: App + Send + 'static,
{
    let control = Control::new().unwrap();
    let turn = Turn { socket, endpoint, app, radios, control: Arc::clone(&control), wants_realtime: false };
    (std::thread::spawn(|| turn.run()), control)
}

/// Starts a listener that serves one flow.
fn serve(radios: Vec<Box<dyn Radio>>) -> (SocketAddr, JoinHandle<Done>, Receiver<(ConnectionId, u64, u64)>) {
    let socket = socket();
    let at = socket.local();
    let (send, samples) = channel();
    let (thread, _) = spawn(socket, Plain::default(), Bulk::serve(Schemes(send), 1), radios);
    (at, thread, samples)
}

/// Starts a flow from or to a listener.
fn ask(at: SocketAddr, order: Order) -> (JoinHandle<Done>, Arc<Control>) {
    let mut endpoint = Plain::default();
    let id = endpoint.connect(clock::now(), at).unwrap();
    let app = Bulk::ask(Schemes(channel().0), id, order);
    spawn(socket(), endpoint, app, vec![])
}

fn well(done: &Done) -> &Outcome {
    let [outcome] = &done.app.outcomes[..] else { panic!("{:?}", done.app.outcomes) };
    assert_eq!((outcome.wrong, &outcome.problem), (Bytes::ZERO, &None));
    assert!(outcome.began.is_some_and(|began| began <= outcome.ended));
    outcome
}

#[test]
fn bytes_arrive_whole_both_ways_and_the_threads_end_by_themselves() {
    for flow in [Flow::Push, Flow::Pull] {
        let (at, server, _) = serve(vec![]);
        let traffic = Traffic { bytes: Some(3_000_017), ..Traffic::default() };
        let client = ask(at, order(flow, traffic)).0.join().unwrap();
        let server = server.join().unwrap();
        assert_eq!(
            (well(&client).bytes, well(&server).bytes),
            (Bytes(3_000_017), Bytes(3_000_017)),
            "{flow:?}"
        );
        let sender = if flow == Flow::Push { &client } else { &server };
        let counts = sender.socket.counts();
        assert!(counts.sent > counts.send_calls, "in groups: {counts:?}");
        assert!(sender.audit.lateness.count() > 0 && sender.audit.cpu > Duration::ZERO, "{:?}", sender.audit);
        assert!(sender.audit.cpu <= sender.audit.took, "one thread");
    }
}

#[test]
fn a_flow_that_stops_at_its_time_is_well() {
    let (at, server, _) = serve(vec![]);
    let traffic = Traffic { stop_s: Some(0.05), ..Traffic::default() };
    let client = ask(at, order(Flow::Pull, traffic)).0.join().unwrap();
    let server = server.join().unwrap();
    let (sent, read) = (well(&server).bytes, well(&client).bytes);
    assert!(Bytes::ZERO < read && read <= sent, "{read:?} of {sent:?}");
    assert!(well(&server).ended - well(&server).began.unwrap() >= Duration::from_millis(50));
}

#[test]
fn a_flow_that_cannot_be_steered_is_refused_with_the_reason() {
    let (at, server, _) = serve(vec![]);
    let scheme = "nonsense".to_owned();
    let client = ask(at, Order { scheme, ..order(Flow::Pull, Traffic::default()) }).0.join().unwrap();
    let server = server.join().unwrap();
    let said = client.app.outcomes[0].problem.as_deref().unwrap();
    assert!(said.contains("nonsense"), "{said}");
    assert!(server.app.outcomes[0].problem.is_some(), "{:?}", server.app.outcomes);
}

#[test]
fn a_thread_that_waits_for_nothing_ends_when_it_is_told() {
    let (thread, control) = spawn(socket(), Plain::default(), Bulk::serve(Schemes(channel().0), 0), vec![]);
    control.stop();
    assert!(thread.join().unwrap().app.outcomes.is_empty());
}

/// Application that reports each wake-up to a channel.
struct Woken(Sender<()>);

impl App for Woken {
    fn on_event(&mut self, _: Time, _: &mut dyn Endpoint, _: ConnectionId, _: Event) {}

    fn handle_timeout(&mut self, _: Time, _: &mut dyn Endpoint) {
        let _ = self.0.send(());
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }

    fn is_done(&self) -> bool {
        false
    }
}

#[test]
fn a_rebound_socket_has_another_port_and_the_endpoint_knows() {
    let mut peer = socket();
    let mut endpoint = Plain::default();
    endpoint.connect(clock::now(), peer.local()).unwrap();
    let mut ports = vec![];
    let mut next_port = || {
        let known = ports.len();
        // The endpoint repeats its handshake packet until it gets an answer.
        while ports.len() == known {
            poll(&mut [PollFd::new(&peer, PollFlags::IN)], None).unwrap();
            peer.receive(|datagram| ports.push(datagram.from.port()));
            ports.dedup();
        }
    };
    let own = socket();
    let first = own.local().port();
    let (woken, is_woken) = channel();
    let (thread, control) = spawn(own, endpoint, Woken(woken), vec![]);
    next_port();
    control.rebind();
    control.wake();
    is_woken.recv().unwrap();
    next_port();
    control.stop();
    let done = thread.join().unwrap();
    assert_eq!(ports, [first, done.socket.local().port()]);
    assert_ne!(ports[0], ports[1]);
    assert_eq!((done.endpoint.rebound, done.audit.not_rebound_because), (1, None));
}

#[test]
fn radio_reports_reach_the_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device-1.control");
    let listener = UnixListener::bind(&path).unwrap();
    let radio = Lines::new(Place::Path(path));
    let heard = radio.heard();
    let (at, server, samples) = serve(vec![Box::new(radio)]);
    let (mut program, _) = listener.accept().unwrap();
    let (client, _) =
        ask(at, order(Flow::Push, Traffic { bytes: Some(100), start_s: 3_600.0, ..Traffic::default() }));
    // The connection exists once its first sample arrives.
    let (connection, _, reports) = samples.recv().unwrap();
    assert_eq!(reports, 0);
    let report = RadioReport {
        carrier: CarrierId(0),
        slot: Slot::subframe_of_lte(7),
        time: Time::from_millis(7),
        scope: Scope::Everyone,
        carrier_prbs: Some(50),
        cfi: None,
        symbols: None,
        dcis: vec![],
        own: None,
        layer: BitLayer::Physical,
    };
    program.write_all((line::to_line(7, &[report.clone(), report]) + "\n").as_bytes()).unwrap();
    let told = samples.iter().find(|(_, _, reports)| *reports > 0).unwrap();
    assert_eq!((told.0, told.2, heard.reports()), (connection, 2, 2));
    drop((client, server));
}

/// The minimal transport with the QUIC fixed bit (0x40) inverted, so that its packets look like QUIC's.
#[derive(Default)]
struct Marked(Plain);

impl Endpoint for Marked {
    fn handle(&mut self, datagram: Inbound<'_>) {
        datagram.bytes[0] ^= 0x40;
        self.0.handle(datagram);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.0.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.0.poll_timeout()
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        let start = buffer.len();
        let out = self.0.poll_transmit(now, buffer)?;
        let size = out.segment.unwrap_or(usize::MAX);
        buffer[start..].chunks_mut(size).for_each(|datagram| datagram[0] ^= 0x40);
        Some(out)
    }

    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.0.poll_event()
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        self.0.connect(now, peer)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn airpace_transport::endpoint::Connection> {
        self.0.connection(id)
    }

    fn on_rebound(&mut self, now: Time) {
        self.0.on_rebound(now);
    }

    fn ignored(&self) -> airpace_transport::endpoint::Ignored {
        self.0.ignored()
    }
}

/// An endpoint and its application in virtual time.
struct Machine<'a> {
    at: SocketAddr,
    endpoint: &'a mut dyn Endpoint,
    app: &'a mut dyn App,
}

/// Exchanges datagrams between machines until all applications are done. `mangle` can modify each datagram.
fn carry(machines: &mut [Machine<'_>], mut mangle: impl FnMut(&mut [u8])) {
    let mut now = Time::from_secs(5);
    while !machines.iter().all(|machine| machine.app.is_done()) {
        let mut on_way = vec![];
        for Machine { at, endpoint, app } in machines.iter_mut() {
            endpoint.handle_timeout(now);
            while let Some((id, event)) = endpoint.poll_event() {
                app.on_event(now, &mut **endpoint, id, event);
            }
            app.handle_timeout(now, &mut **endpoint);
            let mut buffer = vec![];
            while let Some(out) = endpoint.poll_transmit(now, &mut buffer) {
                let size = out.segment.unwrap_or(buffer.len());
                on_way.extend(buffer.chunks(size).map(|bytes| (*at, out.to, bytes.to_vec())));
                buffer.clear();
            }
        }
        for (from, to, mut bytes) in on_way {
            mangle(&mut bytes);
            let machine = machines.iter_mut().find(|machine| machine.at == to).unwrap();
            let received = now + Duration::from_millis(1);
            let datagram = Inbound { received, from, to: None, ecn: Ecn::NotEct, bytes: &mut bytes };
            machine.endpoint.handle(datagram);
        }
        now += Duration::from_millis(1);
        assert!(now < Time::from_secs(60), "it comes to an end");
    }
}

fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 4_433))
}

#[test]
fn both_transports_run_on_one_port() {
    let mut server = Both::new(Marked::default(), Plain::default(), Transport::Quic);
    let (send, samples) = channel();
    let mut of_server = Bulk::serve(Schemes(send), 2);
    let (mut quic, mut udp) = (Marked::default(), Plain::default());
    let traffic = |bytes| Traffic { bytes: Some(bytes), ..Traffic::default() };
    let now = Time::from_secs(5);
    let [ids_of_quic, ids_of_udp] =
        [&mut quic as &mut dyn Endpoint, &mut udp].map(|it| it.connect(now, address(1)).unwrap());
    let schemes = || Schemes(channel().0);
    let mut of_quic = Bulk::ask(schemes(), ids_of_quic, order(Flow::Push, traffic(70_000)));
    let mut of_udp = Bulk::ask(schemes(), ids_of_udp, order(Flow::Pull, traffic(50_000)));
    carry(
        &mut [
            Machine { at: address(1), endpoint: &mut server, app: &mut of_server },
            Machine { at: address(2), endpoint: &mut quic, app: &mut of_quic },
            Machine { at: address(3), endpoint: &mut udp, app: &mut of_udp },
        ],
        |_| (),
    );
    drop(samples);
    let mut ended: Vec<(Transport, u64)> =
        of_server.outcomes.iter().map(|it| (Transport::of_connection(it.connection), it.bytes.0)).collect();
    ended.sort_by_key(|(_, bytes)| *bytes);
    assert_eq!(ended, [(Transport::Udp, 50_000), (Transport::Quic, 70_000)]);
    assert_eq!(server.ignored(), Default::default());
    server.connects_by = Transport::Udp;
    let id = server.connect(now, address(9)).unwrap();
    assert_eq!(Transport::of_connection(id), Transport::Udp);
    assert!(server.connection(id).is_some());
}

/// Wrapper of an application that publishes whether it is done.
struct Telling<A> {
    inner: A,
    is_done: Arc<AtomicBool>,
}

impl<A: App> App for Telling<A> {
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, event: Event) {
        self.inner.on_event(now, endpoint, id, event);
        self.is_done.store(self.inner.is_done(), Ordering::Relaxed);
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        self.inner.handle_timeout(now, endpoint);
        self.is_done.store(self.inner.is_done(), Ordering::Relaxed);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn is_done(&self) -> bool {
        self.inner.is_done()
    }

    fn waits_for_peers(&self) -> bool {
        self.inner.waits_for_peers()
    }
}

/// Endpoint that loses the next `loses` transmissions after its application is done.
struct CutOff<E> {
    inner: E,
    is_done: Arc<AtomicBool>,
    loses: u32,
}

impl<E: Endpoint> Endpoint for CutOff<E> {
    fn handle(&mut self, datagram: Inbound<'_>) {
        self.inner.handle(datagram);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        loop {
            let out = self.inner.poll_transmit(now, buffer)?;
            if !self.is_done.load(Ordering::Relaxed) || self.loses == 0 {
                return Some(out);
            }
            self.loses -= 1;
            buffer.clear();
        }
    }

    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.inner.poll_event()
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        self.inner.connect(now, peer)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn airpace_transport::endpoint::Connection> {
        self.inner.connection(id)
    }

    fn on_rebound(&mut self, now: Time) {
        self.inner.on_rebound(now);
    }

    fn ignored(&self) -> airpace_transport::endpoint::Ignored {
        self.inner.ignored()
    }
}

fn learns_of_the_end<E: Endpoint + Send + 'static>(make: fn() -> E) {
    let is_done = Arc::new(AtomicBool::new(false));
    let listener = socket();
    let at = listener.local();
    let app = Telling { inner: Bulk::serve(Schemes(channel().0), 1), is_done: Arc::clone(&is_done) };
    let (server, _) = spawn(listener, CutOff { inner: make(), is_done, loses: 2 }, app, vec![]);
    let mut endpoint = make();
    let id = endpoint.connect(clock::now(), at).unwrap();
    let traffic = Traffic { stop_s: Some(0.05), ..Traffic::default() };
    let app = Bulk::ask(Schemes(channel().0), id, order(Flow::Pull, traffic));
    let client = spawn(socket(), endpoint, app, vec![]).0.join().unwrap();
    let [outcome] = &client.app.outcomes[..] else { panic!("{:?}", client.app.outcomes) };
    assert_eq!((outcome.wrong, &outcome.problem), (Bytes::ZERO, &None));
    let server = server.join().unwrap();
    assert_eq!(server.endpoint.loses, 0, "the farewell was lost");
    assert_eq!(server.app.inner.outcomes[0].problem, None);
}

/// The end of a flow is retransmitted if its datagram is lost, so that the peer need not wait for the idle timeout.
#[test]
fn a_peer_learns_of_the_end_although_the_farewell_is_lost() {
    learns_of_the_end(|| {
        let config = UdpConfig { accepts: true, ..UdpConfig::default() };
        UdpEndpoint::new(Key::new([1; Key::BYTES]), config).unwrap()
    });
    learns_of_the_end(|| {
        let identity = Some(Identity::self_signed(&["airpace"]).unwrap());
        QuicEndpoint::new(quic::Config { identity, ..quic::Config::default() }).unwrap()
    });
}

#[test]
fn changed_bytes_are_seen_and_strangers_orders_are_refused() {
    let now = Time::from_secs(5);
    let run = |mangle: &mut dyn FnMut(&mut [u8])| {
        let (mut server, mut client) = (Plain::default(), Plain::default());
        let mut of_server = Bulk::serve(Schemes(channel().0), 1);
        let id = client.connect(now, address(1)).unwrap();
        let traffic = Traffic { bytes: Some(20_000), ..Traffic::default() };
        let mut of_client = Bulk::ask(Schemes(channel().0), id, order(Flow::Push, traffic));
        carry(
            &mut [
                Machine { at: address(1), endpoint: &mut server, app: &mut of_server },
                Machine { at: address(2), endpoint: &mut client, app: &mut of_client },
            ],
            mangle,
        );
        of_server.outcomes.remove(0)
    };
    let mut datagrams = 0;
    let outcome = run(&mut |bytes| {
        datagrams += u32::from(bytes.len() > 1_000);
        if datagrams == 5 && bytes.len() > 1_000 {
            bytes[200] ^= 1;
        }
    });
    assert_eq!((outcome.bytes, outcome.wrong), (Bytes(20_000), Bytes(1)));
    let outcome = run(&mut |bytes| {
        if let Some(at) = bytes.windows(6).position(|word| word == b"\"push\"") {
            bytes[at..at + 6].copy_from_slice(b"\"bush\"");
        }
    });
    assert!(outcome.problem.unwrap().contains("the order cannot be read"));
    let outcome = run(&mut |bytes| {
        if let Some(at) = bytes.windows(4).position(|word| word == b"cbr:") {
            bytes[at] = b'x';
        }
    });
    assert!(outcome.problem.unwrap().contains("xbr"), "a scheme that this side does not know");
    let outcome = run(&mut |bytes| {
        bytes.iter_mut().skip(9).filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    });
    assert!(outcome.problem.unwrap().contains("the order"), "without an end");
}
