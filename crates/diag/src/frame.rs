//! Framing of messages on a diagnostic port.
//!
//! HDLC: `body, CRC low, CRC high, 0x7E`. Bytes 0x7D and 0x7E in front of the final flag are sent as 0x7D followed by the
//! byte XOR 0x20. Plain, after HDLC was switched off: `0x7E, version 1, length (u16), body, 0x7E`.

use crc::{CRC_16_IBM_SDLC, Crc, Table};
use memchr::{memchr, memchr2};

/// Flag byte: ends a frame.
pub(crate) const FLAG: u8 = 0x7E;
/// Escape byte: the byte after it is sent XOR [`FLIP`].
pub(crate) const ESCAPE: u8 = 0x7D;
/// Value with which escaped bytes are XORed.
pub(crate) const FLIP: u8 = 0x20;
/// Version of the plain framing.
const PLAIN_VERSION: u8 = 1;
/// Length of the plain framing's header, `0x7E, version, length`.
const PLAIN_HEADER: usize = 4;

/// Maximum length of a body (bytes).
///
/// Chosen: four times the maximum that the length field of a log packet can express. Longer bodies appear only in
/// streams that are not diagnostic streams.
pub const MAX_BODY: usize = 1 << 18;

/// Length of the checksum behind a body (bytes).
const CHECKSUM: usize = 2;

/// CRC-16/X-25 over the body before escaping.
const CRC: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_IBM_SDLC);

/// Framing of messages in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// HDLC: flags, escapes and a checksum.
    #[default]
    Hdlc,
    /// A length in front of each body, after both endpoints agreed to this framing.
    Plain,
}

/// Result of deframing one piece of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed<'a> {
    /// A complete message, without its checksum.
    Body(&'a [u8]),
    /// Bytes that are not a message.
    Fault(Fault),
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The checksum differs: the stream starts inside a message, was cut, or lost bytes.
    Checksum,
    /// The frame is too short for a body and its checksum.
    Short,
    /// The frame is longer than [`MAX_BODY`]: the stream is not a diagnostic stream.
    Long,
    /// In plain framing, a flag or the version is missing at the position that the length implies.
    Marks,
}

/// Finds the messages in a stream of bytes that arrives in pieces.
///
/// A message that lies within one piece and has no escapes is not copied. All other messages are collected in one
/// buffer. Nothing is allocated per message.
#[derive(Clone, Debug, Default)]
pub struct Deframer {
    framing: Framing,
    /// Bytes of the incomplete frame, without escapes.
    begun: Vec<u8>,
    /// Whether the last byte of the last piece was an escape.
    is_escaped: bool,
    /// Whether the incomplete frame is too long. The rest of that frame is dropped.
    is_overlong: bool,
    /// Number of bytes of the stream before the next piece.
    read: u64,
    /// Offset in the stream of the incomplete frame.
    begins: u64,
}

impl Deframer {
    /// A deframer at the start of a stream.
    pub fn new(framing: Framing) -> Deframer {
        Deframer { framing, ..Deframer::default() }
    }

    /// Changes the framing from the next piece on, after both endpoints have agreed on it. Drops an incomplete frame.
    pub fn set_framing(&mut self, framing: Framing) {
        self.framing = framing;
        self.forget();
    }

