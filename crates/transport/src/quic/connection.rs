//! A QUIC connection: noq's connection, a ledger that decides when data are sent, and the scheme's sender and
//! receiver.
//!
//! | module | content |
//! | --- | --- |
//! | `departure` | transmission times, stamps and feedback |
//! | `farewell` | repetition of the final packet |
//! | `contract` | the functions common to both transports |
//! | `streams` | access to several streams |

mod contract;
mod departure;
mod farewell;
mod streams;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use airpace_cc::controller::Controller;
use airpace_cc::endpoint::Ledger;
use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Bytes, Ecn, Rider, Streams, Time};
use noq_proto::crypto::rustls::HandshakeData;
use noq_proto::{
    ConnectionEvent, ConnectionHandle, Dir, FrameStats, PathId, Side, StreamEvent, StreamId, VarInt,
};

use self::departure::Pending;
use self::farewell::Farewell;
pub use self::streams::StreamNews;
use super::adapter::{Clock, Handle, Note};
use super::closing::closed;
use super::config::{ALPN, Config};
use super::datagram::Datagram;
use super::inflow::Inflow;
use super::receiving::Receiving;
use crate::endpoint::{Closed, Connection, Event, MSS, overhead};
use crate::qlog::{Log, Metrics};

/// Scheme of a connection until the application calls [`Connection::steer`].
const DEFAULT_SCHEME: &str = "cubic";

/// Bytes of the receive window per unread piece of stream data. The receive window divided by this is the maximum
/// number of pieces.
///
/// Chosen: a fifth of a full packet. Each piece keeps its datagram in memory (or more, see `blocks.rs`), so that many
/// small pieces would keep far more memory than their bytes.
const BYTES_PER_PIECE: usize = 256;

/// Maximum number of bytes sent to an unvalidated address, per byte received from that address.
///
/// Source: RFC 9000 §8.1
pub(super) const AMPLIFICATION: u64 = 3;

/// Minimum size of the send buffer of unacknowledged data (bytes), independent of the congestion window.
///
/// Chosen: 8 ms at 1 Gbit/s, which is longer than any delay of the application, and half of the private cache of a
/// CPU core.
const MIN_HELD: u64 = 1 << 20;

const TOO_MANY_PIECES: &str = "streams came in too many small pieces; write more at once";

/// A connection of a [`super::QuicEndpoint`].
pub struct QuicConnection {
    pub(super) handle: ConnectionHandle,
    pub(super) noq: noq_proto::Connection,
    pub(super) events: VecDeque<Event>,
    /// Whether this is a server's connection whose handshake is in progress.
    pub(super) is_half_open: bool,
    /// Whether the endpoint counts this connection as a handshake in progress.
    pub(super) is_counted: bool,
    /// Bytes that may be sent before the peer's address is validated; `None` afterwards. noq may exceed this credit by
    /// one datagram.
    pub(super) credit: Option<u64>,
    tap: Handle,
    log: Option<Log>,
    clock: Clock,
    config: Arc<Config>,
    now: Time,
    peer: SocketAddr,
    /// Instant at which the peer's address changed, until a packet sent to the new address is acknowledged.
    moved: Option<Time>,
    is_connected: bool,
    /// Whether the peer supports stamps and feedback.
    is_ours: bool,
    is_over: bool,
    /// The final packet, after the local application has closed the connection.
    farewell: Option<Farewell>,

    ledger: Option<Ledger>,
    /// Instant at which the ledger started.
    since: Time,
    is_steered: bool,
    is_ecn_capable: bool,
    stamps: u32,
    heard: u64,
    pending: Pending,
    /// Stream bytes that noq has not sent yet, estimated from the sizes of its packets.
    unsent: u64,
    /// Number of STREAM frames that noq has sent.
    streams_sent: u64,
    /// Frames that noq has received.
    frames: FrameStats,
    /// Instant since which a received packet waits for its ACK.
    owed: Option<Time>,
    /// Instant of the last transmission, which acknowledged all packets received before.
    last_sent: Option<Time>,
    receiving: Receiving,

    pub(super) streams: BTreeMap<StreamId, Inflow>,
    /// The stream of the contract of both transports.
    main: Option<StreamId>,
    written: u64,
    is_flushed: bool,
    is_throttled: bool,
    /// Size of the send buffer for unacknowledged data (bytes): maximum and current.
    most_held: u64,
    holds: u64,
    /// Events of other streams.
    stream_events: VecDeque<StreamNews>,

    /// Buffers that are kept to reuse their memory.
    notes: Vec<Note>,
    packet: Vec<u8>,
}

/// A new connection of noq, with the observers of its packets.
pub(super) struct ObservedConnection {
    pub(super) handle: ConnectionHandle,
    pub(super) noq: noq_proto::Connection,
    pub(super) peer: SocketAddr,
    /// Reports of acknowledged and lost packets.
    pub(super) tap: Handle,
    pub(super) log: Option<Log>,
}

