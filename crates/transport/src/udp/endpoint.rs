//! The endpoint of the UDP prototype: handshakes, and the assignment of datagrams to connections.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use airpace_core::{Ecn, Refused, Time};

use super::UdpConfig;
use super::connection::{ConnectionSetup, Envelope, UdpConnection};
use super::handshake::{self, EndpointSecret, Session};
use super::packet::{Clear, Cookie, Gone, Hello};
use super::path::PathEnds;
use crate::endpoint::{Connection, ConnectionId, Endpoint, Event, Ignored, Inbound, Outbound};
use crate::key::{self, Key};

/// Maximum number of queued answers to handshakes. Further answers are dropped; the clients repeat their requests.
const MAX_ANSWERS: usize = 256;

/// Maximum number of sealed packets per second for unknown connections that are answered with a Gone. A flood of such
/// packets costs the endpoint less than it costs the attacker.
///
/// Source: RFC 9000 §10.3.3
///
/// Chosen: two for each of 200 connections that a restart has broken.
const MAX_GONES: u32 = 400;

/// An endpoint of the UDP prototype for incoming and outgoing connections. All of its connections share one key.
pub struct UdpEndpoint {
    config: UdpConfig,
    key: Key,
    own: EndpointSecret,
    /// Connections by number. No number is used twice.
    connections: BTreeMap<u64, UdpConnection>,
    /// Numbers of connections, by the name that their incoming packets carry.
    names: BTreeMap<u64, u64>,
    /// Names that peers chose for connections, with the connections' numbers. Two peers may choose the same name.
    peers: BTreeSet<(u64, u64)>,
    /// Deadlines of connections.
    timers: BTreeSet<(Time, u64)>,
    due: BTreeMap<u64, Time>,
    /// Connections with events since they were last polled for transmissions.
    touched: VecDeque<u64>,
    half_open: usize,
    next_number: u64,
    answers: VecDeque<(PathEnds, Vec<u8>)>,
    /// Start of the current second of [`MAX_GONES`], and number of Gones sent in it.
    gones: (Time, u32),
    events: VecDeque<(ConnectionId, Event)>,
    ignored: Ignored,
}

impl UdpEndpoint {
    /// Creates an endpoint with the shared key `key`.
    ///
    /// # Errors
    /// The system returned no random numbers.
    pub fn new(key: Key, config: UdpConfig) -> Result<UdpEndpoint, key::NoRandomNumbers> {
        Ok(UdpEndpoint::with_secret(key, config, &key::random()?))
    }

    /// Creates an endpoint that derives all random numbers from `secret`. Two endpoints with equal secrets and equal
    /// inputs behave identically. Outside of tests, a secret must be used only once.
    pub fn with_secret(key: Key, config: UdpConfig, secret: &[u8; 32]) -> UdpEndpoint {
        UdpEndpoint {
            config,
            key,
            own: EndpointSecret::new(secret),
            connections: BTreeMap::new(),
            names: BTreeMap::new(),
            peers: BTreeSet::new(),
            timers: BTreeSet::new(),
            due: BTreeMap::new(),
            touched: VecDeque::new(),
            half_open: 0,
            next_number: 0,
            answers: VecDeque::new(),
            gones: (Time::ZERO, 0),
            events: VecDeque::new(),
            ignored: Ignored::default(),
        }
    }

    /// Number of connections in memory, including unfinished handshakes and closed connections that answer late
    /// packets.
    pub fn held(&self) -> usize {
        self.connections.len()
    }

