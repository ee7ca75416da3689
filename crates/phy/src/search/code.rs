//! The code of words of one size as a linear map over bits: the bits of a single CCE determine the word without a
//! trellis.
//!
//! The convolutional code with tail-biting and rate matching is linear. So a word of n bits is determined by n
//! independent received bits. The other bits of the CCE are used as a check. At low noise, this method takes some table
//! look-ups instead of thousands of trellis steps.
//!
//! The *mask* of a word is the number that is added (exclusive or) to its CRC: the RNTI of the receiver. A *mistake* is
//! the difference between two words that noise confuses.

use pulp::Arch;

use super::paths::light;
use super::rivals::Rivals;
use crate::coding::crc::{self, CRC16};
use crate::coding::{Codeword, RateMatcher};
use crate::dci::Payload;
use crate::grid::BITS_PER_CCE;
use crate::modulation::Soft;

/// Bits of one CCE; the first transmitted bit is the lowest.
pub type CceBits = u128;

/// Bits of the circular buffer of the longest word; the first transmitted bit is the lowest.
type Circle = [u64; 4];

const CRC_BITS: usize = CRC16.width() as usize;

/// Maximum length of a word whose circular buffer fits (bits).
const MAX_WORD: usize = 85;

/// Tables for words of one length.
#[derive(Clone)]
pub struct Code {
    size: u8,
    matcher: RateMatcher,
    /// For each group of four bits of a word: its contribution to the circular buffer.
    circle: Vec<[Circle; 16]>,
    /// Two sets of bits that determine the word: one selected from the first bit onwards, one from the last bit
    /// backwards. A wrong bit at one end of a CCE affects only one of the two sets.
    guesses: Vec<Guess>,
    /// Effect of each bit of the mask, then of each bit of the payload (with its CRC), on the bits of the first CCE.
    changes: Vec<Change>,
    /// Differences between words that noise confuses, sorted by the difference of their masks.
    mistakes: Vec<Mistake>,
    /// Bitmap of the mask differences that occur. An entry contains the bits of 64 differences, and the number of
    /// mistakes before these differences.
    masks: Vec<(u64, u16)>,
    /// Coded bits that differ between words that noise confuses.
    rivals: Rivals,
}

/// Difference between two words whose coded bits are nearly equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Bits of the word that differ.
    pub word: u128,
    /// Difference of the masks of the two CRCs.
    pub mask: u16,
}

/// Payload, and the bits of the first CCE of its word. A value describes one word, or the difference between two words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(32))]
pub struct Change {
    /// Bits of the CCE; the first transmitted bit is the lowest.
    cce: [u64; 2],
    /// Bits of the payload.
    pub payload: u64,
}

impl Change {
    /// Bits of the CCE.
    #[inline]
    pub fn cce(&self) -> CceBits {
        u128::from(self.cce[0]) | u128::from(self.cce[1]) << 64
    }

    /// Bit `at` of the CCE, 0 or 1.
    #[inline(always)]
    fn has(&self, at: u8) -> u64 {
        self.cce[usize::from(at / 64)] >> (at % 64) & 1
    }

    /// Adds `other` (exclusive or) if `is` is 1; returns `self` unchanged if it is 0.
    #[inline(always)]
    fn and(self, other: &Change, is: u64) -> Change {
        let all = is.wrapping_neg();
        let cce = [self.cce[0] ^ other.cce[0] & all, self.cce[1] ^ other.cce[1] & all];
        Change { cce, payload: self.payload ^ other.payload & all }
    }
}

/// Words that agree with the most reliable bits of a CCE, one word for each mask. The number of these reliable bits
/// equals the number of payload bits.
#[derive(Clone, Debug)]
pub struct ByMask {
    /// Word for mask 0.
    none: Change,
    /// Change of the word for each bit of the mask, then for each bit in `surest` that was received wrong.
    changes: [Change; CRC_BITS + 64],
    /// Indices of the selected CCE bits in descending order of confidence.
    surest: [u8; 64],
    count: usize,
    /// Index in `surest` of the first bit that is not reliable.
    unsure: usize,
}

