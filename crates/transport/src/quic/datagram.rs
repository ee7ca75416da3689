//! Stamps and feedback: messages in QUIC DATAGRAM frames between two endpoints of this project.
//!
//! No QUIC implementation carries receive times in its ACKs. These messages carry receive times, together with the
//! messages of a scheme's sender and receiver. Stamps accompany data packets, and feedback travels in the opposite
//! direction. The first byte of a message is its kind. Numbers are big-endian.
//!
//! | kind | fields |
//! | --- | --- |
//! | 1 stamp | number: 4 bytes, send time: 8 bytes in ns, the controller's header: the rest |
//! | 2 feedback | sequence: 8, receive time of the newest data packet: 8 in ns, bytes received: 8, window: 8 (all ones: no limit), the scheme receiver's bytes: the rest |
//!
//! A receive time is by the receiver's clock, whose offset is unknown, and refers to the newest packet received.
//!
//! Source: RFC 9221 §4; draft-ietf-quic-receive-ts §3 (what a receive time says)
//!
//! Differs: one time per feedback, in nanoseconds, in place of ranges and an exponent.

use airpace_core::{Bytes, Rider, Time};

const STAMP: u8 = 1;
const FEEDBACK: u8 = 2;
const STAMP_FIXED: usize = 13;
const FEEDBACK_FIXED: usize = 33;

/// Maximum size of a message (bytes).
pub(super) const MAX_MESSAGE_BYTES: usize = FEEDBACK_FIXED + Rider::CAPACITY;

/// A message in a DATAGRAM frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// Metadata that accompany a data packet.
    Stamp(Stamp),
    /// Feedback about received data packets.
    Feedback(Feedback),
}

/// Metadata of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The lowest 32 bits of the data packet's number. Only data packets are counted.
    pub number: u32,
    /// Transmission time, by the sender's clock.
    pub sent: Time,
    /// Message of the controller to the scheme's receiver.
    pub header: Rider,
}

/// Report of the receiver of data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Sequence number of the feedback; the highest is the newest.
    pub sequence: u64,
    /// Receive time of the newest data packet, by the receiver's clock.
    pub received: Time,
    /// Total size of the received data packets, as whole IP packets.
    pub bytes: Bytes,
    /// Maximum number of bytes that the sender may have in flight.
    pub window: Option<Bytes>,
    /// Message of the scheme's receiver to the controller.
    pub rider: Rider,
}

impl Datagram {
    /// Returns the encoded message.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MAX_MESSAGE_BYTES);
        match self {
            Datagram::Stamp(stamp) => {
                bytes.push(STAMP);
                bytes.extend_from_slice(&stamp.number.to_be_bytes());
                bytes.extend_from_slice(&stamp.sent.as_nanos().to_be_bytes());
                bytes.extend_from_slice(stamp.header.as_bytes());
            }
            Datagram::Feedback(feedback) => {
                bytes.push(FEEDBACK);
                let window = feedback.window.map_or(u64::MAX, |window| window.0);
                for number in [feedback.sequence, feedback.received.as_nanos(), feedback.bytes.0, window] {
                    bytes.extend_from_slice(&number.to_be_bytes());
                }
                bytes.extend_from_slice(feedback.rider.as_bytes());
            }
        }
        bytes
    }

    /// Parses a message; `None` if its format is unknown.
    pub fn read(bytes: &[u8]) -> Option<Datagram> {
        let number = |from: usize| Some(u64::from_be_bytes(bytes.get(from..from + 8)?.try_into().ok()?));
        match *bytes.first()? {
            STAMP => Some(Datagram::Stamp(Stamp {
                number: u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?),
                sent: Time::from_nanos(number(5)?),
                header: Rider::new(bytes.get(STAMP_FIXED..)?)?,
            })),
            FEEDBACK => Some(Datagram::Feedback(Feedback {
                sequence: number(1)?,
                received: Time::from_nanos(number(9)?),
                bytes: Bytes(number(17)?),
                window: Some(number(25)?).filter(|window| *window != u64::MAX).map(Bytes),
                rider: Rider::new(bytes.get(FEEDBACK_FIXED..)?)?,
            })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            number: u32, nanos: u64, sequence: u64, bytes: u64, window in proptest::option::of(0..u64::MAX),
            rider in proptest::collection::vec(any::<u8>(), 0..=Rider::CAPACITY),
        ) {
            let rider = Rider::new(&rider).unwrap();
            let time = Time::from_nanos(nanos);
            let stamp = Datagram::Stamp(Stamp { number, sent: time, header: rider });
            prop_assert_eq!(Datagram::read(&stamp.write()), Some(stamp));
            let window = window.map(Bytes);
            let feedback = Feedback { sequence, received: time, bytes: Bytes(bytes), window, rider };
            prop_assert_eq!(Datagram::read(&Datagram::Feedback(feedback).write()), Some(Datagram::Feedback(feedback)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Some(datagram) = Datagram::read(&bytes) {
                prop_assert_eq!(datagram.write(), bytes);
            }
        }
    }
}
