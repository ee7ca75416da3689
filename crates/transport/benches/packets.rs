//! CPU time per data packet of both transports: sender and receiver with encryption, ACKs, pacing and the stream's copies,
//! but without the kernel. The flow runs at 1 Gbit/s over a one-way delay of 5 ms in virtual time.
//!
//! `cargo bench -p airpace-transport --bench packets`

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Ecn, Streams, Time};
use airpace_transport::endpoint::{ConnectionId, Endpoint, Event, Inbound, MSS, Read};
use airpace_transport::key::Key;
use airpace_transport::quic::{Config, Identity, QuicEndpoint};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const DELAY: Duration = Duration::from_millis(5);
const SCHEME: &str = "cbr:rate_mbps=1000";
/// Maximum number of bytes that the application writes or reads at once.
const CHUNK: usize = 64 << 10;

/// An endpoint, and its connection once the connection exists.
struct Side<E> {
    endpoint: E,
    id: Option<ConnectionId>,
}

struct Flow<E> {
    now: Time,
    /// Sender and receiver.
    sides: [Side<E>; 2],
    /// Datagrams in flight: arrival time, index of the destination endpoint, segment size, and bytes.
    flights: VecDeque<(Time, usize, usize, Vec<u8>)>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    room: Box<[u8]>,
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1_000 + side as u16))
}

impl<E: Endpoint> Flow<E> {
    /// Creates a flow and runs it for half a second.
    fn new(make: fn() -> E) -> Flow<E> {
        let side = || Side { endpoint: make(), id: None };
        let now = Time::from_secs(100);
        let mut flow = Flow {
            now,
            sides: [side(), side()],
            flights: VecDeque::new(),
            spare: vec![],
            room: vec![0; CHUNK].into(),
        };
        flow.sides[0].id = Some(flow.sides[0].endpoint.connect(now, address(1)).expect("a connection"));
        while flow.now < now + Duration::from_millis(500) {
            flow.step();
        }
        assert!(flow.received() > 20_000, "{} packets at 1 Gbit/s", flow.received());
        flow
    }

    /// Number of received packets.
    fn received(&mut self) -> u64 {
        let Side { endpoint, id } = &mut self.sides[1];
        let connection = id.and_then(|id| endpoint.connection(id));
        connection.map_or(0, |connection| connection.figures().received.packets)
    }

    fn on_event(&mut self, side: usize, id: ConnectionId, event: &Event) {
        let (now, is_sender) = (self.now, side == 0);
        self.sides[side].id = Some(id);
        let connection = self.sides[side].endpoint.connection(id).expect("it is open");
        match event {
            Event::Connected if is_sender => {
                let setup = Setup::new(MSS, Streams::new(1).stream("bench"));
                let ends = SchemeSpec::parse(SCHEME).and_then(|spec| spec.build(&setup));
                connection.steer(now, ends.expect("a scheme of the list").controller);
            }
            Event::Closed(why) => panic!("{why}"),
            _ => {}
        }
        if is_sender {
            while connection.write(now, &self.room).is_ok_and(|taken| taken == CHUNK) {}
        } else {
            while connection.read(now, &mut self.room).is_ok_and(|read| read != Read::Nothing) {}
        }
    }

    fn step(&mut self) {
        for side in [0, 1] {
            loop {
                if let Some((id, event)) = self.sides[side].endpoint.poll_event() {
                    self.on_event(side, id, &event);
                    continue;
                }
                let mut buffer = self.spare.pop().unwrap_or_default();
                match self.sides[side].endpoint.poll_transmit(self.now, &mut buffer) {
                    Some(outbound) => {
                        let size = outbound.segment.unwrap_or(buffer.len());
                        self.flights.push_back((self.now + DELAY, 1 - side, size, buffer));
                    }
                    None => {
                        self.spare.push(buffer);
                        break;
                    }
                }
            }
        }
        let due = self.sides.iter().filter_map(|side| side.endpoint.poll_timeout());
        let next = due.chain(self.flights.front().map(|(at, ..)| *at)).min();
        self.now = self.now.max(next.expect("a flow goes on"));
        while self.flights.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, side, size, mut bytes)) = self.flights.pop_front() else { break };
            for bytes in bytes.chunks_mut(size) {
                let (received, from) = (self.now, address(1 - side));
                let inbound = Inbound { received, from, to: None, ecn: Ecn::NotEct, bytes };
                self.sides[side].endpoint.handle(inbound);
            }
            bytes.clear();
            self.spare.push(bytes);
        }
        for side in &mut self.sides {
            side.endpoint.handle_timeout(self.now);
        }
    }

    /// Wall-clock time for transferring this many packets.
    fn packets(&mut self, count: u64) -> Duration {
        let (until, begin) = (self.received() + count, Instant::now());
        while self.received() < until {
            self.step();
        }
        begin.elapsed()
    }
}

fn udp() -> UdpEndpoint {
    let config = UdpConfig { accepts: true, ..UdpConfig::default() };
    UdpEndpoint::new(Key::new([1; Key::BYTES]), config).expect("random numbers")
}

fn quic() -> QuicEndpoint {
    let identity = Some(Identity::self_signed(&["airpace"]).expect("random numbers"));
    QuicEndpoint::new(Config { identity, ..Config::default() }).expect("settings that fit")
}

fn measure<E: Endpoint>(criterion: &mut Criterion, name: &str, make: fn() -> E) {
    let mut group = criterion.benchmark_group("packet");
    group.throughput(Throughput::Elements(1));
    let mut flow = Flow::new(make);
    group.bench_function(name, |bencher| bencher.iter_custom(|count| flow.packets(count)));
    group.finish();
}

fn packets(criterion: &mut Criterion) {
    measure(criterion, "udp", udp);
    measure(criterion, "quic", quic);
}

criterion_group!(benches, packets);
criterion_main!(benches);
