//! A connection of the UDP prototype: its state, and the functions for the application.
//!
//! `receive.rs` processes received datagrams, `transmit.rs` composes datagrams and sets timers.

mod receive;
mod transmit;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use airpace_cc::controller::{Controller, Inspect, Receiver, Rtt};
use airpace_cc::endpoint::{Acker, Backlog, Sender, SenderConfig};
use airpace_cc::registry::DeviceFlows;
use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Bytes, FlowId, Refused, Streams, Time};
use airpace_radio::RadioReport;

pub use self::receive::Envelope;
use super::UdpConfig;
use super::handshake::Session;
use super::packet::{COOKIE, NONCE};
use super::path::{Path, PathEnds, PathProbe};
use super::seal::{Opener, Sealer};
use super::stream::{Incoming, Outgoing};
use crate::endpoint::{Closed, Connection, ConnectionId, Counted, Event, Figures, MSS, Read};
use crate::key::Key;

/// Minimum time for which a closed connection answers late packets.
///
/// Chosen: on any path in use, the peer's probes arrive within this time.
const LINGER: Duration = Duration::from_secs(3);

/// A connection of the UDP prototype.
pub struct UdpConnection {
    pub id: ConnectionId,
    /// Name of this endpoint, carried by packets to it, and name of the peer, carried by packets to the peer.
    pub own_name: u64,
    peer_name: u64,
    /// Whether the connection is in the endpoint's queue of connections to poll for transmissions.
    pub is_touched: bool,
    config: UdpConfig,
    state: State,
    keys: Option<Keys>,
    path: Path,
    /// The latest known instant. The kernel's receive times precede the time of processing; this clock never runs
    /// backwards.
    clock: Time,
    last_heard: Time,
    /// Instant since which data or a Ping is unanswered and no packet has arrived.
    waits_since: Option<Time>,
    /// Whether this endpoint initiated the connection.
    is_client: bool,
    /// Pending Ping: to keep the connection alive, to confirm the handshake, to show a new local address, or to request
    /// a higher limit.
    question: Option<PathProbe>,
    /// Tokens of Pings to answer, with the addresses to answer to.
    pongs: VecDeque<(u64, SocketAddr)>,
    /// Generator of the tokens of Pings.
    tokens: Tokens,

    sender: Sender,
    outgoing: Outgoing,
    acker: Acker,
    incoming: Incoming,
    /// Maximum length of the headers that this controller has attached (bytes).
    rider: usize,
    /// Latest figures of the device about its flows.
    device: Option<DeviceFlows>,
    /// Whether a Limit frame is due, and whether a Request frame of the scheme's receiver is due.
    limit_due: bool,
    request_due: bool,
    /// Number of the newest packet with a Request.
    newest_request: Option<u64>,
    /// Whether the application has set a controller.
    is_steered: bool,

    pub events: VecDeque<Event>,
    /// Whether the application was notified of readable bytes and has not read since.
    told_readable: bool,
    told_flushed: bool,

    sent: Counted,
    lost: Counted,
    received: Counted,
    /// Minimum one-way delay, and one-way delay of the newest packet (ns). Both include the offset between the two
    /// clocks.
    delays: Option<(i64, i64)>,
    forfeited_bytes: Bytes,
    forfeited: Duration,
}

/// State of a connection.
enum State {
    /// A client in the handshake.
    Hello(Greeting),
    /// A server's connection before the client has sent a sealed packet.
    HalfOpen { gives_up: Time, accept_due: bool },
    /// Established. The server answers copies of the client's Hello, because its Accept may have been lost.
    Open { accept_due: bool },
    /// Closed by the local application: Close packets are sent and repeated.
    Closing(Goodbye),
    /// The peer is gone; the application may still read the received bytes.
    Drained(Closed),
    /// Finished.
    Over,
}

struct Greeting {
    nonce: [u8; NONCE],
    cookie: [u8; COOKIE],
    next: Time,
    tries: u32,
    gives_up: Time,
}

struct Goodbye {
    code: u32,
    reason: String,
    next: Time,
    tries: u32,
    /// Packets received since the last Close was sent.
    heard: u32,
    ends: Time,
}

struct Keys {
    session: Session,
    binding: [u8; 32],
    sealer: Sealer,
    opener: Opener,
}

/// Generates unpredictable numbers from a secret seed.
struct Tokens {
    seed: Key,
    drawn: u64,
}

impl Tokens {
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        let proof = self.seed.prove(&[&self.drawn.to_be_bytes()]);
        u64::from_be_bytes(std::array::from_fn(|place| proof[place]))
    }
}

impl Keys {
    fn new(key: &Key, session: Session, is_client: bool) -> Keys {
        Keys {
            session,
            binding: session.binding(key),
            sealer: Sealer::new(session.secret(key, is_client)),
            opener: Opener::new(session.secret(key, !is_client)),
        }
    }
}

