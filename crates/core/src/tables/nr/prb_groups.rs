//! Groups of resource blocks in a bandwidth part: RBGs of resource allocation type 0, and sub-bands of CQI.

use std::ops::Range;

/// Maximum number of resource blocks of a bandwidth part.
///
/// Source: TS 38.211 §4.4.2 Table 4.4.2-1
const MAX_BWP_PRBS: u16 = 275;

/// Configuration of the RBG size (`rbg-Size`).
///
/// Source: TS 38.214 §5.1.2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RbgConfig {
    /// Configuration 1: small RBGs.
    One,
    /// Configuration 2: large RBGs.
    Two,
}

/// Nominal RBG size P (PRBs) in a bandwidth part of `bwp_prbs` PRBs, 1…275; `None` for other sizes.
///
/// Source: TS 38.214 §5.1.2.2.1 Table 5.1.2.2.1-1 (§6.1.2.2.1 Table 6.1.2.2.1-1 is equal)
pub const fn rbg_size(bwp_prbs: u16, config: RbgConfig) -> Option<u16> {
    let [small, large] = match bwp_prbs {
        1..=36 => [2, 4],
        37..=72 => [4, 8],
        73..=144 => [8, 16],
        145..=MAX_BWP_PRBS => [16, 16],
        _ => return None,
    };
    Some(match config {
        RbgConfig::One => small,
        RbgConfig::Two => large,
    })
}

/// The two sub-band sizes (PRBs) that can be configured for CQI in a bandwidth part of `bwp_prbs` PRBs, 24…275; `None`
/// for smaller bandwidth parts, which have no sub-bands, and above 275.
///
/// Source: TS 38.214 §5.2.1.4 Table 5.2.1.4-2
pub const fn subband_sizes(bwp_prbs: u16) -> Option<[u16; 2]> {
    match bwp_prbs {
        24..=72 => Some([4, 8]),
        73..=144 => Some([8, 16]),
        145..=MAX_BWP_PRBS => Some([16, 32]),
        _ => None,
    }
}

/// Division of a bandwidth part into groups of PRBs. The edges of the groups are multiples of the nominal group size in
/// common resource blocks, so the first and the last group may be smaller.
///
/// Source: TS 38.214 §5.1.2.2.1 (RBGs); TS 38.214 §5.2.1.4 (sub-bands)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrbGroups {
    /// Number of PRBs by which the first group is shorter than the nominal size.
    missing: u16,
    /// Number of PRBs of the bandwidth part.
    prbs: u16,
    /// Nominal group size (PRBs).
    size: u16,
}

impl PrbGroups {
    /// The RBGs of a bandwidth part of `prbs` PRBs (1…275) that starts at common resource block `start`; `None` for
    /// other sizes.
    ///
    /// Source: TS 38.214 §5.1.2.2.1
    pub const fn rbgs(start: u16, prbs: u16, config: RbgConfig) -> Option<PrbGroups> {
        match rbg_size(prbs, config) {
            Some(size) => PrbGroups::of_size(start, prbs, size),
            None => None,
        }
    }

    /// Groups of `size` PRBs in a bandwidth part of `prbs` PRBs (1…275) that starts at common resource block `start`;
    /// `None` for other sizes of bandwidth parts and if `size` is zero. [`subband_sizes`] returns the sizes of
    /// sub-bands.
    ///
    /// Source: TS 38.214 §5.2.1.4
    pub const fn of_size(start: u16, prbs: u16, size: u16) -> Option<PrbGroups> {
        if prbs == 0 || prbs > MAX_BWP_PRBS || size == 0 {
            return None;
        }
        Some(PrbGroups { missing: start % size, prbs, size })
    }

    /// Nominal group size (PRBs).
    pub const fn size(self) -> u16 {
        self.size
    }

    /// Number of groups.
    ///
    /// Source: TS 38.214 §5.1.2.2.1 (N_RBG)
    pub fn count(self) -> u16 {
        (u32::from(self.prbs) + u32::from(self.missing)).div_ceil(u32::from(self.size)) as u16
    }

    /// The PRBs of group `index`, counted from the first PRB of the bandwidth part; `None` if there is no such group.
    ///
    /// Source: TS 38.214 §5.1.2.2.1
    pub fn prbs(self, index: u16) -> Option<Range<u16>> {
        if index >= self.count() {
            return None;
        }
        let edge = |group: u32| {
            let prb = (group * u32::from(self.size)).saturating_sub(u32::from(self.missing));
            prb.min(u32::from(self.prbs)) as u16
        };
        Some(edge(u32::from(index))..edge(u32::from(index) + 1))
    }