impl ByMask {
    /// Word with this mask that is closest to the soft bits. The word may differ from at most one of the selected bits,
    /// and this bit must not be in `sure`. `None` if every such word differs in more than two bits of `sure`.
    pub fn nearest(&self, mask: u16, hard: CceBits, sure: CceBits, soft: &[Soft]) -> Option<Change> {
        let of_mask = self.changes[..CRC_BITS].iter().enumerate();
        let word =
            of_mask.fold(self.none, |word, (bit, change)| word.and(change, u64::from(mask >> bit & 1)));
        let off = |word: &Change| {
            let (mut wrong, mut sum) = (word.cce() ^ hard, 0);
            while wrong != 0 {
                sum += u32::from(soft[wrong.trailing_zeros() as usize].unsigned_abs());
                wrong &= wrong - 1;
            }
            sum
        };
        let flips = self.changes[CRC_BITS + self.unsure..CRC_BITS + self.count].iter();
        let all = std::iter::once(word).chain(flips.rev().map(|flip| word.and(flip, 1)));
        let near = all.filter(|word| ((word.cce() ^ hard) & sure).count_ones() <= MAX_WRONG);
        near.min_by_key(off)
    }
}

/// Maximum number of wrong bits among the reliable bits of a CCE.
const MAX_WRONG: u32 = 2;

/// Selection of independent bits of a word's first CCE; their number is the length of the word.
#[derive(Clone)]
struct Guess {
    /// For each group of four received bits: their contribution to the word.
    word: Vec<[u128; 16]>,
    /// For each group of four received bits: their contribution to the CCE that this word is coded to.
    coded: Vec<[CceBits; 16]>,
}

impl Code {
    /// Tables for payloads of `size` bits (at most 64).
    pub fn new(size: u8) -> Code {
        let len = (usize::from(size) + CRC_BITS).min(MAX_WORD);
        let matcher = RateMatcher::new(len);
        let rows: Vec<Circle> = (0..len).map(|bit| circle_of(&matcher, 1 << bit, len)).collect();
        let circle = nibbles(len, |bit| rows[bit], xor);
        let mut mistakes = mistakes(usize::from(size), len);
        mistakes.sort_by_key(|mistake| mistake.mask);
        let mut masks = vec![(0u64, 0u16); 1 << 10];
        mistakes
            .iter()
            .for_each(|mistake| masks[usize::from(mistake.mask) / 64].0 |= 1 << (mistake.mask % 64));
        for (block, (_, before)) in masks.iter_mut().enumerate() {
            let count = mistakes.partition_point(|mistake| usize::from(mistake.mask) / 64 < block);
            *before = u16::try_from(count).unwrap_or(u16::MAX);
        }
        let mut code = Code {
            size,
            matcher,
            circle,
            guesses: Vec::new(),
            changes: Vec::new(),
            mistakes,
            masks,
            rivals: Rivals::new(len),
        };
        let of_mask = (0..CRC_BITS).map(|bit| (0, 1 << bit));
        let of_payload = (0..len - CRC_BITS).map(|bit| (1 << bit, 0));
        let change = |(payload, mask)| {
            let word = code.word(payload, mask);
            let cce = code.cces(word).next().unwrap_or_default();
            Change { cce: [cce as u64, (cce >> 64) as u64], payload }
        };
        code.changes = of_mask.chain(of_payload).map(change).collect();
        let forwards = code.guess(&rows, 0..BITS_PER_CCE);
        let backwards = code.guess(&rows, (0..BITS_PER_CCE).rev());
        code.guesses = [forwards, backwards].into_iter().flatten().collect();
        code
    }

    /// Length of a payload (bits).
    pub fn size(&self) -> u8 {
        self.size
    }

    /// Length of a word: payload and CRC (bits).
    pub fn len(&self) -> usize {
        usize::from(self.size) + CRC_BITS
    }

    /// Always `false`: a word has at least the bits of its CRC.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Order of the coded bits.
    pub fn matcher(&self) -> &RateMatcher {
        &self.matcher
    }

    /// Payload of a word and the mask of its CRC.
    pub fn open(&self, word: u128) -> Option<(Payload, u16)> {
        let payload = Payload::new((word >> CRC_BITS) as u64, self.size)?;
        Some((payload, crc::mask16(word, usize::from(self.size))))
    }

    /// Word of a payload whose CRC is masked with `mask`.
    pub fn word(&self, payload: u64, mask: u16) -> u128 {
        crc::attach16(u128::from(payload), usize::from(self.size), mask)
    }

    /// Bits of successive CCEs that contain `word`.
    pub fn cces(&self, word: u128) -> Cces {
        let circle = sum_nibbles(&self.circle, word, [0; 4], xor);
        Cces { circle, len: 3 * self.len(), at: 0 }
    }

