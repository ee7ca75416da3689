//! Sets of byte offsets, stored as intervals.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of byte offsets, stored as intervals that are not empty and do not touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// The exclusive end of each interval, keyed by its start.
    ends: BTreeMap<u64, u64>,
    count: u64,
}

impl Spans {
    /// The interval with the lowest offsets; `None` if the set is empty.
    pub(super) fn first(&self) -> Option<Range<u64>> {
        self.ends.first_key_value().map(|(&start, &end)| start..end)
    }

    /// Number of offsets in the set.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds all offsets of `range`.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Every interval that overlaps or touches the new interval is merged with it, from the highest to the lowest.
        while let Some((&other_start, &other_end)) = self.ends.range(..=end).next_back()
            && other_end >= start
        {
            self.ends.remove(&other_start);
            self.count -= other_end - other_start;
            start = start.min(other_start);
            end = end.max(other_end);
        }
        self.ends.insert(start, end);
        self.count += end - start;
    }

    /// Removes all offsets of `range`.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.ends.range(..range.end).next_back()
            && end > range.start
        {
            self.ends.remove(&start);
            self.count -= end.min(range.end) - start.max(range.start);
            if end > range.end {
                self.ends.insert(range.end, end);
            }
            if start < range.start {
                self.ends.insert(start, range.start);
            }
        }
    }

    /// Removes the offsets of `range` that `other` contains.
    pub(super) fn remove_all_of(&mut self, other: &Spans, range: Range<u64>) {
        for (&start, &end) in other.ends.range(..range.end).rev() {
            if end <= range.start {
                break;
            }
            self.remove(start.max(range.start)..end.min(range.end));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn offsets(spans: &Spans) -> BTreeSet<u64> {
        spans.ends.iter().flat_map(|(&start, &end)| start..end).collect()
    }

    fn ranges() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::vec((0u64..40, 0u64..12), 0..30)
    }

    fn of(ranges: &[(u64, u64)]) -> Spans {
        let mut spans = Spans::default();
        ranges.iter().for_each(|&(start, length)| spans.insert(start..start + length));
        spans
    }

    proptest! {
        #[test]
        fn intervals_behave_as_sets_do(
            steps in prop::collection::vec((any::<bool>(), 0u64..40, 0u64..12), 0..60),
        ) {
            let (mut spans, mut model) = (Spans::default(), BTreeSet::new());
            for (adds, start, length) in steps {
                let range = start..start + length;
                if adds {
                    spans.insert(range.clone());
                    model.extend(range);
                } else {
                    spans.remove(range.clone());
                    model.retain(|offset| !range.contains(offset));
                }
                prop_assert_eq!(offsets(&spans), model.clone());
                prop_assert_eq!(spans.count(), model.len() as u64);
                prop_assert_eq!(spans.first().map(|first| first.start), model.first().copied());
                let ends: Vec<(u64, u64)> = spans.ends.iter().map(|(&start, &end)| (start, end)).collect();
                prop_assert!(ends.iter().all(|(start, end)| start < end), "no interval is empty");
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].0), "no interval touches the next one");
            }
        }

        #[test]
        fn what_another_set_holds_of_a_range_is_taken_out(
            (these, those) in (ranges(), ranges()),
            (start, length) in (0u64..40, 0u64..30),
        ) {
            let (mut these, those) = (of(&these), of(&those));
            let range = start..start + length;
            let gone: BTreeSet<u64> = offsets(&those).into_iter().filter(|offset| range.contains(offset)).collect();
            let expected: BTreeSet<u64> = offsets(&these).difference(&gone).copied().collect();
            these.remove_all_of(&those, range);
            prop_assert_eq!(offsets(&these), expected);
        }
    }
}
