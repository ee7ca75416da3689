//! PRBs of a grant: resource allocation types 0, 1 and 2.

use airpace_core::tables::lte;
use airpace_radio::PrbSet;

/// Resource allocation of a grant, as encoded in its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// Type 0: whole resource block groups (RBGs); group 0 is the highest bit of the map.
    ///
    /// Source: TS 36.213 §7.1.6.1
    Groups {
        /// One bit per RBG.
        map: u32,
    },
    /// Type 1: single PRBs of one RBG subset.
    ///
    /// Source: TS 36.213 §7.1.6.2
    Subset {
        /// Index of the subset, less than the RBG size.
        subset: u8,
        /// Whether the map starts at an offset, so that it ends with the last PRB of the subset.
        shift: bool,
        /// One bit per PRB; the lowest PRB is the highest bit.
        map: u32,
    },
    /// Type 2, localised: contiguous PRBs.
    ///
    /// Source: TS 36.213 §7.1.6.3
    Run {
        /// First PRB.
        start: u16,
        /// Number of PRBs.
        len: u16,
    },
    /// Type 2, distributed: contiguous virtual resource blocks. Their PRBs are scattered, and differ between the slots.
    ///
    /// Source: TS 36.213 §7.1.6.3
    Distributed {
        /// Gap of the mapping from virtual to physical blocks.
        gap: Gap,
        /// First virtual resource block.
        start: u16,
        /// Number of virtual resource blocks.
        len: u16,
    },
}

impl Allocation {
    /// PRBs in each of the two slots, on a downlink of `prbs` PRB pairs.
    pub fn prbs(self, prbs: u16) -> [PrbSet; 2] {
        match self {
            Allocation::Groups { map } => {
                let count = lte::rbg_count(prbs);
                let chosen = (0..count).filter(|group| map >> (count - 1 - group) & 1 == 1);
                both(chosen.fold(PrbSet::EMPTY, |set, group| set.union(PrbSet::of_rbg(prbs, group))))
            }
            Allocation::Subset { subset, shift, map } => both(subset_prbs(prbs, subset, shift, map)),
            Allocation::Run { start, len } => both(PrbSet::run(start, len)),
            Allocation::Distributed { gap, start, len } => [0, 1].map(|slot| {
                let blocks = (start..start.saturating_add(len)).take(usize::from(prbs));
                blocks.fold(PrbSet::EMPTY, |set, block| {
                    set.union(PrbSet::run(gap.physical_block(prbs, block, slot), 1))
                })
            }),
        }
    }
}

fn both(set: PrbSet) -> [PrbSet; 2] {
    [set, set]
}

/// Number of bits in a type 1 map.
///
/// Source: TS 36.213 §7.1.6.2
pub fn subset_map_bits(prbs: u16) -> u32 {
    u32::from(lte::rbg_count(prbs)).saturating_sub(subset_bits(prbs) + 1)
}

/// Number of bits for the subset of a type 1 allocation.
///
/// Source: TS 36.213 §7.1.6.2
pub fn subset_bits(prbs: u16) -> u32 {
    u32::from(lte::rbg_size(prbs)).next_power_of_two().trailing_zeros()
}

/// Number of PRBs in subset `subset`.
///
/// Source: TS 36.213 §7.1.6.2
fn subset_len(prbs: u16, subset: u16) -> u16 {
    let p = lte::rbg_size(prbs);
    let last = prbs - 1;
    let whole = last / (p * p) * p;
    match subset.cmp(&(last / p % p)) {
        std::cmp::Ordering::Less => whole + p,
        std::cmp::Ordering::Equal => whole + last % p + 1,
        std::cmp::Ordering::Greater => whole,
    }
}

/// Source: TS 36.213 §7.1.6.2
fn subset_prbs(prbs: u16, subset: u8, shift: bool, map: u32) -> PrbSet {
    let p = lte::rbg_size(prbs);
    let subset = u16::from(subset) % p;
    let bits = subset_map_bits(prbs) as u16;
    let shifted = if shift { subset_len(prbs, subset).saturating_sub(bits) } else { 0 };
    let chosen = (0..bits).filter(|bit| map >> (bits - 1 - bit) & 1 == 1);
    chosen.fold(PrbSet::EMPTY, |set, bit| {
        let i = bit + shifted;
        set.union(PrbSet::run(i / p * p * p + subset * p + i % p, 1))
    })
}

