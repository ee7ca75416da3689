//! Merges the reports of several sources: one grant for each subframe, carrier and direction, from the most detailed
//! source.

use std::collections::BTreeMap;

use airpace_core::Direction;

use super::Grant;

/// Holds the grants of each subframe of one radio access technology until all sources have reported, and keeps the most
/// detailed grant. LTE and NR number their subframes and carriers independently, so that each needs a merge of its own.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    slots: BTreeMap<Slot, Grant>,
    /// First subframe whose grants have not been returned yet.
    done: u64,
    late: u64,
}

/// Key of a grant: subframe, slot, carrier, direction. A device has one grant per key.
type Slot = (u64, u8, u8, Direction);

/// Result of [`Merge::push`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The grant is the first grant of its subframe.
    First,
    /// The grant is more detailed than the stored grant, and replaces it.
    Better,
    /// The stored grant is at least as detailed.
    Known,
    /// The grants of this subframe have already been returned.
    Late,
}

impl Merge {
    /// A merge without any grants.
    pub fn new() -> Merge {
        Merge::default()
    }

    /// Number of grants that were lost because they arrived after their subframe's grants were returned.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Takes a grant.
    pub fn push(&mut self, grant: &Grant) -> Merged {
        if grant.subframe < self.done {
            self.late += 1;
            return Merged::Late;
        }
        let slot = (grant.subframe, grant.slot, grant.carrier.0, grant.direction);
        match self.slots.get_mut(&slot) {
            None => {
                self.slots.insert(slot, *grant);
                Merged::First
            }
            Some(before) if before.source < grant.source => {
                let (prb_set, format) = (before.prb_set, before.format);
                *before = *grant;
                // The report of a grant's result may lack the DCI's PRBs and format, so keep the values of the earlier
                // report.
                before.prb_set = before.prb_set.or(prb_set.filter(|set| set.len() == grant.prbs));
                before.format = before.format.or(format);
                Merged::Better
            }
            Some(before) => {
                before.prb_set = before.prb_set.or(grant.prb_set.filter(|set| set.len() == before.prbs));
                before.format = before.format.or(grant.format);
                Merged::Known
            }
        }
    }

    /// Returns the grants of all subframes before `before`, in order.
    pub fn take(&mut self, before: u64) -> impl Iterator<Item = Grant> + use<> {
        self.done = self.done.max(before);
        let rest = self.slots.split_off(&(before, 0, 0, Direction::Downlink));
        std::mem::replace(&mut self.slots, rest).into_values()
    }
}