    fn on_hello(&mut self, now: Time, ends: PathEnds, hello: &Hello<'_>) {
        if !self.config.accepts {
            self.ignored.stray += 1;
            return;
        }
        // A sender without the key receives no answer.
        if !handshake::is_hello(&self.key, hello) {
            self.ignored.forged += 1;
            return;
        }
        if !self.own.is_cookie(now, ends.peer, hello) {
            // A first Hello has no cookie. An expired cookie, or a cookie for another address, is answered with a new
            // one.
            self.ignored.refused += u64::from(hello.cookie.iter().any(|byte| *byte != 0));
            self.answer_with_cookie(now, ends, hello);
            return;
        }
        let name = self.own.name(hello);
        if let Some(&number) = self.names.get(&name) {
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.on_hello_again(ends);
                self.touch(number);
            }
            return;
        }
        if self.half_open >= self.config.most_half_open
            || self.connections.len() >= self.config.most_connections
        {
            self.ignored.refused += 1;
            return;
        }
        let session = Session {
            client: hello.client,
            server: name,
            client_nonce: *hello.nonce,
            server_nonce: self.own.draw(),
        };
        let begin = self.begin(now, name, ends);
        let connection = UdpConnection::server(self.config, begin, &self.key, session);
        self.peers.insert((hello.client, connection.id.0));
        self.half_open += 1;
        self.insert(connection);
    }

    fn answer_with_cookie(&mut self, now: Time, ends: PathEnds, hello: &Hello<'_>) {
        if self.answers.len() >= MAX_ANSWERS {
            self.ignored.refused += 1;
            return;
        }
        let cookie = self.own.cookie(now, ends.peer, hello);
        let proof = handshake::cookie_proof(&self.key, hello.client, hello.nonce, &cookie);
        let mut answer = vec![];
        Clear::Cookie(Cookie { client: hello.client, cookie: &cookie, proof: &proof }).write(&mut answer);
        self.answers.push_back((ends, answer));
    }

    fn begin(&mut self, now: Time, own_name: u64, ends: PathEnds) -> ConnectionSetup {
        self.next_number += 1;
        ConnectionSetup { id: ConnectionId(self.next_number), own_name, ends, now, seed: self.own.draw() }
    }

    fn insert(&mut self, connection: UdpConnection) {
        let number = connection.id.0;
        self.names.insert(connection.own_name, number);
        self.connections.insert(number, connection);
        self.touch(number);
    }

    fn touch(&mut self, number: u64) {
        if let Some(connection) = self.connections.get_mut(&number)
            && !std::mem::replace(&mut connection.is_touched, true)
        {
            self.touched.push_back(number);
        }
    }

    /// Handles a sealed packet for an unknown connection: the connection was closed, or belonged to an earlier run of
    /// the program. The sender is notified with a Gone.
    fn on_stray(&mut self, now: Time, ends: PathEnds, connection: u64, counter: u64) {
        self.ignored.stray += 1;
        if now - self.gones.0 >= Duration::from_secs(1) {
            self.gones = (now, 0);
        }
        if self.gones.1 < MAX_GONES && self.answers.len() < MAX_ANSWERS {
            self.gones.1 += 1;
            let proof = handshake::gone_proof(&self.key, self.config.accepts, connection, counter);
            let mut answer = vec![];
            Clear::Gone(Gone { connection, counter, proof: &proof }).write(&mut answer);
            self.answers.push_back((ends, answer));
        }
    }

    /// Handles a Gone: the sender does not know the connection of this name.
    fn on_gone(&mut self, now: Time, gone: &Gone<'_>) {
        let named = self.peers.range((gone.connection, 0)..=(gone.connection, u64::MAX));
        let numbers: Vec<u64> = named.map(|(_, number)| *number).collect();
        self.ignored.stray += u64::from(numbers.is_empty());
        for number in numbers {
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.on_gone(now, &self.key, gone, &mut self.ignored);
                self.touch(number);
            }
        }
    }

    /// Moves a connection's events to the endpoint's queue.
    fn collect(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        self.events.extend(connection.events.drain(..).map(|event| (ConnectionId(number), event)));
    }

    /// Updates a connection's timer, or removes the connection if it has finished.
    fn settle(&mut self, number: u64) {
        let Some(connection) = self.connections.get(&number) else { return };
        let is_over = connection.is_over();
        let next = if is_over { None } else { connection.poll_timeout() };
        let before = match next {
            Some(next) => self.due.insert(number, next),
            None => self.due.remove(&number),
        };
        if before != next {
            before.map(|before| self.timers.remove(&(before, number)));
            next.map(|next| self.timers.insert((next, number)));
        }
        if is_over && let Some(gone) = self.connections.remove(&number) {
            self.names.remove(&gone.own_name);
            self.peers.remove(&(gone.peer_name(), number));
        }
    }

    /// Passes a datagram to the connection with this name. Returns whether there is such a connection.
    fn with(&mut self, name: u64, act: impl FnOnce(&mut UdpConnection, &Key, &mut Ignored)) -> bool {
        let number = self.names.get(&name).copied();
        let Some(connection) = number.and_then(|number| self.connections.get_mut(&number)) else {
            return false;
        };
        let was_half_open = connection.is_half_open();
        act(connection, &self.key, &mut self.ignored);
        self.half_open -= usize::from(was_half_open && !connection.is_half_open());
        let number = connection.id.0;
        self.touch(number);
        true
    }
}

