//! The control resource set (CORESET) of an NR carrier: which control channel elements (CCEs) the DCIs of a slot occupy.
//!
//! The standard restricts the DCIs of a device to a few candidates, whose position depends on the device's RNTI and on
//! the slot. A device is blocked in a slot if other DCIs overlap all its candidates.

use airpace_radio::Rnti;

/// Maximum number of CCEs of a CORESET: 45 groups of six PRBs in each of three symbols.
///
/// Source: TS 38.211 §7.3.2.2
const MAX_CCES: u32 = 135;

/// PRBs of a resource element group bundle that form a CCE in one symbol.
///
/// Source: TS 38.211 §7.3.2.2 (a CCE has six resource element groups)
const PRBS_PER_CCE: u16 = 6;

/// A CORESET over the whole carrier, and the CCEs that are occupied in the current slot.
#[derive(Clone, Debug)]
pub(in super::super) struct Coreset {
    cces: u32,
    /// One bit for each occupied CCE.
    occupied: [u64; 3],
}

/// Number of candidates of a device at an aggregation level.
///
/// Chosen: the numbers of a commercial cell's configuration, which has candidates at all levels.
const CANDIDATES: [(u32, u32); 5] = [(1, 8), (2, 5), (4, 4), (8, 2), (16, 1)];

/// SINR in dB from which on an aggregation level is used, highest SINR first. Below all of them, the level is 16.
///
/// Chosen: each level halves the code rate of the previous, which gains about 3 dB. A DCI of 60 bits needs 9 dB at level
/// 1 (108 coded bits), with a margin of 3 dB for the age of the report.
const LEVELS: [(f64, usize); 4] = [(12.0, 0), (7.0, 1), (3.0, 2), (-1.0, 3)];

impl Coreset {
    /// A CORESET of `symbols` symbols on a carrier.
    pub(in super::super) fn new(carrier_prbs: u16, symbols: u8) -> Coreset {
        let cces = u32::from(carrier_prbs / PRBS_PER_CCE) * u32::from(symbols);
        Coreset { cces: cces.min(MAX_CCES), occupied: [0; 3] }
    }

    /// Starts a slot without DCIs.
    pub(in super::super) fn clear(&mut self) {
        self.occupied = [0; 3];
    }

    /// Places a DCI for a device with this SINR in slot `slot` of its frame. Returns whether a candidate was free.
    ///
    /// If the CORESET is too small for the aggregation level, the largest level that fits is used.
    ///
    /// Source: TS 38.213 §10.1
    pub(in super::super) fn place(&mut self, rnti: Rnti, slot: u64, sinr_db: f64) -> bool {
        let wanted = LEVELS.iter().find(|(from_db, _)| sinr_db >= *from_db).map_or(4, |(_, level)| *level);
        let Some((level, candidates)) =
            CANDIDATES[..=wanted].iter().rev().copied().find(|(level, _)| *level <= self.cces)
        else {
            return false;
        };
        let space = SearchSpace { cces: self.cces, level, candidates };
        for first in space.first_cces(hash(CORESET_ID, rnti, slot)) {
            if (first..first + level).all(|cce| !self.is_occupied(cce)) {
                (first..first + level).for_each(|cce| self.occupy(cce));
                return true;
            }
        }
        false
    }

    fn is_occupied(&self, cce: u32) -> bool {
        self.occupied[(cce / 64) as usize] >> (cce % 64) & 1 == 1
    }

    fn occupy(&mut self, cce: u32) {
        self.occupied[(cce / 64) as usize] |= 1 << (cce % 64);
    }
}

/// Identity of the CORESET.
///
/// Chosen: 1; CORESET 0 is that of system information.
const CORESET_ID: u8 = 1;

/// The candidates of a device at one aggregation level.
#[derive(Clone, Copy, Debug)]
struct SearchSpace {
    /// Number of CCEs of the CORESET.
    cces: u32,
    /// Aggregation level: number of CCEs of a candidate.
    level: u32,
    /// Number of candidates.
    candidates: u32,
}

impl SearchSpace {
    /// The first CCE of each candidate.
    ///
    /// Source: TS 38.213 §10.1
    fn first_cces(self, hash: u32) -> impl Iterator<Item = u32> {
        let SearchSpace { cces, level, candidates } = self;
        (0..candidates).map(move |candidate| {
            let shift = candidate * cces / (level * candidates);
            level * ((hash + shift) % (cces / level))
        })
    }
}

/// The value Y of a device's search space in a slot of a frame: Y(n) = A · Y(n - 1) mod 65537, with Y(-1) = RNTI. A depends
/// on the identity of the CORESET.
///
/// Source: TS 38.213 §10.1
fn hash(coreset_id: u8, rnti: Rnti, slot: u64) -> u32 {
    const D: u64 = 65_537;
    let a = [39_827, 39_829, 39_839][usize::from(coreset_id % 3)];
    let (mut power, mut base, mut exponent) = (1, a, slot + 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power * base % D;
        }
        base = base * base % D;
        exponent >>= 1;
    }
    (u64::from(rnti.0) * power % D) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_those_of_another_implementation() {
        let Some(path) = airpace_testing::recordings("3gpp/nr/pdcch_candidates_ue.csv") else { return };
        let table = std::fs::read_to_string(path).expect("a table");
        let mut compared = 0;
        for line in table.lines().skip(1) {
            let columns: Vec<&str> = line.split(',').collect();
            let number = |column: usize| columns[column].parse::<u32>().expect("a number");
            let space = SearchSpace { level: number(0), candidates: number(1), cces: number(2) };
            let hash = hash(number(3) as u8, Rnti(number(4) as u16), number(5).into());
            let expected: Vec<u32> = columns[6].split_whitespace().map(|cce| cce.parse().unwrap()).collect();
            assert_eq!(space.first_cces(hash).collect::<Vec<_>>(), expected, "{line}");
            compared += 1;
        }
        assert!(compared > 50, "{compared} rows");
    }

    #[test]
    fn a_strong_device_is_seldom_blocked_and_a_full_coreset_blocks_everyone() {
        let mut coreset = Coreset::new(273, 1);
        assert_eq!(coreset.cces, 45);
        let mut placed = 0;
        for slot in 0..20 {
            coreset.clear();
            placed += (100..108).filter(|&rnti| coreset.place(Rnti(rnti), slot, 20.0)).count();
        }
        assert!(placed >= 158, "{placed} of 160 DCIs at level 1 are placed");
        coreset.clear();
        let weak = (0..10).filter(|&rnti| coreset.place(Rnti(1_000 + rnti), 0, -5.0)).count();
        assert!((1..=2).contains(&weak), "{weak} DCIs at level 16");
        let occupied: u32 = coreset.occupied.iter().map(|word| word.count_ones()).sum();
        assert_eq!(occupied, 16 * weak as u32);
    }

    #[test]
    fn a_narrow_carrier_uses_the_largest_level_that_fits() {
        let mut coreset = Coreset::new(24, 2);
        assert!(
            coreset.place(Rnti(7), 3, -9.0) && !coreset.place(Rnti(8), 3, -9.0),
            "eight CCEs are one DCI"
        );
    }
}
