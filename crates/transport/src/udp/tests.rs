//! Two endpoints in virtual time, over a network with loss, damage, duplication, delay, reordering and outages.

mod hostile;
mod life;
mod transfer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use airpace_cc::scheme::{Ends as Halves, Setup};
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Ecn, Rate, Rng, Streams, Time};

use super::*;
use crate::endpoint::{
    Closed, Connection, ConnectionId, Endpoint, Event, Inbound, MSS, Outbound, Read, overhead,
};
use crate::key::Key;

const KEY: [u8; 16] = [5; 16];
const CLIENT: usize = 0;
const SERVER: usize = 1;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

/// Impairments of a network, in both directions.
#[derive(Clone, Debug)]
struct Network {
    loss: f64,
    damage: f64,
    duplication: f64,
    delay: Duration,
    /// Maximum random additional delay, which reorders datagrams.
    jitter: Duration,
    rate: Rate,
    /// Maximum queueing delay of a datagram.
    queue: Duration,
    /// Period in which all datagrams are lost.
    outage: Range<Time>,
}

impl Default for Network {
    fn default() -> Network {
        Network {
            loss: 0.0,
            damage: 0.0,
            duplication: 0.0,
            delay: Duration::from_millis(10),
            jitter: Duration::ZERO,
            rate: Rate::from_mbps(100.0),
            queue: Duration::from_millis(40),
            outage: Time::NEVER..Time::NEVER,
        }
    }
}

/// A datagram in flight.
#[derive(Clone, Debug)]
struct Flight {
    from: SocketAddr,
    to: SocketAddr,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// An application that writes some bytes and stores the received ones.
#[derive(Default)]
struct Peer {
    id: Option<ConnectionId>,
    to_write: Vec<u8>,
    written: usize,
    finished: bool,
    /// Whether to close once all written bytes were acknowledged and all received bytes were read.
    closes: bool,
    scheme: Option<String>,
    got: Vec<u8>,
    is_read: bool,
    is_flushed: bool,
    closed: Option<Closed>,
    moved: Vec<SocketAddr>,
    /// Maximum number of bytes per read.
    sip: usize,
    /// Whether the application does not read at all.
    is_stuck: bool,
}

struct World {
    now: Time,
    network: Network,
    rng: Rng,
    ends: [UdpEndpoint; 2],
    peers: [Peer; 2],
    /// The client's address as the server sees it. Datagrams to a previous address are lost.
    client_at: SocketAddr,
    server_at: SocketAddr,
    flights: BTreeMap<(Time, u64), Flight>,
    flown: u64,
    free_at: [Time; 2],
    /// All datagrams sent, for tests that inspect them.
    log: Vec<(Time, Flight)>,
    /// Whether every datagram arrives twice, the second copy right after the first.
    replays: bool,
}

fn halves(scheme: &str) -> Halves {
    let setup = Setup::new(MSS, Streams::new(1).stream("test"));
    SchemeSpec::parse(scheme).and_then(|spec| spec.build(&setup)).expect("a scheme of the list")
}

/// Returns random bytes, in which no two parts are equal.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut rng = Streams::new(seed).stream("noise");
    (0..count.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(count).collect()
}

impl World {
    fn new(seed: u64, network: Network) -> World {
        World::with(seed, network, UdpConfig::default(), [KEY, KEY])
    }

    fn with(seed: u64, network: Network, config: UdpConfig, keys: [[u8; 16]; 2]) -> World {
        let end = |role: usize| {
            let config = UdpConfig { accepts: role == SERVER, ..config };
            UdpEndpoint::with_secret(
                Key::new(keys[role]),
                config,
                &[(role as u8).wrapping_add(seed as u8); 32],
            )
        };
        World {
            now: Time::from_secs(100),
            network,
            rng: Streams::new(seed).stream("network"),
            ends: [end(CLIENT), end(SERVER)],
            peers: [(); 2].map(|()| Peer { sip: 70_000, ..Peer::default() }),
            client_at: address(1000),
            server_at: address(2000),
            flights: BTreeMap::new(),
            flown: 0,
            free_at: [Time::ZERO; 2],
            log: vec![],
            replays: false,
        }
    }

