//! The QUIC endpoint: noq's endpoint, the connections, the handshakes in progress, and replies outside of
//! connections.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;
use std::sync::Arc;

use airpace_core::{Ecn, Refused, Time};
use noq_proto::crypto::rustls::QuicClientConfig;
use noq_proto::{
    ClientConfig, DatagramEvent, EcnCodepoint, EndpointConfig, FourTuple, HashedConnectionIdGenerator,
    Incoming, ServerConfig, TokenMemoryCache, Transmit,
};
use ring::hmac;

use super::adapter::{Clock, Handle};
use super::blocks::Blocks;
use super::config::{Config, Retry};
use super::connection::{AMPLIFICATION, ObservedConnection, QuicConnection};
use super::logged::{LoggedClientConfig, LoggedServerConfig};
use crate::endpoint::{Connection, ConnectionId, Endpoint, Event, Ignored, Inbound, Outbound};
use crate::qlog::Log;

/// Maximum number of queued replies outside of connections; more are dropped.
///
/// Chosen: a flood can queue less than 2 MB.
const MAX_REPLIES: usize = 1024;

/// Maximum number of received datagrams before their data and events are processed. Processing them together costs
/// less.
///
/// Chosen: a group of datagrams that the kernel has joined (GRO). noq permits 1024 out-of-order pieces of a stream.
const MAX_UNREAD: usize = 64;

/// A QUIC endpoint.
pub struct QuicEndpoint {
    config: Arc<Config>,
    noq: noq_proto::Endpoint,
    tls: Arc<QuicClientConfig>,
    /// Address validation tokens that servers issued for later connections.
    tokens: Arc<TokenMemoryCache>,
    server: Option<ServerConfig>,
    /// Wrapper of the server's TLS, if connections are logged.
    logged: Option<LoggedServerConfig>,
    clock: Clock,
    now: Time,
    connections: BTreeMap<ConnectionId, QuicConnection>,
    /// Connections by noq's handles, which noq reuses.
    by_handle: BTreeMap<usize, ConnectionId>,
    next_id: u64,
    /// Connections that may have datagrams to send or events.
    touched: BTreeSet<ConnectionId>,
    /// Received datagrams whose data and events were not processed yet.
    unread: usize,
    deadlines: BTreeSet<(Time, ConnectionId)>,
    deadline_of: BTreeMap<ConnectionId, Time>,
    replies: VecDeque<(Outbound, Vec<u8>)>,
    events: VecDeque<(ConnectionId, Event)>,
    half_open: usize,
    ignored: Ignored,
    blocks: Blocks,
    /// Buffer that is kept to reuse its memory.
    buffer: Vec<u8>,
}

/// Returns the settings of an endpoint that recognizes the connection IDs of its previous runs with the same key.
fn lasting(key: &[u8; 64]) -> EndpointConfig {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut of_ids = [0; 8];
    of_ids.copy_from_slice(&hmac::sign(&key, b"connection IDs").as_ref()[..8]);
    let of_ids = u64::from_be_bytes(of_ids);
    let mut settings = EndpointConfig::new(Arc::new(key));
    settings.cid_generator(Arc::new(move || Box::new(HashedConnectionIdGenerator::from_key(of_ids))));
    settings
}

impl QuicEndpoint {
    /// Creates an endpoint without connections.
    ///
    /// # Errors
    /// Certificate and key do not match, or a setting is invalid.
    pub fn new(config: Config) -> Result<QuicEndpoint, Refused> {
        let tls = config.client()?;
        let mut server = config.server()?;
        let is_logged = config.qlog.is_some();
        let logged = server.as_mut().filter(|_| is_logged).map(|server| {
            let logged = LoggedServerConfig::new(server.crypto.clone());
            server.crypto = Arc::new(logged.clone());
            logged
        });
        let mut settings = config.reset_key.as_ref().map_or_else(EndpointConfig::default, lasting);
        // The first byte distinguishes QUIC from the other transport on one port. Source: RFC 9287 §3
        settings.grease_quic_bit(false);
        let noq = noq_proto::Endpoint::new(Arc::new(settings), server.clone().map(Arc::new), true);
        Ok(QuicEndpoint {
            config: Arc::new(config),
            noq,
            tls,
            tokens: Arc::default(),
            server,
            logged,
            clock: Clock::new(),
            now: Time::ZERO,
            connections: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            next_id: 0,
            touched: BTreeSet::new(),
            unread: 0,
            deadlines: BTreeSet::new(),
            deadline_of: BTreeMap::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
            half_open: 0,
            ignored: Ignored::default(),
            blocks: Blocks::default(),
            buffer: Vec::new(),
        })
    }

