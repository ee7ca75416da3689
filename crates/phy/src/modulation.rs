//! QPSK and BPSK: modulation, and demodulation to soft bits.

use num_complex::Complex32;

/// QPSK symbol of two bits, with unit power.
///
/// Source: TS 36.211 §7.1.2 Table 7.1.2-1
#[inline]
pub const fn qpsk(first: u8, second: u8) -> Complex32 {
    let level = std::f32::consts::FRAC_1_SQRT_2;
    Complex32 { re: if first == 0 { level } else { -level }, im: if second == 0 { level } else { -level } }
}

/// BPSK symbol of one bit, with unit power.
///
/// Source: TS 36.211 §7.1.1 Table 7.1.1-1
#[inline]
pub const fn bpsk(bit: u8) -> Complex32 {
    qpsk(bit, bit)
}

/// Soft bit: positive for 0, negative for 1. Its magnitude, at most [`LOUDEST`], is the confidence.
///
/// A soft bit has sixteen bits of resolution, because messages of one subframe may lie in the strongest and in the
/// weakest part of a fading channel. A decoder scales each word to its own range.
pub type Soft = i16;

/// Maximum soft bit: the sum of eight repetitions still fits into sixteen bits.
pub const LOUDEST: Soft = 4095;

/// Converts matched-filter outputs to soft bits. A typical soft bit of a transmitted bit is an eighth of the maximum.
///
/// Only ratios between the soft bits of a subframe matter. The scale comes from the mean magnitude, weighted by the
/// magnitudes. So silent CCEs have almost no influence on it, regardless of their number.
pub fn soft_bits(levels: &[f32], out: &mut Vec<Soft>) {
    out.clear();
    let (sum, squares) =
        levels.iter().fold((0.0, 0.0), |(sum, squares), level| (sum + level.abs(), squares + level * level));
    let scale = if squares > 0.0 && squares.is_finite() { TYPICAL * sum / squares } else { 0.0 };
    // A cast from float saturates, and converts NaN to zero, which is a soft bit without information.
    out.extend(levels.iter().map(|level| ((level * scale) as Soft).clamp(-LOUDEST, LOUDEST)));
}

/// Magnitude of a typical soft bit, an eighth of the maximum.
const TYPICAL: f32 = 512.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_around_a_message_does_not_drown_its_shades() {
        let mut levels = vec![1e-6; 84 * 72];
        levels[..4].copy_from_slice(&[2.0, -1.0, 1.0, 0.5]);
        let mut soft = Vec::new();
        soft_bits(&levels, &mut soft);
        assert!(soft[0] > 512 && soft[0] < LOUDEST, "the strongest is not clipped: {}", soft[0]);
        assert_eq!(soft[2], -soft[1]);
        assert!((i32::from(soft[0]) - 4 * i32::from(soft[3])).abs() < 4, "ratios stay: {:?}", &soft[..4]);
    }

    #[test]
    fn nothing_and_nonsense_are_silence() {
        let mut soft = Vec::new();
        soft_bits(&[0.0, 0.0], &mut soft);
        assert_eq!(soft, [0, 0]);
        soft_bits(&[f32::NAN, 1.0, f32::INFINITY], &mut soft);
        assert_eq!(soft, [0, 0, 0]);
    }
}
