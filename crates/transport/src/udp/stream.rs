//! The two streams of bytes of a connection: what leaves until it has arrived, and what arrives until it is read.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use airpace_cc::endpoint::{Outbox, Sender, Transmit};
use airpace_core::{Bytes, Time};

use crate::endpoint::Read;

/// Up to where either stream may be sent before the peer has said more.
///
/// Chosen: what 200 Mbit/s carry in 40 ms. The first packets after the handshake say more.
pub const FIRST_LIMIT: u64 = 1 << 20;

/// Bytes of a full buffer for each of the most pieces that wait for what is missing before them.
///
/// Chosen: no more than full packets of which every second one is missing.
const BYTES_PER_PIECE: u64 = 1 << 10;

/// The stream that this side sends.
///
/// The stream's end counts as one more byte behind the last one, so that it is sent again if it is lost, as all bytes
/// are. On the wire it is a bit, and a byte of padding in place of the byte that it counts as.
pub struct Outgoing {
    outbox: Outbox,
    /// The bytes from [`Outgoing::first`] on.
    bytes: VecDeque<u8>,
    first: u64,
    /// The end of what was written.
    written: u64,
    /// Up to where the peer lets it be sent.
    limit: u64,
    /// Whether no more will be written.
    is_finished: bool,
    /// Whether the end was handed to the outbox.
    has_end: bool,
    wants_room: bool,
    most: u64,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The stream's bytes, by offset.
    pub bytes: Range<u64>,
    /// Whether the stream ends behind them.
    pub fin: bool,
}

impl Outgoing {
    /// A stream of which at most `most` bytes are held.
    pub fn new(most: Bytes) -> Outgoing {
        Outgoing {
            // Room for the end is always there.
            outbox: Outbox::new(most + Bytes(1), Bytes::ZERO),
            bytes: VecDeque::new(),
            first: 0,
            written: 0,
            limit: FIRST_LIMIT,
            is_finished: false,
            has_end: false,
            wants_room: false,
            most: most.0,
        }
    }

    /// Takes the first of `bytes`. Returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let room = self.room();
        let taken = usize::try_from(room).map_or(bytes.len(), |room| bytes.len().min(room));
        self.bytes.extend(&bytes[..taken]);
        self.written += taken as u64;
        self.wants_room = taken < bytes.len();
        let handed = self.outbox.hand_over(Bytes(taken as u64));
        debug_assert_eq!(handed.0, taken as u64, "the outbox has room for what the stream has room for");
        taken
    }

    /// No more will be written.
    pub fn finish(&mut self) {
        self.is_finished = true;
        self.hand_over_end();
    }

    /// The end waits for room if the buffer was made smaller.
    fn hand_over_end(&mut self) {
        if self.is_finished && !self.has_end {
            self.has_end = self.outbox.hand_over(Bytes(1)) == Bytes(1);
        }
    }

    /// Whether [`Outgoing::finish`] was called.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether all has arrived, its end too.
    pub fn is_flushed(&self) -> bool {
        self.has_end && self.outbox.is_empty()
    }

    /// Whether bytes wait for the peer to allow more.
    pub fn is_held_back(&self) -> bool {
        self.wants_room && self.limit <= self.written
    }

    /// Bytes that were written and have not left yet, or must leave again.
    pub fn unsent(&self) -> Bytes {
        self.outbox.unsent()
    }

    /// Bytes that have arrived at the peer, from the first on.
    pub fn arrived(&self) -> u64 {
        self.outbox.arrived().min(self.written)
    }

    /// The peer allows the stream up to `limit`. Limits never fall.
    pub fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// How many bytes may be held. What is held already stays.
    pub fn set_most(&mut self, most: Bytes) {
        if most.0 != self.most {
            self.most = most.0;
            self.outbox.set_most(most + Bytes(1));
        }
    }

    /// Bytes that packets have beside the stream's.
    pub fn set_overhead(&mut self, overhead: Bytes) {
        self.outbox.set_overhead(overhead);
    }

    /// Whether an application that was refused may write again; told once.
    pub fn poll_room(&mut self) -> bool {
        // A third of the buffer, as the outbox has it, or all that the peer still allows: else nobody would ask for more.
        let allowed = self.limit.saturating_sub(self.written);
        let is_worth_it = self.room() >= (self.most / 3).min(1 << 20).min(allowed).max(1);
        let tells = self.wants_room && !self.is_finished && is_worth_it;
        self.wants_room &= !tells;
        tells
    }

    /// The next packet to put on the path at `now`; see [`Outbox::poll_transmit`].
    pub fn poll_transmit(&mut self, sender: &mut Sender, now: Time) -> Option<(Transmit, Carried)> {
        self.hand_over_end();
        let polled = self.outbox.poll_transmit(sender, now);
        let arrived = self.arrived();
        if arrived > self.first {
            self.bytes.drain(..(arrived - self.first) as usize);
            self.first = arrived;
        }
        let (transmit, range) = polled?;
        let fin = self.has_end && range.end > self.written;
        // A copy of what has arrived meanwhile carries nothing.
        let end = range.end.clamp(self.first, self.written);
        Some((transmit, Carried { bytes: range.start.clamp(self.first, end)..end, fin }))
    }

    /// Appends bytes that are carried.
    pub fn copy(&self, carried: &Carried, out: &mut Vec<u8>) {
        let from = (carried.bytes.start - self.first) as usize;
        let to = (carried.bytes.end - self.first) as usize;
        let (front, back) = self.bytes.as_slices();
        out.extend_from_slice(front.get(from..to.min(front.len())).unwrap_or_default());
        out.extend_from_slice(
            back.get(from.saturating_sub(front.len())..to.saturating_sub(front.len())).unwrap_or_default(),
        );
    }

    fn room(&self) -> u64 {
        if self.is_finished {
            return 0;
        }
        let held = self.written - self.outbox.arrived().min(self.written);
        self.most.saturating_sub(held).min(self.limit.saturating_sub(self.written))
    }
}

