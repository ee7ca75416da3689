//! PDCCH: search spaces, coding and scrambling of messages on CCEs.

use airpace_radio::Rnti;
use num_complex::Complex32;

use crate::cell::Cell;
use crate::coding::{Codeword, RateMatcher, crc};
use crate::dci::{Audience, Payload};
use crate::diversity::Quad;
use crate::grid::{BITS_PER_CCE, ControlRegion};
use crate::sequence::gold::{Gold, pdcch_seed};

/// Aggregation levels: numbers of CCEs of a message.
///
/// Source: TS 36.211 §6.8.1 Table 6.8.1-1
pub const LEVELS: [u8; 4] = [1, 2, 4, 8];

/// CCEs of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CceRange {
    /// First CCE, a multiple of `cces`.
    pub cce: u16,
    /// Aggregation level: 1, 2, 4 or 8 CCEs.
    pub cces: u8,
}

impl CceRange {
    /// All possible positions of messages among `count` CCEs, the largest aggregation level first.
    ///
    /// Source: TS 36.211 §6.8.1
    pub fn all(count: usize) -> impl Iterator<Item = CceRange> {
        LEVELS.into_iter().rev().flat_map(move |cces| {
            let places = count / usize::from(cces);
            (0..places).map(move |at| CceRange { cce: at as u16 * u16::from(cces), cces })
        })
    }

    /// CCE indices of the message.
    pub fn range(self) -> std::ops::Range<usize> {
        usize::from(self.cce)..usize::from(self.cce) + usize::from(self.cces)
    }

    /// Bit indices of the message among the bits of all CCEs.
    pub fn bits(self) -> std::ops::Range<usize> {
        let cces = self.range();
        cces.start * BITS_PER_CCE..cces.end * BITS_PER_CCE
    }

    /// Whether two ranges share a CCE.
    pub fn overlaps(self, other: CceRange) -> bool {
        let (a, b) = (self.range(), other.range());
        a.start < b.end && b.start < a.end
    }
}

/// Number of CCEs in the common search space.
///
/// Source: TS 36.213 §9.1.1
const COMMON_CCES: usize = 16;

/// Whether `place` is in the common search space.
///
/// Source: TS 36.213 §9.1.1 Table 9.1.1-1
pub fn in_common_space(place: CceRange, cces: usize) -> bool {
    place.cces >= 4 && place.range().end <= COMMON_CCES.min(cces)
}

/// Number of candidates of aggregation level `level` in a user-specific search space.
///
/// Source: TS 36.213 §9.1.1 Table 9.1.1-1
const fn tries(level: u8) -> u32 {
    match level {
        1 | 2 => 6,
        4 | 8 => 2,
        _ => 0,
    }
}

/// User-specific search space: candidates of aggregation level `level` for `rnti` in a subframe (0…9) with `cces` CCEs.
///
/// Source: TS 36.213 §9.1.1
pub fn own_space(rnti: Rnti, subframe: usize, cces: usize, level: u8) -> impl Iterator<Item = CceRange> {
    let places = cces as u32 / u32::from(level.max(1));
    let start = hash(rnti, subframe);
    (0..if places == 0 { 0 } else { tries(level) }).map(move |m| {
        let at = (start + m) % places;
        CceRange { cce: at as u16 * u16::from(level), cces: level }
    })
}

/// Whether `place` is in [`own_space`].
///
/// Source: TS 36.213 §9.1.1
pub fn in_own_space(rnti: Rnti, subframe: usize, cces: usize, place: CceRange) -> bool {
    let level = u32::from(place.cces.max(1));
    let (places, at) = (cces as u32 / level, u32::from(place.cce) / level);
    let is_place = u32::from(place.cce) == at * level && at < places;
    is_place && (at + places - hash(rnti, subframe) % places) % places < tries(place.cces)
}

/// Whether a message for `rnti` may be at `place`.
///
/// Source: TS 36.213 §9.1.1
pub fn in_search_space(rnti: Rnti, subframe: usize, cces: usize, place: CceRange) -> bool {
    match Audience::of(rnti) {
        None => false,
        Some(Audience::Everyone) => in_common_space(place, cces),
        Some(Audience::User) => in_common_space(place, cces) || in_own_space(rnti, subframe, cces, place),
    }
}

/// Y_k of an RNTI in a subframe (0…9).
///
/// Source: TS 36.213 §9.1.1
fn hash(rnti: Rnti, subframe: usize) -> u32 {
    const A: u32 = 39_827;
    const D: u32 = 65_537;
    // Each subframe multiplies by A modulo D. A product is below 2^32: a power is at most D − 1, an RNTI at most D − 2.
    const POWERS: [u32; 10] = {
        let mut powers = [A; 10];
        let mut at = 1;
        while at < powers.len() {
            powers[at] = (A as u64 * powers[at - 1] as u64 % D as u64) as u32;
            at += 1;
        }
        powers
    };
    POWERS[subframe % POWERS.len()] * u32::from(rnti.0) % D
}

