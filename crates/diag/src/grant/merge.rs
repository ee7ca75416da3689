//! One grant for each subframe, carrier and direction, from the source that knew most of it.

use std::collections::BTreeMap;

use airpace_core::Direction;

use super::Grant;

/// Waits for what several sources tell about the same subframes, and keeps the grant that knows most.
#[derive(Clone, Debug, Default)]
pub struct Merge {
    slots: BTreeMap<Slot, Grant>,
    /// Everything before has been given out.
    done: u64,
    late: u64,
}

/// The slot of a grant: one device has one grant in a slot of a carrier.
type Slot = (u64, u8, u8, Direction);

/// What [`Merge::push`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The grant is the first one of its subframe.
    First,
    /// The grant knows more than the one that was there.
    Better,
    /// The grant that was there knows as much.
    Known,
    /// The subframe has already been given out.
    Late,
}

impl Merge {
    /// A merge without any grants.
    pub fn new() -> Merge {
        Merge::default()
    }

    /// Grants that came too late, after their subframe was given out, and were lost.
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
                // The result of a grant tells less about its form than the grant itself.
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

    /// Gives out the grants of all subframes before this one, in order.
    pub fn take(&mut self, before: u64) -> impl Iterator<Item = Grant> + use<> {
        self.done = self.done.max(before);
        let rest = self.slots.split_off(&(before, 0, 0, Direction::Downlink));
        std::mem::replace(&mut self.slots, rest).into_values()
    }
}
