//! The bytes of an application on the packets of a [`Sender`]: which of them go into the next packet, and how many more
//! the application may hand over.

use std::collections::VecDeque;
use std::ops::Range;

use airpace_core::{Bytes, Time};

use crate::endpoint::spans::Spans;
use crate::endpoint::{Backlog, Sender, Settled, Transmit};

/// Which bytes of an application's stream are on which packets, for a transport that carries them. Bytes are known by
/// their offset in the stream; the bytes themselves stay with the transport.
///
/// ```text
/// application ── hand_over ──▶ Outbox ── poll_transmit: number, offsets ──▶ path
///      ▲                         ▲
///      └──────── poll_room ──────┴──── poll_settled ──── Sender
/// ```
///
/// The sender is made with [`Backlog::NOTHING_CARRIED`] and belongs to one outbox. The transport
/// 1. tells the sender what happened ([`Sender::on_ack`], [`Sender::on_timeout`], …), or hands over bytes,
/// 2. drains [`Outbox::poll_transmit`] until `None`, in the place of [`Sender::poll_transmit`],
/// 3. drops the bytes below [`Outbox::arrived`], and asks [`Outbox::poll_room`],
/// 4. waits until [`Sender::next`].
///
/// A packet carries the bytes of one interval, lost bytes before new ones. A loss that was spurious costs no byte: what has
/// arrived is not sent again, whatever is said of the packets that carried it. An interval that is sent again may be cut
/// anew: at the far end it may overlap what is there, begin where an older one does, and be shorter or longer.
#[derive(Debug)]
pub struct Outbox {
    most: Bytes,
    overhead: Bytes,
    /// End of what the application has handed over.
    handed: u64,
    /// Everything from here on was never sent.
    fresh: u64,
    /// Everything below has arrived.
    arrived: u64,
    /// What has arrived above `arrived`, with gaps.
    arrived_above: Spans,
    /// What is to be sent again.
    again: Spans,
    /// What each packet carries, from the number `base` on.
    packets: VecDeque<Carried>,
    base: u64,
    /// Whether the application is waiting for room.
    waits_for_room: bool,
}

/// What one packet carries.
#[derive(Clone, Copy, Debug)]
struct Carried {
    start: u64,
    end: u64,
    /// A copy: the packet that it repeats stands for the bytes.
    is_copy: bool,
}

impl Outbox {
    /// The part of its bound that must be free before an application that waits is told of room, as a divisor.
    ///
    /// Chosen: a third, as Linux does for its sockets; an application is not woken for every packet.
    const WORTH_WAKING: u64 = 3;

    /// An outbox to which nothing was handed over yet.
    ///
    /// `most` is the bound: how many bytes are held at once. `overhead` is what a packet takes on the wire beside what it
    /// carries, less than [`SenderConfig::mss`](crate::endpoint::SenderConfig::mss).
    pub fn new(most: Bytes, overhead: Bytes) -> Outbox {
        Outbox {
            most,
            overhead,
            handed: 0,
            fresh: 0,
            arrived: 0,
            arrived_above: Spans::default(),
            again: Spans::default(),
            packets: VecDeque::new(),
            base: 0,
            waits_for_room: false,
        }
    }

    /// Bytes that are held: all from the oldest that has not arrived to the newest that was handed over. So many a
    /// transport keeps, and at most so many wait at the far end for one that is missing.
    pub fn held(&self) -> Bytes {
        Bytes(self.handed - self.arrived)
    }

    /// Bytes that the application may hand over now.
    pub fn room(&self) -> Bytes {
        self.most - self.held()
    }

    /// Changes the bound. What is held beyond a lower one stays; there is no room until it has arrived.
    pub fn set_most(&mut self, most: Bytes) {
        self.most = most;
    }

    /// The application hands over `bytes`, the next of its stream; how many of them are taken, the first ones. Where that
    /// is less, [`Outbox::poll_room`] will tell when there is room again.
    #[must_use = "the application keeps what is not taken"]
    pub fn hand_over(&mut self, bytes: Bytes) -> Bytes {
        let taken = bytes.min(self.room());
        self.handed += taken.0;
        self.waits_for_room = taken < bytes;
        taken
    }

