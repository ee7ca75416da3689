//! The bytes that BISCAY's sender and receiver exchange if the sender is not on the device.
//!
//! All integers are big-endian. A reader ignores additional bytes at the end.
//!
//! ```text
//! feedback (15 bytes), on every ACK              header (5 bytes), with an advertised window only
//!  0      version, 1                              0      version, 1
//!  1…4    timestamp, µs of the receiver's clock   1…4    the timestamp of the newest ACK
//!  5…8    cellular bandwidth, kbit/s;
//!         all ones: unknown
//!  9…10   this flow's share of it, in 65,535ths
//! 11…14   most that was granted in a frame of
//!         10 ms, kbit/s; may be absent
//! ```
//!
//! Source: BISCAY §3.2.4; BISCAY §5.4
//! Chosen: the layout. Timestamp and echo work as in TCP (RFC 7323 §3), because Airpace's transport has no timestamps.

use airpace_core::{Rate, Rider};

const VERSION: u8 = 1;
const UNKNOWN: u32 = u32::MAX;

/// Feedback that the receiver puts on every ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Departure time of the ACK by the receiver's clock, in µs, modulo 2³².
    pub timestamp: u32,
    /// Bandwidth of the device's cellular downlink; `None` if unknown.
    pub bandwidth: Option<Rate>,
    /// This flow's share of the bandwidth, 0…1.
    pub share: f64,
    /// Maximum rate granted to the device in any frame of 10 ms; zero if unknown.
    pub burst: Rate,
}

impl Feedback {
    /// Encodes the feedback.
    pub fn write(&self) -> Rider {
        let mut bytes = [0; 15];
        bytes[0] = VERSION;
        bytes[1..5].copy_from_slice(&self.timestamp.to_be_bytes());
        let most = u64::from(UNKNOWN - 1);
        let kbps = self.bandwidth.map_or(UNKNOWN, |rate| (rate.as_bps() / 1_000).min(most) as u32);
        bytes[5..9].copy_from_slice(&kbps.to_be_bytes());
        let share = (self.share.clamp(0.0, 1.0) * f64::from(u16::MAX)) as u16;
        bytes[9..11].copy_from_slice(&share.to_be_bytes());
        let kbps = (self.burst.as_bps() / 1_000).min(u64::from(u32::MAX)) as u32;
        bytes[11..15].copy_from_slice(&kbps.to_be_bytes());
        Rider::new(&bytes).unwrap_or_default()
    }

    /// Decodes feedback; `None` if the bytes are not feedback of this version.
    pub fn read(bytes: &[u8]) -> Option<Feedback> {
        let timestamp = read_timestamp(bytes)?;
        let kbps = u32::from_be_bytes(bytes.get(5..9)?.try_into().ok()?);
        let share = u16::from_be_bytes(bytes.get(9..11)?.try_into().ok()?);
        let burst = bytes.get(11..15).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
        Some(Feedback {
            timestamp,
            bandwidth: (kbps != UNKNOWN).then(|| Rate::from_bps(u64::from(kbps) * 1_000)),
            share: f64::from(share) / f64::from(u16::MAX),
            burst: Rate::from_bps(u64::from(burst) * 1_000),
        })
    }
}

/// The header that echoes a timestamp.
pub fn write_echo(timestamp: u32) -> Rider {
    let mut bytes = [0; 5];
    bytes[0] = VERSION;
    bytes[1..5].copy_from_slice(&timestamp.to_be_bytes());
    Rider::new(&bytes).unwrap_or_default()
}

/// The timestamp in a header or in feedback; `None` if there is none.
pub fn read_timestamp(bytes: &[u8]) -> Option<u32> {
    if *bytes.first()? != VERSION {
        return None;
    }
    Some(u32::from_be_bytes(bytes.get(1..5)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_layout_never_changes() {
        let feedback = Feedback {
            timestamp: 0x0102_0304,
            bandwidth: Some(Rate::from_mbps(65.536)),
            share: 1.0,
            burst: Rate::from_bps(258_000),
        };
        assert_eq!(feedback.write().as_bytes(), [1, 1, 2, 3, 4, 0, 1, 0, 0, 255, 255, 0, 0, 1, 2]);
        let written = feedback.write();
        assert_eq!(
            Feedback::read(&written.as_bytes()[..11]),
            Some(Feedback { burst: Rate::ZERO, ..feedback }),
            "the burst may be absent"
        );
        assert_eq!(write_echo(0x0102_0304).as_bytes(), [1, 1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..47)) {
            let _ = (Feedback::read(&bytes), read_timestamp(&bytes));
        }

        #[test]
        fn what_is_written_is_read(
            timestamp: u32,
            kbps in prop::option::of(0u64..4_000_000_000),
            share in 0.0f64..=1.0,
            burst in 0u64..4_000_000_000,
        ) {
            let burst = Rate::from_bps(burst * 1_000);
            let written = Feedback { timestamp, bandwidth: kbps.map(|kbps| Rate::from_bps(kbps * 1_000)), share, burst };
            let read = Feedback::read(written.write().as_bytes()).expect("our own bytes");
            prop_assert!((read.share - share).abs() < 2e-5);
            prop_assert_eq!(Feedback { share, ..read }, written);
            prop_assert_eq!(read_timestamp(write_echo(timestamp).as_bytes()), Some(timestamp));
        }
    }
}
