//! The frames of a QUIC packet, as far as a log tells them: what they say, and how much they carry.
//!
//! They come from a packet that this side wrote, or that the peer has sealed. A peer may still write anything.
//!
//! Source: RFC 9000 §19; RFC 9221 §4 (DATAGRAM); draft-ietf-quic-ack-frequency-11 §4, §5 (ACK_FREQUENCY, IMMEDIATE_ACK)

use super::wire::Reader;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// So many bytes of nothing.
    Padding {
        /// How many.
        bytes: u64,
    },
    /// Asks for an ACK.
    Ping,
    /// Says what has arrived.
    Ack {
        /// How long it waited, in the unit of its sender.
        delay: u64,
        /// The lowest and highest number of each range, the highest range first.
        ranges: Vec<(u64, u64)>,
        /// Packets that came with ECT(0), with ECT(1) and with CE.
        ecn: Option<[u64; 3]>,
    },
    /// The sender of a stream gives up.
    ResetStream {
        /// The stream.
        stream: u64,
        /// Why, by the application.
        error: u64,
        /// How many bytes it has.
        final_size: u64,
    },
    /// The receiver of a stream wants no more of it.
    StopSending {
        /// The stream.
        stream: u64,
        /// Why, by the application.
        error: u64,
    },
    /// Bytes of TLS.
    Crypto {
        /// Where they begin.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// A token for another connection; it is nobody's business.
    NewToken,
    /// Bytes of a stream.
    Stream {
        /// The stream.
        stream: u64,
        /// Where they begin.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Whether the stream ends with them.
        is_last: bool,
    },
    /// How many bytes may be sent.
    MaxData {
        /// So many.
        most: u64,
    },
    /// How many bytes of a stream may be sent.
    MaxStreamData {
        /// The stream.
        stream: u64,
        /// So many.
        most: u64,
    },
    /// How many streams may be opened.
    MaxStreams {
        /// Of which kind.
        is_bidirectional: bool,
        /// So many.
        most: u64,
    },
    /// The limit of bytes holds something back.
    DataBlocked {
        /// The limit.
        limit: u64,
    },
    /// The limit of a stream holds something back.
    StreamDataBlocked {
        /// The stream.
        stream: u64,
        /// The limit.
        limit: u64,
    },
    /// The limit of streams holds something back.
    StreamsBlocked {
        /// Of which kind.
        is_bidirectional: bool,
        /// The limit.
        limit: u64,
    },
    /// Another connection ID. The token that comes with it ends the connection, and is nobody's business.
    NewConnectionId {
        /// Its number.
        sequence: u64,
        /// Those with lower numbers must go.
        retires_before: u64,
        /// The connection ID.
        id: Vec<u8>,
    },
    /// A connection ID is used no more.
    RetireConnectionId {
        /// Its number.
        sequence: u64,
    },
    /// Asks whether the path works.
    PathChallenge([u8; 8]),
    /// Says that the path works.
    PathResponse([u8; 8]),
    /// The connection is over.
    Close {
        /// Whether the application says so, or QUIC.
        is_by_application: bool,
        /// Why.
        error: u64,
        /// The type of the frame that was wrong.
        frame: Option<u64>,
        /// Words for people.
        reason: String,
    },
    /// The server has seen the end of the handshake.
    HandshakeDone,
    /// Bytes that belong to no stream.
    Datagram {
        /// How many.
        bytes: u64,
    },
    /// A frame of an extension that is known to end where it ends, and has no name in a log.
    Other {
        /// Its type.
        kind: u64,
    },
}

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No extension that is known here has such a frame; what follows it cannot be read either.
    #[error(
        "the frame at byte {offset} has the unknown type {kind:#x}; look up what the peer's extensions are"
    )]
    Unknown {
        /// Where it begins.
        offset: usize,
        /// Its type.
        kind: u64,
    },
    /// It ends too early, or says what cannot be.
    #[error("the frame at byte {offset} is damaged; look at what the peer sends")]
    Damaged {
        /// Where it begins.
        offset: usize,
    },
}

