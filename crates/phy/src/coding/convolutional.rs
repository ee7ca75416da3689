//! Encoder of the tail-biting convolutional code of rate 1/3.

use super::MAX_WORD_BITS;

/// Generator polynomials in octal; the highest bit belongs to the newest input bit.
///
/// Source: TS 36.212 §5.1.3.1
pub const GENERATORS: [u8; 3] = [0o133, 0o171, 0o165];

/// Memory of the encoder (bits).
///
/// Source: TS 36.212 §5.1.3.1
pub const MEMORY: usize = 6;

/// A coded word: bit k of each of the three streams, with the first bit of the word at index 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codeword {
    steps: [[u8; 3]; MAX_WORD_BITS],
    len: usize,
}

impl Codeword {
    /// Encodes the `len` lowest bits of `word`, highest bit first. `len` is 6…128; larger values are truncated to 128.
    ///
    /// Source: TS 36.212 §5.1.3.1
    pub fn encode(word: u128, len: usize) -> Codeword {
        let len = len.min(MAX_WORD_BITS);
        // Tail biting: the initial register contains the last six bits of the word, with the last bit as the newest.
        let mut register = (word as u8 & 0x3F).reverse_bits() >> (8 - MEMORY);
        let mut steps = [[0; 3]; MAX_WORD_BITS];
        for (step, bit) in steps.iter_mut().zip(super::word_bits(word, len)) {
            let with_new = bit << MEMORY | register;
            *step = GENERATORS.map(|generator| ((with_new & generator).count_ones() & 1) as u8);
            register = with_new >> 1;
        }
        Codeword { steps, len }
    }

    /// The three coded bits for each bit of the word.
    pub fn steps(&self) -> &[[u8; 3]] {
        &self.steps[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference encoder: the specification's delay line, written out.
    fn by_the_book(bits: &[u8]) -> Vec<[u8; 3]> {
        let k = bits.len();
        (0..k)
            .map(|n| {
                let c = |delay: usize| bits[(n + k - delay) % k];
                [
                    c(0) ^ c(2) ^ c(3) ^ c(5) ^ c(6),
                    c(0) ^ c(1) ^ c(2) ^ c(3) ^ c(6),
                    c(0) ^ c(1) ^ c(2) ^ c(4) ^ c(6),
                ]
            })
            .collect()
    }

    #[test]
    fn the_register_gives_what_the_delay_line_gives() {
        for (word, len) in [(0b1_u128, 24), (0xDEAD_BEEF_1234, 48), ((1 << 75) - 12345, 75)] {
            let bits: Vec<u8> = super::super::word_bits(word, len).collect();
            assert_eq!(Codeword::encode(word, len).steps(), by_the_book(&bits));
        }
    }
}
