//! Packet formats of the UDP prototype: plain-text headers, and the frames inside encrypted packets.
//!
//! Parsing borrows from the packet and never panics. A frame that is parsed and written again parses to an equal
//! frame.

use std::time::Duration;

use airpace_cc::endpoint::{AckFrame, Ranges};
use airpace_core::{Bytes, Rider, Time};

/// Protocol version of this endpoint. The first byte of a packet contains this version, so that packets of other
/// versions are unknown formats.
pub const VERSION: u8 = 1;

/// Size of a Hello (bytes). Every response to it is smaller.
///
/// Source: RFC 9000 §14.1
pub const HELLO_BYTES: usize = 1200;

/// Sizes of a nonce, a cookie and a proof (bytes).
pub const NONCE: usize = 16;
pub const COOKIE: usize = 32;
pub const PROOF: usize = 32;

/// Size of the proof in a Gone (bytes), which is a prefix of a full proof.
pub const SHORT_PROOF: usize = 16;

/// Sizes of a Cookie, an Accept and a Gone packet (bytes).
pub const COOKIE_BYTES: usize = 1 + 8 + COOKIE + PROOF;
pub const ACCEPT_BYTES: usize = 1 + 8 + 8 + NONCE + PROOF;
pub const GONE_BYTES: usize = 1 + 8 + 8 + SHORT_PROOF;

/// Size of the plain-text header of a sealed packet (bytes): first byte, connection, counter.
pub const CLEAR: usize = 1 + 8 + 8;

/// Size of the authentication tag at the end of a sealed packet (bytes).
pub const TAG: usize = 16;

/// Size of a Data frame's fields (bytes), without the controller's header and the stream's bytes.
pub const DATA_HEAD: usize = 1 + 8 + 8 + 8 + 1;

/// Maximum length of the text in a Close (bytes).
pub const MAX_REASON: usize = 512;

/// Packet type, in the lowest three bits of the first byte. The upper two bits are always 0; QUIC sets at least one
/// of them.
///
/// Source: RFC 9000 §17.2, §17.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Hello,
    Cookie,
    Accept,
    Sealed,
    Gone,
}

impl Form {
    const fn byte(self) -> u8 {
        VERSION << 3 | self as u8
    }
}

/// A packet as parsed from its plain-text bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clear<'a> {
    Hello(Hello<'a>),
    Cookie(Cookie<'a>),
    Accept(Accept<'a>),
    Sealed { connection: u64, counter: u64 },
    Gone(Gone<'a>),
}

/// Request of a connection by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Name that the client chose for itself: packets to the client carry it.
    pub client: u64,
    pub nonce: &'a [u8; NONCE],
    /// The server's cookie; all zero until the server has sent a cookie.
    pub cookie: &'a [u8; COOKIE],
    pub proof: &'a [u8; PROOF],
}

/// Request of a server that the client prove its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie<'a> {
    pub client: u64,
    pub cookie: &'a [u8; COOKIE],
    pub proof: &'a [u8; PROOF],
}

/// Acceptance of a connection by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept<'a> {
    pub client: u64,
    /// Name that the server chose for itself: packets to the server carry it.
    pub server: u64,
    pub nonce: &'a [u8; NONCE],
    pub proof: &'a [u8; PROOF],
}

/// Notification that an endpoint received a sealed packet for a connection name that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone<'a> {
    /// Name and counter of that sealed packet.
    pub connection: u64,
    pub counter: u64,
    pub proof: &'a [u8; SHORT_PROOF],
}

