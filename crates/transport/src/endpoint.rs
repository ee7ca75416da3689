//! The contract of both transports: an endpoint on one UDP port, its connections, and the stream of bytes that each
//! connection carries in either direction.
//!
//! An endpoint has the shape of every engine: input in ([`Endpoint::handle`], [`Endpoint::on_timeout`]), outputs
//! drained ([`Endpoint::poll_transmit`], [`Endpoint::poll_event`]), next deadline ([`Endpoint::next`]). It has no socket
//! and no clock. After any call, on it or on one of its connections, its driver drains both outputs and asks for the
//! next deadline again.
//!
//! Instants are nanoseconds of the machine's monotonic clock. They are the same in all of its network namespaces, so
//! that behind an emulator one-way delays are true. Between two machines they have an unknown offset.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airpace_cc::controller::{Controller, Inspect, Receiver, Rtt};
use airpace_cc::pacer::PacerConfig;
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bytes, Ecn, Rate, Time};
use airpace_radio::RadioReport;

use crate::quic::QuicConnection;

/// Bytes that IP and UDP add to a datagram: IPv4 20, IPv6 40, UDP 8. Controllers count whole packets, as the simulator
/// does.
///
/// Source: RFC 791 §3.1; RFC 8200 §3; RFC 768
pub const fn overhead(peer: &SocketAddr) -> Bytes {
    match peer {
        SocketAddr::V4(_) => Bytes(28),
        SocketAddr::V6(_) => Bytes(48),
    }
}

/// A full-sized packet on the wire, as in the simulator.
pub const MSS: Bytes = Bytes(1500);

/// How both transports pace: packets that are faster than two in 250 µs leave in groups of that time.
///
/// Chosen: a twelfth of the time in which a step must be followed, and 20 packets in one call at 1 Gbit/s; as much credit
/// as a busy machine needs, see [`PacerConfig`].
pub(crate) const PACER: PacerConfig =
    PacerConfig { quantum: Bytes::ZERO, batch: Duration::from_micros(250), credit: Duration::from_millis(4) };

/// A datagram that arrived.
#[derive(Debug)]
pub struct Inbound<'a> {
    /// When the kernel received it.
    pub received: Time,
    /// Who sent it.
    pub from: SocketAddr,
    /// The address of ours that it came to, if the socket tells.
    pub to: Option<IpAddr>,
    /// Its ECN mark.
    pub ecn: Ecn,
    /// Its payload. An endpoint may decrypt it in place.
    pub bytes: &'a mut [u8],
}

/// Datagrams that must leave now; their payload is at the end of the buffer that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// To whom.
    pub to: SocketAddr,
    /// The address of ours from which they must leave, if it matters.
    pub from: Option<IpAddr>,
    /// Their ECN mark.
    pub ecn: Ecn,
    /// The size of each datagram, if the payload is several of one size; the last may be shorter.
    pub segment: Option<usize>,
}

/// One connection of an endpoint. A number is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is over, and the stream may be used. At a server it is the first that is heard of a connection.
    Connected,
    /// There may be bytes to read, or the stream's end.
    Readable,
    /// There may be room to write again, after [`Connection::write`] took less than it was given.
    Writable,
    /// All that was written has been acknowledged, its end too.
    Flushed,
    /// The peer's address has changed, and the new one was validated.
    Moved(SocketAddr),
    /// It is over. Nothing more will be heard of it.
    Closed(Closed),
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// This side closed it.
    Here,
    /// The peer closed it, with a code and a text of the application.
    ByPeer {
        /// The application's code; 0 if all is well.
        code: u32,
        /// The text. It is a stranger's: [`airpace_core::plain`] before it is shown.
        reason: String,
    },
    /// Nothing was heard for so long.
    Silence(Duration),
    /// The peer cannot be reached, does not know the key, or breaks the protocol.
    Failed(String),
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Closed::Here => f.write_str("closed here"),
            Closed::ByPeer { reason, .. } if reason.is_empty() => f.write_str("closed by the other side"),
            Closed::ByPeer { reason, .. } => {
                write!(f, "closed by the other side: {}", airpace_core::plain::plain(reason))
            }
            Closed::Silence(span) => write!(f, "nothing was heard for {:.0} s", span.as_secs_f64()),
            Closed::Failed(why) => write!(f, "{}", airpace_core::plain::plain(why)),
        }
    }
}

/// What reading a stream gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing yet; [`Event::Readable`] says when.
    Nothing,
    /// The peer has written its last byte, and all have been read.
    End,
}

