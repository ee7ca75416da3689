//! The contract of everything that a packet crosses.

use std::time::Duration;

use airpace_core::{Bytes, Packet, Time};
use airpace_event::Fate;

/// One hop of a path. Input in ([`Link::push`]), outputs drained ([`Link::pop`] until `None`), next deadline
/// ([`Link::next`]).
///
/// `now` never decreases over the calls to one link. A driver drains `pop` at every deadline before it pushes
/// what arrives at that same instant, unless the link says otherwise.
pub trait Link: Send {
    /// Takes in a packet that arrives at `now`.
    fn push(&mut self, now: Time, packet: Packet);

    /// The next packet whose crossing ended at or before `now`, in order of time.
    fn pop(&mut self, now: Time) -> Option<Exit>;

    /// When `pop` must next be called, whether or not it will have a packet; `None` until something is pushed.
    fn next(&self) -> Option<Time>;

    /// What the crossing takes when the link is empty, for a packet of this size: its part of the propagation
    /// delay. One-way delay beyond the sum over the path is queueing delay.
    fn base_delay(&self, bytes: Bytes) -> Duration;

    /// Bytes inside that still wait for the link's capacity.
    fn backlog(&self) -> Bytes {
        Bytes::ZERO
    }
}

/// A packet leaving a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// When.
    pub time: Time,
    /// The packet.
    pub packet: Packet,
    /// [`Fate::Delivered`] goes on to the next link; anything else is its end.
    pub fate: Fate,
}
