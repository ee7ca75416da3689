//! Sets of PRB pairs.

use airpace_core::tables::lte;

/// A set of PRB pairs of one carrier, with the capacity of NR's widest carrier.
///
/// Source: TS 38.101-1 §5.3.2 Table 5.3.2-1 (273 PRBs at most); TS 38.211 §4.4.2 Table 4.4.2-1 (N^max = 275)
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PrbSet([u64; WORDS]);

const WORDS: usize = 5;

impl PrbSet {
    /// Capacity of a set: a set can contain the PRBs from 0 up to, but not including, this number.
    pub const CAPACITY: u16 = 275;

    /// The empty set.
    pub const EMPTY: PrbSet = PrbSet([0; WORDS]);

    /// The set of the `len` PRBs starting at `start`; `None` if the last PRB is beyond [`PrbSet::CAPACITY`]. Use this
    /// function for numbers from outside the program: from a message, a log or a line of text.
    #[inline]
    pub const fn checked_run(start: u16, len: u16) -> Option<PrbSet> {
        match start.checked_add(len) {
            Some(end) if end <= PrbSet::CAPACITY => Some(PrbSet::of_words(start, end)),
            _ => None,
        }
    }

    /// The set of the `len` PRBs starting at `start`.
    ///
    /// # Panics
    /// Panics if the last PRB is beyond [`PrbSet::CAPACITY`], which is an error of the caller. [`PrbSet::checked_run`]
    /// accepts any numbers.
    #[inline]
    pub const fn run(start: u16, len: u16) -> PrbSet {
        match PrbSet::checked_run(start, len) {
            Some(set) => set,
            None => panic!("a carrier has at most 275 PRBs"),
        }
    }

    /// The set of the PRB pairs of resource block group `index`, on an LTE carrier of `carrier_prbs` PRB pairs; empty
    /// beyond the last group.
    ///
    /// Source: TS 36.213 §7.1.6.1
    #[inline]
    pub const fn of_rbg(carrier_prbs: u16, index: u16) -> PrbSet {
        let (start, len) = lte::rbg(carrier_prbs, index);
        PrbSet::run(start, len)
    }

    #[inline]
    const fn of_words(start: u16, end: u16) -> PrbSet {
        let mut words = [0; WORDS];
        let mut at = start as usize / 64;
        while 64 * at < end as usize {
            let base = 64 * at as u16;
            words[at] = below(end - base) & !below(start.saturating_sub(base));
            at += 1;
        }
        PrbSet(words)
    }

    /// Number of PRBs in the set.
    #[inline]
    pub const fn len(self) -> u16 {
        let PrbSet([a, b, c, d, e]) = self;
        let low = a.count_ones() + b.count_ones();
        // Some processors have no instruction that counts bits, and the set of an LTE carrier needs only the first two
        // words.
        if c | d | e == 0 {
            return low as u16;
        }
        (low + c.count_ones() + d.count_ones() + e.count_ones()) as u16
    }