/// A transmitted message on the PDCCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransmittedMessage {
    /// RNTI of the receiver.
    pub rnti: Rnti,
    /// DCI payload.
    pub payload: Payload,
    /// CCEs of the message.
    pub place: CceRange,
}

impl TransmittedMessage {
    /// Coded bits of the message, before scrambling.
    ///
    /// Source: TS 36.212 §5.3.3
    pub fn coded(&self) -> Vec<u8> {
        coded(self.payload, self.rnti, self.place.bits().len())
    }
}

/// Coded bits of a message, before scrambling.
///
/// Source: TS 36.212 §5.3.3.2 – §5.3.3.4
pub fn coded(payload: Payload, rnti: Rnti, count: usize) -> Vec<u8> {
    let len = usize::from(payload.len());
    let word = crc::attach16(u128::from(payload.bits()), len, rnti.0);
    let codeword = Codeword::encode(word, len + 16);
    RateMatcher::new(len + 16).select(&codeword, count).collect()
}

/// PDCCH symbols on all REGs of the region, in the order of their bits; zero on REGs without a message.
///
/// The CCEs of the messages must lie within the region and must not overlap; otherwise the bits of the later message
/// overwrite those of the earlier message.
///
/// Source: TS 36.211 §6.8.2 and §6.8.3
pub fn encode(
    cell: &Cell,
    region: &ControlRegion,
    subframe: usize,
    messages: &[TransmittedMessage],
) -> Vec<Quad> {
    // +1 for 0, −1 for 1, 0 for an unused bit.
    let mut signs = vec![0.0f32; 8 * region.pdcch.len()];
    for message in messages {
        for (sign, bit) in signs[message.place.bits()].iter_mut().zip(message.coded()) {
            *sign = 1.0 - 2.0 * f32::from(bit);
        }
    }
    modulate(cell, subframe, &mut signs)
}

/// PDCCH symbols of unscrambled bits: +1 for 0, −1 for 1; smaller magnitudes give smaller amplitudes. Eight bits are a
/// quadruplet.
///
/// Source: TS 36.211 §6.8.2 and §6.8.3
pub fn modulate(cell: &Cell, subframe: usize, signs: &mut [f32]) -> Vec<Quad> {
    let mut scrambling = Gold::new(pdcch_seed(cell.pci, subframe));
    for sign in &mut *signs {
        *sign *= scrambling.next_sign();
    }
    let level = std::f32::consts::FRAC_1_SQRT_2;
    signs
        .chunks_exact(8)
        .map(|eight| std::array::from_fn(|i| Complex32::new(eight[2 * i], eight[2 * i + 1]).scale(level)))
        .collect()
}

/// Descrambles the soft bits of the whole region.
///
/// Source: TS 36.211 §6.8.2
pub fn descramble(pci: u16, subframe: usize, levels: &mut [f32]) {
    let mut scrambling = Gold::new(pdcch_seed(pci, subframe));
    for level in levels {
        *level *= scrambling.next_sign();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_aligned_and_inside() {
        let places: Vec<_> = CceRange::all(13).collect();
        assert_eq!(places.len(), 1 + 3 + 6 + 13);
        assert!(places.iter().all(|place| place.range().end <= 13 && place.cce % u16::from(place.cces) == 0));
    }

    #[test]
    fn spaces_follow_the_hash() {
        // 0x1234 · 39827 mod 65537 = 60069, for subframe 0.
        assert_eq!(hash(Rnti(0x1234), 0), 4660 * 39_827 % 65_537);
        let own: Vec<_> = own_space(Rnti(0x1234), 0, 50, 8).collect();
        assert_eq!(own.len(), 2);
        assert_eq!(u32::from(own[0].cce), 8 * (hash(Rnti(0x1234), 0) % 6));
        assert_eq!(own_space(Rnti(7000), 3, 5, 8).count(), 0, "a level that does not fit has no place");
        for rnti in (1..0xFFF4).step_by(97).map(Rnti) {
            for (subframe, cces) in
                (0..10).flat_map(|subframe| [0, 1, 7, 21, 50, 84].map(|cces| (subframe, cces)))
            {
                // Reference: the recurrence as in the specification.
                let y = (0..=subframe).fold(u64::from(rnti.0), |y, _| 39_827 * y % 65_537);
                assert_eq!(u64::from(hash(rnti, subframe)), y);
                for level in LEVELS {
                    let own: Vec<CceRange> = own_space(rnti, subframe, cces, level).collect();
                    for cce in 0..cces as u16 + 9 {
                        let place = CceRange { cce, cces: level };
                        assert_eq!(
                            in_own_space(rnti, subframe, cces, place),
                            own.contains(&place),
                            "{place:?}"
                        );
                    }
                }
            }
        }
        assert!(in_search_space(Rnti::SYSTEM_INFORMATION, 5, 20, CceRange { cce: 8, cces: 8 }));
        assert!(!in_search_space(Rnti::SYSTEM_INFORMATION, 5, 20, CceRange { cce: 16, cces: 4 }));
        assert!(
            !in_search_space(Rnti(0xFFF8), 5, 20, CceRange { cce: 0, cces: 4 }),
            "reserved RNTIs have none"
        );
    }
}
