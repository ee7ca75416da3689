//! The two byte streams of a connection: the send buffer until acknowledgement, and the receive buffer until the
//! application reads.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use airpace_cc::endpoint::{Outbox, Sender, Transmit};
use airpace_core::{Bytes, Time};

use crate::endpoint::Read;

/// Initial flow-control limit of either stream (bytes), before the peer has sent a Limit.
///
/// Chosen: the data of 40 ms at 200 Mbit/s. The first packets after the handshake raise the limit.
pub const FIRST_LIMIT: u64 = 1 << 20;

/// Bytes of receive buffer per out-of-order piece. The buffer size divided by this is the maximum number of pieces.
///
/// Chosen: if every second full-sized packet is missing, there are fewer pieces.
const BYTES_PER_PIECE: u64 = 1 << 10;

/// The outgoing stream.
///
/// The end of the stream counts as one additional byte after the last one, so that it is retransmitted after a loss
/// like any byte. On the wire, the end is a bit, and a byte of padding takes the place of the additional byte.
pub struct Outgoing {
    outbox: Outbox,
    /// The bytes from offset `first` on.
    bytes: VecDeque<u8>,
    first: u64,
    /// Offset of the end of the written bytes.
    written: u64,
    /// Flow-control limit of the peer (offset).
    limit: u64,
    /// Whether the application has finished the stream.
    is_finished: bool,
    /// Whether the stream's end was passed to the outbox.
    has_end: bool,
    wants_room: bool,
    most: u64,
}

/// The part of the stream that a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRange {
    /// Range of offsets in the stream.
    pub bytes: Range<u64>,
    /// Whether the stream ends with these bytes.
    pub fin: bool,
}

