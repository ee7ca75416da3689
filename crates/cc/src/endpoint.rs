//! The two ends of one transport flow, without sockets or clocks: packet numbers, ACKs, loss detection, RTT, pacing.
//!
//! ```text
//!  Sender ── Transmit { number, bytes, ecn, header } ──▶ path ──▶ Acker ── Receiver half
//!    ▲                                                         │
//!    └───────────────── AckFrame { ranges, ce, feedback } ◀────────┘
//! ```
//!
//! A driver reports events to a [`Sender`] ([`Sender::on_ack`], [`Sender::on_timeout`], …), then drains
//! [`Sender::poll_transmit`] until `None`, then waits until [`Sender::next`]. It does the same with an [`Acker`]: it
//! calls [`Acker::on_packet`] or [`Acker::on_timeout`], drains [`Acker::poll_ack`], and waits until [`Acker::next`].
//! Lost bytes are sent again as new packets. A number is never used twice, so an ACK is never ambiguous.
//!
//! A sender counts bytes; it does not hold them. For a driver that only counts too ([`Backlog::Unlimited`],
//! [`Backlog::Limited`]), the sender adds lost bytes to the backlog itself. A transport that carries real bytes
//! ([`Backlog::Carried`]) gets the numbers of the packets that were delivered or lost ([`Sender::poll_settled`]).
//! [`Outbox`] assigns a stream of bytes to the numbers, and says how much more the application may hand over.
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

/// What a sender is made from, besides its controller.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// The flow's name in events.
    pub flow: FlowId,
    /// Bytes of a full-sized packet on the wire.
    pub mss: Bytes,
    /// How packets are paced.
    pub pacer: PacerConfig,
    /// How the other end acknowledges.
    pub ack: AckPolicy,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Data packets per ACK. A packet out of order is acknowledged at once.
    ///
    /// Source: RFC 9000 §13.2.1
    pub every: u32,
    /// The longest time for which an ACK waits for more packets.
    pub max_delay: Duration,
}

/// Every packet is acknowledged at once; policies that wait use 25 ms.
///
/// Source: RFC 9000 §18.2 (`max_ack_delay`)
impl Default for AckPolicy {
    fn default() -> AckPolicy {
        AckPolicy { every: 1, max_delay: Duration::from_millis(25) }
    }
}

impl AckPolicy {
    /// How long an ACK may be delayed on purpose.
    fn deliberate_delay(&self) -> Duration {
        if self.every > 1 { self.max_delay } else { Duration::ZERO }
    }
}

/// What the application has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// There is always more.
    Unlimited,
    /// This many bytes, both first transmissions and bytes to be sent again. The sender adds lost bytes by itself.
    ///
    /// The sender counts bytes and does not know which they are. If a loss was spurious and its bytes have left
    /// again, other bytes are subtracted instead.
    Limited(Bytes),
    /// Bytes that the driver holds and puts on the packets. The driver learns what happened to each packet
    /// ([`Sender::poll_settled`]). Before each [`Sender::poll_transmit`], it says what to send
    /// ([`Sender::set_backlog`]).
    Carried {
        /// Size on the wire of the next packet. A size above a full-sized packet is reduced to that. Zero: there is
        /// no next packet; the sender may repeat an old packet to provoke an ACK.
        next: Bytes,
        /// What comes after that packet. Zero: the application has no more.
        rest: Bytes,
    },
}

impl Backlog {
    /// For a driver that carries bytes and has none at present.
    pub const NOTHING_CARRIED: Backlog = Backlog::Carried { next: Bytes::ZERO, rest: Bytes::ZERO };
}

/// A data packet to put on the path now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: Bytes,
    /// The packet whose bytes it repeats, if it is only sent to provoke an ACK. That packet was outstanding when this
    /// one left. The sender accounts for the bytes under the original number: if a copy is lost, nothing is sent
    /// again.
    ///
    /// Source: RFC 9002 §6.2.4
    pub copy_of: Option<u64>,
    /// Whether queues may mark it.
    pub ecn: Ecn,
    /// Bytes for the receiver half.
    pub header: Rider,
}

/// An acknowledgement on the path back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame {
    /// Its own number, which rises by one per ACK of the flow.
    pub number: u64,
    /// The highest packet number received.
    pub largest: u64,
    /// The received packets, newest first.
    pub ranges: Ranges,
    /// Marked packets that arrived over the connection's life, without duplicates.
    ///
    /// Source: RFC 9000 §13.4.1, §19.3.2
    pub ce: u64,
    /// Bytes from the receiver half to the controller.
    pub feedback: Rider,
    /// The most bytes that the receiver allows outstanding; `None` for no limit.
    ///
    /// Source: RFC 9293 §3.8.6
    pub window: Option<Bytes>,
    /// How long the ACK of `largest` was held back.
    pub delay: Duration,
}

/// What happened to a packet. For each number, a delivery is reported at most once, and a loss at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was acknowledged for the first time: its bytes have arrived.
    Delivered {
        /// Its number.
        number: u64,
        /// Whether it was reported lost before. The loss was spurious then: the packet or its ACK was late. Its bytes
        /// need not be sent again, if that has not happened yet.
        declared_lost: bool,
    },
    /// It counts as lost: its bytes must be sent again, unless it was a copy. It may still be reported as delivered
    /// later, until [`Sender::remembered_from`] has passed its number.
    Lost {
        /// Its number.
        number: u64,
    },
}

/// What an input showed, in the form that a driver records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was newly acknowledged.
    pub acked: Option<Acked>,
    /// What was declared lost.
    pub lost: Option<Lost>,
}

/// Why an acknowledgement is not valid. The sender's state has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckError {
    /// It acknowledges a packet that was never sent.
    Unsent {
        /// The number acknowledged.
        largest: u64,
        /// The number that the sender will use next.
        next_number: u64,
    },
    /// Ranges that are empty, reversed, overlapping, out of order, or do not begin with `largest`.
    Ranges,
    /// It reports more marked packets than were ever sent.
    Marks {
        /// The marks reported.
        ce: u64,
        /// The number that the sender will use next.
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