/// An endpoint of either transport on one UDP port, without the port.
pub trait Endpoint {
    /// A datagram arrived. What cannot be read, or is not from who it must be from, is counted and ignored.
    fn handle(&mut self, datagram: Inbound<'_>);

    /// The instant that [`Endpoint::next`] returned has come. A call at another time does no harm.
    fn on_timeout(&mut self, now: Time);

    /// When to call [`Endpoint::on_timeout`] and then [`Endpoint::poll_transmit`], if nothing happens earlier.
    fn next(&self) -> Option<Time>;

    /// Appends what must leave now to `buffer`. Call this until `None`.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound>;

    /// What happened since. Call this until `None`.
    fn poll_event(&mut self) -> Option<(ConnectionId, Event)>;

    /// Begins a connection to `peer`.
    ///
    /// # Errors
    /// What keeps it from beginning, in a sentence.
    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, String>;

    /// A connection that is not over.
    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection>;

    /// The socket has another local address now. Connections must tell their peers.
    fn on_rebound(&mut self, now: Time);

    /// What was ignored so far, over all connections.
    fn ignored(&self) -> Ignored;
}

/// Datagrams that an endpoint ignored, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Of no known form, or cut short.
    pub malformed: u64,
    /// For a connection that does not exist.
    pub stray: u64,
    /// Whose tag does not fit: forged, damaged, or of another key.
    pub forged: u64,
    /// That had been taken in before.
    pub replayed: u64,
    /// Handshakes that were refused, because too many were under way or because the cookie did not fit.
    pub refused: u64,
}

/// One connection: a stream of bytes in either direction, each steered by a scheme.
pub trait Connection {
    /// Hands over bytes of the stream. Returns how many of them were taken.
    ///
    /// # Errors
    /// The connection is over, or the stream has ended.
    fn write(&mut self, now: Time, bytes: &[u8]) -> Result<usize, String>;

    /// No more bytes will be written.
    fn finish(&mut self, now: Time);

    /// Takes bytes that arrived, in order.
    ///
    /// # Errors
    /// The connection is over before the stream's end.
    fn read(&mut self, now: Time, into: &mut [u8]) -> Result<Read, String>;

    /// Ends the connection at once. The peer is told.
    fn close(&mut self, now: Time, code: u32, reason: &str);

    /// Puts a controller in charge of what this side sends, from now on.
    fn steer(&mut self, now: Time, controller: Box<dyn Controller>);

    /// Sets the receiver half for what this side receives, from now on.
    fn listen(&mut self, receiver: Option<Box<dyn Receiver>>);

    /// This side's radio reported a subframe. It is for whichever half asked for it.
    fn on_radio(&mut self, report: &RadioReport);

    /// What this side's device knows about its flows.
    fn on_device(&mut self, now: Time, flows: &DeviceFlows);

    /// Bytes that both sides know, that differ from connection to connection, and that nobody between them can have
    /// made equal on both sides. A proof that names them cannot be used on another connection.
    fn binding(&self) -> [u8; 32];

    /// The peer's address.
    fn peer(&self) -> SocketAddr;

    /// What is known of the connection.
    fn figures(&self) -> Figures;

    /// Names the internals of the controller, or of the receiver half on a side that has put none in charge.
    fn inspect(&self, out: &mut Inspect);

    /// What only QUIC has, if this is a connection of QUIC: more streams than one. [`Event::Readable`] and
    /// [`Event::Writable`] tell of any of them.
    fn quic(&mut self) -> Option<&mut QuicConnection> {
        None
    }
}

/// What is known of a connection. Bytes are those of whole packets, unless they are the stream's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Packets and bytes that left with data.
    pub sent: Counted,
    /// Of these, acknowledged.
    pub delivered: Counted,
    /// Of these, declared lost.
    pub lost: Counted,
    /// Packets and bytes with data that arrived.
    pub received: Counted,
    /// Bytes of the stream that the peer has acknowledged.
    pub stream_acknowledged: Bytes,
    /// Bytes that were written and have not left yet, or must leave again.
    pub unsent: Bytes,
    /// Bytes of the stream that were read in order.
    pub stream_read: Bytes,
    /// Round-trip times; `None` before the first.
    pub rtt: Option<Rtt>,
    /// Queueing delay of the newest packet that arrived: its one-way delay above the least of the connection.
    pub queueing_delay: Option<Duration>,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate.
    pub pacing_rate: Option<Rate>,
    /// Bytes outstanding.
    pub inflight: Bytes,
    /// Time for which the pacer would have let packets leave, but nobody asked: what a busy machine lost.
    pub forfeited: Duration,
}

/// Packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
}
