//! The two ends of one transport flow, without sockets or clocks: packet numbers, ACKs, loss detection, RTT, pacing.
//!
//! ```text
//!  Sender ── Transmit { number, bytes, ecn, header } ──▶ path ──▶ Acker ── Receiver half
//!    ▲                                                         │
//!    └───────────────── AckFrame { ranges, ce, feedback } ◀────────┘
//! ```
//!
//! A driver tells a [`Sender`] what happened ([`Sender::on_ack`], [`Sender::on_timeout`], …), then drains
//! [`Sender::poll_transmit`] until `None`, then waits until [`Sender::next`]. It does the same with an [`Acker`]:
//! [`Acker::on_packet`] or [`Acker::on_timeout`], drain [`Acker::poll_ack`], wait until [`Acker::next`]. Lost bytes are sent again as new
//! packets: a number is never used twice, so an ACK is never ambiguous.
//!
//! A sender counts bytes; it does not hold them. For a driver that only counts too ([`Backlog::Unlimited`],
//! [`Backlog::Limited`]) it adds lost bytes to the backlog itself. A transport that carries real bytes
//! ([`Backlog::Carried`]) is told by number which packets were delivered and which are lost ([`Sender::poll_settled`]).
//! [`Outbox`] puts a stream of bytes on the numbers, and says how much more the application may hand over.
//!
//! Source: RFC 9002, RFC 9000 §13

mod acker;
mod outbox;
mod ranges;
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
pub use outbox::Outbox;
pub use ranges::Ranges;
pub use rtt::RttEstimator;
pub use sender::Sender;

use crate::pacer::PacerConfig;

/// What a sender is made from, beside its controller.
#[derive(Clone, Copy, Debug)]
pub struct SenderConfig {
    /// The flow, as events name it.
    pub flow: FlowId,
    /// Bytes of a full-sized packet on the wire.
    pub mss: Bytes,
    /// How packets are spread.
    pub pacer: PacerConfig,
    /// How the other end acknowledges.
    pub ack: AckPolicy,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Data packets per ACK; a packet out of order is acknowledged at once.
    ///
    /// Source: RFC 9000 §13.2.1
    pub every: u32,
    /// The longest that an ACK is held back waiting for more packets.
    pub max_delay: Duration,
}

/// Every packet, at once; 25 ms for policies that wait.
///
/// Source: RFC 9000 §18.2 (`max_ack_delay`)
impl Default for AckPolicy {
    fn default() -> AckPolicy {
        AckPolicy { every: 1, max_delay: Duration::from_millis(25) }
    }
}

impl AckPolicy {
    /// How long an ACK may be late on purpose.
    fn deliberate_delay(&self) -> Duration {
        if self.every > 1 { self.max_delay } else { Duration::ZERO }
    }
}

/// What the application has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// Always more.
    Unlimited,
    /// So many bytes, first transmissions and what is to be sent again. The sender adds what is lost by itself.
    ///
    /// It counts bytes and does not know which they are. If a loss was spurious and its bytes have left again, other bytes
    /// are taken off in their place.
    Limited(Bytes),
    /// Bytes that the driver holds and puts on the packets: it is told what becomes of each packet
    /// ([`Sender::poll_settled`]), and says before each [`Sender::poll_transmit`] what is to be sent
    /// ([`Sender::set_backlog`]).
    Carried {
        /// Size on the wire of the packet that leaves next. One of more than a full-sized packet is cut to that. Zero:
        /// there is none; the sender may repeat an old packet to provoke an ACK.
        next: Bytes,
        /// What comes after it. Zero: the application has no more.
        rest: Bytes,
    },
}

impl Backlog {
    /// A driver that carries bytes has none at present.
    pub const NOTHING_CARRIED: Backlog = Backlog::Carried { next: Bytes::ZERO, rest: Bytes::ZERO };
}

/// A data packet to put on the path now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: Bytes,
    /// The packet whose bytes it repeats, if it is sent for nothing but to provoke an ACK. That packet was outstanding
    /// when this one left, and is the one that stands for the bytes: the loss of a copy asks for nothing.
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
    /// Its own number: counts up by one per ACK of the flow.
    pub number: u64,
    /// The highest packet number received.
    pub largest: u64,
    /// What was received, newest first.
    pub ranges: Ranges,
    /// Packets that arrived marked over the connection's life, duplicates not counted.
    ///
    /// Source: RFC 9000 §13.4.1, §19.3.2
    pub ce: u64,
    /// Bytes of the receiver half for the controller.
    pub feedback: Rider,
    /// The most bytes that the receiver allows outstanding; `None` for no limit.
    ///
    /// Source: RFC 9293 §3.8.6
    pub window: Option<Bytes>,
    /// How long the ACK of `largest` was held back.
    pub delay: Duration,
}

/// What became of a packet. Of each number, a delivery is told once at most, and so is a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was acknowledged for the first time: what it carried has arrived.
    Delivered {
        /// Its number.
        number: u64,
        /// Whether it was told lost before. The loss was spurious then: it was late, or its ACK was. What it carried need
        /// not be sent again, if that has not happened meanwhile.
        declared_lost: bool,
    },
    /// It counts as lost: what it carried is to be sent again, unless it was a copy. It may still be told delivered later,
    /// until [`Sender::remembered_from`] has passed its number.
    Lost {
        /// Its number.
        number: u64,
    },
}

/// What an input showed, in the words that a driver records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What was newly acknowledged.
    pub acked: Option<Acked>,
    /// What was declared lost.
    pub lost: Option<Lost>,
}

/// Why an acknowledgement cannot be believed; the sender's state is then unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckError {
    /// A packet that was never sent.
    Unsent {
        /// The number acknowledged.
        largest: u64,
        /// The number that the sender will use next.
        next_number: u64,
    },
    /// Ranges that are empty, reversed, overlapping, out of order, or do not begin with `largest`.
    Ranges,
    /// More packets marked than were ever sent.
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