    /// The group that contains `prb`, counted from the first PRB of the bandwidth part; `None` outside the bandwidth
    /// part.
    pub fn group_of(self, prb: u16) -> Option<u16> {
        let offset = u32::from(prb) + u32::from(self.missing);
        (prb < self.prbs).then_some((offset / u32::from(self.size)) as u16)
    }

    /// The PRBs of all groups in order.
    pub fn iter(self) -> impl Iterator<Item = Range<u16>> {
        (0..self.count()).filter_map(move |index| self.prbs(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rbg_sizes_are_those_of_the_specification() {
        let sizes = |prbs| [rbg_size(prbs, RbgConfig::One), rbg_size(prbs, RbgConfig::Two)];
        for (prbs, small, large) in [
            (1, 2, 4),
            (36, 2, 4),
            (37, 4, 8),
            (72, 4, 8),
            (73, 8, 16),
            (144, 8, 16),
            (145, 16, 16),
            (275, 16, 16),
        ] {
            assert_eq!(sizes(prbs), [Some(small), Some(large)], "{prbs} PRBs");
        }
        assert_eq!((sizes(0), sizes(276)), ([None; 2], [None; 2]));
    }

    #[test]
    fn subband_sizes_are_those_of_the_specification() {
        let sizes = [23, 24, 72, 73, 144, 145, 275, 276].map(subband_sizes);
        let [none, small, middle, large] = [None, Some([4, 8]), Some([8, 16]), Some([16, 32])];
        assert_eq!(sizes, [none, small, small, middle, middle, large, large, none]);
    }

    #[test]
    fn the_first_and_the_last_rbg_may_be_smaller() {
        let groups = |start, prbs, config| {
            let rbgs = PrbGroups::rbgs(start, prbs, config).unwrap();
            rbgs.iter().map(|prbs| prbs.len()).collect::<Vec<_>>()
        };
        let hundred_mhz = groups(0, 273, RbgConfig::One);
        assert_eq!((hundred_mhz.len(), hundred_mhz[0], hundred_mhz[17]), (18, 16, 1));
        assert_eq!(groups(3, 24, RbgConfig::Two), [1, 4, 4, 4, 4, 4, 3], "a start that is no multiple of 4");
        assert_eq!(groups(1, 1, RbgConfig::One), [1], "a bandwidth part within one RBG");
        assert_eq!(groups(1, 2, RbgConfig::One), [1, 1]);
    }

    /// First, inner and last sizes as the specification prints them.
    fn printed_sizes(start: u16, prbs: u16, size: u16) -> Vec<u16> {
        let count = (prbs + start % size).div_ceil(size);
        let first = size - start % size;
        let last = match (start + prbs) % size {
            0 => size,
            rest => rest,
        };
        match count {
            1 => vec![prbs],
            _ => [vec![first], vec![size; usize::from(count) - 2], vec![last]].concat(),
        }
    }

    #[test]
    fn rbgs_cover_every_prb_once_for_every_size_and_start() {
        for config in [RbgConfig::One, RbgConfig::Two] {
            for prbs in 1..=275 {
                for start in 0..=32 {
                    let rbgs = PrbGroups::rbgs(start, prbs, config).unwrap();
                    let covered: Vec<u16> = rbgs.iter().flatten().collect();
                    assert!(covered.iter().copied().eq(0..prbs), "{prbs} PRBs from {start}, {config:?}");
                    let sizes: Vec<u16> = rbgs.iter().map(|group| group.len() as u16).collect();
                    assert_eq!(sizes, printed_sizes(start, prbs, rbgs.size()), "{prbs} PRBs from {start}");
                    assert!(rbgs.count() <= 19, "a mask of 32 bits is enough");
                    for index in 0..rbgs.count() {
                        let group = rbgs.prbs(index).unwrap();
                        assert!(group.into_iter().all(|prb| rbgs.group_of(prb) == Some(index)));
                    }
                    assert_eq!((rbgs.prbs(rbgs.count()), rbgs.group_of(prbs)), (None, None));
                }
            }
        }
    }

    #[test]
    fn values_outside_of_the_tables_have_no_groups() {
        assert_eq!(PrbGroups::rbgs(0, 0, RbgConfig::One), None);
        assert_eq!(PrbGroups::rbgs(0, 276, RbgConfig::One), None);
        assert_eq!(PrbGroups::of_size(0, 24, 0), None);
        let far = PrbGroups::of_size(u16::MAX, 275, u16::MAX - 1).unwrap();
        assert_eq!(far.iter().flatten().count(), 275, "large starts and sizes do not overflow");
    }
}