/// Parameters of a new connection.
pub struct ConnectionSetup {
    pub id: ConnectionId,
    pub own_name: u64,
    pub ends: PathEnds,
    pub now: Time,
    /// Seed of the connection's random numbers.
    pub seed: [u8; Key::BYTES],
}

impl UdpConnection {
    /// Creates a client's connection, which sends a Hello with this nonce.
    pub fn client(config: UdpConfig, begin: ConnectionSetup, nonce: [u8; NONCE]) -> UdpConnection {
        let greeting = Greeting {
            nonce,
            cookie: [0; COOKIE],
            next: begin.now,
            tries: 0,
            gives_up: begin.now + config.patience,
        };
        UdpConnection::new(config, begin, State::Hello(greeting))
    }

    /// Creates a server's connection, for a client whose cookie and proof are valid.
    pub fn server(config: UdpConfig, begin: ConnectionSetup, key: &Key, session: Session) -> UdpConnection {
        let state = State::HalfOpen { gives_up: begin.now + config.patience, accept_due: true };
        let mut connection = UdpConnection::new(config, begin, state);
        connection.peer_name = session.client;
        connection.keys = Some(Keys::new(key, session, false));
        connection
    }

    fn new(config: UdpConfig, begin: ConnectionSetup, state: State) -> UdpConnection {
        let ConnectionSetup { id, own_name, ends, now, seed } = begin;
        // Until the application chooses a scheme, CUBIC controls the rate, as in most of the Internet.
        let rng = Streams::new(id.0).stream("udp.controller");
        let ends_of_cubic = SchemeSpec::parse("cubic").and_then(|spec| spec.build(&Setup::new(MSS, rng)));
        let cubic = ends_of_cubic.expect("cubic is in the list of schemes").controller;
        let sender_config =
            SenderConfig::new(FlowId(id.0 as u16), MSS).with_pacer(config.pacer).with_ack(config.ack);
        UdpConnection {
            id,
            own_name,
            peer_name: 0,
            is_touched: false,
            is_client: matches!(state, State::Hello(_)),
            waits_since: None,
            config,
            state,
            keys: None,
            path: Path::new(ends),
            clock: now,
            last_heard: now,
            question: None,
            pongs: VecDeque::new(),
            tokens: Tokens { seed: Key::new(seed), drawn: 0 },
            sender: Sender::new(sender_config, cubic, Backlog::NOTHING_CARRIED),
            outgoing: Outgoing::new(config.send_buffer),
            acker: Acker::new(config.ack, None),
            incoming: Incoming::new(config.receive_buffer),
            rider: 0,
            device: None,
            limit_due: false,
            request_due: false,
            newest_request: None,
            is_steered: false,
            events: VecDeque::new(),
            told_readable: false,
            told_flushed: false,
            sent: Counted::default(),
            lost: Counted::default(),
            received: Counted::default(),
            delays: None,
            forfeited_bytes: Bytes::ZERO,
            forfeited: Duration::ZERO,
        }
    }

    /// Whether the application may still use the connection.
    pub fn is_usable(&self) -> bool {
        matches!(self.state, State::Hello(_) | State::Open { .. } | State::Drained(_))
    }

    /// Whether the connection can be removed.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over) && self.events.is_empty()
    }

    /// Name that the peer chose for itself; 0 if it is unknown yet.
    pub fn peer_name(&self) -> u64 {
        self.peer_name
    }

    /// Whether this is a server's connection whose client has not sent a sealed packet yet.
    pub fn is_half_open(&self) -> bool {
        matches!(self.state, State::HalfOpen { .. })
    }

    /// Handles a new local address: the next packet shows it to the peer.
    pub fn on_rebound(&mut self, now: Time) {
        let now = self.at(now);
        self.path.forget_local();
        if matches!(self.state, State::Open { .. }) {
            self.ask(now);
        }
        if let State::Hello(greeting) = &mut self.state {
            (greeting.next, greeting.tries) = (now, 0);
        }
    }

    /// Returns `now`, or the latest known instant if that is later. Used wherever time must not run backwards.
    fn at(&mut self, now: Time) -> Time {
        self.clock = self.clock.max(now);
        self.clock
    }

    /// Sends Pings to the peer, from `when` on.
    fn ask(&mut self, when: Time) {
        let token = self.tokens.draw();
        self.question = Some(PathProbe::new(token, when));
    }

    /// Estimated maximum time until an answer arrives.
    fn timeout(&self) -> Duration {
        let Rtt { smoothed, variation, .. } = self.sender.rtt();
        (smoothed + variation * 4).max(Duration::from_millis(20)) + self.config.ack.max_delay
    }

    fn figures_of_rtt(&self) -> Option<Rtt> {
        let rtt = self.sender.rtt();
        rtt.latest.is_some().then_some(rtt)
    }

    /// Closes the connection for a reason other than a local close.
    fn end(&mut self, closed: Closed) {
        let has_unread = matches!(closed, Closed::ByPeer { .. }) && self.incoming.is_readable();
        self.end_after(has_unread, closed);
    }

    /// Closes the connection at once, or after the application has read the received bytes.
    fn end_after(&mut self, has_unread: bool, closed: Closed) {
        self.sender.close();
        self.state = if has_unread {
            State::Drained(closed)
        } else {
            self.events.push_back(Event::Closed(closed));
            State::Over
        };
    }

    fn announce(&mut self) {
        if self.incoming.is_readable() && !self.told_readable {
            self.told_readable = true;
            self.events.push_back(Event::Readable);
        }
        if self.outgoing.poll_room() {
            self.events.push_back(Event::Writable);
        }
        if self.outgoing.is_flushed() && !self.told_flushed {
            self.told_flushed = true;
            self.events.push_back(Event::Flushed);
        }
    }
}

