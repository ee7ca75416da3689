//! What each HARQ process holds: a block that is sent again says neither its size nor, always, that it is the same.

use std::collections::BTreeMap;

use airpace_core::radio::Direction;
use airpace_core::{Bits, Rnti};

/// HARQ processes of FDD.
///
/// Source: TS 36.213 §7 and §8
pub const PROCESSES: u64 = 8;

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
    /// Its size by the grant alone; `None` where the MCS is reserved.
    pub size: Option<Bits>,
}

/// What the memory adds to a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The size, also where the MCS is reserved, if the process was seen before.
    pub size: Option<Bits>,
    /// Whether the block was sent before.
    pub is_retransmission: bool,
}

/// The processes of all users of a cell.
#[derive(Clone, Debug, Default)]
pub struct HarqMemory {
    held: BTreeMap<(Rnti, Direction, u8, u8), Held>,
}

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its new-data indicator.
    pub ndi: bool,
    /// Size of its block, if the first transmission was seen.
    pub size: Option<Bits>,
    /// MCS of the first transmission, if seen.
    pub mcs: Option<u8>,
    /// Subframe of the last grant.
    pub at: u64,
}

impl HarqMemory {
    /// The process of an uplink grant of subframe `index`: every eighth subframe has the same.
    ///
    /// Source: TS 36.213 §8
    pub fn uplink_process(index: u64) -> u8 {
        (index % PROCESSES) as u8
    }

    /// What a user's process holds for a block (0 or 1).
    pub fn held(&self, rnti: Rnti, direction: Direction, process: u8, block: u8) -> Option<&Held> {
        self.held.get(&(rnti, direction, process, block))
    }

    /// Takes a grant of subframe `index` in. A block is sent again if the new-data indicator did not toggle; with a
    /// reserved MCS it is in any case.
    ///
    /// Source: TS 36.321 §5.3.2.2 and §5.4.2.1; TS 36.213 §7.1.7.2, §8.6.2
    pub fn grant(&mut self, rnti: Rnti, index: u64, granted: Granted) -> Remembered {
        let key = (rnti, granted.direction, granted.process, granted.block);
        let before = self.held.get(&key).copied();
        let same_data = before.filter(|held| held.ndi == granted.ndi);
        let is_retransmission = granted.size.is_none() || same_data.is_some();
        let size = match granted.size {
            Some(size) => Some(size),
            // Its first transmission may have been missed; what the process held before then tells nothing.
            None => same_data.and_then(|held| held.size),
        };
        // Messages that waited for evidence may come after later ones.
        if before.is_none_or(|held| held.at <= index) {
            let mcs = match granted.size {
                Some(_) => Some(granted.mcs),
                None => same_data.and_then(|held| held.mcs),
            };
            self.held.insert(key, Held { ndi: granted.ndi, size, mcs, at: index });
        }
        Remembered { size, is_retransmission }
    }

    /// Forgets users that `is_gone`.
    pub fn retain(&mut self, is_here: impl Fn(Rnti) -> bool) {
        self.held.retain(|(rnti, ..), _| is_here(*rnti));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(ndi: bool, size: Option<u64>) -> Granted {
        let mcs = if size.is_some() { 10 } else { 30 };
        Granted { direction: Direction::Downlink, process: 3, block: 0, ndi, mcs, size: size.map(Bits) }
    }

    #[test]
    fn a_reserved_mcs_means_the_block_before() {
        let mut memory = HarqMemory::default();
        let user = Rnti(100);
        let unknown = memory.grant(user, 0, grant(true, None));
        assert_eq!(unknown, Remembered { size: None, is_retransmission: true });
        let first = memory.grant(user, 8, grant(false, Some(1000)));
        assert_eq!(first, Remembered { size: Some(Bits(1000)), is_retransmission: false });
        let again = memory.grant(user, 16, grant(false, None));
        assert_eq!(again, Remembered { size: Some(Bits(1000)), is_retransmission: true });
        let missed_the_first = memory.grant(user, 24, grant(true, None));
        assert_eq!(missed_the_first, Remembered { size: None, is_retransmission: true });
        assert!(!memory.grant(Rnti(101), 24, grant(true, Some(8))).is_retransmission, "another user's");
    }

    #[test]
    fn the_indicator_tells_new_data_of_the_same_size_from_old() {
        let mut memory = HarqMemory::default();
        let retransmitted = [(0, true), (8, true), (16, false), (24, true)]
            .map(|(at, ndi)| memory.grant(Rnti(7), at, grant(ndi, Some(500))).is_retransmission);
        assert_eq!(retransmitted, [false, true, false, false]);
    }

    #[test]
    fn a_late_message_does_not_undo_a_later_one() {
        let mut memory = HarqMemory::default();
        memory.grant(Rnti(7), 16, grant(true, Some(700)));
        memory.grant(Rnti(7), 8, grant(false, Some(300)));
        assert_eq!(memory.grant(Rnti(7), 24, grant(true, None)).size, Some(Bits(700)));
    }
}