impl Clear<'_> {
    /// Parses the plain-text bytes; `None` if they have no known format.
    pub fn read(packet: &[u8]) -> Option<Clear<'_>> {
        let mut rest = Cursor(packet);
        let form = rest.byte()?;
        let clear = match form {
            _ if form == Form::Sealed.byte() => {
                let (connection, counter) = (rest.word()?, rest.word()?);
                return (rest.0.len() > TAG).then_some(Clear::Sealed { connection, counter });
            }
            _ if form == Form::Hello.byte() && packet.len() == HELLO_BYTES => Clear::Hello(Hello {
                client: rest.word()?,
                nonce: rest.array()?,
                cookie: rest.array()?,
                proof: rest.array()?,
            }),
            _ if form == Form::Cookie.byte() && packet.len() == COOKIE_BYTES => {
                Clear::Cookie(Cookie { client: rest.word()?, cookie: rest.array()?, proof: rest.array()? })
            }
            _ if form == Form::Accept.byte() && packet.len() == ACCEPT_BYTES => Clear::Accept(Accept {
                client: rest.word()?,
                server: rest.word()?,
                nonce: rest.array()?,
                proof: rest.array()?,
            }),
            _ if form == Form::Gone.byte() && packet.len() == GONE_BYTES => {
                Clear::Gone(Gone { connection: rest.word()?, counter: rest.word()?, proof: rest.array()? })
            }
            _ => return None,
        };
        Some(clear)
    }

    /// Appends the packet; for a sealed packet, its plain-text header.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Clear::Hello(Hello { client, nonce, cookie, proof }) => {
                let begin = out.len();
                out.push(Form::Hello.byte());
                out.extend_from_slice(&client.to_be_bytes());
                out.extend_from_slice(*nonce);
                out.extend_from_slice(*cookie);
                out.extend_from_slice(*proof);
                out.resize(begin + HELLO_BYTES, 0);
            }
            Clear::Cookie(Cookie { client, cookie, proof }) => {
                out.push(Form::Cookie.byte());
                out.extend_from_slice(&client.to_be_bytes());
                out.extend_from_slice(*cookie);
                out.extend_from_slice(*proof);
            }
            Clear::Accept(Accept { client, server, nonce, proof }) => {
                out.push(Form::Accept.byte());
                out.extend_from_slice(&client.to_be_bytes());
                out.extend_from_slice(&server.to_be_bytes());
                out.extend_from_slice(*nonce);
                out.extend_from_slice(*proof);
            }
            Clear::Sealed { connection, counter } => {
                out.push(Form::Sealed.byte());
                out.extend_from_slice(&connection.to_be_bytes());
                out.extend_from_slice(&counter.to_be_bytes());
            }
            Clear::Gone(Gone { connection, counter, proof }) => {
                out.push(Form::Gone.byte());
                out.extend_from_slice(&connection.to_be_bytes());
                out.extend_from_slice(&counter.to_be_bytes());
                out.extend_from_slice(*proof);
            }
        }
    }
}

// A Gone is shorter than every sealed packet, so that two endpoints without a common connection cannot answer each
// other forever.
const _: () = assert!(GONE_BYTES <= CLEAR + TAG);

/// A frame of a sealed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Acknowledgement, for the local sender.
    Ack(AckFrame),
    /// Flow-control limit: the stream may be sent up to this offset.
    Limit(u64),
    /// Requests a Pong with the same token, sent to the address from which the Ping came.
    Ping(u64),
    /// Answers a Ping.
    Pong(u64),
    /// Message of the scheme's receiver before any packet arrived that could be acknowledged.
    Request(Rider),
    /// Close of the connection.
    Close { code: u32, reason: &'a str },
    /// Bytes of the stream. This frame takes the rest of the packet.
    Data(Data<'a>),
}

/// A Data frame: a part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Number of the data packet.
    pub number: u64,
    /// Transmission time, by the sender's clock.
    pub sent: Time,
    /// Offset of the first byte in the stream.
    pub offset: u64,
    /// Header that the controller attached to the packet.
    pub header: &'a [u8],
    /// Whether the stream ends with these bytes.
    pub fin: bool,
    pub bytes: &'a [u8],
}

const PADDING: u8 = 0;
const ACK: u8 = 1;
const LIMIT: u8 = 2;
const PING: u8 = 3;
const PONG: u8 = 4;
const REQUEST: u8 = 5;
const CLOSE: u8 = 6;
const DATA: u8 = 7;
const DATA_FIN: u8 = 8;

/// Error: a frame cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Iterator over the frames of a decrypted packet. It stops after the first frame that cannot be parsed.
#[derive(Clone, Debug)]
pub struct Frames<'a>(Cursor<'a>);

impl<'a> Frames<'a> {
    /// Returns an iterator over the frames of a decrypted text.
    pub fn of(text: &'a [u8]) -> Frames<'a> {
        Frames(Cursor(text))
    }

    fn read(&mut self, kind: u8) -> Option<Frame<'a>> {
        let rest = &mut self.0;
        Some(match kind {
            ACK => Frame::Ack(rest.ack()?),
            LIMIT => Frame::Limit(rest.varint()?),
            PING => Frame::Ping(rest.word()?),
            PONG => Frame::Pong(rest.word()?),
            REQUEST => Frame::Request(rest.rider()?),
            CLOSE => {
                let code = u32::from_be_bytes(*rest.array()?);
                let length = u16::from_be_bytes(*rest.array()?);
                let reason = std::str::from_utf8(rest.take(usize::from(length))?).ok()?;
                (reason.len() <= MAX_REASON).then_some(Frame::Close { code, reason })?
            }
            DATA | DATA_FIN => {
                let (number, sent, offset) = (rest.word()?, Time::from_nanos(rest.word()?), rest.word()?);
                let length = usize::from(rest.byte()?);
                let header = rest.take(length).filter(|header| header.len() <= Rider::CAPACITY)?;
                let bytes = std::mem::take(&mut rest.0);
                // The end of the stream counts as one more byte, whose offset must fit as well.
                offset.checked_add(bytes.len() as u64 + 1)?;
                Frame::Data(Data { number, sent, offset, header, fin: kind == DATA_FIN, bytes })
            }
            _ => return None,
        })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = loop {
            match self.0.byte()? {
                PADDING => {}
                kind => break kind,
            }
        };
        let frame = self.read(kind).ok_or(Malformed);
        if frame.is_err() {
            self.0 = Cursor(&[]);
        }
        Some(frame)
    }
}

