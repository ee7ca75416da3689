//! Two endpoints in virtual time over a path with loss, delay and reordering.

mod hostile;
mod link;
mod many;
mod steering;
mod stories;
mod telemetry;
mod trust;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use airpace_cc::controller::{Controller, Receiver};
use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Bytes, Ecn, Rate, Rng, Streams, Time};

use super::*;
use crate::endpoint::{
    Closed, Connection, ConnectionId, Endpoint, Event, Inbound, MSS, Outbound, Read, overhead,
};

const SERVER: &str = "10.0.0.1:4433";

/// Impairments of a path.
struct Path {
    delay: Duration,
    loss: f64,
    /// Fraction of the datagrams with additional delay, and the maximum of that delay.
    detour: (f64, Duration),
    /// Period in which all datagrams are lost.
    dead: (Time, Time),
    /// Maximum payload (bytes); larger datagrams are lost.
    most: usize,
    /// Rate of the bottleneck in the direction from the server, and the instant at which its queue is empty.
    link: Option<(Rate, Time)>,
    rng: Rng,
}

impl Path {
    fn clean(millis: u64) -> Path {
        Path {
            delay: Duration::from_millis(millis),
            loss: 0.0,
            detour: (0.0, Duration::ZERO),
            dead: (Time::NEVER, Time::NEVER),
            most: 1472,
            link: None,
            rng: Streams::new(11).stream("path"),
        }
    }
}

/// A sent datagram.
#[derive(Clone, Debug)]
struct Flown {
    at: Time,
    from_server: bool,
    bytes: usize,
    /// Arrival time; `None` if the datagram is lost.
    arrives: Option<Time>,
}

/// A datagram in flight: whether it travels to the server, source address, bytes, and ECN mark.
type Flying = (bool, SocketAddr, Vec<u8>, Ecn);

/// A client and a server.
struct Pair {
    now: Time,
    client: QuicEndpoint,
    server: QuicEndpoint,
    path: Path,
    /// The client's address, as the server sees it.
    address: SocketAddr,
    server_address: SocketAddr,
    wire: BTreeMap<(Time, u64), Flying>,
    serial: u64,
    sent: Vec<Flown>,
    /// Bytes sent to addresses other than the client's.
    astray: usize,
    /// Events of both endpoints; the flag is true for the server.
    told: Vec<(bool, ConnectionId, Event)>,
    work: [Work; 2],
}

/// Work of one endpoint on its connection.
#[derive(Default)]
struct Work {
    id: Option<ConnectionId>,
    to_send: Vec<u8>,
    sent: usize,
    is_finished: bool,
    got: Vec<u8>,
    has_ended: bool,
    is_flushed: bool,
    reads_nothing: bool,
}

fn config() -> Config {
    Config { identity: Some(Identity::self_signed(&["airpace"]).unwrap()), ..Config::default() }
}

fn scheme(text: &str) -> (Box<dyn Controller>, Option<Box<dyn Receiver>>) {
    let setup = Setup::new(MSS, Streams::new(3).stream("scheme"));
    let ends = SchemeSpec::parse(text).unwrap().build(&setup).unwrap();
    (ends.controller, ends.receiver)
}

/// Returns bytes that differ by position.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

impl Pair {
    fn new(path: Path) -> Pair {
        Pair::with(path, Config::default(), config())
    }

    fn with(path: Path, client: Config, server: Config) -> Pair {
        Pair::between(path, client, server, ["10.0.0.2:5000", SERVER])
    }

    fn between(path: Path, client: Config, server: Config, addresses: [&str; 2]) -> Pair {
        let [address, server_address] = addresses.map(|text| text.parse().unwrap());
        let mut pair = Pair {
            now: Time::from_secs(1_000),
            client: QuicEndpoint::new(client).unwrap(),
            server: QuicEndpoint::new(server).unwrap(),
            path,
            address,
            server_address,
            wire: BTreeMap::new(),
            serial: 0,
            sent: vec![],
            astray: 0,
            told: vec![],
            work: [Work::default(), Work::default()],
        };
        pair.work[0].id = Some(pair.client.connect(pair.now, server_address).unwrap());
        pair
    }

    fn side(&mut self, server: bool) -> &mut QuicEndpoint {
        if server { &mut self.server } else { &mut self.client }
    }

    fn connection(&mut self, server: bool) -> &mut QuicConnection {
        let id = self.work[usize::from(server)].id.expect("it is connected");
        self.side(server).quic(id).expect("it is not over")
    }