    /// Words of messages whose first CCE has the bits `hard`. A word is omitted if it disagrees with too many of these
    /// bits.
    pub fn words(&self, hard: CceBits) -> impl Iterator<Item = u128> + '_ {
        // Half of the check bits are wrong for random bits; one quarter is accepted.
        let most = (BITS_PER_CCE - self.len().min(BITS_PER_CCE)) as u32 / 4;
        let mut last = None;
        self.guesses.iter().filter_map(move |guess| {
            let coded = sum_nibbles(&guess.coded, hard, 0, |a, b| a ^ b);
            if (coded ^ hard).count_ones() > most {
                return None;
            }
            let word = sum_nibbles(&guess.word, hard, 0, |a, b| a ^ b);
            (last.replace(word) != Some(word)).then_some(word)
        })
    }

    /// Words that agree with a CCE, one for each mask. `order` contains the bit indices in descending order of
    /// confidence. The first independent bits in this order, as many as the payload has bits, are assumed to be
    /// correct. [`ByMask::nearest`] accepts one error among the assumed bits that are not in `sure`. `None` if the bits
    /// do not determine the payload.
    ///
    /// A known mask reduces the number of bits that are needed by sixteen: a payload of 50 bits is determined even if
    /// 22 of the 72 bits are lost.
    pub fn by_mask(&self, hard: CceBits, order: &[u8; BITS_PER_CCE], sure: CceBits) -> Option<ByMask> {
        Arch::new().dispatch(|| self.eliminate(hard, order, sure))
    }

    #[inline(always)]
    fn eliminate(&self, hard: CceBits, order: &[u8; BITS_PER_CCE], sure: CceBits) -> Option<ByMask> {
        let mut found = ByMask {
            none: Change::default(),
            changes: [Change::default(); CRC_BITS + 64],
            surest: [0; 64],
            count: 0,
            unsure: 0,
        };
        let bits = self.changes.len() - CRC_BITS;
        found.changes[..self.changes.len()].copy_from_slice(&self.changes);
        let (of_mask, of_payload) = found.changes[..self.changes.len()].split_at_mut(CRC_BITS);
        for &at in order {
            if found.count == bits {
                break;
            }
            // Select the pivot: one of the changes that have no CCE bit yet and that change this bit.
            let left = &mut of_payload[found.count..];
            let Some(own) = left.iter().position(|change| change.has(at) == 1) else { continue };
            left.swap(0, own);
            let Some((own, left)) = left.split_first_mut() else { continue };
            for change in of_mask.iter_mut().chain(left) {
                *change = change.and(own, change.has(at));
            }
            found.none = found.none.and(own, found.none.has(at) ^ (hard >> at) as u64 & 1);
            found.surest[found.count] = at;
            found.count += 1;
            found.unsure += usize::from(sure >> at & 1 == 1);
        }
        if found.count < bits {
            return None;
        }
        // Back substitution, from the last change to the first required change. After it, each change affects only its
        // own bit of `surest`.
        for this in (found.unsure..bits).rev() {
            let (before, behind) = of_payload.split_at_mut(this + 1);
            for (change, at) in behind.iter().zip(&found.surest[this + 1..]) {
                before[this] = before[this].and(change, before[this].has(*at));
            }
        }
        Some(found)
    }

    /// Differences between words that noise confuses and whose masks differ by `mask`.
    #[inline]
    pub fn mistakes(&self, mask: u16) -> &[Mistake] {
        let (masks, before) = self.masks[usize::from(mask) / 64];
        if masks >> (mask % 64) & 1 == 0 {
            return &[];
        }
        let from = &self.mistakes[usize::from(before)..];
        let first = from.iter().position(|mistake| mistake.mask == mask).unwrap_or(from.len());
        let count = from[first..].iter().take_while(|mistake| mistake.mask == mask).count();
        &from[first..first + count]
    }

    /// Coded bits that change between words that noise confuses.
    pub(super) fn rivals(&self) -> &Rivals {
        &self.rivals
    }

    /// Selects the first independent bits in `order`. `None` if a CCE does not determine the word.
    fn guess(&self, rows: &[Circle], order: impl Iterator<Item = usize>) -> Option<Guess> {
        let len = rows.len();
        // For each selected bit: the bits of the word that are summed in it, and the received bits from which this sum
        // is computed.
        let mut basis: Vec<(u128, CceBits)> = Vec::new();
        for at in order {
            let sums = (0..len).fold(0u128, |sums, bit| {
                let sent = at % (3 * len);
                sums | u128::from(rows[bit][sent / 64] >> (sent % 64) & 1) << bit
            });
            let mut new = (sums, 1u128 << at);
            for &(sums, made_of) in &basis {
                if new.0 & lowest(sums) != 0 {
                    new = (new.0 ^ sums, new.1 ^ made_of);
                }
            }
            if new.0 == 0 {
                continue;
            }
            for old in &mut basis {
                if old.0 & lowest(new.0) != 0 {
                    *old = (old.0 ^ new.0, old.1 ^ new.1);
                }
            }
            basis.push(new);
        }
        if basis.len() < len {
            return None;
        }
        // Every sum now consists of one bit of the word.
        let names = |at: usize| {
            basis.iter().filter(|(_, made_of)| made_of >> at & 1 == 1).fold(0, |word, (bit, _)| word | bit)
        };
        let first_cce = |word: u128| self.cces(word).next().unwrap_or_default();
        Some(Guess {
            word: nibbles(BITS_PER_CCE, names, |a, b| a ^ b),
            coded: nibbles(BITS_PER_CCE, |at| first_cce(names(at)), |a, b| a ^ b),
        })
    }
}

