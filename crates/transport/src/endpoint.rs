//! The contract of both transports: an endpoint on one UDP port, its connections, and the stream of bytes that each
//! connection carries in either direction.
//!
//! An endpoint is a state machine like every engine of this workspace. Inputs: [`Endpoint::handle`] and
//! [`Endpoint::handle_timeout`]. Outputs: [`Endpoint::poll_transmit`] and [`Endpoint::poll_event`]. Next deadline:
//! [`Endpoint::poll_timeout`]. An endpoint has no socket and no clock. After every call of an endpoint or of one of its
//! connections, the driver drains both outputs and reads the next deadline again.
//!
//! Instants are nanoseconds of the machine's monotonic clock. All network namespaces of a machine share this clock,
//! so that one-way delays across an emulator have no offset. Between two machines the clocks have an unknown offset.

use std::any::Any;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airpace_cc::controller::{Controller, Inspect, Receiver, Rtt};
use airpace_cc::pacer::PacerConfig;
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bytes, Ecn, Rate, Refused, Time};
use airpace_radio::RadioReport;

/// Overhead of the IP and UDP headers per datagram (bytes): IPv4 20, IPv6 40, UDP 8. Controllers count whole packets,
/// as the simulator does.
///
/// Source: RFC 791 §3.1; RFC 8200 §3; RFC 768
pub const fn overhead(peer: &SocketAddr) -> Bytes {
    match peer {
        SocketAddr::V4(_) => Bytes(28),
        SocketAddr::V6(_) => Bytes(48),
    }
}

/// Size of a full-sized packet on the wire (bytes), as in the simulator.
pub const MSS: Bytes = Bytes(1500);

/// Pacer configuration of both transports: packets are released in batches of 250 µs if more than two fit into that
/// time.
///
/// Chosen: 250 µs is a twelfth of the time within which a rate step must be followed, and amounts to 20 packets per
/// system call at 1 Gbit/s. The credit is as large as a busy machine needs, see [`PacerConfig`].
pub(crate) const PACER: PacerConfig =
    PacerConfig { quantum: Bytes::ZERO, batch: Duration::from_micros(250), credit: Duration::from_millis(4) };

/// A received datagram.
#[derive(Debug)]
pub struct Inbound<'a> {
    /// Instant at which the kernel received the datagram.
    pub received: Time,
    /// Address of the datagram's sender.
    pub from: SocketAddr,
    /// Local destination address of the datagram, if the socket reports it.
    pub to: Option<IpAddr>,
    /// ECN mark of the datagram.
    pub ecn: Ecn,
    /// Payload of the datagram. An endpoint may decrypt it in place.
    pub bytes: &'a mut [u8],
}

/// One or several datagrams to transmit now. Their payload was appended to the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// Destination address.
    pub to: SocketAddr,
    /// Local source address, if a particular one is required.
    pub from: Option<IpAddr>,
    /// ECN mark of the datagrams.
    pub ecn: Ecn,
    /// Size of each datagram (bytes), if the payload contains several datagrams of equal size. The last may be
    /// shorter.
    pub segment: Option<usize>,
}

/// Identifier of a connection of an endpoint. No identifier is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete, and the stream may be used. At a server this is the first event of a connection.
    Connected,
    /// There may be bytes to read, or the end of the stream.
    Readable,
    /// There may be room to write again, after [`Connection::write`] accepted fewer bytes than it was given.
    Writable,
    /// The peer has acknowledged all written bytes and the end of the stream.
    Flushed,
    /// The peer's address has changed, and the new address was validated.
    Moved(SocketAddr),
    /// The connection is closed. This is its last event.
    Closed(Closed),
}

/// Reason why a connection is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The local application closed the connection.
    Here,
    /// The peer closed the connection, with a code and a text of its application.
    ByPeer {
        /// The application's code; 0 reports success.
        code: u32,
        /// The text. The text comes from an untrusted peer: pass it through [`airpace_core::plain`] before printing.
        reason: String,
    },
    /// Idle timeout: no packet arrived for this long.
    Silence(Duration),
    /// The peer is unreachable, does not know the key, or violates the protocol.
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
            Closed::Silence(span) => write!(f, "nothing was received for {:.0} s", span.as_secs_f64()),
            Closed::Failed(why) => write!(f, "{}", airpace_core::plain::plain(why)),
        }
    }
}

/// Result of reading a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Number of bytes read, at least one.
    Bytes(usize),
    /// No bytes are available yet; [`Event::Readable`] reports the next ones.
    Nothing,
    /// The peer has finished the stream, and all bytes have been read.
    End,
}

