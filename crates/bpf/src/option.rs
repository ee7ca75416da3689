//! The contents of the TCP option by which a PBE-CC receiver tells the kernel of its sender what its radio measures.
//! `bpf/pbe_option.h` has the layout, and reads it.

use airpace_cc::pbe::feedback::Feedback;
use airpace_core::Rate;

/// No rate.
const NO_RATE: u32 = 0x3FFF;

/// The least rate that can be written, in bit/s, and the bits of its fraction.
const LEAST: u64 = 512;
const FRACTION: u32 = 9;

/// The greatest exponent: 34 Gbit/s.
const MOST: u32 = 25;

/// The contents. Rates are right to a thousandth; those below 512 bit/s are none, and those above 17 Gbit/s are 17 Gbit/s.
pub fn contents(feedback: &Feedback) -> [u8; 8] {
    let flags = [(feedback.internet, 31), (feedback.fresh, 30), (feedback.clear, 29)];
    let flags = flags.into_iter().fold(0, |word, (flag, bit)| word | u32::from(flag) << bit);
    let word = flags | code(feedback.capacity) << 14 | code(feedback.fair_share);
    let delay = feedback.radio_delay.map_or(u16::MAX, |delay| (delay.as_micros() / 10).min(0xFFFE) as u16);
    let mut contents = [0; 8];
    contents[..4].copy_from_slice(&word.to_be_bytes());
    contents[4] = feedback.carriers;
    contents[5] = feedback.activations;
    contents[6..].copy_from_slice(&delay.to_be_bytes());
    contents
}

/// (512 + fraction) · 2^exponent, rounded to the nearest.
fn code(rate: Option<Rate>) -> u32 {
    let Some(bps) = rate.map(Rate::as_bps).filter(|&bps| bps >= LEAST) else { return NO_RATE };
    let exponent = bps.ilog2() - FRACTION;
    if exponent > MOST {
        return code(Some(crate::twin::MOST_RATE));
    }
    let rounded = (bps + (1 << exponent >> 1)) >> exponent;
    // Where the fraction is full, the exponent grows, and the fraction is zero.
    (exponent << FRACTION) + (rounded - LEAST) as u32
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::twin::pbe::{PbeFed, read_option};
    use crate::twin::{MOST_RATE, NONE};

    fn feedback(capacity: Option<u64>, fair_share: Option<u64>) -> Feedback {
        let [capacity, fair_share] = [capacity, fair_share].map(|rate| rate.map(Rate::from_bps));
        Feedback { capacity, fair_share, ..Feedback::default() }
    }

    #[test]
    fn the_layout_never_changes() {
        let told = Feedback {
            internet: true,
            carriers: 2,
            activations: 7,
            radio_delay: Some(Duration::from_micros(8_250)),
            ..feedback(Some(1_024_000), None)
        };
        // 1,024,000 = 1000 · 2^10: the exponent 10, and 488 beyond 512.
        let word = 1_u32 << 31 | (10 << 9 | 488) << 14 | 0x3FFF;
        let [a, b, c, d] = word.to_be_bytes();
        assert_eq!(contents(&told), [a, b, c, d, 2, 7, 3, 57]);
    }

    #[test]
    fn what_cannot_be_written_is_no_rate_or_the_greatest() {
        let read = |told: &Feedback| read_option(&contents(told), 12);
        let fed = read(&feedback(Some(511), Some(u64::MAX)));
        assert_eq!((fed.capacity, fed.fair_share), (NONE, MOST_RATE.as_bps()));
        let short = read_option(&contents(&feedback(Some(512), None)), 8);
        assert_eq!((short.capacity, short.fair_share, short.radio_delay), (512, NONE, NONE));
    }

    proptest! {
        #[test]
        fn the_kernel_reads_what_was_written(
            flags: [bool; 3], carriers: u8, activations: u8, units in 0u64..=0xFFFE,
            capacity in 512..=MOST_RATE.as_bps(), fair_share in 512..=MOST_RATE.as_bps(),
        ) {
            let [internet, fresh, clear] = flags;
            let radio_delay = Some(Duration::from_micros(10 * units));
            let rates = feedback(Some(capacity), Some(fair_share));
            let told = Feedback { internet, fresh, clear, carriers, activations, radio_delay, ..rates };
            let fed = read_option(&contents(&told), 12);
            let near = |read: u64, written: u64| read.abs_diff(written) * 1_000 <= written;
            prop_assert!(near(fed.capacity, capacity) && near(fed.fair_share, fair_share), "{fed:?}");
            let expected = PbeFed {
                capacity: fed.capacity,
                fair_share: fed.fair_share,
                radio_delay: units * 10_000,
                is_told: 1,
                internet: internet.into(),
                fresh: fresh.into(),
                clear: clear.into(),
                carriers: carriers.into(),
                activations: activations.into(),
            };
            prop_assert_eq!(fed, expected);
        }
    }
}