/// Iterator over the bits of successive CCEs. It reads the circular buffer repeatedly.
pub struct Cces {
    circle: Circle,
    len: usize,
    at: usize,
}

impl Iterator for Cces {
    type Item = CceBits;

    fn next(&mut self) -> Option<CceBits> {
        let (mut bits, mut have) = (0u128, 0);
        while have < BITS_PER_CCE {
            let (word, shift) = (self.at / 64, self.at % 64);
            let run = (64 - shift).min(self.len - self.at).min(BITS_PER_CCE - have);
            let piece = self.circle[word] >> shift & (u64::MAX >> (64 - run));
            bits |= u128::from(piece) << have;
            have += run;
            self.at = (self.at + run) % self.len;
        }
        Some(bits)
    }
}

/// Returns the differences of all paths through the trellis that return to the correct path after few steps, starting
/// at every bit.
fn mistakes(size: usize, len: usize) -> Vec<Mistake> {
    let all = (1u128 << len) - 1;
    let turned = |pattern: u128, by: usize| {
        if by == 0 { pattern } else { (pattern << by | pattern >> (len - by)) & all }
    };
    let words = light(len).into_iter().flat_map(|pattern| (0..len).map(move |by| turned(pattern, by)));
    words.map(|word| Mistake { word, mask: crc::mask16(word, size) }).collect()
}

fn circle_of(matcher: &RateMatcher, word: u128, len: usize) -> Circle {
    let codeword = Codeword::encode(word, len);
    let mut circle = [0; 4];
    for (at, bit) in matcher.select(&codeword, 3 * len).enumerate() {
        circle[at / 64] |= u64::from(bit) << (at % 64);
    }
    circle
}

fn xor(a: Circle, b: Circle) -> Circle {
    std::array::from_fn(|i| a[i] ^ b[i])
}

const fn lowest(bits: u128) -> u128 {
    bits & bits.wrapping_neg()
}

/// Tables of a linear map of `count` bits, one table per four bits. `of` returns the image of one bit.
fn nibbles<T: Copy + Default>(
    count: usize,
    of: impl Fn(usize) -> T,
    add: impl Fn(T, T) -> T,
) -> Vec<[T; 16]> {
    let table = |first: usize| {
        std::array::from_fn(|pattern| {
            let set = (0..4).filter(|bit| pattern >> bit & 1 == 1).map(|bit| first + bit);
            set.filter(|&at| at < count).fold(T::default(), |sum, at| add(sum, of(at)))
        })
    };
    (0..count).step_by(4).map(table).collect()
}

