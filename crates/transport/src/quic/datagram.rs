//! What two of our own ends tell each other in QUIC's DATAGRAM frames: stamps with the data, feedback against it.
//!
//! No QUIC stack carries receive times in its ACKs, so they travel here, with what a scheme's halves have to say. The
//! first byte is the kind. Numbers are big-endian.
//!
//! | kind | fields |
//! | --- | --- |
//! | 1 stamp | number: 4 bytes, send time: 8 bytes in ns, the controller's header: the rest |
//! | 2 feedback | sequence: 8, receive time of the newest data packet: 8 in ns, bytes received: 8, window: 8 (all ones: no limit), the receiver half's bytes: the rest |
//!
//! A receive time is on the receiver's clock, whose offset is unknown, and is of the newest packet that had arrived.
//!
//! Source: RFC 9221 §4; draft-ietf-quic-receive-ts §3 (what a receive time says)
//!
//! Differs: one time per feedback, in nanoseconds, in place of ranges and an exponent.

use airpace_core::{Bytes, Rider, Time};

const STAMP: u8 = 1;
const FEEDBACK: u8 = 2;
const STAMP_FIXED: usize = 13;
const FEEDBACK_FIXED: usize = 33;

/// The most bytes of a datagram of ours.
pub(super) const MOST: usize = FEEDBACK_FIXED + Rider::CAPACITY;

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    /// Rides on a data packet.
    Stamp(Stamp),
    /// Answers data packets.
    Feedback(Feedback),
}

/// What a data packet says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The lowest 32 bits of its number among data packets.
    pub number: u32,
    /// When it left, by the sender's clock.
    pub sent: Time,
    /// What the controller says to the receiver half.
    pub header: Rider,
}

/// What the receiver of data packets says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Rises with every feedback; the highest is the newest.
    pub sequence: u64,
    /// When the newest data packet arrived, by the receiver's clock.
    pub received: Time,
    /// Bytes of data packets that have arrived, as whole IP packets.
    pub bytes: Bytes,
    /// The most bytes that the sender may have outstanding.
    pub window: Option<Bytes>,
    /// What the receiver half says to the controller.
    pub rider: Rider,
}

impl Datagram {
    /// Its bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MOST);
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

    /// Reads one; `None` if it is of no known form.
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