/// Number of bits of a resource indication value (RIV) for runs among `blocks` blocks.
///
/// Source: TS 36.212 §5.3.3.1.3
pub fn riv_bits(blocks: u16) -> u32 {
    let values = u32::from(blocks) * (u32::from(blocks) + 1) / 2;
    values.next_power_of_two().trailing_zeros()
}

/// RIV of a run among `blocks` blocks. `len` must be at least 1, and the run must lie within the blocks.
///
/// Source: TS 36.213 §7.1.6.3
pub fn riv(blocks: u16, start: u16, len: u16) -> u32 {
    let (n, start, len) = (u32::from(blocks), u32::from(start), u32::from(len));
    if len.saturating_sub(1) <= n / 2 {
        n * len.saturating_sub(1) + start
    } else {
        n * (n - len.min(n) + 1) + (n - 1).saturating_sub(start)
    }
}

/// Start and length of the run with this RIV; `None` if no run has this value.
///
/// Source: TS 36.213 §7.1.6.3
pub fn run_of_riv(blocks: u16, value: u32) -> Option<(u16, u16)> {
    let n = u32::from(blocks);
    let (row, column) = (value / n, value % n);
    let (start, len) =
        if row + column < n { (column, row + 1) } else { (n - 1 - column, (n + 1).checked_sub(row)?) };
    let (start, len) = (start as u16, len as u16);
    let is_run = len > 0 && start + len <= blocks && riv(blocks, start, len) == value;
    is_run.then_some((start, len))
}

/// Gap between the two PRBs of a distributed virtual block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gap {
    /// N_gap,1: about half of the carrier.
    First,
    /// N_gap,2: about a quarter of the carrier; only on carriers with at least 50 PRB pairs.
    Second,
}

impl Gap {
    /// Whether a carrier of `prbs` PRB pairs has this gap.
    pub const fn exists(self, prbs: u16) -> bool {
        matches!(self, Gap::First) || prbs >= 50
    }

    /// The gap in PRBs. On a carrier with only one gap, both variants of [`Gap`] return this gap.
    ///
    /// Source: TS 36.211 §6.2.3.2 Table 6.2.3.2-1
    pub const fn prbs(self, prbs: u16) -> u16 {
        match (prbs, self) {
            (0..=10, _) => prbs.div_ceil(2),
            (11, _) => 4,
            (12..=19, _) => 8,
            (20..=26, _) => 12,
            (27..=44, _) => 18,
            (45..=49, _) => 27,
            (50..=63, Gap::First) => 27,
            (50..=63, Gap::Second) => 9,
            (64..=79, Gap::First) => 32,
            (64..=79, Gap::Second) => 16,
            (_, Gap::First) => 48,
            (_, Gap::Second) => 16,
        }
    }

    /// Number of virtual resource blocks on a carrier.
    ///
    /// Source: TS 36.211 §6.2.3.2
    pub const fn virtual_blocks(self, prbs: u16) -> u16 {
        let gap = self.prbs(prbs);
        match self {
            Gap::Second if self.exists(prbs) => prbs / (2 * gap) * 2 * gap,
            _ => {
                let rest = prbs.saturating_sub(gap);
                2 * if gap < rest { gap } else { rest }
            }
        }
    }

    /// Number of virtual blocks in an interleaver unit.
    ///
    /// Source: TS 36.211 §6.2.3.2
    const fn unit(self, prbs: u16) -> u16 {
        match self {
            Gap::Second if self.exists(prbs) => 2 * self.prbs(prbs),
            _ => self.virtual_blocks(prbs),
        }
    }

