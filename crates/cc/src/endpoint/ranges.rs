//! A set of at most eight intervals of packet numbers, stored without memory allocation.

/// Up to [`Ranges::CAPACITY`] intervals `(lowest, highest)` of packet numbers, both ends included, newest first.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Ranges {
    len: u8,
    ranges: [(u64, u64); Ranges::CAPACITY],
}

impl Ranges {
    /// Maximum number of intervals.
    pub const CAPACITY: usize = 8;

    /// An empty set of intervals.
    pub const EMPTY: Ranges = Ranges { len: 0, ranges: [(0, 0); Ranges::CAPACITY] };

    /// Adds an interval below all intervals in the set. Returns whether there was space for it.
    pub fn push(&mut self, lowest: u64, highest: u64) -> bool {
        let Some(slot) = self.ranges.get_mut(usize::from(self.len)) else { return false };
        *slot = (lowest, highest);
        self.len += 1;
        true
    }

    /// The intervals, newest first.
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.ranges[..usize::from(self.len)]
    }

    /// Whether the set has at least one interval, no interval is reversed, and there is a gap between every two
    /// adjacent intervals.
    pub fn is_well_formed(&self) -> bool {
        let ranges = self.as_slice();
        !ranges.is_empty()
            && ranges.iter().all(|(lowest, highest)| lowest <= highest)
            && ranges.windows(2).all(|pair| pair[1].1.saturating_add(1) < pair[0].0)
    }

    /// Calls `visit(lowest, highest)` in ascending order, for every interval of numbers that are in `self` but not in
    /// `known`. Both sets must be well formed.
    pub(super) fn each_beyond(&self, known: &Ranges, mut visit: impl FnMut(u64, u64)) {
        let mut known = known.as_slice().iter().rev().copied().peekable();
        for &(lowest, highest) in self.as_slice().iter().rev() {
            let mut from = lowest;
            while let Some(&(known_lowest, known_highest)) = known.peek() {
                if known_lowest > highest {
                    break;
                }
                if known_highest >= from {
                    if known_lowest > from {
                        visit(from, known_lowest - 1);
                    }
                    from = known_highest.saturating_add(1);
                }
                if known_highest > highest {
                    break;
                }
                known.next();
            }
            if from <= highest {
                visit(from, highest);
            }
        }
    }
}

impl std::fmt::Debug for Ranges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The newest intervals of a set of numbers.
    fn ranges_of(numbers: &BTreeSet<u64>) -> Ranges {
        let mut ranges = Ranges::EMPTY;
        let mut rest: Vec<u64> = numbers.iter().copied().collect();
        while let Some(highest) = rest.pop() {
            let mut lowest = highest;
            while rest.last() == Some(&(lowest.wrapping_sub(1))) {
                lowest = rest.pop().unwrap();
            }
            if !ranges.push(lowest, highest) {
                break;
            }
        }
        ranges
    }

    fn numbers_of(ranges: &Ranges) -> BTreeSet<u64> {
        ranges.as_slice().iter().flat_map(|&(lowest, highest)| lowest..=highest).collect()
    }

    proptest! {
        #[test]
        fn what_is_beyond_the_known_is_the_difference_of_sets_in_rising_order(
            new in prop::collection::btree_set(0u64..60, 1..40),
            known in prop::collection::btree_set(0u64..60, 0..40),
        ) {
            let (new, known) = (ranges_of(&new), ranges_of(&known));
            prop_assert!(new.is_well_formed());
            let mut seen = vec![];
            new.each_beyond(&known, |lowest, highest| seen.extend(lowest..=highest));
            let expected: Vec<u64> = numbers_of(&new).difference(&numbers_of(&known)).copied().collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