    /// How much room there is, told once to an application that could not hand over all it wanted, as soon as a third of
    /// the bound is free; `None` otherwise.
    pub fn poll_room(&mut self) -> Option<Bytes> {
        let is_worth_it = self.room().0 >= self.most.0.div_ceil(Outbox::WORTH_WAKING);
        let tells = self.waits_for_room && is_worth_it && self.room() > Bytes::ZERO;
        self.waits_for_room &= !tells;
        tells.then(|| self.room())
    }

    /// Everything in the stream below this offset has arrived, and will not be sent again.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether all that was handed over has arrived.
    pub fn is_empty(&self) -> bool {
        self.held() == Bytes::ZERO
    }

    /// The next packet to put on the path at `now`, and the offsets of the bytes that it carries; call until `None` after
    /// every call of the sender and every [`Outbox::hand_over`]. Takes in first what the sender says of older packets.
    ///
    /// The bytes and the overhead are the size of the packet. Only a copy of a packet whose bytes have arrived meanwhile
    /// carries less, or nothing at all; it is sent all the same, to provoke an ACK.
    pub fn poll_transmit(&mut self, sender: &mut Sender, now: Time) -> Option<(Transmit, Range<u64>)> {
        self.settle(sender);
        sender.set_backlog(self.backlog());
        let transmit = sender.poll_transmit(now)?;
        let carried = match transmit.copy_of {
            Some(original) => self.repeat(original),
            None => self.take(transmit.bytes - self.overhead),
        };
        // A number that went by unseen carries nothing.
        let unseen = Carried { start: 0, end: 0, is_copy: true };
        self.packets.resize((transmit.number - self.base) as usize, unseen);
        self.packets.push_back(carried);
        Some((transmit, carried.start..carried.end))
    }

    /// Takes in what the sender says of packets.
    fn settle(&mut self, sender: &mut Sender) {
        while let Some(settled) = sender.poll_settled() {
            match settled {
                Settled::Delivered { number, .. } => self.deliver(self.carried(number)),
                Settled::Lost { number } => self.lose(self.carried(number)),
            }
        }
        let forgotten = sender.remembered_from().saturating_sub(self.base).min(self.packets.len() as u64);
        self.packets.drain(..forgotten as usize);
        self.base = self.base.max(sender.remembered_from());
    }

    /// What is to be sent: the next packet, and whatever comes after it.
    fn backlog(&self) -> Backlog {
        let fresh = self.handed - self.fresh;
        let next = self.again.first().map_or(fresh, |lost| lost.end - lost.start);
        let rest = Bytes(fresh + self.again.count() - next);
        match next {
            0 => Backlog::NOTHING_CARRIED,
            next => Backlog::Carried { next: Bytes(next) + self.overhead, rest },
        }
    }

    /// The next `bytes` to be sent, of those that [`Outbox::backlog`] told.
    fn take(&mut self, bytes: Bytes) -> Carried {
        debug_assert!(bytes > Bytes::ZERO, "a packet holds more than its overhead");
        let start = match self.again.first() {
            Some(lost) => {
                self.again.remove(lost.start..lost.start + bytes.0);
                lost.start
            }
            None => {
                self.fresh += bytes.0;
                self.fresh - bytes.0
            }
        };
        Carried { start, end: start + bytes.0, is_copy: false }
    }

    /// What packet `number` carries and may not have arrived.
    fn repeat(&self, number: u64) -> Carried {
        let Carried { start, end, .. } = self.carried(number);
        Carried { start: start.max(self.arrived), end: end.max(self.arrived), is_copy: true }
    }

    /// What packet `number` carries.
    fn carried(&self, number: u64) -> Carried {
        let index = number.checked_sub(self.base).and_then(|index| usize::try_from(index).ok());
        let known = index.and_then(|index| self.packets.get(index)).copied();
        known.unwrap_or(Carried { start: 0, end: 0, is_copy: true })
    }

    fn deliver(&mut self, carried: Carried) {
        let Carried { start, end, .. } = carried;
        self.again.remove(start..end);
        if start > self.arrived {
            self.arrived_above.insert(start..end);
            return;
        }
        self.arrived = self.arrived.max(end);
        while let Some(next) = self.arrived_above.first().filter(|next| next.start <= self.arrived) {
            self.arrived = self.arrived.max(next.end);
            self.arrived_above.remove(next);
        }
    }

    fn lose(&mut self, carried: Carried) {
        if carried.is_copy {
            return;
        }
        let missing = carried.start.max(self.arrived)..carried.end.max(self.arrived);
        self.again.insert(missing.clone());
        self.again.remove_all_of(&self.arrived_above, missing);
    }
}