    /// Whether the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        let PrbSet([a, b, c, d, e]) = self;
        a | b | c | d | e == 0
    }

    /// Whether the set contains PRB `index`.
    #[inline]
    pub const fn contains(self, index: u16) -> bool {
        index < PrbSet::CAPACITY && self.0[index as usize / 64] >> (index % 64) & 1 == 1
    }

    /// The highest PRB of the set plus one; 0 for an empty set. The result is the minimum width (PRB pairs) of a
    /// carrier that contains the set.
    #[inline]
    pub const fn end(self) -> u16 {
        let mut at = WORDS;
        while at > 0 {
            at -= 1;
            if self.0[at] != 0 {
                return 64 * (at as u16 + 1) - self.0[at].leading_zeros() as u16;
            }
        }
        0
    }

    /// PRBs that are in this set, in `other` or in both.
    #[inline]
    pub const fn union(self, other: PrbSet) -> PrbSet {
        let (PrbSet([a, b, c, d, e]), PrbSet([f, g, h, i, j])) = (self, other);
        PrbSet([a | f, b | g, c | h, d | i, e | j])
    }

    /// PRBs that are both in this set and in `other`.
    #[inline]
    pub const fn intersection(self, other: PrbSet) -> PrbSet {
        let (PrbSet([a, b, c, d, e]), PrbSet([f, g, h, i, j])) = (self, other);
        PrbSet([a & f, b & g, c & h, d & i, e & j])
    }

    /// PRBs of this set that are not in `other`.
    #[inline]
    pub const fn without(self, other: PrbSet) -> PrbSet {
        let (PrbSet([a, b, c, d, e]), PrbSet([f, g, h, i, j])) = (self, other);
        PrbSet([a & !f, b & !g, c & !h, d & !i, e & !j])
    }

    /// The maximal runs of adjacent PRBs, as (start, length), lowest first.
    #[inline]
    pub fn runs(self) -> impl Iterator<Item = (u16, u16)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = self.next(from, true)?;
            let end = self.next(start, false).unwrap_or(64 * WORDS as u16);
            from = end;
            Some((start, end - start))
        })
    }

    /// The lowest PRB, starting at `from`, that is in the set (`is_in`) or not in the set (not `is_in`).
    #[inline]
    fn next(self, from: u16, is_in: bool) -> Option<u16> {
        let first = usize::from(from / 64);
        (first..WORDS).find_map(|at| {
            let word = if is_in { self.0[at] } else { !self.0[at] };
            let word = if at == first { word & !below(from % 64) } else { word };
            (word != 0).then(|| 64 * at as u16 + word.trailing_zeros() as u16)
        })
    }
}

/// A word with the lowest `count` bits set; all bits if `count` is 64 or more.
#[inline]
const fn below(count: u16) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

impl std::fmt::Debug for PrbSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.runs()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_set_of_prbs_counts_and_splits_into_runs() {
        let set = PrbSet::run(0, 4).union(PrbSet::run(8, 2));
        assert_eq!(set.len(), 6);
        assert_eq!(set.runs().collect::<Vec<_>>(), [(0, 4), (8, 2)]);
        assert!(set.contains(9) && !set.contains(4));
        assert_eq!(set.without(PrbSet::run(0, 4)), PrbSet::run(8, 2));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(PrbSet::checked_run(0, 275).map(PrbSet::len), Some(275));
        assert_eq!(PrbSet::checked_run(274, 1).map(PrbSet::end), Some(275));
        for (start, len) in [(0, 276), (275, 1), (274, 2), (u16::MAX, 1), (1, u16::MAX)] {
            assert_eq!(PrbSet::checked_run(start, len), None, "{start} + {len}");
        }
        assert_eq!(PrbSet::checked_run(275, 0), Some(PrbSet::EMPTY));
    }

    proptest! {
        /// Compares the set with a plain list of booleans.
        #[test]
        fn sets_do_what_lists_do(pairs in prop::collection::vec((0_u16..275, 0_u16..80), 0..8), cut in 0_u16..275) {
            let mut set = PrbSet::EMPTY;
            let mut list = [false; 275];
            for (start, len) in pairs {
                let len = len.min(275 - start);
                set = set.union(PrbSet::run(start, len));
                list[usize::from(start)..usize::from(start + len)].fill(true);
            }
            let count = |list: &[bool]| list.iter().filter(|is_in| **is_in).count() as u16;
            prop_assert_eq!(set.len(), count(&list));
            prop_assert_eq!(set.is_empty(), count(&list) == 0);
            prop_assert_eq!(usize::from(set.end()), list.iter().rposition(|is_in| *is_in).map_or(0, |last| last + 1));
            prop_assert!((0..300).all(|prb| set.contains(prb) == list.get(usize::from(prb)).is_some_and(|is_in| *is_in)));
            let low = PrbSet::run(0, cut);
            prop_assert_eq!(set.intersection(low).len(), count(&list[..usize::from(cut)]));
            prop_assert_eq!(set.without(low).len(), count(&list[usize::from(cut)..]));
            let runs: Vec<_> = set.runs().collect();
            prop_assert!(runs.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0), "apart and in order: {:?}", runs);
            let again = runs.iter().map(|&(start, len)| PrbSet::run(start, len)).fold(PrbSet::EMPTY, PrbSet::union);
            prop_assert_eq!(again, set);
        }
    }
}