    /// Returns a connection that is not closed, with the functions that only QUIC has.
    pub fn quic(&mut self, id: ConnectionId) -> Option<&mut QuicConnection> {
        let connection = self.connections.get_mut(&id).filter(|connection| !connection.is_over())?;
        self.touched.insert(id);
        Some(connection)
    }

    /// Number of connections in memory, including closed ones that were not removed yet.
    pub fn connections_held(&self) -> usize {
        self.connections.len()
    }

    /// Number of handshakes in progress.
    pub fn half_open(&self) -> usize {
        self.half_open
    }

    fn adopt(&mut self, now: Time, observed: ObservedConnection) -> ConnectionId {
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        self.by_handle.insert(observed.handle.0, id);
        let connection = QuicConnection::new(now, observed, self.clock, self.config.clone());
        self.half_open += usize::from(connection.is_half_open);
        self.connections.insert(id, connection);
        self.touched.insert(id);
        id
    }

    fn log(&self, now: Time, peer: SocketAddr, local: Option<IpAddr>) -> Option<Log> {
        self.config.qlog.as_ref().map(|folder| Log::new(folder.clone(), now, peer, local))
    }

    fn reply(&mut self, transmit: &Transmit, bytes: Vec<u8>) {
        if self.replies.len() < MAX_REPLIES {
            let (to, from) = (transmit.destination, transmit.src_ip);
            self.replies.push_back((Outbound { to, from, ecn: Ecn::NotEct, segment: None }, bytes));
        }
    }

    fn on_incoming(&mut self, now: Time, incoming: Incoming, payload: usize) {
        let mut bytes = Vec::new();
        let is_loaded = match self.config.retry {
            Retry::Always => true,
            Retry::UnderLoad(most) => self.half_open >= most,
        };
        if is_loaded && !incoming.remote_address_validated() {
            match self.noq.retry(incoming, &mut bytes) {
                Ok(transmit) => self.reply(&transmit, bytes),
                Err(error) => {
                    self.noq.ignore(error.into_incoming());
                    self.ignored.refused += 1;
                }
            }
            return;
        }
        let is_full = self.connections.len() >= self.config.most_connections;
        if is_full || self.half_open >= self.config.most_handshakes {
            self.ignored.refused += 1;
            let transmit = self.noq.refuse(incoming, &mut bytes);
            self.reply(&transmit, bytes);
            return;
        }
        let (peer, tap) = (incoming.remote_address(), Handle::default());
        let credit = (!incoming.remote_address_validated()).then_some(AMPLIFICATION * payload as u64);
        let transport = self.config.transport(&peer, &tap);
        let (Some(mut server), Ok(transport)) = (self.server.clone(), transport) else {
            self.ignored.refused += 1;
            return self.noq.ignore(incoming);
        };
        server.transport_config(Arc::new(transport));
        let log = self.log(now, peer, incoming.local_ip());
        if let (Some(logged), Some(log)) = (&self.logged, &log) {
            server.crypto = logged.with(log.clone());
        }
        let instant = self.clock.tick(now);
        match self.noq.accept(incoming, instant, &mut bytes, Some(Arc::new(server))) {
            Ok((handle, noq)) => {
                let id = self.adopt(now, ObservedConnection { handle, noq, peer, tap, log });
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.credit = credit;
                }
                self.after(id);
            }
            Err(error) => {
                self.ignored.forged += 1;
                if let Some(transmit) = error.response {
                    self.reply(&transmit, bytes);
                }
            }
        }
    }

    /// Exchanges the events of noq's connection and endpoint, and collects the connection's events.
    fn after(&mut self, id: ConnectionId) {
        self.touched.insert(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        while let Some(event) = connection.noq.poll_endpoint_events() {
            if let Some(answer) = self.noq.handle_event(connection.handle, event) {
                connection.handle_event(answer);
            }
        }
        connection.pick_up();
        if connection.is_counted && !connection.is_half_open {
            connection.is_counted = false;
            self.half_open -= 1;
        }
        self.events.extend(connection.events.drain(..).map(|event| (id, event)));
    }

    /// Collects the events of all connections that received datagrams or calls.
    fn after_all(&mut self) {
        self.unread = 0;
        let mut next = self.touched.first().copied();
        while let Some(id) = next {
            self.after(id);
            next = self.touched.range((Bound::Excluded(id), Bound::Unbounded)).next().copied();
        }
    }

    fn set_deadline(&mut self, id: ConnectionId, deadline: Option<Time>) {
        if let Some(before) = self.deadline_of.remove(&id) {
            self.deadlines.remove(&(before, id));
        }
        if let Some(deadline) = deadline {
            self.deadline_of.insert(id, deadline);
            self.deadlines.insert((deadline, id));
        }
    }
}

