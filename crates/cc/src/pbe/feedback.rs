//! The bytes that PBE-CC's sender and receiver exchange: a header on every data packet, feedback on every ACK.
//!
//! All integers are big-endian. A reader ignores additional bytes at the end; a writer sets unused bits to zero.
//!
//! ```text
//! header (10 bytes)                              feedback (14 bytes)
//!  0      version, 1                              0      version, 1
//!  1      bit 0: in the linear start              1      bit 0: the bottleneck is in the Internet
//!  2…5    RTprop, µs; 0 unknown                          bit 1: the telemetry is fresh
//!  6…9    interval at the pacing rate                    bit 2: the last Npkt packets met no queue
//!                                                 2      active carriers
//!                                                 3      activations of carriers so far, modulo 256
//!                                                 4…7    interval at the capacity Ct
//!                                                 8…11   interval at the fair share Cf
//!                                                 12…13  delay of the radio, 10 µs; all ones unknown
//! ```
//!
//! A rate is encoded as the interval between two packets of 1500 bytes, in nanoseconds; all ones means no rate.
//!
//! Source: PBE-CC §5
//! Chosen: nanoseconds. The paper's interval "in milliseconds", as an integer, is 0 above 12 Mbit/s.

use std::time::Duration;

use airpace_core::{Bytes, Rate, Rider};

const VERSION: u8 = 1;
const NO_RATE: u32 = u32::MAX;

/// Packet size for which the interval is computed.
///
/// Source: PBE-CC §5
const INTERVAL_PACKET: Bytes = Bytes(1500);

/// Header that the sender puts on every data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether the sender is in its linear start.
    pub starting: bool,
    /// The sender's round-trip propagation time, in whole microseconds. The receiver averages over this time.
    pub rtprop: Option<Duration>,
    /// The sender's pacing rate. The receiver compares it with Cf.
    pub pacing_rate: Option<Rate>,
}

/// Feedback that the receiver puts on every ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Whether the bottleneck is in the Internet.
    ///
    /// Source: PBE-CC §5
    pub internet: bool,
    /// Whether the rates come from fresh telemetry.
    pub fresh: bool,
    /// Whether the last Npkt packets met no queue.
    pub clear: bool,
    /// Number of active carriers.
    pub carriers: u8,
    /// Number of carrier activations, modulo 256.
    pub activations: u8,
    /// Transport-layer capacity Ct.
    ///
    /// Source: PBE-CC §4.2.1
    pub capacity: Option<Rate>,
    /// Transport-layer fair share Cf.
    ///
    /// Source: PBE-CC §4.1; PBE-CC §4.2.3
    pub fair_share: Option<Rate>,
    /// Delay of the radio without a queue: the mean one-way delay beyond Dprop while the cell had idle PRBs, in units
    /// of 10 µs; `None` if not measured yet.
    ///
    /// Differs: the paper's feedback does not contain it.
    pub radio_delay: Option<Duration>,
}

impl Header {
    /// Encodes the header.
    pub fn write(&self) -> Rider {
        let mut bytes = [0; 10];
        bytes[0] = VERSION;
        bytes[1] = u8::from(self.starting);
        let rtprop = self.rtprop.map_or(0, |rtprop| u32::try_from(rtprop.as_micros()).unwrap_or(u32::MAX));
        bytes[2..6].copy_from_slice(&rtprop.to_be_bytes());
        bytes[6..10].copy_from_slice(&interval(self.pacing_rate).to_be_bytes());
        Rider::new(&bytes).unwrap_or_default()
    }

    /// Decodes a header; `None` if the bytes are not a header of this version.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        if *bytes.first()? != VERSION {
            return None;
        }
        let micros = word(bytes, 2)?;
        Some(Header {
            starting: bytes[1] & 1 != 0,
            rtprop: (micros != 0).then(|| Duration::from_micros(u64::from(micros))),
            pacing_rate: rate(word(bytes, 6)?),
        })
    }
}