    /// Runs both endpoints until they have nothing to do at this instant.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            let mut is_busy = false;
            for server in [false, true] {
                is_busy |= self.turn(server);
            }
            if !is_busy {
                return;
            }
        }
        panic!("the endpoints never rest at {}", self.now);
    }

    fn turn(&mut self, server: bool) -> bool {
        let (now, mut is_busy) = (self.now, false);
        while let Some((id, event)) = self.side(server).poll_event() {
            is_busy = true;
            let work = &mut self.work[usize::from(server)];
            match &event {
                Event::Connected => work.id = Some(id),
                Event::Flushed => work.is_flushed = true,
                _ => {}
            }
            self.told.push((server, id, event));
        }
        is_busy |= self.work_on(server);
        loop {
            let mut buffer = vec![];
            let Some(outbound) = self.side(server).poll_transmit(now, &mut buffer) else { break };
            is_busy = true;
            self.carry(server, outbound, &buffer);
        }
        is_busy
    }

    /// Writes and reads as much as possible.
    fn work_on(&mut self, server: bool) -> bool {
        let now = self.now;
        let Pair { client, server: other, work, .. } = self;
        let endpoint = if server { other } else { client };
        let work = &mut work[usize::from(server)];
        let Some(connection) = work.id.and_then(|id| endpoint.connection(id)) else { return false };
        let mut is_busy = false;
        while work.sent < work.to_send.len() {
            let taken = connection.write(now, &work.to_send[work.sent..]).unwrap_or(0);
            work.sent += taken;
            is_busy |= taken > 0;
            if taken == 0 {
                break;
            }
        }
        if work.sent == work.to_send.len() && !work.to_send.is_empty() && !work.is_finished {
            work.is_finished = true;
            is_busy = true;
            connection.finish(now);
        }
        let mut buffer = [0; 4096];
        while !work.reads_nothing {
            match connection.read(now, &mut buffer) {
                Ok(Read::Bytes(count)) => work.got.extend_from_slice(&buffer[..count]),
                Ok(Read::End) => {
                    work.has_ended = true;
                    break;
                }
                _ => break,
            }
            is_busy = true;
        }
        is_busy
    }

    fn carry(&mut self, server: bool, outbound: Outbound, bytes: &[u8]) {
        let from = if server { self.server_address } else { self.address };
        for datagram in bytes.chunks(outbound.segment.unwrap_or(bytes.len().max(1))) {
            let (at, bytes) = (self.now, datagram.len());
            self.sent.push(Flown { at, from_server: server, bytes, arrives: None });
            if server && outbound.to != self.address {
                self.astray += datagram.len();
            }
            let path = &mut self.path;
            let is_dead = path.dead.0 <= self.now && self.now < path.dead.1;
            let is_lost = path.rng.chance(path.loss);
            // Datagrams to the client's previous addresses are lost.
            if is_dead || is_lost || datagram.len() > path.most || server && outbound.to != self.address {
                continue;
            }
            let longer = if path.rng.chance(path.detour.0) {
                path.detour.1.mul_f64(path.rng.uniform())
            } else {
                Duration::ZERO
            };
            self.serial += 1;
            let mut leaves = self.now;
            if let (true, Some((rate, free))) = (server, &mut path.link) {
                *free = (*free).max(self.now) + rate.time_for(Bytes(bytes as u64) + overhead(&from));
                leaves = *free;
            }
            let at = leaves + path.delay + longer;
            self.sent.last_mut().unwrap().arrives = Some(at);
            self.wire.insert((at, self.serial), (!server, from, datagram.to_vec(), outbound.ecn));
        }
    }

    /// Runs until `until`, or until there are no more events.
    fn run_until(&mut self, until: Time) {
        self.run_while(until, |_| true);
    }

    /// Runs until `until`, while `goes_on` holds.
    fn run_while(&mut self, until: Time, goes_on: impl Fn(&Pair) -> bool) {
        self.settle();
        let (mut before, mut rounds) = (self.now, 0);
        while goes_on(self) {
            rounds = if self.now == before { rounds + 1 } else { 0 };
            before = self.now;
            assert!(rounds < 10_000, "time stands still at {before}");
            let wire = self.wire.keys().next().map(|(at, _)| *at);
            let next =
                [wire, self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.now = self.now.max(until);
                return;
            };
            self.now = self.now.max(next);
            if wire.is_some_and(|at| at <= self.now) {
                let (_, (to_server, from, mut bytes, ecn)) = self.wire.pop_first().unwrap();
                let received = self.now;
                let inbound = Inbound { received, from, to: None, ecn, bytes: &mut bytes };
                self.side(to_server).handle(inbound);
            }
            for server in [false, true] {
                let now = self.now;
                if self.side(server).poll_timeout().is_some_and(|due| due <= now) {
                    self.side(server).handle_timeout(now);
                }
            }
            self.settle();
        }
    }

    fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        self.run_until(until);
    }

    /// Runs until both endpoints have connected.
    fn connect(&mut self) {
        let until = self.now + Duration::from_secs(20);
        self.run_while(until, |pair| {
            pair.work.iter().zip([false, true]).any(|(_, server)| !pair.is_connected(server))
        });
        assert!(self.is_connected(false) && self.is_connected(true), "{:?}", self.told);
    }

    fn is_connected(&self, server: bool) -> bool {
        self.told.iter().any(|(side, _, event)| *side == server && *event == Event::Connected)
    }

    /// Runs until the bytes of both endpoints have arrived and were acknowledged.
    fn transfer(&mut self, most: Duration) {
        let until = self.now + most;
        self.run_while(until, |pair| {
            pair.work.iter().any(|work| !work.to_send.is_empty() && !work.is_flushed)
        });
        for server in [false, true] {
            let (here, there) = (&self.work[usize::from(server)], &self.work[usize::from(!server)]);
            if !here.to_send.is_empty() {
                assert_eq!(there.got.len(), here.to_send.len(), "{:?}", self.told);
                assert!(there.got == here.to_send && there.has_ended, "every byte in its place, and the end");
            }
        }
    }

    fn closed(&self, server: bool) -> Option<&Closed> {
        self.told.iter().find_map(|(side, _, event)| match event {
            Event::Closed(why) if *side == server => Some(why),
            _ => None,
        })
    }
}

/// Returns the size of the IP packets that an endpoint sent between two instants.
fn bytes_between(pair: &Pair, from_server: bool, from: Time, to: Time) -> Bytes {
    let within =
        pair.sent.iter().filter(|sent| sent.from_server == from_server && from <= sent.at && sent.at < to);
    Bytes(within.map(|sent| sent.bytes as u64 + 28).sum())
}