/// An endpoint of either transport on one UDP port. It does not own the socket.
pub trait Endpoint {
    /// Processes a received datagram. An unreadable datagram, or one from an unexpected sender, is counted and
    /// ignored.
    fn handle(&mut self, datagram: Inbound<'_>);

    /// Runs the timers that are due: the driver calls this at the instant that [`Endpoint::poll_timeout`] returned. A call at
    /// another time does no harm.
    fn handle_timeout(&mut self, now: Time);

    /// Deadline at which to call [`Endpoint::handle_timeout`] and then [`Endpoint::poll_transmit`], if nothing happens
    /// earlier.
    fn poll_timeout(&self) -> Option<Time>;

    /// Appends to `buffer` the payload of datagrams to transmit now. Call this until it returns `None`.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound>;

    /// Returns the next event. Call this until it returns `None`.
    fn poll_event(&mut self) -> Option<(ConnectionId, Event)>;

    /// Starts a connection to `peer`.
    ///
    /// # Errors
    /// The reason why the connection cannot be started, as a sentence.
    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused>;

    /// Returns a connection that is not closed.
    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection>;

    /// Notifies the endpoint that its socket has a new local address. Connections must notify their peers.
    fn on_rebound(&mut self, now: Time);

    /// Returns the counters of ignored datagrams, over all connections.
    fn ignored(&self) -> Ignored;
}

/// Datagrams that an endpoint ignored, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Datagrams of an unknown format, or truncated ones.
    pub malformed: u64,
    /// Datagrams for a connection that does not exist.
    pub stray: u64,
    /// Datagrams whose authentication tag does not match: they are forged, damaged, or protected with another key.
    pub forged: u64,
    /// Duplicates of datagrams that were accepted earlier.
    pub replayed: u64,
    /// Handshakes that were refused because too many were in progress or because the cookie did not match.
    pub refused: u64,
}

/// One connection: a byte stream in each direction, each with its own congestion control. [`Any`] converts a connection
/// to the type of its transport, for functions that the other transport does not have.
pub trait Connection: Any {
    /// Appends bytes to the stream. Returns the number of bytes accepted.
    ///
    /// # Errors
    /// The connection is closed, or the stream was finished.
    fn write(&mut self, now: Time, bytes: &[u8]) -> Result<usize, Refused>;

    /// Finishes the stream: the application will write no more bytes.
    fn finish(&mut self, now: Time);

    /// Reads received bytes, in order.
    ///
    /// # Errors
    /// The connection was closed before the end of the stream.
    fn read(&mut self, now: Time, into: &mut [u8]) -> Result<Read, Refused>;

    /// Closes the connection at once and notifies the peer.
    fn close(&mut self, now: Time, code: u32, reason: &str);

    /// Sets the controller for all packets that this endpoint sends from now on.
    fn steer(&mut self, now: Time, controller: Box<dyn Controller>);

    /// Sets the receiver of the scheme, which processes all packets that this endpoint receives from now on.
    fn listen(&mut self, receiver: Option<Box<dyn Receiver>>);

    /// Processes the report of one subframe from the local radio. The report is passed to the controller or the
    /// receiver, whichever uses radio reports.
    fn on_radio(&mut self, report: &RadioReport);

    /// Processes the local device's figures about its flows.
    fn on_device(&mut self, now: Time, flows: &DeviceFlows);

    /// Bytes that both endpoints know, that differ between connections, and that an attacker on the path cannot have
    /// made equal on two connections. A proof over these bytes is therefore invalid on any other connection.
    fn binding(&self) -> [u8; 32];

    /// Address of the peer.
    fn peer(&self) -> SocketAddr;

    /// Current figures of the connection.
    fn figures(&self) -> Figures;

    /// Reports the internal variables of the controller, or of the receiver if this endpoint has no controller.
    fn inspect(&self, out: &mut Inspect);
}

/// Figures of a connection. Byte counts include packet headers, except the counts of stream bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Transmitted packets that contain data.
    pub sent: Counted,
    /// Transmitted data packets that were acknowledged.
    pub delivered: Counted,
    /// Transmitted data packets that were declared lost.
    pub lost: Counted,
    /// Received packets that contain data.
    pub received: Counted,
    /// Stream bytes that the peer has acknowledged.
    pub stream_acknowledged: Bytes,
    /// Stream bytes that were written but not transmitted yet, or that must be retransmitted.
    pub unsent: Bytes,
    /// Stream bytes that were read in order.
    pub stream_read: Bytes,
    /// Round-trip times; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// Queueing delay of the newest received packet: its one-way delay minus the minimum of the connection.
    pub queueing_delay: Option<Duration>,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Pacing rate.
    pub pacing_rate: Option<Rate>,
    /// Bytes in flight.
    pub inflight: Bytes,
    /// Total sending time that a busy machine lost: the pacer would have released packets, but was not polled.
    pub forfeited: Duration,
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: Bytes,
}