    /// PRB of virtual block `block` in slot 0 or 1 of a subframe.
    ///
    /// Source: TS 36.211 §6.2.3.2
    pub fn physical_block(self, prbs: u16, block: u16, slot: usize) -> u16 {
        let unit = self.unit(prbs).max(1);
        let group = lte::rbg_size(prbs);
        let rows = unit.div_ceil(4 * group) * group;
        let nulls = 4 * rows - unit;
        let (n, base) = (block % unit, block / unit * unit);
        // The interleaver is written row by row into four columns and read column by column. The second and fourth
        // columns end with nulls.
        let by_two = 2 * rows * (n % 2) + n / 2;
        let by_four = rows * (n % 4) + n / 4;
        let even_slot = if nulls != 0 && n >= unit - nulls {
            by_two + if n % 2 == 1 { 0 } else { nulls / 2 } - rows
        } else if nulls != 0 && n % 4 >= 2 {
            by_four - nulls / 2
        } else {
            by_four
        };
        let within = if slot == 0 { even_slot } else { (even_slot + unit / 2) % unit };
        let scattered = base + within;
        if within < unit / 2 { scattered } else { scattered + self.prbs(prbs) - unit / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CARRIERS: [u16; 6] = [6, 15, 25, 50, 75, 100];

    #[test]
    fn every_run_has_its_own_value_and_no_other_value_is_one() {
        for blocks in CARRIERS {
            let mut runs = 0;
            for value in 0..1 << riv_bits(blocks) {
                if let Some((start, len)) = run_of_riv(blocks, value) {
                    assert_eq!(riv(blocks, start, len), value);
                    runs += 1;
                }
            }
            assert_eq!(runs, u32::from(blocks) * (u32::from(blocks) + 1) / 2);
        }
    }

    #[test]
    fn virtual_blocks_scatter_over_the_carrier_without_collision() {
        for prbs in 6..=110 {
            for gap in [Gap::First, Gap::Second].into_iter().filter(|gap| gap.exists(prbs)) {
                for slot in [0, 1] {
                    let blocks = gap.virtual_blocks(prbs);
                    let set = (0..blocks).fold(PrbSet::EMPTY, |set, block| {
                        let at = gap.physical_block(prbs, block, slot);
                        assert!(at < prbs, "{prbs} PRBs, {gap:?}: block {block} in slot {slot} is at {at}");
                        set.union(PrbSet::run(at, 1))
                    });
                    assert_eq!(set.len(), blocks, "{prbs} PRBs, {gap:?}, slot {slot}");
                }
            }
        }
    }

    #[test]
    fn the_second_gap_counts_whole_double_gaps() {
        assert_eq!(Gap::Second.virtual_blocks(50), 36);
        assert_eq!(Gap::Second.virtual_blocks(75), 64);
        assert_eq!(Gap::Second.virtual_blocks(100), 96);
        assert_eq!(Gap::First.virtual_blocks(50), 46);
        assert_eq!(Gap::First.virtual_blocks(100), 96);
    }

    #[test]
    fn subsets_of_type_1_part_the_carrier() {
        for prbs in CARRIERS.into_iter().filter(|&prbs| prbs > 10) {
            let p = lte::rbg_size(prbs);
            let total: u16 = (0..p).map(|subset| subset_len(prbs, subset)).sum();
            assert_eq!(total, prbs);
            let all = (1 << subset_map_bits(prbs)) - 1;
            let mut union = PrbSet::EMPTY;
            for subset in 0..p {
                let halves = [false, true].map(|shift| subset_prbs(prbs, subset as u8, shift, all));
                assert!(halves.iter().all(|half| u32::from(half.len()) == subset_map_bits(prbs)));
                union = union.union(halves[0]).union(halves[1]);
            }
            assert_eq!(union, PrbSet::run(0, prbs), "with and without shift every PRB can be named");
        }
    }

    proptest! {
        #[test]
        fn no_allocation_leaves_the_carrier(
            carrier in prop::sample::select(CARRIERS.to_vec()),
            map in any::<u32>(), subset in any::<u8>(), shift in any::<bool>(),
        ) {
            for allocation in [Allocation::Groups { map }, Allocation::Subset { subset, shift, map }] {
                for set in allocation.prbs(carrier) {
                    prop_assert!(set.without(PrbSet::run(0, carrier)).is_empty());
                }
            }
        }
    }
}