    /// Takes the next piece. Calls `visit` for every message that ends in this piece, with the offset in the stream at
    /// which the message starts.
    pub fn push(&mut self, bytes: &[u8], mut visit: impl FnMut(u64, Framed<'_>)) {
        match self.framing {
            Framing::Hdlc => self.push_hdlc(bytes, &mut visit),
            Framing::Plain => self.push_plain(bytes, &mut visit),
        }
        self.read += bytes.len() as u64;
    }

    /// Offset in the stream and number of bytes of the incomplete frame.
    pub fn begun(&self) -> Option<(u64, usize)> {
        let bytes = self.begun.len() + usize::from(self.is_escaped);
        (bytes > 0 || self.is_overlong).then_some((self.begins, bytes))
    }

    /// Ends the stream. Returns offset and number of bytes of a frame that is still incomplete.
    pub fn finish(&mut self) -> Option<(u64, usize)> {
        let begun = self.begun();
        self.forget();
        begun
    }

    fn forget(&mut self) {
        self.begun.clear();
        self.is_escaped = false;
        self.is_overlong = false;
    }

    fn push_hdlc(&mut self, bytes: &[u8], visit: &mut impl FnMut(u64, Framed<'_>)) {
        let mut at = 0;
        while let Some(length) = memchr(FLAG, &bytes[at..]) {
            let rest = &bytes[at..at + length];
            if self.begun.is_empty() && !self.is_escaped && !self.is_overlong {
                self.begins = self.read + at as u64;
                if memchr(ESCAPE, rest).is_none() {
                    deliver(self.begins, rest, visit);
                    at += length + 1;
                    continue;
                }
            }
            self.unescape(rest);
            if self.is_overlong {
                visit(self.begins, Framed::Fault(Fault::Long));
            } else {
                deliver(self.begins, &self.begun, visit);
            }
            self.forget();
            at += length + 1;
        }
        let rest = &bytes[at..];
        if !rest.is_empty() {
            if self.begun.is_empty() && !self.is_escaped && !self.is_overlong {
                self.begins = self.read + at as u64;
            }
            self.unescape(rest);
        }
    }

    /// Adds bytes to the incomplete frame.
    fn unescape(&mut self, mut bytes: &[u8]) {
        if self.is_escaped
            && let Some((&first, rest)) = bytes.split_first()
        {
            self.begun.push(first ^ FLIP);
            self.is_escaped = false;
            bytes = rest;
        }
        while let Some(length) = memchr(ESCAPE, bytes) {
            self.begun.extend_from_slice(&bytes[..length]);
            match bytes.get(length + 1) {
                Some(&escaped) => self.begun.push(escaped ^ FLIP),
                None => self.is_escaped = true,
            }
            bytes = bytes.get(length + 2..).unwrap_or_default();
        }
        self.begun.extend_from_slice(bytes);
        if self.begun.len() > MAX_BODY + CHECKSUM {
            self.begun.clear();
            self.is_overlong = true;
        }
    }

    fn push_plain(&mut self, bytes: &[u8], visit: &mut impl FnMut(u64, Framed<'_>)) {
        if self.begun.is_empty() {
            self.begins = self.read;
        }
        self.begun.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(frame) = plain_frame(&self.begun[at..]) {
            match frame {
                Ok(length) => {
                    let body = &self.begun[at + PLAIN_HEADER..at + PLAIN_HEADER + length];
                    visit(self.begins + at as u64, Framed::Body(body));
                    at += PLAIN_HEADER + length + 1;
                }
                Err(skip) => {
                    visit(self.begins + at as u64, Framed::Fault(Fault::Marks));
                    at += skip;
                }
            }
        }
        self.begun.drain(..at);
        self.begins += at as u64;
    }
}

/// Reads the plain frame at the start of `bytes`. Returns the length of its body, or the number of bytes to skip to the
/// next possible frame. Returns `None` while bytes are missing.
fn plain_frame(bytes: &[u8]) -> Option<Result<usize, usize>> {
    let &first = bytes.first()?;
    let to_next_flag = || memchr(FLAG, &bytes[1..]).map_or(bytes.len(), |length| length + 1);
    if first != FLAG {
        return Some(Err(to_next_flag()));
    }
    let header = bytes.get(..PLAIN_HEADER)?;
    if header[1] != PLAIN_VERSION {
        return Some(Err(to_next_flag()));
    }
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let &last = bytes.get(PLAIN_HEADER + length)?;
    Some(if last == FLAG { Ok(length) } else { Err(to_next_flag()) })
}

/// Verifies the checksum at the end of a frame, and passes the body or a fault to `visit`.
fn deliver(begins: u64, frame: &[u8], visit: &mut impl FnMut(u64, Framed<'_>)) {
    if frame.is_empty() {
        // Some senders also start a frame with a flag.
        return;
    }
    let Some((body, checksum)) = frame.split_last_chunk::<2>().filter(|(body, _)| !body.is_empty()) else {
        visit(begins, Framed::Fault(Fault::Short));
        return;
    };
    if body.len() > MAX_BODY {
        visit(begins, Framed::Fault(Fault::Long));
    } else if CRC.checksum(body) == u16::from_le_bytes(*checksum) {
        visit(begins, Framed::Body(body));
    } else {
        visit(begins, Framed::Fault(Fault::Checksum));
    }
}

/// Appends `body` to `out` as one frame.
///
/// # Panics
/// In the plain framing, if the body is longer than 65,535 bytes.
pub fn encode(framing: Framing, body: &[u8], out: &mut Vec<u8>) {
    match framing {
        Framing::Hdlc => {
            escape(body, out);
            escape(&CRC.checksum(body).to_le_bytes(), out);
        }
        Framing::Plain => {
            let length = u16::try_from(body.len()).expect("the length field of a plain frame has 16 bits");
            out.extend([FLAG, PLAIN_VERSION]);
            out.extend(length.to_le_bytes());
            out.extend_from_slice(body);
        }
    }
    out.push(FLAG);
}

fn escape(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(length) = memchr2(FLAG, ESCAPE, bytes) {
        out.extend_from_slice(&bytes[..length]);
        out.extend([ESCAPE, bytes[length] ^ FLIP]);
        bytes = &bytes[length + 1..];
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All bodies and faults found in a stream that arrives in these pieces.
    fn found(framing: Framing, pieces: &[&[u8]]) -> Vec<(u64, Result<Vec<u8>, Fault>)> {
        let mut deframer = Deframer::new(framing);
        let mut found = vec![];
        for piece in pieces {
            deframer.push(piece, |at, framed| {
                found.push((
                    at,
                    match framed {
                        Framed::Body(body) => Ok(body.to_vec()),
                        Framed::Fault(fault) => Err(fault),
                    },
                ));
            });
        }
        found
    }

    #[test]
    fn the_checksum_is_that_of_x25() {
        assert_eq!(CRC.checksum(b"123456789"), 0x906E);
    }

    #[test]
    fn a_version_request_looks_as_on_the_wire() {
        let mut out = vec![];
        encode(Framing::Hdlc, &[0x00], &mut out);
        assert_eq!(out, [0x00, 0x78, 0xF0, 0x7E]);
    }

    #[test]
    fn flags_between_frames_and_before_them_are_no_faults() {
        let mut stream = vec![FLAG, FLAG];
        encode(Framing::Hdlc, &[0x60, 0x00], &mut stream);
        stream.push(FLAG);
        encode(Framing::Hdlc, &[0x7E, 0x7D, 0x01], &mut stream);
        let bodies: Vec<_> = found(Framing::Hdlc, &[&stream]).into_iter().map(|(_, body)| body).collect();
        assert_eq!(bodies, [Ok(vec![0x60, 0x00]), Ok(vec![0x7E, 0x7D, 0x01])]);
    }

    #[test]
    fn a_stream_that_begins_inside_a_frame_loses_only_that_one() {
        let mut stream = vec![];
        encode(Framing::Hdlc, &[1, 2, 3, 4, 5, 6], &mut stream);
        let second = stream.len() as u64;
        encode(Framing::Hdlc, &[7, 8], &mut stream);
        let found = found(Framing::Hdlc, &[&stream[3..]]);
        assert_eq!(found, [(0, Err(Fault::Checksum)), (second - 3, Ok(vec![7, 8]))]);
    }

    #[test]
    fn an_unfinished_frame_is_reported_at_the_end_and_a_too_long_one_is_dropped() {
        let mut deframer = Deframer::default();
        deframer.push(&[1, 2, ESCAPE], |_, _| panic!("nothing ended"));
        assert_eq!(deframer.finish(), Some((0, 3)));
        assert_eq!(deframer.finish(), None);
        let long = vec![1; MAX_BODY + 10];
        for _ in 0..3 {
            deframer.push(&long, |_, _| panic!("nothing ended"));
        }
        assert!(deframer.begun.len() <= MAX_BODY, "memory is bounded");
        let mut faults = 0;
        deframer.push(&[FLAG], |_, framed| faults += u32::from(framed == Framed::Fault(Fault::Long)));
        assert_eq!(faults, 1);
    }

    #[test]
    fn the_longest_body_is_found_in_pieces_too_and_a_longer_one_is_not() {
        for (length, expected) in [(MAX_BODY, true), (MAX_BODY + 1, false)] {
            let mut stream = vec![];
            encode(Framing::Hdlc, &vec![1; length], &mut stream);
            for piece in [stream.len(), 4_096] {
                let pieces: Vec<&[u8]> = stream.chunks(piece).collect();
                let found = found(Framing::Hdlc, &pieces);
                assert_eq!(found[0].1.is_ok(), expected, "{length} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn the_plain_framing_finds_its_way_back() {
        let mut stream = vec![9, 9];
        let first = stream.len() as u64;
        encode(Framing::Plain, &[FLAG, 1, FLAG], &mut stream);
        let second = stream.len() as u64;
        stream.extend([FLAG, 7, 7]);
        let third = stream.len() as u64;
        encode(Framing::Plain, &[0x10], &mut stream);
        let expected = [
            (0, Err(Fault::Marks)),
            (first, Ok(vec![FLAG, 1, FLAG])),
            (second, Err(Fault::Marks)),
            (third, Ok(vec![0x10])),
        ];
        assert_eq!(found(Framing::Plain, &[&stream]), expected);
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(found(Framing::Plain, &single).last(), expected.last(), "also byte by byte");
    }

    proptest! {
        #[test]
        fn what_was_framed_is_found_whole_however_it_is_cut(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 1..8),
            cut in 1usize..64,
            is_plain in any::<bool>(),
        ) {
            let framing = if is_plain { Framing::Plain } else { Framing::Hdlc };
            let mut stream = vec![];
            for body in &bodies {
                encode(framing, body, &mut stream);
            }
            let pieces: Vec<&[u8]> = stream.chunks(cut).collect();
            let found: Vec<_> = found(framing, &pieces).into_iter().map(|(_, body)| body.unwrap()).collect();
            prop_assert_eq!(found, bodies);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000), cut in 1usize..64) {
            for framing in [Framing::Hdlc, Framing::Plain] {
                let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
                found(framing, &pieces);
            }
        }
    }
}
