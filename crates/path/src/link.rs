//! The interface of every part that a packet crosses.

use std::time::Duration;

use airpace_core::{Bytes, Packet, Time};
use airpace_event::Fate;

/// One hop of a path. Packets go in by [`Link::push`], come out by [`Link::pop`] (call it until it returns `None`), and
/// [`Link::next`] gives the next deadline.
///
/// `now` never decreases over the calls to one link. At each deadline, a driver calls `pop` until it is empty before it
/// pushes packets that arrive at that same instant, unless the link says otherwise.
pub trait Link: Send {
    /// Takes in a packet that arrives at `now`.
    fn push(&mut self, now: Time, packet: Packet);

    /// The next packet whose crossing ended at or before `now`, in order of time.
    fn pop(&mut self, now: Time) -> Option<Exit>;

    /// When `pop` must be called next, whether or not it will return a packet; `None` until something is pushed.
    fn next(&self) -> Option<Time>;

    /// How long a packet of this size takes to cross the empty link: the link's part of the propagation delay. One-way
    /// delay beyond the sum over the path is queueing delay.
    fn base_delay(&self, bytes: Bytes) -> Duration;

    /// Bytes in the link that still wait for its capacity.
    fn backlog(&self) -> Bytes {
        Bytes::ZERO
    }
}

/// A packet leaving a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// When the packet leaves.
    pub time: Time,
    /// The packet.
    pub packet: Packet,
    /// A packet with [`Fate::Delivered`] goes on to the next link; with any other fate, its journey ends here.
    pub fate: Fate,
}
