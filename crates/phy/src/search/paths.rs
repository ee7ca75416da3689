//! Paths of low weight through the trellis: the differences between a word and the similar words that a decoder may
//! return instead.

use crate::coding::Codeword;

/// Maximum number of coded bits that a mistake changes, with three coded bits per bit of the word. The minimum
/// distance of the code is 15.
pub(super) const MAX_DIFFERENT: u32 = 20;

/// Maximum span of a mistake (bits of the word).
const MAX_MISTAKE: u32 = 9;

/// Bits of a word of `len` bits that a mistake changes, for all mistakes that start at the lowest bit.
pub(super) fn light(len: usize) -> Vec<u128> {
    let weight = |pattern: u128| -> u32 {
        let coded = Codeword::encode(pattern, len);
        coded.steps().iter().flatten().map(|&bit| u32::from(bit)).sum()
    };
    // Patterns contain the lowest bit, so none is counted twice.
    let patterns = (1u128..1 << MAX_MISTAKE).filter(|pattern| pattern % 2 == 1);
    patterns.filter(|&pattern| weight(pattern) <= MAX_DIFFERENT).collect()
}