impl QuicConnection {
    /// The QUIC connection behind the contract of both transports, for the functions that only QUIC has, such as more
    /// than one stream. [`Event::Readable`] and [`Event::Writable`] then refer to any of the streams. `None` for a
    /// connection of the UDP prototype.
    pub fn of(connection: &mut dyn Connection) -> Option<&mut QuicConnection> {
        let connection: &mut dyn Any = connection;
        connection.downcast_mut()
    }

    pub(super) fn new(
        now: Time,
        observed: ObservedConnection,
        clock: Clock,
        config: Arc<Config>,
    ) -> QuicConnection {
        let ObservedConnection { handle, noq, peer, tap, log } = observed;
        let is_half_open = noq.side().is_server();
        let most_held = config.send_window;
        QuicConnection {
            handle,
            noq,
            events: VecDeque::new(),
            is_half_open,
            is_counted: is_half_open,
            credit: None,
            tap,
            log,
            clock,
            config,
            now,
            peer,
            moved: None,
            is_connected: false,
            is_ours: false,
            is_over: false,
            farewell: None,
            ledger: None,
            since: now,
            is_steered: false,
            is_ecn_capable: true,
            stamps: 0,
            heard: 0,
            pending: Pending::Unknown,
            unsent: 0,
            streams_sent: 0,
            frames: FrameStats::default(),
            owed: None,
            last_sent: None,
            receiving: Receiving::default(),
            streams: BTreeMap::new(),
            main: None,
            written: 0,
            is_flushed: false,
            is_throttled: false,
            most_held,
            holds: most_held,
            stream_events: VecDeque::new(),
            notes: Vec::new(),
            packet: Vec::new(),
        }
    }

    /// Processes a datagram with a payload of `payload` bytes. Returns whether it could be read.
    /// [`QuicConnection::pick_up`] then processes the stream data and the events.
    pub(super) fn handle(&mut self, now: Time, event: ConnectionEvent, payload: usize, ecn: Ecn) -> bool {
        self.now = now;
        self.log_at(now);
        self.credit = self.credit.map(|credit| credit + AMPLIFICATION * payload as u64);
        self.noq.handle_event(event);
        let frames = self.noq.path_stats(PathId::ZERO).map_or(self.frames, |stats| stats.frame_rx);
        let before = std::mem::replace(&mut self.frames, frames);
        if frames.connection_close != before.connection_close {
            // The peer has closed the connection as well.
            self.farewell = None;
        }
        // The peer may still send handshake packets whose keys were discarded, and packets to a closed connection.
        let is_read = frames != before || !self.is_connected || self.is_over || self.noq.is_closed();
        let (mut stamp, mut rider) = (None, Rider::EMPTY);
        while let Some(bytes) = self.noq.datagrams().recv() {
            match Datagram::read(&bytes) {
                Some(Datagram::Stamp(read)) => stamp = Some(read),
                Some(Datagram::Feedback(read)) if read.sequence > self.heard => {
                    self.heard = read.sequence;
                    rider = read.rider;
                    if let Some(ledger) = &mut self.ledger {
                        ledger.on_advertised(read.window);
                    }
                }
                _ => {}
            }
        }
        if frames.stream != before.stream {
            let bytes = Bytes(payload as u64) + overhead(&self.peer);
            self.receiving.on_data(now, bytes, ecn, stamp);
            self.owed.get_or_insert(now);
        }
        self.settle(now, rider);
        let path = self.noq.network_path(PathId::ZERO);
        if let Some(peer) = path.ok().map(|path| path.remote()).filter(|peer| *peer != self.peer) {
            self.peer = peer;
            self.moved = Some(now);
        }
        is_read
    }

    /// Passes another event of the endpoint to noq.
    pub(super) fn handle_event(&mut self, event: ConnectionEvent) {
        self.noq.handle_event(event);
    }

