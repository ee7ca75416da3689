//! The two endpoints of one transport flow, without sockets or clocks: packet numbers, ACKs, loss detection, RTT,
//! pacing.
//!
//! ```text
//!  Sender ── Transmit { number, bytes, ecn, header } ──▶ path ──▶ Acker ── Receiver
//!    ▲                                                         │
//!    └───────────────── AckFrame { ranges, ce, feedback } ◀────────┘
//! ```
//!
//! A driver reports events to a [`Sender`] ([`Sender::on_ack`], [`Sender::handle_timeout`], …), then drains
//! [`Sender::poll_transmit`] until `None`, then waits until [`Sender::poll_timeout`]. It uses an [`Acker`] in the same way: it
//! calls [`Acker::on_packet`] or [`Acker::handle_timeout`], drains [`Acker::poll_ack`], and waits until [`Acker::poll_timeout`].
//! Lost bytes are retransmitted in new packets. A packet number is never used twice, so an ACK is never ambiguous.
//!
//! A [`Sender`] counts bytes but does not hold them. If the driver only counts bytes as well ([`Backlog::Unlimited`],
//! [`Backlog::Limited`]), the sender adds lost bytes to the backlog itself. A transport that carries real bytes
//! ([`Backlog::Carried`]) receives the numbers of the packets that were delivered or lost ([`Sender::poll_settled`]).
//! [`Outbox`] maps a stream of bytes to packet numbers, and reports how many more bytes the application may write.
//!
//! Source: RFC 9002, RFC 9000 §13; RFC 8985 (reordering)

mod acker;
mod ledger;
mod outbox;
mod ranges;
mod reordering;
mod rtt;
mod sender;
mod sent;
mod spans;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use airpace_core::{Bytes, Ecn, FlowId, Rider};
use airpace_event::{Acked, Lost};

pub use acker::{Acker, Received};
pub use ledger::{Blocked, Counts, Ledger};
pub use outbox::Outbox;
pub use ranges::Ranges;
pub use rtt::RttEstimator;
pub use sender::Sender;

use crate::pacer::PacerConfig;

/// Parameters of a sender, besides its controller.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SenderConfig {
    /// The flow's name in events.
    pub flow: FlowId,
    /// Bytes of a full-sized packet on the wire.
    pub mss: Bytes,
    /// How packets are paced.
    pub pacer: PacerConfig,
    /// How the receiver acknowledges.
    pub ack: AckPolicy,
}

impl SenderConfig {
    /// A sender that paces single packets, to a receiver that acknowledges every packet at once.
    pub fn new(flow: FlowId, mss: Bytes) -> SenderConfig {
        SenderConfig { flow, mss, pacer: PacerConfig::default(), ack: AckPolicy::default() }
    }

    /// The same configuration with the pacing `pacer`.
    pub fn with_pacer(self, pacer: PacerConfig) -> SenderConfig {
        SenderConfig { pacer, ..self }
    }

    /// The same configuration for a receiver that acknowledges according to `ack`.
    pub fn with_ack(self, ack: AckPolicy) -> SenderConfig {
        SenderConfig { ack, ..self }
    }
}

/// When a receiver sends acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Number of data packets per ACK. A packet that arrives out of order is acknowledged at once.
    ///
    /// Source: RFC 9000 §13.2.1
    pub every: u32,
    /// Maximum delay of an ACK that waits for more packets.
    pub max_delay: Duration,
}

/// By default, every packet is acknowledged at once. If only `every` is changed to more than 1, the maximum delay is 25
/// ms.
///
/// Source: RFC 9000 §18.2 (`max_ack_delay`)
impl Default for AckPolicy {
    fn default() -> AckPolicy {
        AckPolicy { every: 1, max_delay: Duration::from_millis(25) }
    }
}

impl AckPolicy {
    /// Maximum time for which the receiver delays an ACK on purpose.
    fn deliberate_delay(&self) -> Duration {
        if self.every > 1 { self.max_delay } else { Duration::ZERO }
    }
}

