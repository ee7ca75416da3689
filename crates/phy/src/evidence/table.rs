//! Which MCS table a user is configured with. No field of a grant says it, but not every grant is possible by both
//! tables.

use airpace_core::Bits;
use airpace_core::tables::lte::McsTable;

use crate::dci::Block;
use crate::harq::PastGrant;

/// log2 of the odds that a user of whom nothing is known has the table up to 256QAM.
pub const PRIOR: f32 = -2.8;

/// With this many bits, on balance, a user's table counts as known.
pub const TOLD: f32 = 4.0;

/// log2 of how seldom new data has a later redundancy version.
const LATER_VERSION: f32 = -5.5;

/// log2 of how seldom a plain MCS comes with an indicator that did not toggle: for a block of the same size, which is
/// sent again with its MCS; and for a block whose earlier size is not known, because its first transmission was missed.
const AGAIN_PLAIN: f32 = -3.5;
const AGAIN_UNKNOWN: f32 = -4.5;

/// log2 of how often grants were missed if something is known to be missing: a subframe in between was not heard, or
/// the other block of the grant shows it.
const SURELY_MISSED: f32 = -2.0;

/// Before anything was heard of a cell, one new block in this many is assumed to hide behind an indicator that did not
/// toggle.
const SELDOM: u32 = 128;

/// How often grants are missed. Blocks for which the table makes no difference tell it: if a block has another size
/// than the one before but the same new-data indicator, it is not sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    blocks: u32,
    missed: u32,
}

impl Misses {
    /// Learns from a block. Returns whether the block tells that a grant before it was missed.
    pub fn learn(&mut self, sizes: [Option<Bits>; 2], block: &Block, past: Option<&PastGrant>) -> bool {
        let ([Some(_), Some(_)], Some(past)) = (sizes, past) else { return false };
        let is_other = |at: usize| past.first[at].is_some_and(|first| Some(first.size) != sizes[at]);
        let is_missed = past.ndi == block.ndi && is_other(0) && is_other(1);
        self.blocks = self.blocks.saturating_add(1);
        self.missed = self.missed.saturating_add(u32::from(is_missed));
        is_missed
    }

    /// log2 of how likely an indicator that did not toggle hides new data; likelier if more is `known` to be missing.
    pub fn bits(&self, known: bool) -> f32 {
        let share = f64::from(self.missed + 1) / f64::from(self.blocks.saturating_add(SELDOM));
        let seldom = libm::log2(share) as f32;
        if known { seldom.max(SURELY_MISSED) } else { seldom }
    }
}

/// log2 of how seldom a block is sent again with its indicator toggled.
const NOT_OLD: f32 = -6.0;

/// log2 of how seldom a given reserved MCS is used, against a given plain one.
const RESERVED: f32 = -1.7;

/// log2 of how seldom the first redundancy version is sent again.
const FIRST_VERSION: f32 = -2.0;

/// log2 of how seldom a block is sent again in another modulation: a base station may do so when it grants other PRBs.
const OTHER_MODULATION: f32 = -1.0;

/// How many bits one block speaks for the table up to 256QAM, against the one up to 64QAM. `sizes` are its sizes by
/// both tables. `past` is what its HARQ process held before. `missed` is log2 of how likely grants since then were
/// missed.
///
/// Chosen: code rates do not count. Both tables grant blocks that need more bits than their PRBs have, because a device
/// may hear enough of the next transmission.
pub fn evidence(block: &Block, sizes: [Option<Bits>; 2], past: Option<&PastGrant>, missed: f32) -> f32 {
    let likely = |table: McsTable| likely(table, block, sizes[table as usize], past, missed);
    likely(McsTable::Qam256) - likely(McsTable::Qam64)
}

