//! Assigns the bytes of an application to the packets of a [`Sender`]: the bytes of the next packet, and the number of
//! bytes that the application may still write.

use std::collections::VecDeque;
use std::ops::Range;

use airpace_core::{Bytes, Time};

use crate::endpoint::spans::Spans;
use crate::endpoint::{Backlog, Sender, Settled, Transmit};

/// Maps the bytes of an application's stream to packets, for a transport that carries them. The outbox identifies bytes
/// by their offset in the stream; the transport stores the bytes themselves.
///
/// ```text
/// application ── hand_over ──▶ Outbox ── poll_transmit: number, offsets ──▶ path
///      ▲                         ▲
///      └──────── poll_room ──────┴──── poll_settled ──── Sender
/// ```
///
/// The sender is made with [`Backlog::NOTHING_CARRIED`] and belongs to one outbox. The transport
/// 1. reports events to the sender ([`Sender::on_ack`], [`Sender::handle_timeout`], …), or reports bytes that the
///    application wrote,
/// 2. drains [`Outbox::poll_transmit`] until `None`, instead of [`Sender::poll_transmit`],
/// 3. drops the bytes below [`Outbox::arrived`], and asks [`Outbox::poll_room`],
/// 4. waits until [`Sender::poll_timeout`].
///
/// A packet carries the bytes of one interval, and lost bytes are sent before new ones. After a spurious loss, bytes
/// that have arrived are not retransmitted, even if some packets that carried them count as lost. A retransmitted
/// interval may be divided differently. At the receiver, it may overlap older intervals, start where an older one
/// starts, and be shorter or longer.
#[derive(Debug)]
pub struct Outbox {
    most: Bytes,
    overhead: Bytes,
    /// End of the data that the application has written.
    handed: u64,
    /// Offset of the first byte that was never sent.
    fresh: u64,
    /// Offset below which all bytes have arrived.
    arrived: u64,
    /// The offsets above `arrived` that have arrived.
    arrived_above: Spans,
    /// The offsets that must be retransmitted.
    again: Spans,
    /// The offsets of the bytes of each packet, from packet number `base` on.
    packets: VecDeque<Carried>,
    base: u64,
    /// Whether the application is waiting for space.
    waits_for_room: bool,
}

/// The offsets of the bytes of one packet.
#[derive(Clone, Copy, Debug)]
struct Carried {
    start: u64,
    end: u64,
    /// Whether the packet is a copy. The sender then counts the bytes under the number of the original packet.
    is_copy: bool,
}

impl Outbox {
    /// Divisor of the maximum number of held bytes: a waiting application is notified once this fraction of the maximum
    /// is free.
    ///
    /// Chosen: a third, as Linux does for its sockets, so that the application does not wake for every packet.
    const WORTH_WAKING: u64 = 3;

    /// An outbox without bytes.
    ///
    /// `most`: maximum number of bytes held at once. `overhead`: bytes of a packet on the wire besides its data; less
    /// than [`SenderConfig::mss`](crate::endpoint::SenderConfig::mss).
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

    /// Number of bytes held: all bytes from the oldest byte that has not arrived to the newest byte that was written.
    /// The transport must store all these bytes. At the receiver, at most this many bytes wait for a missing byte.
    pub fn held(&self) -> Bytes {
        Bytes(self.handed - self.arrived)
    }

    /// Number of bytes that the application may write now.
    pub fn room(&self) -> Bytes {
        self.most - self.held()
    }

    /// Changes the maximum number of held bytes. If more bytes are held than the new maximum permits, they stay. There
    /// is no space until enough of these bytes have arrived.
    pub fn set_most(&mut self, most: Bytes) {
        self.most = most;
    }

    /// Changes the number of bytes of a packet besides its data, from the next packet on. It must remain less than
    /// [`SenderConfig::mss`](crate::endpoint::SenderConfig::mss).
    pub fn set_overhead(&mut self, overhead: Bytes) {
        self.overhead = overhead;
    }

    /// The application writes the next `bytes` bytes of its stream. Returns how many of these bytes, from the first on,
    /// were accepted. If not all bytes are accepted, [`Outbox::poll_room`] later reports space.
    #[must_use = "the application keeps what is not taken"]
    pub fn hand_over(&mut self, bytes: Bytes) -> Bytes {
        let taken = bytes.min(self.room());
        self.handed += taken.0;
        self.waits_for_room = taken < bytes;
        taken
    }

    /// Returns the free space once to an application that could not write all its bytes, as soon as a third of the
    /// maximum is free. Otherwise returns `None`.
    pub fn poll_room(&mut self) -> Option<Bytes> {
        let is_worth_it = self.room().0 >= self.most.0.div_ceil(Outbox::WORTH_WAKING);
        let tells = self.waits_for_room && is_worth_it && self.room() > Bytes::ZERO;
        self.waits_for_room &= !tells;
        tells.then(|| self.room())
    }

    /// Offset in the stream below which all bytes have arrived and will not be retransmitted.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Number of bytes that were written and have not been sent yet, or must be retransmitted.
    pub fn unsent(&self) -> Bytes {
        Bytes(self.handed - self.fresh + self.again.count())
    }

    /// Whether all written bytes have arrived.
    pub fn is_empty(&self) -> bool {
        self.held() == Bytes::ZERO
    }

    /// The next packet to send at `now`, and the offsets of the bytes that it carries. Call this until it returns
    /// `None` after every call of the sender and every [`Outbox::hand_over`]. This call first processes the sender's
    /// reports about older packets.
    ///
    /// The packet's size is the number of carried bytes plus the overhead. Only a copy may carry fewer bytes or none,
    /// if bytes of the original have arrived in the meantime. Such a copy is sent nevertheless, to provoke an ACK.
    pub fn poll_transmit(&mut self, sender: &mut Sender, now: Time) -> Option<(Transmit, Range<u64>)> {
        self.settle(sender);
        sender.set_backlog(self.backlog());
        let transmit = sender.poll_transmit(now)?;
        let carried = match transmit.copy_of {
            Some(original) => self.repeat(original),
            None => self.take(transmit.bytes - self.overhead),
        };
        // A packet number that the outbox did not assign carries no bytes.
        let unseen = Carried { start: 0, end: 0, is_copy: true };
        self.packets.resize((transmit.number - self.base) as usize, unseen);
        self.packets.push_back(carried);
        Some((transmit, carried.start..carried.end))
    }

    /// Processes the sender's reports about packets.
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

    /// The data to send: the size of the next packet, and the number of bytes after that packet.
    fn backlog(&self) -> Backlog {
        let fresh = self.handed - self.fresh;
        let next = self.again.first().map_or(fresh, |lost| lost.end - lost.start);
        let rest = Bytes(fresh + self.again.count() - next);
        match next {
            0 => Backlog::NOTHING_CARRIED,
            next => Backlog::Carried { next: Bytes(next) + self.overhead, rest },
        }
    }

    /// Takes the next `bytes` to be sent, in the order of [`Outbox::backlog`].
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

    /// The offsets of those bytes of packet `number` that have possibly not arrived.
    fn repeat(&self, number: u64) -> Carried {
        let Carried { start, end, .. } = self.carried(number);
        Carried { start: start.max(self.arrived), end: end.max(self.arrived), is_copy: true }
    }

    /// The offsets of the bytes of packet `number`.
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
