//! Channel coding of control information: CRC, tail-biting convolutional code, rate matching.
//!
//! ```text
//! word ─crc─▶ word+16 ─convolutional─▶ 3 streams ─rate_match─▶ E bits      and back, with soft bits
//! ```

pub mod convolutional;
pub mod crc;
pub mod rate_match;
pub mod viterbi;

pub use convolutional::Codeword;
pub use rate_match::RateMatcher;
pub use viterbi::Viterbi;

/// Maximum length of a coded word on control channels (bits), with its CRC.
pub const MAX_WORD_BITS: usize = 128;

/// Bits of a right-aligned word, in order of transmission.
pub fn word_bits(word: u128, len: usize) -> impl Iterator<Item = u8> {
    (0..len).rev().map(move |at| (word >> at & 1) as u8)
}
