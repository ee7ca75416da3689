//! State of HARQ processes. The grant of a retransmission contains no size, and does not always show that the block is
//! the same.

use std::collections::{BTreeMap, VecDeque};

use airpace_core::tables::lte::McsTable;
use airpace_core::{Bits, Direction};
use airpace_radio::Rnti;

/// Number of HARQ processes in FDD.
///
/// Source: TS 36.213 §7 and §8
pub const PROCESSES: u64 = 8;

/// Maximum number of stored grants per process. Messages that were waiting for evidence are inserted in order of time.
///
/// Chosen: a process has at most one grant per 8 subframes, and messages wait for about 100 subframes.
const REMEMBERED: usize = 16;

/// Threshold for a backward jump of frame numbers (subframes). A smaller jump means that the receiver repeated some
/// samples; the cell and its processes are unchanged. After a larger or a forward jump, the stored processes are
/// invalid: they belong to another time or to other users.
///
/// Chosen: buffers contain a few milliseconds. At a restart of a recording or a change of the cell, numbers jump by whole
/// frames.
const REPEATED: i64 = 10;

/// A transport block in a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Uplink or downlink.
    pub direction: Direction,
    /// HARQ process, 0…7.
    pub process: u8,
    /// First (0) or second (1) block.
    pub block: u8,
    /// New-data indicator.
    pub ndi: bool,
    /// MCS index.
    pub mcs: u8,
    /// Block sizes according to the grant alone, with the MCS tables up to 64QAM and up to 256QAM; `None` for a reserved
    /// MCS index.
    pub sizes: [Option<Bits>; 2],
}

/// Information about a grant from the history of its HARQ process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Block size. A reserved MCS index gives the size of the first transmission, if that was decoded.
    pub size: Option<Bits>,
    /// Whether the grant is for a retransmission.
    pub is_retransmission: bool,
}

/// HARQ processes of all users of a cell.
#[derive(Clone, Debug, Default)]
pub struct HarqMemory {
    /// Recent grants of each block of each process, in order of time.
    past_grants: BTreeMap<(Rnti, Direction, u8, u8), VecDeque<PastGrant>>,
    /// First subframe after the last jump of frame numbers. A grant after the jump does not count as a retransmission
    /// of a block before it.
    since: u64,
}

/// A stored grant of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastGrant {
    /// New-data indicator.
    pub ndi: bool,
    /// First transmission of the block, with the MCS tables up to 64QAM and up to 256QAM; `None` if it was not decoded.
    pub first: [Option<First>; 2],
    /// Subframe number of the grant.
    pub at: u64,
}

/// First transmission of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct First {
    /// MCS index.
    pub mcs: u8,
    /// Block size.
    pub size: Bits,
}

impl HarqMemory {
    /// HARQ process of an uplink grant in a subframe (0…9) of frame `sfn`, according to the cell's own numbers. Every
    /// eighth subframe has the same process, also across the wrap after 10,240 subframes, and independently of samples
    /// that the receiver repeats or loses.
    ///
    /// Source: TS 36.213 §8
    pub fn uplink_process(sfn: u16, subframe: u8) -> u8 {
        ((10 * u64::from(sfn) + u64::from(subframe)) % PROCESSES) as u8
    }

    /// Reports a jump of the cell's own numbers by `by` subframes, forward or backward, before subframe `index`.
    pub fn leap(&mut self, index: u64, by: i64) {
        if by <= -REPEATED || by > 0 {
            self.since = index;
        }
    }

    /// The last grant of a user's process for a block (0 or 1) before subframe `index`; `None` if frame numbers jumped in
    /// between.
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

    /// Stores a grant of subframe `index`, and completes it with the user's MCS `table`. A block is a retransmission if
    /// its MCS index is reserved, or if neither the NDI nor the size changed.
    ///
    /// Source: TS 36.321 §5.3.2.2 and §5.4.2.1; TS 36.213 §7.1.7.2, §8.6.2
    ///
    /// Differs: if the NDI is the same but the size changed, grants in between were missed, and the block is new.
    pub fn grant(&mut self, rnti: Rnti, index: u64, granted: Granted, table: McsTable) -> Remembered {
        let Granted { direction, process, block, ndi, mcs, sizes } = granted;
        // An earlier grant with another NDI is irrelevant, even if the first transmission of the new data was missed.
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

    /// Removes the users for which `is_here` returns false.
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
    fn the_indicator_separates_new_data_of_the_same_size_from_old() {
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
