//! Rate matching of convolutionally coded bits: interleaves the three streams, then reads from a circular buffer.

use super::{Codeword, MAX_WORD_BITS};
use crate::modulation::Soft;

/// Number of columns of the sub-block interleaver.
///
/// Source: TS 36.212 §5.1.4.2.1
const COLUMNS: usize = 32;

/// Order in which the columns are read.
///
/// Source: TS 36.212 §5.1.4.2.1 Table 5.1.4-2
const COLUMN_ORDER: [u8; COLUMNS] = [
    1, 17, 9, 25, 5, 21, 13, 29, 3, 19, 11, 27, 7, 23, 15, 31, 0, 16, 8, 24, 4, 20, 12, 28, 2, 18, 10, 26, 6,
    22, 14, 30,
];

/// Read order of the sub-block interleaver: for each output, the index among the `len` inputs. Inputs are written row by
/// row after the padding, and read column by column.
///
/// Source: TS 36.212 §5.1.4.2.1
pub fn interleaver(len: usize) -> impl Iterator<Item = usize> {
    let rows = len.div_ceil(COLUMNS);
    let padding = rows * COLUMNS - len;
    COLUMN_ORDER
        .into_iter()
        .flat_map(move |column| (0..rows).map(move |row| row * COLUMNS + usize::from(column)))
        .filter_map(move |at| at.checked_sub(padding))
}

/// Bit order of the circular buffer, for words of one length.
#[derive(Clone, Debug)]
pub struct RateMatcher {
    /// For each bit of the circular buffer: 3 · bit of the word + stream.
    places: Vec<u16>,
}

impl RateMatcher {
    /// Creates a rate matcher for words of `len` bits (at most 128), with their CRC.
    ///
    /// Source: TS 36.212 §5.1.4.2.2
    pub fn new(len: usize) -> RateMatcher {
        let len = len.min(MAX_WORD_BITS);
        let of_stream = |stream| interleaver(len).map(move |bit| (3 * bit + stream) as u16);
        RateMatcher { places: (0..3).flat_map(of_stream).collect() }
    }

    /// For each bit of the circular buffer: 3 · bit of the word + stream.
    pub(crate) fn places(&self) -> &[u16] {
        &self.places
    }

    /// Number of bits in a word, with its CRC.
    pub fn word_bits(&self) -> usize {
        self.places.len() / 3
    }

    /// The first `count` transmitted bits of a coded word. Reading continues at the start of the circular buffer after
    /// its end.
    pub fn select<'a>(&'a self, codeword: &'a Codeword, count: usize) -> impl Iterator<Item = u8> + 'a {
        let bit = |&place: &u16| codeword.steps()[usize::from(place) / 3][usize::from(place) % 3];
        self.places.iter().cycle().take(count).map(bit)
    }

    /// Adds received soft bits up to three values per bit of the word. Bits that were not transmitted are zero. If the
    /// largest magnitude exceeds the decoder's limit, all values are scaled down by the same factor.
    pub fn combine(&self, soft: &[Soft], steps: &mut Vec<[i16; 3]>) {
        steps.clear();
        steps.resize(self.word_bits(), [0; 3]);
        let sums = steps.as_flattened_mut();
        for turn in soft.chunks(self.places.len().max(1)) {
            for (&place, &value) in self.places.iter().zip(turn) {
                let sum = &mut sums[usize::from(place)];
                *sum = sum.saturating_add(value);
            }
        }
        let largest = sums.iter().map(|soft| i32::from(soft.unsigned_abs())).max().unwrap_or(0);
        let limit = i32::from(super::viterbi::MAX_SOFT);
        if largest > limit {
            // Multiply instead of dividing by `largest`. No overflow: 2^15 · 2^16 · 255 / 256 is below 2^31.
            let factor = (limit << 16) / largest;
            let half = 1 << 15;
            sums.iter_mut().for_each(|soft| *soft = ((i32::from(*soft) * factor + half) >> 16) as i16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::Viterbi;
    use proptest::prelude::*;

    #[test]
    fn padding_comes_first_and_is_left_out() {
        // 40 inputs: two rows with 24 padding places at the start. Column 1 contains places 1 (padding) and 33 (input 9).
        let order: Vec<usize> = interleaver(40).collect();
        assert_eq!(&order[..4], &[9, 25, 17, 1]);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..40).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn words_come_back_through_any_number_of_cces(
            word in any::<u64>(), len in 24usize..=75, level in 0usize..4,
        ) {
            let word = u128::from(word) & ((1 << len) - 1);
            let count = 72 << level;
            // At a code rate above one half, the received bits may not determine the word.
            prop_assume!(2 * len <= count);
            let matcher = RateMatcher::new(len);
            let soft: Vec<Soft> =
                matcher.select(&Codeword::encode(word, len), count).map(|bit| 48 - 96 * Soft::from(bit)).collect();
            let mut steps = Vec::new();
            matcher.combine(&soft, &mut steps);
            prop_assert_eq!(Viterbi::default().decode(&steps).word, word);
        }
    }
}
