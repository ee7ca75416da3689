//! What each HARQ process holds. The grant of a block that is sent again gives no size, and does not always tell that
//! it is the same block.

use std::collections::{BTreeMap, VecDeque};

use airpace_core::tables::lte::McsTable;
use airpace_core::{Bits, Direction};
use airpace_radio::Rnti;

/// HARQ processes of FDD.
///
/// Source: TS 36.213 §7 and §8
pub const PROCESSES: u64 = 8;

/// Grants of a process that are remembered. Messages that waited for evidence are put in between.
///
/// Chosen: a process has a grant every 8 subframes at most, and messages wait for about 100.
const REMEMBERED: usize = 16;

/// If frame numbers go back by fewer subframes than this, the receiver repeated some samples: the cell and its
/// processes went on. If they go back further, or ahead, what processes hold is from another time or for other users.
///
/// Chosen: buffers hold some milliseconds. A recording that begins again, and another cell, leap by whole frames.
const REPEATED: i64 = 10;

/// A transport block as a grant names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Which way it goes.
    pub direction: Direction,
    /// Its process, 0…7.
    pub process: u8,
    /// First (0) or second (1) block.
    pub block: u8,
    /// New-data indicator.
    pub ndi: bool,
    /// Its MCS.
    pub mcs: u8,
    /// Its size by the grant alone, by the tables up to 64QAM and up to 256QAM; `None` where the MCS is reserved.
    pub sizes: [Option<Bits>; 2],
}

/// What the memory adds to a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The size; also for a reserved MCS, if the process was seen before.
    pub size: Option<Bits>,
    /// Whether the block was sent before.
    pub is_retransmission: bool,
}

/// The processes of all users of a cell.
#[derive(Clone, Debug, Default)]
pub struct HarqMemory {
    /// The last grants of each block of each process, in order.
    past_grants: BTreeMap<(Rnti, Direction, u8, u8), VecDeque<PastGrant>>,
    /// The first subframe after the last leap: nothing is sent again across it.
    since: u64,
}

/// What is remembered of a grant of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastGrant {
    /// Its new-data indicator.
    pub ndi: bool,
    /// The first transmission, if it was seen, by the tables up to 64QAM and up to 256QAM.
    pub first: [Option<First>; 2],
    /// Subframe of the grant.
    pub at: u64,
}

/// The first transmission of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    /// Its MCS.
    pub mcs: u8,
    /// Its size.
    pub size: Bits,
}

impl HarqMemory {
    /// The process of an uplink grant of a subframe (0…9) of frame `sfn`, by the cell's own count. Every eighth
    /// subframe has the same process, also across the wrap after 10,240 subframes, and whatever the receiver repeats or
    /// drops.
    ///
    /// Source: TS 36.213 §8
    pub fn uplink_process(sfn: u16, subframe: u8) -> u8 {
        ((10 * u64::from(sfn) + u64::from(subframe)) % PROCESSES) as u8
    }

    /// The cell's own numbers leapt by `by` subframes, forward or back, before subframe `index`.
    pub fn leap(&mut self, index: u64, by: i64) {
        if by <= -REPEATED || by > 0 {
            self.since = index;
        }
    }

    /// What a user's process held for a block (0 or 1) before subframe `index`, unless frame numbers leapt in between.
    pub fn past_grant(
        &self,
        rnti: Rnti,
        direction: Direction,
        process: u8,
        block: u8,
        index: u64,
    ) -> Option<&PastGrant> {
        let of_process = self.past_grants.get(&(rnti, direction, process, block))?;
        let before = of_process.iter().rev().find(|past| past.at < index)?;
        ((before.at < self.since) == (index < self.since)).then_some(before)
    }

    /// Takes a grant of subframe `index` and completes it by the MCS `table` of its user. A block is sent again if its
    /// MCS is reserved, or if neither the new-data indicator nor the size changed.
    ///
    /// Source: TS 36.321 §5.3.2.2 and §5.4.2.1; TS 36.213 §7.1.7.2, §8.6.2
    ///
    /// Differs: if the indicator did not toggle but the size changed, grants in between were not heard.
    pub fn grant(&mut self, rnti: Rnti, index: u64, granted: Granted, table: McsTable) -> Remembered {
        let Granted { direction, process, block, ndi, mcs, sizes } = granted;
        // What the process held before new data tells nothing, even if the first transmission of that data was missed.
        let before = self.past_grant(rnti, direction, process, block, index).filter(|past| past.ndi == ndi);
        let past_first = before.map_or([None; 2], |past| past.first);
        let first: [Option<First>; 2] = std::array::from_fn(|at| match sizes[at] {
            Some(size) => Some(First { mcs, size }),
            None => past_first[at],
        });
        let by = table as usize;
        let is_retransmission = match sizes[by] {
            None => true,
            Some(size) => past_first[by].is_some_and(|first| first.size == size),
        };
        let of_process = self.past_grants.entry((rnti, direction, process, block)).or_default();
        of_process.retain(|past| past.at != index);
        let place = of_process.partition_point(|past| past.at < index);
        of_process.insert(place, PastGrant { ndi, first, at: index });
        if of_process.len() > REMEMBERED {
            of_process.pop_front();
        }
        Remembered { size: first[by].map(|first| first.size), is_retransmission }
    }