/// log2 of how likely a block is by a table, up to a term that is the same for both tables.
fn likely(table: McsTable, block: &Block, size: Option<Bits>, past: Option<&PastGrant>, missed: f32) -> f32 {
    let Some(row) = table.mcs(block.mcs) else { return f32::MIN };
    let toggles = past.map(|past| past.ndi != block.ndi);
    let first = past.and_then(|past| past.first[table as usize]);
    if row.i_tbs.is_some() {
        let version = if block.rv == 0 { 0.0 } else { LATER_VERSION };
        return match (toggles, first) {
            (Some(false), Some(first)) if Some(first.size) == size => AGAIN_PLAIN,
            // The missed grant is the one before, or also the first transmission of this block.
            (Some(false), Some(_)) => missed + version.max(AGAIN_PLAIN),
            (Some(false), None) => AGAIN_UNKNOWN,
            _ => version,
        };
    }
    // A block that is sent again holds the same data as before, mostly in the same modulation.
    let again = if toggles == Some(true) { NOT_OLD } else { 0.0 };
    let version = if block.rv == 0 { FIRST_VERSION } else { 0.0 };
    let modulation = first.and_then(|first| table.mcs(first.mcs)).map(|row| row.modulation);
    let is_same = modulation.is_none_or(|modulation| modulation == row.modulation);
    RESERVED + again + version + if is_same { 0.0 } else { OTHER_MODULATION }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harq::First;

    fn block(mcs: u8, ndi: bool, rv: u8) -> Block {
        Block { mcs, ndi, rv }
    }

    fn past_grant(mcs: u8) -> PastGrant {
        let first = |size| Some(First { mcs, size: Bits(size) });
        PastGrant { ndi: true, first: [first(1000), first(2000)], at: 0 }
    }

    /// Nothing tells that a grant was missed.
    fn usual() -> f32 {
        Misses::default().bits(false)
    }

    /// By the table up to 64QAM, a block of 5000 bits; by the other its MCS is reserved.
    const PLAIN: [Option<Bits>; 2] = [Some(Bits(5000)), None];

    #[test]
    fn new_data_of_mcs_28_is_of_the_table_in_which_that_has_a_size() {
        assert!(evidence(&block(28, false, 0), PLAIN, Some(&past_grant(10)), usual()) < -6.0);
        assert!(evidence(&block(28, false, 0), PLAIN, None, usual()) < 0.0, "of a process that nobody knows");
        assert!(
            evidence(&block(28, true, 2), [Some(Bits(1000)), None], Some(&past_grant(3)), usual()) > 0.0,
            "sent again, which the table up to 64QAM says otherwise"
        );
        let both = [Some(Bits(300)), Some(Bits(600))];
        assert_eq!(evidence(&block(12, true, 0), both, None, usual()), 0.0, "an MCS that is plain in both");
    }

    #[test]
    fn what_a_missed_grant_explains_as_well_tells_nothing() {
        let again = |rv, missed| evidence(&block(28, true, rv), PLAIN, Some(&past_grant(13)), missed);
        assert!(again(0, usual()) + PRIOR < 0.0, "new data whose grant before was missed looks the same");
        for rv in [0, 2, 3] {
            let one = again(rv, Misses::default().bits(true)) + PRIOR;
            assert!(one < TOLD, "version {rv} behind a lost subframe makes it known: {one}");
        }
        let mut misses = Misses::default();
        let both = [Some(Bits(300)), Some(Bits(600))];
        assert!(!misses.learn(both, &block(12, false, 0), Some(&past_grant(10))), "the indicator toggled");
        assert!(!misses.learn(PLAIN, &block(28, true, 0), Some(&past_grant(10))), "which may be sent again");
        (0..50).for_each(|_| assert!(misses.learn(both, &block(12, true, 0), Some(&past_grant(10)))));
        assert!(again(2, misses.bits(false)) + PRIOR < TOLD, "where much is missed");
    }

    #[test]
    fn what_is_sent_again_with_another_size_cannot_be_plain() {
        let clear = evidence(&block(28, true, 3), PLAIN, Some(&past_grant(16)), usual());
        assert!(clear + PRIOR > 0.0 && 2.0 * clear + PRIOR > TOLD, "two such blocks are enough: {clear}");
    }

    #[test]
    fn a_block_sent_again_likely_keeps_its_modulation() {
        // MCS 2 is QPSK by both tables; 29 is QPSK up to 64QAM, and 16QAM up to 256QAM.
        assert!(evidence(&block(29, true, 1), [None; 2], Some(&past_grant(2)), usual()) < 0.0);
        // MCS 18 is 64QAM by both; so is 30 up to 256QAM only.
        assert!(evidence(&block(30, true, 1), [None; 2], Some(&past_grant(18)), usual()) > 0.0);
    }
}
