//! The bytes that Sprout's sender and receiver exchange: a header on every data packet, feedback on every ACK.
//!
//! All integers are big-endian. A reader ignores additional bytes at the end.
//!
//! ```text
//! header (15 or 17 bytes)                        feedback (29 bytes)
//!  0      version, 1                              0      version, 1
//!  1…8    bytes sent before this packet           1…4    ticks since the first packet
//!  9…12   throwaway window, bytes                 5…12   bytes received or lost
//!  13…14  time to next, ms; all ones: open        13…28  packets delivered within 1 … 8 ticks
//!  15…16  bytes that it counts as, if not its own
//! ```
//!
//! Source: Sprout §3.4

use airpace_core::Rider;

use super::forecast::Forecast;

const VERSION: u8 = 1;

/// The header that the sender puts on every data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Bytes sent before this packet: its sequence number.
    pub sequence: u64,
    /// Length of the throwaway window, in bytes. Packets that were sent more than this many bytes before this packet
    /// will not arrive any more.
    pub throwaway: u32,
    /// The announced departure of the next packet.
    pub next: Next,
    /// Size, in bytes, with which the packet is counted if it represents a smaller packet; `None`: its own size.
    pub counts: Option<u16>,
}

/// Departure of the next packet, as announced by the sender. If no packet arrives before this departure, that gives no
/// information about the link.
///
/// Source: Sprout §3.2
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Next {
    /// The next packet leaves at once.
    #[default]
    Now,
    /// The next packet leaves within this many milliseconds.
    Within(u16),
    /// The next packet leaves when the application has more data to send.
    Open,
}

/// The feedback that the receiver puts on every ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Number of the current tick.
    pub tick: u32,
    /// Number of bytes that were received or lost, so that they are in no queue.
    pub received_or_lost: u64,
    /// The forecast at the start of this tick.
    pub forecast: Forecast,
}

impl Header {
    /// Encodes the header.
    pub fn write(&self) -> Rider {
        let mut bytes = [0; 17];
        bytes[0] = VERSION;
        bytes[1..9].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[9..13].copy_from_slice(&self.throwaway.to_be_bytes());
        let next = match self.next {
            Next::Now => 0,
            Next::Within(millis) => millis.clamp(1, u16::MAX - 1),
            Next::Open => u16::MAX,
        };
        bytes[13..15].copy_from_slice(&next.to_be_bytes());
        bytes[15..17].copy_from_slice(&self.counts.unwrap_or_default().to_be_bytes());
        Rider::new(&bytes[..if self.counts.is_some() { 17 } else { 15 }]).unwrap_or_default()
    }

    /// Decodes a header; `None` if the bytes are not a header of this version.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        if *bytes.first()? != VERSION {
            return None;
        }
        Some(Header {
            sequence: u64::from_be_bytes(bytes.get(1..9)?.try_into().ok()?),
            throwaway: u32::from_be_bytes(bytes.get(9..13)?.try_into().ok()?),
            next: match u16::from_be_bytes(bytes.get(13..15)?.try_into().ok()?) {
                0 => Next::Now,
                u16::MAX => Next::Open,
                millis => Next::Within(millis),
            },
            counts: bytes.get(15..17).map(|counts| u16::from_be_bytes([counts[0], counts[1]])),
        })
    }
}

impl Feedback {
    /// Encodes the feedback.
    pub fn write(&self) -> Rider {
        let mut bytes = [0; 29];
        bytes[0] = VERSION;
        bytes[1..5].copy_from_slice(&self.tick.to_be_bytes());
        bytes[5..13].copy_from_slice(&self.received_or_lost.to_be_bytes());
        for (slot, count) in bytes[13..].chunks_exact_mut(2).zip(&self.forecast) {
            slot.copy_from_slice(&count.to_be_bytes());
        }
        Rider::new(&bytes).unwrap_or_default()
    }

    /// Decodes feedback; `None` if the bytes are not feedback of this version.
    pub fn read(bytes: &[u8]) -> Option<Feedback> {
        if *bytes.first()? != VERSION {
            return None;
        }
        let mut counts =
            bytes.get(13..29)?.chunks_exact(2).map(|slot| u16::from_be_bytes([slot[0], slot[1]]));
        Some(Feedback {
            tick: u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?),
            received_or_lost: u64::from_be_bytes(bytes.get(5..13)?.try_into().ok()?),
            forecast: std::array::from_fn(|_| counts.next().unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_layout_never_changes() {
        let header = Header { sequence: 0x0102, throwaway: 0x0304, next: Next::Within(50), counts: None };
        assert_eq!(header.write().as_bytes(), [1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 50]);
        let small = Header { counts: Some(0x0203), ..header };
        assert_eq!(small.write().as_bytes(), [1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 50, 2, 3]);
        let feedback =
            Feedback { tick: 7, received_or_lost: 0x0506, forecast: [1, 2, 3, 4, 5, 6, 7, 0x0801] };
        let bytes = feedback.write();
        assert_eq!(bytes.as_bytes()[..13], [1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 5, 6]);
        assert_eq!(bytes.as_bytes()[13..], [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 8, 1]);
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let _ = (Header::read(&bytes), Feedback::read(&bytes));
        }

        #[test]
        fn what_is_written_is_read(
            sequence: u64, throwaway: u32, millis in 0..=u16::MAX, counts: Option<u16>, tick: u32, forecast: Forecast,
        ) {
            let leaves = match millis {
                0 => Next::Now,
                u16::MAX => Next::Open,
                millis => Next::Within(millis),
            };
            let header = Header { sequence, throwaway, next: leaves, counts };
            prop_assert_eq!(Header::read(header.write().as_bytes()), Some(header));
            let feedback = Feedback { tick, received_or_lost: sequence, forecast };
            prop_assert_eq!(Feedback::read(feedback.write().as_bytes()), Some(feedback));
        }
    }
}