    /// Forgets users for whom `is_here` is false.
    pub fn retain(&mut self, is_here: impl Fn(Rnti) -> bool) {
        self.past_grants.retain(|(rnti, ..), _| is_here(*rnti));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(ndi: bool, size: Option<u64>) -> Granted {
        let mcs = if size.is_some() { 10 } else { 30 };
        let sizes = [size.map(Bits), size.map(|size| Bits(2 * size))];
        Granted { direction: Direction::Downlink, process: 3, block: 0, ndi, mcs, sizes }
    }

    fn grant(memory: &mut HarqMemory, at: u64, ndi: bool, size: Option<u64>) -> (Option<u64>, bool) {
        let remembered = memory.grant(Rnti(100), at, granted(ndi, size), McsTable::Qam64);
        (remembered.size.map(|size| size.0), remembered.is_retransmission)
    }

    #[test]
    fn a_reserved_mcs_means_the_block_before() {
        let mut memory = HarqMemory::default();
        assert_eq!(grant(&mut memory, 0, true, None), (None, true));
        assert_eq!(grant(&mut memory, 8, false, Some(1000)), (Some(1000), false));
        assert_eq!(grant(&mut memory, 16, false, None), (Some(1000), true));
        assert_eq!(grant(&mut memory, 24, true, None), (None, true), "its first transmission was missed");
        let other = memory.grant(Rnti(101), 24, granted(true, Some(8)), McsTable::Qam64);
        assert!(!other.is_retransmission, "another user's");
    }

    #[test]
    fn the_indicator_tells_new_data_of_the_same_size_from_old() {
        let mut memory = HarqMemory::default();
        let again = [(0, true), (8, true), (16, false), (24, true)]
            .map(|(at, ndi)| grant(&mut memory, at, ndi, Some(500)).1);
        assert_eq!(again, [false, true, false, false]);
        assert_eq!(grant(&mut memory, 32, true, Some(700)), (Some(700), false), "a grant was missed");
    }

    #[test]
    fn late_messages_find_and_fill_their_place() {
        let mut memory = HarqMemory::default();
        grant(&mut memory, 16, true, Some(700));
        grant(&mut memory, 8, false, Some(300));
        assert_eq!(grant(&mut memory, 24, true, None).0, Some(700), "later ones are not undone");
        assert_eq!(grant(&mut memory, 12, false, None).0, Some(300), "earlier ones are not foretold");
    }

    #[test]
    fn uplink_processes_go_on_where_frame_numbers_begin_again() {
        let processes = [(0, 0), (0, 7), (0, 8), (1, 0), (1023, 9), (0, 0)];
        let processes = processes.map(|(sfn, subframe)| HarqMemory::uplink_process(sfn, subframe));
        assert_eq!(processes, [0, 7, 0, 2, 7, 0]);
    }

    #[test]
    fn nothing_is_sent_again_across_a_leap_unless_samples_were_repeated() {
        for (by, size) in [(-3, Some(700)), (-10, None), (-4000, None), (120, None)] {
            let mut memory = HarqMemory::default();
            grant(&mut memory, 8, true, Some(700));
            memory.leap(12, by);
            assert_eq!(grant(&mut memory, 24, true, None).0, size, "frame numbers leap by {by}");
            assert_eq!(grant(&mut memory, 10, true, None).0, Some(700), "a late one from before the leap");
            assert_eq!(grant(&mut memory, 16, false, Some(300)), (Some(300), false));
            assert_eq!(grant(&mut memory, 32, false, None).0, None, "the one at 24 was another block");
        }
    }

    #[test]
    fn a_table_that_is_learnt_later_holds_for_what_is_sent_again() {
        let mut memory = HarqMemory::default();
        grant(&mut memory, 8, false, Some(1000));
        let again = memory.grant(Rnti(100), 16, granted(false, None), McsTable::Qam256);
        assert_eq!(again, Remembered { size: Some(Bits(2000)), is_retransmission: true });
    }

    #[test]
    fn a_user_that_stays_for_long_is_not_remembered_for_ever() {
        let mut memory = HarqMemory::default();
        (0..1000).for_each(|n| _ = grant(&mut memory, 8 * n, n % 2 == 0, Some(500)));
        assert_eq!(memory.past_grants.values().map(VecDeque::len).sum::<usize>(), REMEMBERED);
        memory.retain(|_| false);
        assert!(memory.past_grants.is_empty());
    }
}
