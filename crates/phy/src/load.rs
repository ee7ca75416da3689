//! Load of a subframe: what its messages occupy and grant.

use std::collections::{BTreeMap, BTreeSet};

use airpace_core::Direction;
use airpace_radio::{PrbSet, Rnti};

use crate::decoder::Reading;

/// Number of PRB pairs of a subframe that its downlink messages grant. A PRB in one slot is half a pair.
///
/// Distributed grants have other PRBs in the second slot, but the same number of them. So the result is consistent with
/// [`RadioReport::idle_prbs`](airpace_radio::RadioReport::idle_prbs), which counts the first slot.
pub fn used_prbs(reading: &Reading) -> u16 {
    let downlink = reading.found.iter().filter(|found| found.direction() == Some(Direction::Downlink));
    pairs(downlink.filter_map(|found| found.prbs))
}

/// Number of PRB pairs that are granted in both slots. A remaining half counts as a whole pair.
fn pairs(granted: impl Iterator<Item = [PrbSet; 2]>) -> u16 {
    let [first, second] = granted
        .fold([PrbSet::EMPTY; 2], |used, prbs| std::array::from_fn(|slot| used[slot].union(prbs[slot])));
    (first.len() + second.len()).div_ceil(2)
}

/// Load of a subframe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Number of CCEs that the subframe's messages occupy.
    pub cces_used: u16,
    /// Number of CCEs that may contain unread messages.
    pub cces_unread: u16,
    /// Number of downlink grants.
    pub downlink: u16,
    /// Number of uplink grants.
    pub uplink: u16,
    /// Number of granted downlink PRB pairs.
    pub prbs_used: u16,
    /// Number of downlink PRB pairs that are not granted; `None` if messages may be unread.
    pub prbs_idle: Option<u16>,
    /// Number of users with a grant.
    pub users: u16,
}

impl Load {
    /// Computes the load of a completed subframe.
    pub fn of(reading: &Reading) -> Load {
        let of = |way| reading.found.iter().filter(|found| found.direction() == Some(way)).count() as u16;
        let granted = reading.found.iter().filter(|found| found.dci.is_some());
        let prbs_used = used_prbs(reading);
        let unread = reading.unread();
        Load {
            cces_used: reading.found.iter().map(|found| u16::from(found.place.cces)).sum(),
            cces_unread: unread.len() as u16,
            downlink: of(Direction::Downlink),
            uplink: of(Direction::Uplink),
            prbs_used,
            prbs_idle: unread.is_empty().then(|| reading.prbs.saturating_sub(prbs_used)),
            users: granted.map(|found| found.rnti).collect::<BTreeSet<Rnti>>().len() as u16,
        }
    }
}

/// Number of messages of a subframe per format.
pub fn formats(reading: &Reading) -> BTreeMap<&'static str, u64> {
    let mut formats = BTreeMap::new();
    for found in &reading.found {
        *formats.entry(found.format()).or_default() += 1;
    }
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prbs_of_one_slot_are_half_of_a_pair() {
        let run = PrbSet::run(0, 4);
        let distributed =
            [PrbSet::run(6, 1).union(PrbSet::run(18, 1)), PrbSet::run(12, 1).union(PrbSet::run(23, 1))];
        assert_eq!(pairs([[run, run]].into_iter()), 4);
        assert_eq!(pairs([distributed].into_iter()), 2, "two blocks, each half here and half there");
        assert_eq!(pairs([[run, run], distributed].into_iter()), 6);
        assert_eq!(pairs([[run, run], [run, run]].into_iter()), 4, "what two users share counts once");
        assert_eq!(pairs(std::iter::empty()), 0);
    }
}