impl Feedback {
    /// Encodes the feedback.
    pub fn write(&self) -> Rider {
        let mut bytes = [0; 14];
        bytes[0] = VERSION;
        bytes[1] = u8::from(self.internet) | u8::from(self.fresh) << 1 | u8::from(self.clear) << 2;
        bytes[2] = self.carriers;
        bytes[3] = self.activations;
        bytes[4..8].copy_from_slice(&interval(self.capacity).to_be_bytes());
        bytes[8..12].copy_from_slice(&interval(self.fair_share).to_be_bytes());
        let units = self.radio_delay.map(|delay| (delay.as_micros() / 10).min(0xFFFE) as u16);
        bytes[12..14].copy_from_slice(&units.unwrap_or(u16::MAX).to_be_bytes());
        Rider::new(&bytes).unwrap_or_default()
    }

    /// Decodes feedback; `None` if the bytes are not feedback of this version.
    pub fn read(bytes: &[u8]) -> Option<Feedback> {
        if *bytes.first()? != VERSION {
            return None;
        }
        let fair_share = rate(word(bytes, 8)?);
        Some(Feedback {
            internet: bytes[1] & 1 != 0,
            fresh: bytes[1] & 2 != 0,
            clear: bytes[1] & 4 != 0,
            carriers: bytes[2],
            activations: bytes[3],
            capacity: rate(word(bytes, 4)?),
            fair_share,
            radio_delay: match bytes.get(12..14) {
                Some(&[high, low]) if [high, low] != [0xFF; 2] => {
                    Some(Duration::from_micros(10 * u64::from(u16::from_be_bytes([high, low]))))
                }
                _ => None,
            },
        })
    }
}

/// Nanoseconds between two packets at `rate`. A rate too low to be encoded counts as no rate.
fn interval(rate: Option<Rate>) -> u32 {
    let nanos = rate.map(|rate| rate.time_for(INTERVAL_PACKET).as_nanos());
    nanos.and_then(|nanos| u32::try_from(nanos).ok()).unwrap_or(NO_RATE)
}

fn rate(interval: u32) -> Option<Rate> {
    let usable = interval != NO_RATE && interval != 0;
    usable.then(|| Rate::from_bytes_per(INTERVAL_PACKET, Duration::from_nanos(u64::from(interval))))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(written: Option<Rate>, read: Option<Rate>) -> bool {
        match (written, read) {
            (Some(written), Some(read)) => (written.as_mbps() / read.as_mbps() - 1.0).abs() < 2e-4,
            (written, read) => written == read,
        }
    }

    #[test]
    fn the_layout_never_changes() {
        let feedback = Feedback {
            internet: true,
            fresh: true,
            clear: false,
            carriers: 2,
            activations: 1,
            capacity: Some(Rate::from_mbps(120.0)),
            fair_share: None,
            radio_delay: Some(Duration::from_micros(8_250)),
        };
        let bytes = [1, 3, 2, 1, 0, 1, 0x86, 0xA0, 255, 255, 255, 255, 3, 57];
        assert_eq!(feedback.write().as_bytes(), bytes);
        let without = Feedback { radio_delay: None, ..feedback };
        assert_eq!(Feedback::read(&bytes[..12]), Some(without), "as versions before wrote it");
        assert_eq!(Feedback::read(without.write().as_bytes()), Some(without));
        let header = Header {
            starting: true,
            rtprop: Some(Duration::from_millis(42)),
            pacing_rate: Some(Rate::from_mbps(12.0)),
        };
        assert_eq!(header.write().as_bytes(), [1, 1, 0, 0, 0xA4, 0x10, 0, 0x0F, 0x42, 0x40]);
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..47)) {
            let _ = (Header::read(&bytes), Feedback::read(&bytes));
        }

        #[test]
        fn what_is_written_is_read(
            bits in 0u8..8, units in 0u64..=0xFFFE, carriers: u8, activations: u8, ct in 10_000u64..2_000_000_000, cf in 10_000u64..2_000_000_000,
        ) {
            let written = Feedback {
                internet: bits & 1 != 0,
                fresh: bits & 2 != 0,
                clear: bits & 4 != 0,
                carriers,
                activations,
                capacity: Some(Rate::from_bps(ct)),
                fair_share: Some(Rate::from_bps(cf)),
                radio_delay: Some(Duration::from_micros(10 * units)),
            };
            let read = Feedback::read(written.write().as_bytes()).expect("our own bytes");
            prop_assert!(close(written.capacity, read.capacity) && close(written.fair_share, read.fair_share));
            prop_assert_eq!(Feedback { capacity: None, fair_share: None, ..written },
                            Feedback { capacity: None, fair_share: None, ..read });
        }
    }
}