impl Frame<'_> {
    /// Appends the frame. A Data frame must be the last of its packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Ack(ack) => {
                out.push(ACK);
                write_ack(ack, out);
            }
            Frame::Limit(limit) => {
                out.push(LIMIT);
                write_varint(*limit, out);
            }
            Frame::Ping(token) => {
                out.push(PING);
                out.extend_from_slice(&token.to_be_bytes());
            }
            Frame::Pong(token) => {
                out.push(PONG);
                out.extend_from_slice(&token.to_be_bytes());
            }
            Frame::Request(rider) => {
                out.push(REQUEST);
                write_rider(rider.as_bytes(), out);
            }
            Frame::Close { code, reason } => {
                out.push(CLOSE);
                out.extend_from_slice(&code.to_be_bytes());
                let reason = beginning(reason);
                out.extend_from_slice(&(reason.len() as u16).to_be_bytes());
                out.extend_from_slice(reason.as_bytes());
            }
            Frame::Data(data) => {
                data.write_head(out);
                out.extend_from_slice(data.bytes);
            }
        }
    }
}

impl Data<'_> {
    /// Appends all fields of the frame except the stream's bytes.
    pub fn write_head(&self, out: &mut Vec<u8>) {
        out.push(if self.fin { DATA_FIN } else { DATA });
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(&self.sent.as_nanos().to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        write_rider(self.header, out);
    }
}

/// Returns the longest prefix of a reason that a packet may contain.
fn beginning(reason: &str) -> &str {
    let end = (0..=MAX_REASON.min(reason.len())).rev().find(|&end| reason.is_char_boundary(end));
    &reason[..end.unwrap_or_default()]
}

/// Appends an ACK: number, largest, ranges as gaps and lengths, marks, delay, window, feedback.
///
/// Source: RFC 9000 §19.3
fn write_ack(ack: &AckFrame, out: &mut Vec<u8>) {
    write_varint(ack.number, out);
    write_varint(ack.largest, out);
    let ranges = ack.ranges.as_slice();
    out.push(ranges.len() as u8);
    let mut above = ack.largest;
    for &(lowest, highest) in ranges {
        write_varint(above.saturating_sub(highest), out);
        write_varint(highest.saturating_sub(lowest), out);
        above = lowest;
    }
    write_varint(ack.ce, out);
    write_varint(u64::try_from(ack.delay.as_nanos()).unwrap_or(u64::MAX), out);
    // The field is the window plus 1, and 0 means that there is no window.
    write_varint(ack.window.map_or(0, |window| window.0.min(MAX_VARINT - 1) + 1), out);
    write_rider(ack.feedback.as_bytes(), out);
}

fn write_rider(rider: &[u8], out: &mut Vec<u8>) {
    out.push(rider.len() as u8);
    out.extend_from_slice(rider);
}

/// Maximum of a variable-length integer. Larger values are written as this maximum.
const MAX_VARINT: u64 = (1 << 62) - 1;

/// Source: RFC 9000 §16
fn write_varint(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value.min(MAX_VARINT) | 3 << 62).to_be_bytes()),
    }
}