    /// Starts a connection in which the two peers send these numbers of bytes.
    fn transfer(&mut self, [up, down]: [usize; 2]) {
        for (peer, (seed, count)) in self.peers.iter_mut().zip([(1, up), (2, down)]) {
            (peer.to_write, peer.closes) = (noise(seed, count), true);
        }
        let id = self.ends[CLIENT].connect(self.now, self.server_at).expect("there is room");
        self.peers[CLIENT].id = Some(id);
        self.drain();
    }

    fn connection(&mut self, role: usize) -> &mut dyn Connection {
        let id = self.peers[role].id.expect("it is connected");
        self.ends[role].connection(id).expect("it is not over")
    }

    /// Runs applications and endpoints until they have nothing to do at this instant.
    fn drain(&mut self) {
        let mut buffer = vec![];
        loop {
            let mut is_idle = true;
            for role in [CLIENT, SERVER] {
                while let Some(outbound) = self.ends[role].poll_transmit(self.now, &mut buffer) {
                    self.send(role, outbound, std::mem::take(&mut buffer));
                    is_idle = false;
                }
                while let Some((id, event)) = self.ends[role].poll_event() {
                    self.peers[role].on_event(self.now, &mut self.ends[role], id, event);
                    is_idle = false;
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn send(&mut self, role: usize, outbound: Outbound, bytes: Vec<u8>) {
        let from = if role == CLIENT { self.client_at } else { self.server_at };
        let size = outbound.segment.unwrap_or(bytes.len());
        for bytes in bytes.chunks(size) {
            let flight = Flight { from, to: outbound.to, ecn: outbound.ecn, bytes: bytes.to_vec() };
            self.log.push((self.now, flight.clone()));
            self.fly(role, flight);
        }
    }

    fn fly(&mut self, role: usize, mut flight: Flight) {
        let Network { loss, damage, duplication, delay, jitter, rate, queue, .. } = self.network;
        let lost = self.rng.chance(loss) || self.network.outage.contains(&self.now);
        let wait = self.free_at[role] - self.now;
        let size = Bytes(flight.bytes.len() as u64) + overhead(&flight.to);
        if lost || wait > queue {
            return;
        }
        self.free_at[role] = self.free_at[role].max(self.now) + rate.time_for(size);
        if self.rng.chance(damage) {
            let bit = self.rng.below(flight.bytes.len() as u64 * 8) as usize;
            flight.bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for _ in 0..1 + u64::from(self.rng.chance(duplication)) {
            let late = jitter.mul_f64(self.rng.uniform());
            self.flown += 1;
            self.flights.insert((self.free_at[role] + delay + late, self.flown), flight.clone());
        }
    }

    /// Advances to the next instant with an event. Returns whether there is such an instant.
    fn step(&mut self) -> bool {
        let due = self.ends.iter().filter_map(|end| end.poll_timeout());
        let arrives = self.flights.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = due.chain(arrives).min() else { return false };
        self.now = self.now.max(next);
        while let Some(entry) = self.flights.first_entry()
            && entry.key().0 <= self.now
        {
            let flight = entry.remove();
            self.arrive(&flight);
            if self.replays {
                self.arrive(&flight);
            }
        }
        for role in [CLIENT, SERVER] {
            self.ends[role].handle_timeout(self.now);
        }
        self.drain();
        true
    }

    fn arrive(&mut self, flight: &Flight) {
        let role = match flight.to {
            to if to == self.server_at => SERVER,
            to if to == self.client_at => CLIENT,
            _ => return,
        };
        self.receive(role, flight);
    }

    /// Delivers a stranger's datagram to one of the endpoints.
    fn hand_over(&mut self, role: usize, from: SocketAddr, bytes: &[u8]) {
        let to = [self.client_at, self.server_at][role];
        self.receive(role, &Flight { from, to, ecn: Ecn::NotEct, bytes: bytes.to_vec() });
    }

    fn receive(&mut self, role: usize, flight: &Flight) {
        let mut bytes = flight.bytes.clone();
        let (received, from, ecn) = (self.now, flight.from, flight.ecn);
        self.ends[role].handle(Inbound { received, from, to: None, ecn, bytes: &mut bytes });
    }

    /// Returns a world in the middle of a transfer.
    fn in_the_middle(seed: u64, bytes: [usize; 2]) -> World {
        let mut world = World::new(seed, Network::default());
        world.transfer(bytes);
        world.run_until(ms(100_150), |_| false);
        assert!(world.peers.iter().all(|peer| peer.closed.is_none() && peer.id.is_some()));
        world
    }

    /// Runs until `is_enough` holds, but not beyond `end`.
    fn run_until(&mut self, end: Time, mut is_enough: impl FnMut(&World) -> bool) {
        let mut steps = 0;
        let mut at = self.now;
        while !is_enough(self) && self.now < end && self.step() {
            steps = if at == self.now { steps + 1 } else { 0 };
            at = self.now;
            assert!(
                steps < 10_000,
                "nobody waits at {at}: {:?}",
                self.ends.each_ref().map(|end| end.poll_timeout())
            );
        }
    }

    /// Runs until both connections are closed.
    fn run(&mut self) {
        let end = self.now + Duration::from_secs(600);
        self.run_until(end, |world| world.peers.iter().all(|peer| peer.closed.is_some()));
    }

    /// Checks that both peers have received the other's bytes and its end.
    fn check(&self, what: &str) {
        for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
            let (sent, got) = (&self.peers[from].to_write, &self.peers[to].got);
            assert_eq!(sent.len(), got.len(), "{what}: bytes that {from} sent and {to} has at {}", self.now);
            assert!(sent == got, "{what}: bytes differ");
            assert!(self.peers[to].is_read, "{what}: {to} knows of the end");
            // If the other peer closed the connection, a peer may never be notified that its last bytes arrived.
            let is_left = matches!(self.peers[from].closed, Some(Closed::ByPeer { .. }));
            assert!(self.peers[from].is_flushed || is_left, "{what}: {from} knows that all arrived");
        }
    }
}

impl Peer {
    fn on_event(&mut self, now: Time, end: &mut UdpEndpoint, id: ConnectionId, event: Event) {
        match event {
            Event::Connected => {
                self.id = Some(id);
                if let (Some(scheme), Some(connection)) = (&self.scheme, end.connection(id)) {
                    let Halves { controller, receiver } = halves(scheme);
                    connection.steer(now, controller);
                    connection.listen(receiver);
                }
            }
            Event::Flushed => self.is_flushed = true,
            Event::Moved(to) => self.moved.push(to),
            Event::Closed(closed) => {
                assert!(self.closed.replace(closed).is_none(), "a connection ends once");
                assert!(end.connection(id).is_none());
            }
            Event::Readable | Event::Writable => {}
        }
        self.turn(now, end, id);
    }

    fn turn(&mut self, now: Time, end: &mut UdpEndpoint, id: ConnectionId) {
        let Some(connection) = end.connection(id) else { return };
        if self.written < self.to_write.len() {
            self.written += connection.write(now, &self.to_write[self.written..]).unwrap_or_default();
        }
        if self.written == self.to_write.len() && !self.finished {
            self.finished = true;
            connection.finish(now);
        }
        let mut sip = vec![0; self.sip];
        while !self.is_stuck
            && let Ok(read) = connection.read(now, &mut sip)
        {
            match read {
                Read::Bytes(count) => self.got.extend_from_slice(&sip[..count]),
                Read::Nothing => break,
                Read::End => {
                    self.is_read = true;
                    break;
                }
            }
        }
        if self.closes && self.is_read && self.is_flushed {
            connection.close(now, 0, "all is done");
        }
    }
}
