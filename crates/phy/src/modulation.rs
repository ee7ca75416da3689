//! QPSK and BPSK: bits to symbols and symbols to soft bits.

use num_complex::Complex32;

/// One symbol of two bits, of unit power.
///
/// Source: TS 36.211 §7.1.2 Table 7.1.2-1
#[inline]
pub const fn qpsk(first: u8, second: u8) -> Complex32 {
    let level = std::f32::consts::FRAC_1_SQRT_2;
    Complex32 { re: if first == 0 { level } else { -level }, im: if second == 0 { level } else { -level } }
}

/// One symbol of one bit, of unit power.
///
/// Source: TS 36.211 §7.1.1 Table 7.1.1-1
#[inline]
pub const fn bpsk(bit: u8) -> Complex32 {
    qpsk(bit, bit)
}

/// Symbols of a row of bits; a last odd bit has a 0 beside it.
pub fn qpsk_symbols(bits: &[u8]) -> impl Iterator<Item = Complex32> {
    bits.chunks(2).map(|pair| qpsk(pair[0], pair.get(1).copied().unwrap_or(0)))
}

/// A soft bit: positive for 0, negative for 1; the size says how sure.
pub type Soft = i8;

/// Turns matched-filter outputs to soft bits so that a typical one is `TYPICAL`, half of which noise may add before it
/// is clipped.
///
/// Only ratios between soft bits matter to a decoder of one subframe; so the scale is that of the mean size.
pub fn soft_bits(levels: &[f32], out: &mut Vec<Soft>) {
    const TYPICAL: f32 = 48.0;
    out.clear();
    let mean = levels.iter().map(|level| level.abs()).sum::<f32>() / levels.len().max(1) as f32;
    let scale = if mean > 0.0 && mean.is_finite() { TYPICAL / mean } else { 0.0 };
    // A float cast saturates and makes NaN zero: a sample that cannot be read says nothing.
    out.extend(levels.iter().map(|level| (level * scale).clamp(-127.0, 127.0) as Soft));
}