/// The frames of a packet's payload, one after the other, each with the bytes up to its end. After an error there are none.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Frames<'a> {
    /// The frames of `payload`, which is no longer sealed.
    pub fn new(payload: &'a [u8]) -> Frames<'a> {
        Frames { payload, at: 0 }
    }

    /// Where the next frame begins.
    pub fn offset(&self) -> usize {
        self.at
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, FrameError>;

    fn next(&mut self) -> Option<Result<Frame, FrameError>> {
        let offset = self.at;
        let bytes = self.payload.get(offset..).filter(|rest| !rest.is_empty())?;
        let mut reader = Reader::new(bytes);
        let frame = reader.number().ok_or(FrameError::Damaged { offset }).and_then(|kind| {
            if !is_known(kind) {
                return Err(FrameError::Unknown { offset, kind });
            }
            // A type is written as short as it can be. Source: RFC 9000 §12.4
            let is_short = bytes.len() - reader.rest().len() == if kind < 0x40 { 1 } else { 2 };
            let frame = if is_short { frame(kind, &mut reader) } else { None };
            frame.ok_or(FrameError::Damaged { offset })
        });
        self.at = match frame {
            Ok(_) => self.payload.len() - reader.rest().len(),
            Err(_) => self.payload.len(),
        };
        Some(frame)
    }
}

const ACK_FREQUENCY: u64 = 0xaf;
const IMMEDIATE_ACK: u64 = 0x1f;

fn is_known(kind: u64) -> bool {
    matches!(kind, 0..=IMMEDIATE_ACK | 0x30 | 0x31 | ACK_FREQUENCY)
}

fn frame(kind: u64, reader: &mut Reader<'_>) -> Option<Frame> {
    Some(match kind {
        0x00 => {
            // All that follow each other count as one.
            let more = reader.rest().iter().take_while(|byte| **byte == 0).count() as u64;
            reader.take(more)?;
            Frame::Padding { bytes: 1 + more }
        }
        0x01 => Frame::Ping,
        0x02 | 0x03 => ack(kind == 0x03, reader)?,
        0x04 => Frame::ResetStream {
            stream: reader.number()?,
            error: reader.number()?,
            final_size: reader.number()?,
        },
        0x05 => Frame::StopSending { stream: reader.number()?, error: reader.number()? },
        0x06 => Frame::Crypto { offset: reader.number()?, bytes: reader.counted()?.len() as u64 },
        0x07 => {
            reader.counted()?;
            Frame::NewToken
        }
        0x08..=0x0f => {
            let stream = reader.number()?;
            let offset = if kind & 0x04 != 0 { reader.number()? } else { 0 };
            let bytes = if kind & 0x02 != 0 { reader.counted()? } else { to_the_end(reader)? };
            Frame::Stream { stream, offset, bytes: bytes.len() as u64, is_last: kind & 0x01 != 0 }
        }
        0x10 => Frame::MaxData { most: reader.number()? },
        0x11 => Frame::MaxStreamData { stream: reader.number()?, most: reader.number()? },
        0x12 | 0x13 => Frame::MaxStreams { is_bidirectional: kind == 0x12, most: reader.number()? },
        0x14 => Frame::DataBlocked { limit: reader.number()? },
        0x15 => Frame::StreamDataBlocked { stream: reader.number()?, limit: reader.number()? },
        0x16 | 0x17 => Frame::StreamsBlocked { is_bidirectional: kind == 0x16, limit: reader.number()? },
        0x18 => {
            let (sequence, retires_before) = (reader.number()?, reader.number()?);
            let id = reader.connection_id()?.to_vec();
            reader.take(16)?;
            Frame::NewConnectionId { sequence, retires_before, id }
        }
        0x19 => Frame::RetireConnectionId { sequence: reader.number()? },
        0x1a => Frame::PathChallenge(reader.take(8)?.try_into().ok()?),
        0x1b => Frame::PathResponse(reader.take(8)?.try_into().ok()?),
        0x1c | 0x1d => {
            let error = reader.number()?;
            let frame = if kind == 0x1c { Some(reader.number()?) } else { None };
            let reason = String::from_utf8_lossy(reader.counted()?).into_owned();
            Frame::Close { is_by_application: kind == 0x1d, error, frame, reason }
        }
        0x1e => Frame::HandshakeDone,
        0x30 => Frame::Datagram { bytes: to_the_end(reader)?.len() as u64 },
        0x31 => Frame::Datagram { bytes: reader.counted()?.len() as u64 },
        IMMEDIATE_ACK => Frame::Other { kind },
        ACK_FREQUENCY => {
            for _ in 0..4 {
                reader.number()?;
            }
            Frame::Other { kind }
        }
        _ => return None,
    })
}

fn to_the_end<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.take(reader.rest().len() as u64)
}

