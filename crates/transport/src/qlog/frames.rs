//! Parser of the frames in a QUIC packet, to the depth that a log needs: types, fields, and data lengths.
//!
//! The frames come from a packet that this endpoint composed, or from an authenticated packet of the peer. A peer may
//! still send any bytes.
//!
//! Source: RFC 9000 §19; RFC 9221 §4 (DATAGRAM); draft-ietf-quic-ack-frequency-11 §4, §5 (ACK_FREQUENCY, IMMEDIATE_ACK)

use super::wire::Reader;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Padding (PADDING). Consecutive padding frames count as one.
    Padding {
        /// Number of padding bytes.
        bytes: u64,
    },
    /// Request of an ACK (PING).
    Ping,
    /// Acknowledgement of packets (ACK).
    Ack {
        /// Delay of the ACK, in the unit of its sender (microseconds divided by a power of two).
        delay: u64,
        /// Lowest and highest packet number of each range, in descending order.
        ranges: Vec<(u64, u64)>,
        /// Number of packets received with ECT(0), with ECT(1) and with CE.
        ecn: Option<[u64; 3]>,
    },
    /// Abort of a stream by its sender (RESET_STREAM).
    ResetStream {
        /// The stream's ID.
        stream: u64,
        /// The application's error code.
        error: u64,
        /// Size of the stream (bytes).
        final_size: u64,
    },
    /// Abort of a stream by its receiver (STOP_SENDING).
    StopSending {
        /// The stream's ID.
        stream: u64,
        /// The application's error code.
        error: u64,
    },
    /// Bytes of the TLS handshake (CRYPTO).
    Crypto {
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// An address token for a later connection (NEW_TOKEN). The token itself is secret and is not kept.
    NewToken,
    /// Data of a stream (STREAM).
    Stream {
        /// The stream's ID.
        stream: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
        /// Whether these bytes are the last of the stream.
        is_last: bool,
    },
    /// Flow-control limit of the connection (MAX_DATA).
    MaxData {
        /// Maximum total number of bytes.
        most: u64,
    },
    /// Flow-control limit of a stream (MAX_STREAM_DATA).
    MaxStreamData {
        /// The stream's ID.
        stream: u64,
        /// Maximum number of bytes of the stream.
        most: u64,
    },
    /// Maximum number of streams that the receiver of the frame may open (MAX_STREAMS).
    MaxStreams {
        /// Whether the limit is of bidirectional or of unidirectional streams.
        is_bidirectional: bool,
        /// Maximum number of streams.
        most: u64,
    },
    /// The connection's flow-control limit blocks the sender (DATA_BLOCKED).
    DataBlocked {
        /// The limit (bytes).
        limit: u64,
    },
    /// A stream's flow-control limit blocks the sender (STREAM_DATA_BLOCKED).
    StreamDataBlocked {
        /// The stream's ID.
        stream: u64,
        /// The limit (bytes).
        limit: u64,
    },
    /// The limit of streams blocks the sender (STREAMS_BLOCKED).
    StreamsBlocked {
        /// Whether the limit is of bidirectional or of unidirectional streams.
        is_bidirectional: bool,
        /// The limit (streams).
        limit: u64,
    },
    /// A new connection ID (NEW_CONNECTION_ID). Its stateless reset token is secret and is not kept.
    NewConnectionId {
        /// Sequence number of the connection ID.
        sequence: u64,
        /// Connection IDs with sequence numbers below this must be retired.
        retires_before: u64,
        /// The connection ID.
        id: Vec<u8>,
    },
    /// Retirement of a connection ID (RETIRE_CONNECTION_ID).
    RetireConnectionId {
        /// Sequence number of the connection ID.
        sequence: u64,
    },
    /// Validation request for a path (PATH_CHALLENGE).
    PathChallenge([u8; 8]),
    /// Validation response for a path (PATH_RESPONSE).
    PathResponse([u8; 8]),
    /// Close of the connection (CONNECTION_CLOSE).
    Close {
        /// Whether the application closed the connection, or QUIC.
        is_by_application: bool,
        /// The error code.
        error: u64,
        /// Type of the frame that caused the error.
        frame: Option<u64>,
        /// The reason as text.
        reason: String,
    },
    /// The server confirms the handshake (HANDSHAKE_DONE).
    HandshakeDone,
    /// Data outside of streams (DATAGRAM).
    Datagram {
        /// Number of bytes.
        bytes: u64,
    },
    /// A frame of a supported extension that has no name in qlog 0.3 (ACK_FREQUENCY, IMMEDIATE_ACK).
    Other {
        /// Type of the frame.
        kind: u64,
    },
}

/// An error of the frame parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame type is unknown. The frames after it cannot be parsed either, because the length of a frame of unknown
    /// type is unknown.
    #[error(
        "the frame at byte {offset} has the unknown type {kind:#x}; look up what the peer's extensions are"
    )]
    Unknown {
        /// Offset of the frame in the payload.
        offset: usize,
        /// Type of the frame.
        kind: u64,
    },
    /// The frame is truncated, or a field has an invalid value.
    #[error("the frame at byte {offset} is damaged; look at what the peer sends")]
    Damaged {
        /// Offset of the frame in the payload.
        offset: usize,
    },
}

/// Iterator over the frames of a packet's payload. It stops after an error.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Frames<'a> {
    /// Returns an iterator over the frames of a decrypted payload.
    pub fn new(payload: &'a [u8]) -> Frames<'a> {
        Frames { payload, at: 0 }
    }

    /// Returns the offset of the next frame in the payload.
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
            // A frame type uses the shortest encoding. Source: RFC 9000 §12.4
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
            // Consecutive padding frames count as one.
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
    // Each range takes bytes of the frame, so that a forged count cannot make this loop long.
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
        // Packet numbers: 100 to 90, 87, and 85 to 80. Missing are 89, 88 and 86.
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