impl Endpoint for UdpEndpoint {
    fn handle(&mut self, datagram: Inbound<'_>) {
        let Inbound { received, from, to, ecn, bytes } = datagram;
        let ends = PathEnds { peer: from, local: to };
        match Clear::read(bytes) {
            None => self.ignored.malformed += 1,
            Some(Clear::Hello(hello)) => self.on_hello(received, ends, &hello),
            Some(Clear::Cookie(cookie)) => {
                let is_known = self.with(cookie.client, |connection, key, ignored| {
                    connection.on_cookie(received, key, &cookie, ignored);
                });
                self.ignored.stray += u64::from(!is_known);
            }
            Some(Clear::Accept(accept)) => {
                let mut accepted = None;
                let is_known = self.with(accept.client, |connection, key, ignored| {
                    connection.on_accept(received, key, &accept, ignored);
                    // Without a peer name, no Gone can refer to the connection.
                    accepted = Some((connection.peer_name(), connection.id.0)).filter(|(name, _)| *name != 0);
                });
                self.peers.extend(accepted);
                self.ignored.stray += u64::from(!is_known);
            }
            Some(Clear::Sealed { connection: name, counter }) => {
                let envelope = Envelope { received, ends, ecn, counter };
                let is_known = self.with(name, |connection, _, ignored| {
                    connection.on_sealed(&envelope, bytes, ignored);
                });
                if !is_known {
                    self.on_stray(received, ends, name, counter);
                }
            }
            Some(Clear::Gone(gone)) => self.on_gone(received, &gone),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(&(due, number)) = self.timers.first()
            && due <= now
        {
            self.timers.pop_first();
            self.due.remove(&number);
            if let Some(connection) = self.connections.get_mut(&number) {
                let was_half_open = connection.is_half_open();
                connection.handle_timeout(now);
                self.half_open -= usize::from(was_half_open && !connection.is_half_open());
                self.touch(number);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        // While outputs are not drained, the deadline is immediate.
        let is_behind = !(self.touched.is_empty() && self.answers.is_empty() && self.events.is_empty());
        if is_behind { Some(Time::ZERO) } else { self.timers.first().map(|(due, _)| *due) }
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        if let Some((ends, answer)) = self.answers.pop_front() {
            buffer.extend_from_slice(&answer);
            return Some(Outbound { to: ends.peer, from: ends.local, ecn: Ecn::NotEct, segment: None });
        }
        while let Some(&number) = self.touched.front() {
            if let Some(connection) = self.connections.get_mut(&number)
                && let Some(outbound) = connection.poll_transmit(now, &self.key, buffer)
            {
                // Let other connections send next.
                self.touched.rotate_left(1);
                return Some(outbound);
            }
            self.touched.pop_front();
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.is_touched = false;
            }
            self.collect(number);
            self.settle(number);
        }
        None
    }

    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        if self.events.is_empty() {
            for place in 0..self.touched.len() {
                self.collect(self.touched[place]);
            }
        }
        self.events.pop_front()
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        if self.connections.len() >= self.config.most_connections {
            let most = self.config.most_connections;
            return Err(format!("{most} connections are open; wait until one of them is over").into());
        }
        let (name, nonce) = (self.own.draw_word(), self.own.draw());
        let begin = self.begin(now, name, PathEnds { peer, local: None });
        let connection = UdpConnection::client(self.config, begin, nonce);
        let id = connection.id;
        self.insert(connection);
        Ok(id)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection> {
        self.connections.get(&id.0).filter(|connection| connection.is_usable())?;
        self.touch(id.0);
        self.connections.get_mut(&id.0).map(|connection| connection as &mut dyn Connection)
    }

    fn on_rebound(&mut self, now: Time) {
        let numbers: Vec<u64> = self.connections.keys().copied().collect();
        for number in numbers {
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.on_rebound(now);
                self.touch(number);
            }
        }
    }

    fn ignored(&self) -> Ignored {
        self.ignored
    }
}
