//! PCFICH: coding and decoding of the control format indicator (CFI).

use num_complex::Complex32;

use crate::cell::Cell;
use crate::diversity::Quad;
use crate::modulation::qpsk;
use crate::sequence::gold::{Gold, pcfich_seed};

/// Number of bits of a codeword.
///
/// Source: TS 36.212 §5.3.4
const BITS: usize = 32;

/// Bit `at` of the codeword of a CFI: a pattern of three bits, shifted.
///
/// Source: TS 36.212 §5.3.4 Table 5.3.4-1
const fn code_bit(cfi: u8, at: usize) -> u8 {
    (at % 3 + 1 != cfi as usize) as u8
}

/// PCFICH symbols of a CFI (1…3) in a subframe, as quadruplets.
///
/// Source: TS 36.211 §6.7
pub fn encode(cell: &Cell, subframe: usize, cfi: u8) -> [Quad; 4] {
    let mut scrambling = Gold::new(pcfich_seed(cell.pci, subframe));
    let bits: [u8; BITS] = std::array::from_fn(|at| code_bit(cfi, at) ^ scrambling.next_bit());
    std::array::from_fn(|quad| {
        std::array::from_fn(|i| qpsk(bits[8 * quad + 2 * i], bits[8 * quad + 2 * i + 1]))
    })
}

/// Most likely CFI, and its normalised correlation: 1 without noise.
pub fn decode(cell: &Cell, subframe: usize, symbols: &[Quad; 4]) -> (u8, f32) {
    let power: f32 = symbols.iter().flatten().map(|symbol| symbol.re.abs() + symbol.im.abs()).sum();
    let fit = |cfi: u8| {
        let expected = encode(cell, subframe, cfi);
        let products = symbols.iter().flatten().zip(expected.iter().flatten());
        let sum: f32 = products.map(|(got, sent): (&Complex32, &Complex32)| (got * sent.conj()).re).sum();
        (cfi, if power > 0.0 { sum * std::f32::consts::SQRT_2 / power } else { 0.0 })
    };
    [1, 2, 3].map(fit).into_iter().fold((1, f32::MIN), |best, next| if next.1 > best.1 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_words_are_those_of_the_table() {
        let word = |cfi| (0..BITS).map(|at| code_bit(cfi, at)).collect::<Vec<_>>();
        assert_eq!(&word(1)[..8], &[0, 1, 1, 0, 1, 1, 0, 1]);
        assert_eq!(&word(2)[..8], &[1, 0, 1, 1, 0, 1, 1, 0]);
        assert_eq!(&word(3)[..8], &[1, 1, 0, 1, 1, 0, 1, 1]);
        let distance = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(x, y)| x != y).count();
        assert!(distance(&word(1), &word(2)) >= 21);
        assert!(distance(&word(2), &word(3)) >= 21);
    }
}