/// Source: RFC 9000 §19.3
fn ack(has_ecn: bool, reader: &mut Reader<'_>) -> Option<Frame> {
    let (mut highest, delay, more) = (reader.number()?, reader.number()?, reader.number()?);
    let mut lowest = highest.checked_sub(reader.number()?)?;
    let mut ranges = vec![(lowest, highest)];
    // Each range has bytes of its own, so that a high count soon comes to the end.
    for _ in 0..more {
        highest = lowest.checked_sub(reader.number()?)?.checked_sub(2)?;
        lowest = highest.checked_sub(reader.number()?)?;
        ranges.push((lowest, highest));
    }
    let ecn = if has_ecn { Some([reader.number()?, reader.number()?, reader.number()?]) } else { None };
    Some(Frame::Ack { delay, ranges, ecn })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(payload: &[u8]) -> Vec<Result<Frame, FrameError>> {
        Frames::new(payload).collect()
    }

    #[test]
    fn the_ranges_of_an_ack_go_down_from_the_highest() {
        // 100 to 90, without 89 and 88, then 87, without 86, then 85 to 80.
        let payload = [0x03, 0x40, 100, 7, 2, 10, 1, 0, 0, 5, 1, 2, 3, 0x01];
        let ack = Frame::Ack { delay: 7, ranges: vec![(90, 100), (87, 87), (80, 85)], ecn: Some([1, 2, 3]) };
        assert_eq!(read(&payload), [Ok(ack), Ok(Frame::Ping)]);
        assert_eq!(read(&[0x40, 0x01]), [Err(FrameError::Damaged { offset: 0 })], "one byte would do");
        assert_eq!(read(&[0x02, 5, 0, 0, 6]), [Err(FrameError::Damaged { offset: 0 })], "below zero");
        assert_eq!(read(&[0x02, 5, 0, 1, 3, 1, 0]), [Err(FrameError::Damaged { offset: 0 })], "below zero");
    }

    #[test]
    fn a_stream_without_a_length_goes_to_the_end() {
        let stream = |bytes, offset, is_last| Ok(Frame::Stream { stream: 4, offset, bytes, is_last });
        assert_eq!(
            read(&[0x0a, 4, 2, b'h', b'i', 0x0d, 4, 2, b'!']),
            [stream(2, 0, false), stream(1, 2, true)]
        );
        assert_eq!(
            read(&[0x31, 1, 0, 0x30, 0, 0]),
            [Ok(Frame::Datagram { bytes: 1 }), Ok(Frame::Datagram { bytes: 2 })]
        );
    }

    #[test]
    fn a_close_says_why_and_paddings_count_as_one() {
        let close =
            Frame::Close { is_by_application: false, error: 10, frame: Some(6), reason: "no".to_owned() };
        assert_eq!(
            read(&[0, 0, 0, 0x1c, 10, 6, 2, b'n', b'o']),
            [Ok(Frame::Padding { bytes: 3 }), Ok(close)]
        );
    }

    #[test]
    fn frames_of_unknown_extensions_end_the_list() {
        let frames = read(&[0x1f, 0x40, 0xaf, 1, 2, 3, 4, 0x21, 0x01]);
        assert_eq!(
            frames,
            [
                Ok(Frame::Other { kind: 0x1f }),
                Ok(Frame::Other { kind: 0xaf }),
                Err(FrameError::Unknown { offset: 7, kind: 0x21 }),
            ]
        );
    }
}