impl Connection for UdpConnection {
    fn write(&mut self, now: Time, bytes: &[u8]) -> Result<usize, Refused> {
        self.at(now);
        match &self.state {
            State::Drained(closed) => return Err(format!("nothing can be written: {closed}").into()),
            State::Closing(_) | State::Over => {
                return Err("nothing can be written: the connection is over".into());
            }
            _ => {}
        }
        if self.outgoing.is_finished() {
            return Err("nothing can be written: the stream has ended".into());
        }
        self.request_due = true;
        Ok(self.outgoing.write(bytes))
    }

    fn finish(&mut self, now: Time) {
        self.at(now);
        self.outgoing.finish();
    }

    fn read(&mut self, now: Time, into: &mut [u8]) -> Result<Read, Refused> {
        self.at(now);
        self.told_readable = false;
        let read = self.incoming.read(into);
        if self.incoming.is_worth_telling() {
            self.limit_due = true;
        }
        match &self.state {
            State::Drained(closed) => {
                let text = closed.to_string();
                if !self.incoming.is_readable() || read == Read::End {
                    self.end_drained();
                }
                match read {
                    Read::Nothing if !into.is_empty() => Err(format!("the stream has no end: {text}").into()),
                    read => Ok(read),
                }
            }
            State::Closing(_) | State::Over if read == Read::Nothing => {
                Err("the stream has no end: the connection is over".into())
            }
            _ => Ok(read),
        }
    }

    fn close(&mut self, now: Time, code: u32, reason: &str) {
        let now = self.at(now);
        if !self.is_usable() {
            return;
        }
        let tells = matches!(self.state, State::Open { .. });
        self.sender.close();
        self.state = State::Over;
        if tells {
            let ends = now + LINGER.max(self.timeout() * 3);
            let reason = reason.to_owned();
            self.state = State::Closing(Goodbye { code, reason, next: now, tries: 0, heard: 0, ends });
        }
        self.events.push_back(Event::Closed(Closed::Here));
    }

    fn steer(&mut self, now: Time, controller: Box<dyn Controller>) {
        let now = self.at(now);
        self.sender.set_controller(now, controller);
        self.rider = 0;
        self.is_steered = true;
        if let (true, Some(device)) = (self.sender.sees().is_device(), self.device) {
            self.sender.on_device(now, &device);
        }
    }

    fn listen(&mut self, receiver: Option<Box<dyn Receiver>>) {
        self.acker.set_receiver(receiver);
        self.request_due = true;
    }

    fn on_radio(&mut self, report: &RadioReport) {
        if self.acker.sees().is_device() {
            self.acker.on_radio(report);
        }
        if self.sender.sees().is_device() {
            self.sender.on_radio(self.clock, report);
        }
    }

    fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        let now = self.at(now);
        self.device = Some(*flows);
        if self.sender.sees().is_device() {
            self.sender.on_device(now, flows);
        }
    }

    fn binding(&self) -> [u8; 32] {
        self.keys.as_ref().map_or([0; 32], |keys| keys.binding)
    }

    fn peer(&self) -> SocketAddr {
        self.path.ends().peer
    }

    fn figures(&self) -> Figures {
        let control = self.sender.control();
        Figures {
            sent: self.sent,
            delivered: Counted { packets: self.sender.delivered_packets(), bytes: self.sender.delivered() },
            lost: self.lost,
            received: self.received,
            stream_acknowledged: Bytes(self.outgoing.arrived()),
            unsent: self.outgoing.unsent(),
            stream_read: Bytes(self.incoming.read_so_far()),
            rtt: self.figures_of_rtt(),
            queueing_delay: self
                .delays
                .map(|(least, newest)| Duration::from_nanos(newest.saturating_sub(least) as u64)),
            cwnd: control.cwnd,
            pacing_rate: control.pacing_rate,
            inflight: self.sender.inflight(),
            forfeited: self.forfeited,
        }
    }

    fn inspect(&self, out: &mut Inspect) {
        if self.is_steered {
            self.sender.inspect(out);
        } else {
            self.acker.inspect(out);
        }
    }
}