/// The data that the application has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// The application always has more data.
    Unlimited,
    /// The application has this many bytes to send, first transmissions and retransmissions together. The sender adds
    /// lost bytes to this number by itself.
    ///
    /// The sender only counts bytes and does not distinguish them. If a loss proves spurious after the lost bytes were
    /// retransmitted, the same number of other bytes is subtracted.
    Limited(Bytes),
    /// Bytes that the driver holds and puts on the packets. [`Sender::poll_settled`] reports the outcome of each packet
    /// to the driver. Before each [`Sender::poll_transmit`], the driver sets the data to send
    /// ([`Sender::set_backlog`]).
    Carried {
        /// Size on the wire of the next packet. Values above the size of a full-sized packet are reduced to that size.
        /// Zero: there is no next packet, but the sender may repeat an old packet to provoke an ACK.
        next: Bytes,
        /// Bytes to send after the next packet. Zero: the application has no more data.
        rest: Bytes,
    },
}

impl Backlog {
    /// Backlog of a driver that carries bytes and has none to send at present.
    pub const NOTHING_CARRIED: Backlog = Backlog::Carried { next: Bytes::ZERO, rest: Bytes::ZERO };
}

/// A data packet that the driver must send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The packet number.
    pub number: u64,
    /// The packet's size on the wire.
    pub bytes: Bytes,
    /// The number of the packet whose bytes this packet repeats, if its only purpose is to provoke an ACK. The original
    /// packet was outstanding when this copy was sent. The sender counts the bytes under the number of the original: if
    /// the copy is lost, nothing is retransmitted.
    ///
    /// Source: RFC 9002 §6.2.4
    pub copy_of: Option<u64>,
    /// The ECN field of the packet: whether queues may mark it.
    pub ecn: Ecn,
    /// Header bytes for the scheme's receiver.
    pub header: Rider,
}

/// An acknowledgement, sent by the receiver to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame {
    /// The ACK's own number, which rises by one per ACK of the flow.
    pub number: u64,
    /// The highest packet number received.
    pub largest: u64,
    /// The received packets, newest first.
    pub ranges: Ranges,
    /// Number of packets with a CE mark that arrived over the connection's life, without duplicates.
    ///
    /// Source: RFC 9000 §13.4.1, §19.3.2
    pub ce: u64,
    /// Feedback bytes from the scheme's receiver to the controller.
    pub feedback: Rider,
    /// Maximum number of outstanding bytes that the receiver permits; `None` for no limit.
    ///
    /// Source: RFC 9293 §3.8.6
    pub window: Option<Bytes>,
    /// Time between the arrival of `largest` and the departure of this ACK.
    pub delay: Duration,
}

/// The outcome of a packet. For each number, a delivery is reported at most once, and a loss at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The packet was acknowledged for the first time: its bytes have arrived.
    Delivered {
        /// The packet number.
        number: u64,
        /// Whether the packet was reported as lost before. If so, the loss was spurious: the packet or its ACK was
        /// late. If its bytes have not been retransmitted yet, they need no retransmission.
        declared_lost: bool,
    },
    /// The packet counts as lost. Its bytes must be retransmitted, unless it was a copy. The packet may still be
    /// reported as delivered later, until [`Sender::remembered_from`] returns a higher number.
    Lost {
        /// The packet number.
        number: u64,
    },
}

/// The packets that one input of the sender settled, in the form that a driver records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The packets newly acknowledged.
    pub acked: Option<Acked>,
    /// The packets newly declared lost.
    pub lost: Option<Lost>,
}

/// The reason why an acknowledgement is not valid. The sender's state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AckError {
    /// The ACK acknowledges a packet that was never sent.
    Unsent {
        /// The acknowledged packet number.
        largest: u64,
        /// The next packet number that the sender will use.
        next_number: u64,
    },
    /// The ranges are empty, reversed, overlapping or out of order, or the first range does not start with `largest`.
    Ranges,
    /// The ACK reports more marked packets than were ever sent.
    Marks {
        /// The number of marks reported.
        ce: u64,
        /// The next packet number that the sender will use.
        next_number: u64,
    },
}

impl fmt::Display for AckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckError::Unsent { largest, next_number } => {
                write!(f, "packet {largest} is acknowledged but the next to be sent is {next_number}")
            }
            AckError::Ranges => write!(f, "ranges of the acknowledgement are not newest-first intervals"),
            AckError::Marks { ce, next_number } => {
                write!(f, "{ce} packets are reported as marked but only {next_number} were sent")
            }
        }
    }
}

impl std::error::Error for AckError {}