impl Endpoint for QuicEndpoint {
    fn handle(&mut self, datagram: Inbound<'_>) {
        let now = datagram.received;
        self.now = self.now.max(now);
        let instant = self.clock.tick(now);
        let ecn = match datagram.ecn {
            Ecn::NotEct => None,
            Ecn::Ect => Some(EcnCodepoint::Ect0),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let path = FourTuple::new(datagram.from, datagram.to);
        let payload = datagram.bytes.len();
        let is_long = datagram.bytes.first().is_some_and(|first| first & 0x80 != 0);
        let bytes = self.blocks.copy(datagram.bytes);
        self.buffer.clear();
        match self.noq.handle(instant, path, ecn, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(&id) = self.by_handle.get(&handle.0) else { return };
                if let Some(connection) = self.connections.get_mut(&id) {
                    let is_read = connection.handle(now, event, payload, datagram.ecn);
                    self.ignored.forged += u64::from(!is_read);
                    self.touched.insert(id);
                    self.unread += 1;
                    if self.unread >= MAX_UNREAD {
                        self.after_all();
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.on_incoming(now, incoming, payload),
            Some(DatagramEvent::Response(transmit)) => {
                self.ignored.stray += 1;
                let bytes = std::mem::take(&mut self.buffer);
                self.reply(&transmit, bytes);
            }
            None if is_long || payload < 21 => self.ignored.malformed += 1,
            None => self.ignored.stray += 1,
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.set_deadline(id, None);
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.handle_timeout(now);
                self.after(id);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        if !self.touched.is_empty() || !self.replies.is_empty() {
            return Some(self.now);
        }
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        self.now = self.now.max(now);
        if let Some((outbound, bytes)) = self.replies.pop_front() {
            buffer.extend_from_slice(&bytes);
            return Some(outbound);
        }
        while let Some(&id) = self.touched.first() {
            if let Some(connection) = self.connections.get_mut(&id) {
                let sent = connection.poll_transmit(now, buffer);
                self.after(id);
                if sent.is_some() {
                    return sent;
                }
            }
            self.touched.remove(&id);
            let Some(connection) = self.connections.get(&id) else { continue };
            if connection.is_drained() {
                self.by_handle.remove(&connection.handle.0);
                self.half_open -= usize::from(connection.is_counted);
                self.set_deadline(id, None);
                self.connections.remove(&id);
            } else {
                let deadline = connection.poll_timeout();
                self.set_deadline(id, deadline);
            }
        }
        None
    }

    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        if self.events.is_empty() {
            self.after_all();
        }
        self.events.pop_front()
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        self.now = self.now.max(now);
        let tap = Handle::default();
        let log = self.log(now, peer, None);
        let mut client = ClientConfig::new(match &log {
            Some(log) => Arc::new(LoggedClientConfig::new(self.tls.clone(), log.clone())),
            None => self.tls.clone(),
        });
        client.token_store(self.tokens.clone());
        client.transport_config(Arc::new(self.config.transport(&peer, &tap)?));
        let instant = self.clock.tick(now);
        let (handle, noq) = self
            .noq
            .connect(instant, client, peer, &self.config.server_name)
            .map_err(|error| format!("no connection to {peer} can begin: {error}"))?;
        Ok(self.adopt(now, ObservedConnection { handle, noq, peer, tap, log }))
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection> {
        self.quic(id).map(|connection| connection as &mut dyn Connection)
    }

    fn on_rebound(&mut self, now: Time) {
        self.now = self.now.max(now);
        for (id, connection) in &mut self.connections {
            connection.on_rebound(now);
            self.touched.insert(*id);
        }
    }

    fn ignored(&self) -> Ignored {
        self.ignored
    }
}