/// The bytes that are not parsed yet.
#[derive(Clone, Copy, Debug)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| *byte)
    }

    fn word(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_be_bytes(*bytes))
    }

    fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let value =
            bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
        Some(value)
    }

    fn rider(&mut self) -> Option<Rider> {
        let length = usize::from(self.byte()?);
        Rider::new(self.take(length)?)
    }

    fn ack(&mut self) -> Option<AckFrame> {
        let (number, largest) = (self.varint()?, self.varint()?);
        let mut ranges = Ranges::EMPTY;
        let mut above = largest;
        for _ in 0..self.byte()? {
            let highest = above.checked_sub(self.varint()?)?;
            let lowest = highest.checked_sub(self.varint()?)?;
            ranges.push(lowest, highest).then_some(())?;
            above = lowest;
        }
        let ce = self.varint()?;
        let delay = Duration::from_nanos(self.varint()?);
        let window = self.varint()?.checked_sub(1).map(Bytes);
        Some(AckFrame { number, largest, ranges, ce, feedback: self.rider()?, window, delay })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(text: &[u8]) -> Vec<Result<Frame<'_>, Malformed>> {
        Frames::of(text).collect()
    }

    #[test]
    fn the_layout_never_changes() {
        let mut ranges = Ranges::EMPTY;
        assert!(ranges.push(98, 100) && ranges.push(90, 95));
        let ack = AckFrame {
            number: 3,
            largest: 100,
            ranges,
            ce: 1,
            feedback: Rider::new(&[7, 8]).expect("short"),
            window: Some(Bytes(62)),
            delay: Duration::from_nanos(5),
        };
        let mut out = vec![];
        for frame in
            [Frame::Ack(ack), Frame::Limit(300), Frame::Ping(1), Frame::Close { code: 2, reason: "é" }]
        {
            frame.write(&mut out);
        }
        let data = Data {
            number: 9,
            sent: Time::from_nanos(10),
            offset: 11,
            header: &[12],
            fin: true,
            bytes: &[13],
        };
        out.extend_from_slice(&[0, 0]);
        Frame::Data(data).write(&mut out);
        #[rustfmt::skip]
        let expected = [
            1, 3, 0x40, 100, 2, 0, 2, 3, 5, 1, 5, 63, 2, 7, 8,
            2, 0x41, 0x2c,
            3, 0, 0, 0, 0, 0, 0, 0, 1,
            6, 0, 0, 0, 2, 0, 2, 0xc3, 0xa9,
            0, 0,
            8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 11, 1, 12, 13,
        ];
        assert_eq!(out, expected);
        assert_eq!(frames(&out).len(), 5, "padding is no frame");
        assert_eq!(frames(&out)[0], Ok(Frame::Ack(ack)));
        assert_eq!(frames(&out)[4], Ok(Frame::Data(data)));
    }

    #[test]
    fn every_form_fits_what_answers_it_and_leaves_quic_its_bits() {
        let (nonce, cookie, proof, short) = ([1; NONCE], [2; COOKIE], [3; PROOF], [4; SHORT_PROOF]);
        let all = [
            Clear::Hello(Hello { client: 1, nonce: &nonce, cookie: &cookie, proof: &proof }),
            Clear::Cookie(Cookie { client: 1, cookie: &cookie, proof: &proof }),
            Clear::Accept(Accept { client: 1, server: 2, nonce: &nonce, proof: &proof }),
            Clear::Gone(Gone { connection: 1, counter: 2, proof: &short }),
        ];
        for (clear, bytes) in all.iter().zip([HELLO_BYTES, COOKIE_BYTES, ACCEPT_BYTES, GONE_BYTES]) {
            let mut out = vec![];
            clear.write(&mut out);
            assert_eq!((out.len(), out[0] & 0xc0), (bytes, 0));
            assert_eq!(Clear::read(&out), Some(*clear));
            assert_eq!(Clear::read(&out[..bytes - 1]), None, "cut short");
            out.push(0);
            assert_eq!(Clear::read(&out), None, "too long");
        }
        const { assert!(COOKIE_BYTES < HELLO_BYTES && ACCEPT_BYTES < HELLO_BYTES) };
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let long = "é".repeat(400);
        let mut out = vec![];
        Frame::Close { code: 0, reason: &long }.write(&mut out);
        assert_eq!(frames(&out), [Ok(Frame::Close { code: 0, reason: &long[..512] })]);
        let mut out = vec![];
        Frame::Close { code: 0, reason: &format!("a{long}") }.write(&mut out);
        assert!(matches!(frames(&out)[..], [Ok(Frame::Close { reason, .. })] if reason.len() == 511));
    }

    proptest! {
        #[test]
        fn integers_of_any_length_are_read_as_they_were_written(bits in 0u32..62, noise: u64) {
            let value = noise >> (63 - bits).min(63);
            let mut out = vec![];
            write_varint(value, &mut out);
            let mut rest = Cursor(&out);
            prop_assert_eq!((rest.varint(), rest.0.len()), (Some(value.min(MAX_VARINT)), 0));
            prop_assert!(Cursor(&out[..out.len() - 1]).varint().is_none());
        }
    }
}
