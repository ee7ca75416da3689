//! The interface of every part of a network path.

use std::time::Duration;

use airpace_core::{Bytes, Packet, Time};
use airpace_event::Fate;

/// One hop of a path. Packets enter by [`Link::push`] and leave by [`Link::pop`] (call it until it returns `None`);
/// [`Link::poll_timeout`] returns the next deadline.
///
/// `now` never decreases over the calls to one link. At each deadline, a driver calls `pop` until it is empty before it
/// pushes packets that arrive at the same time, unless the documentation of the link states otherwise.
pub trait Link: Send {
    /// Takes a packet that arrives at `now`.
    fn push(&mut self, now: Time, packet: Packet);

    /// The next packet that leaves the link at or before `now`, in order of time.
    fn pop(&mut self, now: Time) -> Option<Exit>;

    /// Time of the next call of `pop`, whether or not it will return a packet; `None` until a packet is pushed.
    fn poll_timeout(&self) -> Option<Time>;

    /// Delay of a packet of this size over the empty link: the link's part of the propagation delay. The one-way delay
    /// of a packet minus the sum of these delays over the path is the queueing delay.
    fn base_delay(&self, bytes: Bytes) -> Duration;

    /// Number of bytes in the link that wait for the link's capacity.
    fn backlog(&self) -> Bytes {
        Bytes::ZERO
    }
}

/// A packet leaving a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Time of departure.
    pub time: Time,
    /// The packet.
    pub packet: Packet,
    /// A packet with [`Fate::Delivered`] continues to the next link; with any other fate, it leaves the network here.
    pub fate: Fate,
}