impl Outgoing {
    /// Creates a stream whose buffer holds at most `most` bytes.
    pub fn new(most: Bytes) -> Outgoing {
        Outgoing {
            // Always reserve room for the end, which counts as one byte.
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

    /// Appends as many of the first bytes of `bytes` as fit. Returns their number.
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

    /// Finishes the stream: the application will write no more bytes.
    pub fn finish(&mut self) {
        self.is_finished = true;
        self.hand_over_end();
    }

    /// Passes the end to the outbox. The end waits for room if the buffer was made smaller.
    fn hand_over_end(&mut self) {
        if self.is_finished && !self.has_end {
            self.has_end = self.outbox.hand_over(Bytes(1)) == Bytes(1);
        }
    }

    /// Whether [`Outgoing::finish`] was called.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether the peer has acknowledged all bytes and the end.
    pub fn is_flushed(&self) -> bool {
        self.has_end && self.outbox.is_empty()
    }

    /// Whether the application waits for the peer to raise the limit.
    pub fn is_held_back(&self) -> bool {
        self.wants_room && self.limit <= self.written
    }

    /// Bytes that were written but not sent yet, or that must be retransmitted.
    pub fn unsent(&self) -> Bytes {
        self.outbox.unsent()
    }

    /// Bytes that have arrived at the peer without a gap, from the first on.
    pub fn arrived(&self) -> u64 {
        self.outbox.arrived().min(self.written)
    }

    /// Raises the peer's limit to `limit`. Limits never decrease.
    pub fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Sets the size of the buffer. Bytes in the buffer stay.
    pub fn set_most(&mut self, most: Bytes) {
        if most.0 != self.most {
            self.most = most.0;
            self.outbox.set_most(most + Bytes(1));
        }
    }

    /// Sets the number of bytes per packet in addition to the stream's bytes.
    pub fn set_overhead(&mut self, overhead: Bytes) {
        self.outbox.set_overhead(overhead);
    }

    /// Whether an application whose write was refused may write again. Returns true once per refusal.
    pub fn poll_room(&mut self) -> bool {
        // Wait for room of a third of the buffer, as the outbox does, or for all bytes that the peer still permits.
        // Otherwise the application would never reach the limit, and no higher limit would be requested.
        let allowed = self.limit.saturating_sub(self.written);
        let is_worth_it = self.room() >= (self.most / 3).min(1 << 20).min(allowed).max(1);
        let tells = self.wants_room && !self.is_finished && is_worth_it;
        self.wants_room &= !tells;
        tells
    }

    /// Returns the next packet to send at `now`; see [`Outbox::poll_transmit`].
    pub fn poll_transmit(&mut self, sender: &mut Sender, now: Time) -> Option<(Transmit, StreamRange)> {
        self.hand_over_end();
        let polled = self.outbox.poll_transmit(sender, now);
        let arrived = self.arrived();
        if arrived > self.first {
            self.bytes.drain(..(arrived - self.first) as usize);
            self.first = arrived;
        }
        let (transmit, range) = polled?;
        let fin = self.has_end && range.end > self.written;
        // If the bytes of a retransmission were acknowledged meanwhile, the packet carries no bytes.
        let end = range.end.clamp(self.first, self.written);
        Some((transmit, StreamRange { bytes: range.start.clamp(self.first, end)..end, fin }))
    }

    /// Appends the bytes of a packet.
    pub fn copy(&self, carried: &StreamRange, out: &mut Vec<u8>) {
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

/// The incoming stream.
pub struct Incoming {
    /// Bytes that can be read; the first has the offset `read`.
    ready: VecDeque<u8>,
    read: u64,
    /// Out-of-order pieces by their offset. They do not overlap.
    above: BTreeMap<u64, Vec<u8>>,
    /// Length of the stream, if known.
    length: Option<u64>,
    /// Whether the application has read the stream's end.
    has_read_end: bool,
    /// Size of the receive buffer (bytes).
    most: u64,
    /// Flow-control limit that was last sent to the peer (offset).
    told: u64,
}

/// Violation of the protocol by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamViolation {
    /// Bytes beyond the limit that was sent to the peer.
    BeyondLimit,
    /// Bytes after the end of the stream, or a different end.
    End,
    /// More separate pieces than a correct sender creates.
    Pieces,
}

impl Incoming {
    /// Creates a stream with a receive buffer of `most` bytes, or of [`FIRST_LIMIT`] if that is larger.
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

    /// Number of bytes that the application has read.
    pub fn read_so_far(&self) -> u64 {
        self.read
    }

    /// Whether there are unread bytes, or an unread end.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty() || self.is_over() && !self.has_read_end
    }

    /// Whether all bytes of the stream were read.
    pub fn is_over(&self) -> bool {
        self.length == Some(self.read)
    }

    /// Returns the current limit to send to the peer, and remembers it as sent.
    pub fn tell_limit(&mut self) -> u64 {
        self.told = self.limit();
        self.told
    }

    /// Whether a Limit is due at once, because the limit exceeds the sent one by a quarter of the buffer.
    pub fn is_worth_telling(&self) -> bool {
        self.length.is_none() && self.limit() - self.told >= self.most / 4
    }

    /// Inserts bytes of the stream that start at `offset`. Returns whether there are more bytes to read.
    ///
    /// # Errors
    /// The peer violates the protocol. The stream is unchanged.
    pub fn insert(&mut self, offset: u64, bytes: &[u8], fin: bool) -> Result<bool, StreamViolation> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(StreamViolation::BeyondLimit)?;
        let has_other_end = self.length.is_some_and(|length| end > length || fin && end != length);
        if has_other_end || fin && end < self.seen() {
            return Err(StreamViolation::End);
        }
        if end > self.limit() {
            return Err(StreamViolation::BeyondLimit);
        }
        let next = self.next();
        let is_late = end <= next;
        if !is_late && offset > next {
            if self.above.len() as u64 >= self.most / BYTES_PER_PIECE {
                return Err(StreamViolation::Pieces);
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

    /// Reads bytes in order.
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

    /// Returns the offset after the highest received byte.
    fn seen(&self) -> u64 {
        self.above.last_key_value().map_or(self.next(), |(start, bytes)| start + bytes.len() as u64)
    }

    /// Moves the pieces without a gap before them to `ready`.
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

    /// Stores the new bytes of an out-of-order piece.
    fn put_above(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let mut from = offset;
        while from < end {
            // The piece that starts at or before `from`, and its end.
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