/// The stream that arrives.
pub struct Incoming {
    /// The bytes that can be read; the first is at `read`.
    ready: VecDeque<u8>,
    read: u64,
    /// Pieces above, by their offset. They do not overlap.
    above: BTreeMap<u64, Vec<u8>>,
    /// The stream's length, once it is known.
    length: Option<u64>,
    /// Whether the application has been told of the end.
    has_read_end: bool,
    /// How many bytes may wait to be read.
    most: u64,
    /// The limit that was told last.
    told: u64,
}

/// The peer sent what it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Bytes beyond the limit that it was told.
    BeyondLimit,
    /// Bytes behind the end of the stream, or another end.
    End,
    /// More separate pieces than any honest sender makes.
    Pieces,
}

impl Incoming {
    /// A stream of which at most `most` bytes wait; at least what the peer may send unasked.
    pub fn new(most: Bytes) -> Incoming {
        let most = most.max(Bytes(FIRST_LIMIT));
        Incoming {
            ready: VecDeque::new(),
            read: 0,
            above: BTreeMap::new(),
            length: None,
            has_read_end: false,
            most: most.0,
            told: most.0,
        }
    }

    /// Bytes that were read.
    pub fn read_so_far(&self) -> u64 {
        self.read
    }

    /// Whether there is something to read, or the end, which was not read yet.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.is_over() && !self.has_read_end
    }

    /// Whether all was read.
    pub fn is_over(&self) -> bool {
        self.length == Some(self.read)
    }

    /// Up to where the peer may send now; noted as told.
    pub fn tell_limit(&mut self) -> u64 {
        self.told = self.limit();
        self.told
    }

    /// Whether the limit has risen by so much since it was told that the peer should know without delay.
    pub fn is_worth_telling(&self) -> bool {
        self.length.is_none() && self.limit() - self.told >= self.most / 4
    }

    /// Takes in bytes of the stream that begin at `offset`. Returns whether there is more to read.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn insert(&mut self, offset: u64, bytes: &[u8], fin: bool) -> Result<bool, Broken> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(Broken::BeyondLimit)?;
        let has_other_end = self.length.is_some_and(|length| end > length || fin && end != length);
        if has_other_end || fin && end < self.seen() {
            return Err(Broken::End);
        }
        if end > self.limit() {
            return Err(Broken::BeyondLimit);
        }
        let next = self.next();
        let is_late = end <= next;
        if !is_late && offset > next {
            if self.above.len() as u64 >= self.most / BYTES_PER_PIECE {
                return Err(Broken::Pieces);
            }
            self.put_above(offset, bytes);
        } else if !is_late {
            self.ready.extend(&bytes[(next - offset) as usize..]);
            self.join();
        }
        if fin {
            self.length = Some(end);
        }
        Ok(self.next() > next || fin && self.is_over())
    }

    /// Takes bytes in order.
    pub fn read(&mut self, into: &mut [u8]) -> Read {
        if self.ready.is_empty() || into.is_empty() {
            self.has_read_end = self.is_over();
            return if self.is_over() { Read::End } else { Read::Nothing };
        }
        let (front, back) = self.ready.as_slices();
        let first = front.len().min(into.len());
        into[..first].copy_from_slice(&front[..first]);
        let second = back.len().min(into.len() - first);
        into[first..first + second].copy_from_slice(&back[..second]);
        let count = first + second;
        self.ready.drain(..count);
        self.read += count as u64;
        Read::Bytes(count)
    }

    fn next(&self) -> u64 {
        self.read + self.ready.len() as u64
    }

    fn limit(&self) -> u64 {
        self.read.saturating_add(self.most)
    }

    /// The end of the highest byte that arrived.
    fn seen(&self) -> u64 {
        self.above.last_key_value().map_or(self.next(), |(start, bytes)| start + bytes.len() as u64)
    }

    /// Moves the pieces that have become next to `ready`.
    fn join(&mut self) {
        while let Some(piece) = self.above.first_entry() {
            let (start, next) = (*piece.key(), self.read + self.ready.len() as u64);
            if start > next {
                break;
            }
            let bytes = piece.remove();
            self.ready.extend(bytes.get((next - start) as usize..).unwrap_or_default());
        }
    }

    /// Keeps what is new of a piece that cannot be read yet.
    fn put_above(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let mut from = offset;
        while from < end {
            // The piece that begins at or before `from`, and where the next one begins.
            let before = self
                .above
                .range(..=from)
                .next_back()
                .map(|(start, piece)| (*start, start + piece.len() as u64));
            if let Some((_, covered)) = before
                && covered > from
            {
                from = covered;
                continue;
            }
            let until = self.above.range(from..).next().map_or(end, |(start, _)| (*start).min(end));
            let new = &bytes[(from - offset) as usize..(until - offset) as usize];
            match before.and_then(|(start, covered)| (covered == from).then_some(start)) {
                Some(start) => self.above.get_mut(&start).expect("it was just found").extend_from_slice(new),
                None => drop(self.above.insert(from, new.to_vec())),
            }
            from = until;
        }
    }
}