    /// Runs the timers that are due, at the instant that [`QuicConnection::poll_timeout`] returned.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.log_at(now);
        if self.noq_deadline().is_some_and(|deadline| deadline <= now) {
            let instant = self.clock.tick(now);
            self.noq.handle_timeout(instant);
        }
        self.settle(now, Rider::EMPTY);
        if let Some(ledger) = &mut self.ledger {
            ledger.handle_timeout(now);
        }
        self.receiving.handle_timeout(now);
        self.take_events(now);
    }

    /// Deadline at which to call [`QuicConnection::handle_timeout`] and [`QuicConnection::poll_transmit`].
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let ledger = self.ledger.as_ref().and_then(|ledger| ledger.poll_timeout());
        let feedback = if self.is_ours { self.receiving.poll_timeout() } else { None };
        let farewell = self.farewell.as_ref().and_then(Farewell::poll_timeout);
        [self.noq_deadline(), self.overdue_at(), self.ack_waits_until(), ledger, feedback, farewell]
            .into_iter()
            .flatten()
            .min()
    }

    /// Processes the events that noq produced since the last call.
    pub(super) fn pick_up(&mut self) {
        self.take_events(self.now);
    }

    /// Whether noq needs this connection no more.
    pub(super) fn is_drained(&self) -> bool {
        self.noq.is_drained()
    }

    /// Whether the application was notified that the connection is closed.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Handles a new local address of the socket.
    pub(super) fn on_rebound(&mut self, now: Time) {
        let instant = self.clock.tick(now);
        self.noq.handle_network_change(None, instant);
    }

    /// Starts a key update. Returns whether it was possible: the handshake must be confirmed.
    ///
    /// Source: RFC 9001 §4.1.2, §6
    pub fn update_keys(&mut self) -> bool {
        let is_confirmed = match self.noq.side() {
            Side::Client => self.frames.handshake_done > 0,
            Side::Server => self.is_connected,
        };
        if is_confirmed {
            self.noq.force_key_update();
        }
        is_confirmed
    }

    /// Returns the negotiated application protocol; empty before the negotiation.
    pub fn alpn(&self) -> Vec<u8> {
        let data = self.noq.crypto_session().handshake_data();
        let data = data.and_then(|data| data.downcast::<HandshakeData>().ok());
        data.and_then(|data| data.protocol).unwrap_or_default()
    }

    /// Returns the ledger; `None` before the handshake is complete.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    fn noq_deadline(&self) -> Option<Time> {
        self.noq.poll_timeout().map(|instant| self.clock.time(instant))
    }

    /// Passes noq's reports and the peer's feedback to the ledger, which updates the controller.
    fn settle(&mut self, now: Time, feedback: Rider) {
        self.tap.notes(&mut self.notes);
        if self.notes.is_empty() && feedback == Rider::EMPTY {
            return;
        }
        let mut is_back = false;
        for note in self.notes.drain(..) {
            if let (Some(log), Note::Lost { number, bytes }) = (&self.log, note) {
                log.lost(number, u64::from(bytes));
            }
            let Some(ledger) = &mut self.ledger else { continue };
            match note {
                Note::Acked { number, sent } => {
                    let sent = self.clock.time(sent);
                    is_back |= self.moved.is_some_and(|moved| sent >= moved);
                    if sent >= self.since {
                        ledger.on_acked(number);
                    }
                }
                Note::Lost { number, .. } => {
                    ledger.on_lost(number);
                    // The packet's data may have to be retransmitted.
                    self.pending = Pending::Unknown;
                    self.unsent += u64::from(self.noq.current_mtu());
                }
                Note::Late => ledger.on_late(now),
                Note::Marked => ledger.on_marked(1),
                Note::Moved { new } => {
                    self.pending = Pending::Unknown;
                    if new { ledger.on_moved(now) } else { ledger.on_forgotten() }
                }
                Note::Sent { .. } => {}
            }
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.settle(now, feedback.as_bytes());
        }
        self.log_metrics();
        self.fit_buffer();
        if is_back {
            self.moved = None;
            self.events.push_back(Event::Moved(self.peer));
        }
    }

    /// Sets the time of the following log events.
    pub(super) fn log_at(&self, now: Time) {
        if let Some(log) = &self.log {
            log.at(now);
        }
    }

    /// Writes the current metrics to the log.
    pub(super) fn log_metrics(&self) {
        if let (Some(log), Some(ledger)) = (&self.log, &self.ledger) {
            let (control, rtt, inflight) = (ledger.control(), ledger.rtt(), ledger.inflight());
            log.metrics(&Metrics { rtt, window: control.cwnd, rate: control.pacing_rate, inflight });
        }
    }

    /// Sets the size of the send buffer: twice the congestion window, so that the window can be filled and can
    /// double. Without a window, the size is bounded by four times the bytes in flight, rounded up to a power of two,
    /// because data that wait long have left the CPU's cache when they are sent.
    fn fit_buffer(&mut self) {
        let Some(ledger) = &self.ledger else { return };
        let window = ledger.control().cwnd.0.saturating_mul(2);
        let inflight = ledger.inflight().0.saturating_mul(4).checked_next_power_of_two();
        let holds = window.min(inflight.unwrap_or(u64::MAX)).max(MIN_HELD).min(self.most_held);
        if holds != self.holds {
            self.holds = holds;
            self.noq.set_send_window(holds);
        }
    }

    /// Sets the maximum size of the send buffer for unacknowledged data (bytes).
    pub fn hold_at_most(&mut self, bytes: u64) {
        self.most_held = bytes;
        self.fit_buffer();
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.noq.poll() {
            match event {
                noq_proto::Event::Connected => self.on_connected(now),
                noq_proto::Event::ConnectionLost { reason } => self.end(closed(reason, self.config.idle)),
                noq_proto::Event::Stream(event) => self.on_stream(event),
                _ => {}
            }
        }
    }

    fn on_connected(&mut self, now: Time) {
        self.is_connected = true;
        self.is_half_open = false;
        self.credit = None;
        self.is_ours = self.alpn() == ALPN;
        if self.ledger.is_none() {
            let spec = SchemeSpec::parse(DEFAULT_SCHEME);
            let setup = Setup::new(MSS, Streams::new(0).stream("unsteered"));
            if let Some(ends) = spec.ok().and_then(|spec| spec.build(&setup).ok()) {
                self.charge(now, ends.controller);
            }
        }
        if self.noq.side().is_client() && self.is_ours {
            self.main = self.noq.streams().open(Dir::Bi);
            self.streams.extend(self.main.map(|id| (id, Inflow::default())));
        }
        self.events.push_back(Event::Connected);
    }

    fn charge(&mut self, now: Time, controller: Box<dyn Controller>) {
        self.is_ecn_capable = controller.is_ecn_capable();
        self.ledger = Some(Ledger::new(now, MSS, self.config.pacer, controller));
        self.since = now;
        self.stamps = 0;
    }

    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => {
                while let Some(id) = self.noq.streams().accept(Dir::Bi) {
                    self.streams.insert(id, Inflow::default());
                    if self.is_ours && self.main.is_none() {
                        self.main = Some(id);
                        self.events.push_back(Event::Writable);
                    } else {
                        self.news(Event::Readable, StreamNews::Opened(id.into()));
                    }
                    self.take_in(id);
                }
            }
            StreamEvent::Readable { id } => self.take_in(id),
            StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. } => {
                self.tell(id, Event::Writable, StreamNews::Writable(id.into()));
            }
            StreamEvent::Finished { id } => {
                self.is_flushed |= self.main == Some(id);
                self.tell(id, Event::Flushed, StreamNews::Flushed(id.into()));
            }
            StreamEvent::Available { dir: Dir::Bi } => self.news(Event::Writable, StreamNews::MayOpen),
            _ => {}
        }
    }

    fn tell(&mut self, id: StreamId, event: Event, news: StreamNews) {
        if self.main != Some(id) {
            return self.news(event, news);
        }
        if self.events.back() != Some(&event) {
            self.events.push_back(event);
        }
    }

    /// Queues an event of a stream other than the main one. `event` makes the application call `poll_stream`.
    fn news(&mut self, event: Event, news: StreamNews) {
        self.stream_events.push_back(news);
        if self.events.back() != Some(&event) {
            self.events.push_back(event);
        }
    }

    /// Takes all data of a stream from noq.
    fn take_in(&mut self, id: StreamId) {
        let Some(inflow) = self.streams.get_mut(&id) else { return };
        let mut stream = self.noq.recv_stream(id);
        let Ok(mut chunks) = stream.read(false) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => inflow.push(chunk.offset, chunk.bytes),
                Ok(None) => break inflow.finish(),
                Err(noq_proto::ReadError::Blocked) => break,
                Err(noq_proto::ReadError::Reset(code)) => break inflow.reset(code.into_inner()),
            }
        }
        let _ = chunks.finalize();
        let most = self.config.receive_window as usize / BYTES_PER_PIECE;
        if self.streams.values().map(Inflow::pieces).sum::<usize>() > most {
            let instant = self.clock.tick(self.now);
            self.noq.close(instant, VarInt::from_u32(0), TOO_MANY_PIECES.as_bytes().to_vec().into());
            return self.end(Closed::Failed(TOO_MANY_PIECES.to_owned()));
        }
        self.tell(id, Event::Readable, StreamNews::Readable(id.into()));
        self.throttle();
    }

    /// Stops extending the peer's flow-control credit while more than half of the receive window is unread.
    fn throttle(&mut self) {
        let unread: u64 = self.streams.values().map(Inflow::waiting).sum();
        if !self.is_throttled && unread > u64::from(self.config.receive_window / 2) {
            self.is_throttled = true;
            self.noq.set_receive_window(VarInt::from_u32(1));
        } else if self.is_throttled && unread < u64::from(self.config.receive_window / 4) {
            self.is_throttled = false;
            self.noq.set_receive_window(VarInt::from_u32(self.config.receive_window));
        }
    }

    /// Notes that bytes, or the end of a stream, were written.
    fn on_written(&mut self, bytes: usize) {
        self.pending = Pending::Yes;
        self.unsent += bytes as u64;
    }

    fn end(&mut self, why: Closed) {
        self.is_half_open = false;
        if !self.is_over {
            self.is_over = true;
            self.events.push_back(Event::Closed(why));
        }
    }
}