#[inline]
fn sum_nibbles<T: Copy>(tables: &[[T; 16]], bits: u128, zero: T, add: impl Fn(T, T) -> T) -> T {
    tables.iter().enumerate().fold(zero, |sum, (at, table)| add(sum, table[(bits >> (4 * at)) as usize & 15]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdcch::coded;
    use crate::search::paths::MAX_DIFFERENT;
    use airpace_radio::Rnti;
    use proptest::prelude::*;

    fn mask(bits: &[u8]) -> CceBits {
        bits.iter().enumerate().fold(0, |mask, (at, &bit)| mask | u128::from(bit) << at)
    }

    proptest! {
        #[test]
        fn a_clean_cce_names_its_word(size in 8u8..=56, bits in any::<u64>(), rnti in any::<u16>()) {
            let code = Code::new(size);
            let payload = Payload::new(bits & ((1 << size) - 1), size).expect("cut to size");
            let sent = coded(payload, Rnti(rnti), 8 * BITS_PER_CCE);
            let cces: Vec<_> = sent.chunks(BITS_PER_CCE).map(mask).collect();
            let words: Vec<_> = code.words(cces[0]).collect();
            prop_assert_eq!(words.len(), usize::from(!code.guesses.is_empty()));
            for word in words {
                prop_assert_eq!(code.open(word), Some((payload, rnti)));
                prop_assert_eq!(code.cces(word).take(8).collect::<Vec<_>>(), cces.clone());
            }
        }

        #[test]
        fn a_wrong_bit_at_either_end_does_no_harm(bits in any::<u64>(), wrong in 0usize..20, last in any::<bool>()) {
            let code = Code::new(28);
            let payload = Payload::new(bits & ((1 << 28) - 1), 28).expect("cut to size");
            let at = if last { BITS_PER_CCE - 1 - wrong } else { wrong };
            let hard = mask(&coded(payload, Rnti(77), BITS_PER_CCE)) ^ 1 << at;
            prop_assert!(code.words(hard).any(|word| code.open(word) == Some((payload, 77))));
        }
    }

    /// Bit indices in descending order of their magnitude, and the set of bits with at least two nats.
    fn surest(soft: &[Soft]) -> ([u8; BITS_PER_CCE], CceBits) {
        let mut order: [u8; BITS_PER_CCE] = std::array::from_fn(|at| at as u8);
        order.sort_by_key(|&at| std::cmp::Reverse(soft[usize::from(at)].unsigned_abs()));
        let sure = order.iter().filter(|&&at| soft[usize::from(at)].unsigned_abs() >= 16);
        (order, sure.fold(0, |sure, at| sure | 1 << at))
    }

    /// A word of 66 bits in the 72 bits of a CCE: if eight bits are lost, 64 are left.
    #[test]
    fn a_full_cce_that_lost_a_group_names_its_word_if_the_mask_is_known() {
        let mut rng = airpace_core::Streams::new(5).stream("phy.by_mask");
        let code = Code::new(50);
        for lost in (0..BITS_PER_CCE).step_by(8) {
            for is_one_wrong in [false, true] {
                let payload = Payload::new(rng.next_u64() >> 14, 50).expect("cut to size");
                let rnti = rng.next_u64() as u16;
                let mut hard = mask(&coded(payload, Rnti(rnti), BITS_PER_CCE));
                hard ^= CceBits::from(rng.next_u64() & 255) << lost;
                let mut soft: Vec<Soft> = (0..BITS_PER_CCE).map(|_| 40 + rng.below(100) as Soft).collect();
                soft[lost..lost + 8].fill(0);
                if is_one_wrong {
                    let at = (lost + 30) % BITS_PER_CCE;
                    soft[at] = 9;
                    hard ^= 1 << at;
                }
                let (order, sure) = surest(&soft);
                let words = code.by_mask(hard, &order, sure).expect("64 bits name 50");
                let nearest = words.nearest(rnti, hard, sure, &soft).map(|word| word.payload);
                assert_eq!(nearest, Some(payload.bits()), "without bits {lost} to {}", lost + 7);
                let others = (0..1000).filter(|_| {
                    let other = rnti ^ (1 + rng.below(65_535) as u16);
                    words.nearest(other, hard, sure, &soft).is_some()
                });
                let others = others.count();
                assert!(others < 150, "{others} of 1,000 others fit as well");
                assert_eq!(code.open(code.word(payload.bits(), rnti)), Some((payload, rnti)));
            }
        }
    }

    #[test]
    fn bits_that_do_not_name_a_word_name_none() {
        // 72 bits do not determine 64 bits if all of them are the same bit.
        let code = Code::new(64);
        let mut order: [u8; BITS_PER_CCE] = std::array::from_fn(|at| at as u8);
        assert!(code.by_mask(0, &order, 0).is_some());
        order = [7; BITS_PER_CCE];
        assert!(code.by_mask(0, &order, 0).is_none());
    }

    #[test]
    fn mistakes_differ_in_few_bits_and_their_masks_add_up() {
        let code = Code::new(28);
        let light = |mistake: &Mistake| {
            let coded: u32 = code.cces(mistake.word).take(1).map(|bits| bits.count_ones()).sum();
            coded <= MAX_DIFFERENT
        };
        assert!(code.mistakes.len() >= code.len() && code.mistakes.iter().all(light));
        let word = 0x0123_4567_89AB;
        let mistake = code.mistakes[100];
        assert!(code.mistakes(mistake.mask).contains(&mistake));
        let masks = [word, word ^ mistake.word].map(|word| code.open(word).expect("a payload").1);
        assert_eq!(masks[0] ^ masks[1], mistake.mask, "the CRC is linear");
    }

    #[test]
    fn all_sizes_of_all_carriers_are_named_by_one_cce() {
        let without: Vec<u8> = (8..=56).filter(|&size| Code::new(size).guesses.len() < 2).collect();
        assert_eq!(without, Vec::<u8>::new());
    }
}
