//! Estimation of the MCS table of a user. No field of a grant contains the table, but some grants are impossible with
//! one of the two tables.

use airpace_core::Bits;
use airpace_core::tables::lte::McsTable;

use super::priors::PRIORS;
use crate::dci::Block;
use crate::harq::PastGrant;

/// Minimum evidence (bits) for a known table: the log2 odds of the table up to 256QAM exceed this value, or are lower
/// than the prior `large` by more than this value.
pub const TOLD: f32 = 4.0;

/// Estimate of the share of missed grants, from blocks with the same size in both MCS tables. If a block has a
/// different size than the previous block but the same new-data indicator, it is not a retransmission, so a grant in
/// between was missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    blocks: u32,
    missed: u32,
}

impl Misses {
    /// Updates the estimate from a block. Returns whether the block shows that a grant before it was missed.
    pub fn learn(&mut self, sizes: [Option<Bits>; 2], block: &Block, past: Option<&PastGrant>) -> bool {
        let ([Some(_), Some(_)], Some(past)) = (sizes, past) else { return false };
        let is_other = |at: usize| past.first[at].is_some_and(|first| Some(first.size) != sizes[at]);
        let is_missed = past.ndi == block.ndi && is_other(0) && is_other(1);
        self.blocks = self.blocks.saturating_add(1);
        self.missed = self.missed.saturating_add(u32::from(is_missed));
        is_missed
    }

    /// log2 of the probability that a block is new data although its indicator did not toggle. The probability is
    /// higher if a grant is `known` to be missing.
    pub fn bits(&self, known: bool) -> f32 {
        // Share of missed grants. The prior is one miss in `blocks_per_miss` blocks.
        let share =
            f64::from(self.missed + 1) / f64::from(self.blocks.saturating_add(PRIORS.table.blocks_per_miss));
        let seldom = libm::log2(share) as f32;
        if known { seldom.max(PRIORS.table.surely_missed) } else { seldom }
    }
}

/// Evidence of one block for the table up to 256QAM against the table up to 64QAM (bits). `sizes` contains the block's
/// sizes according to both tables, `past` the previous state of its HARQ process. `missed` is log2 of the probability
/// that grants since then were missed.
///
/// Chosen: code rates are not used. Base stations grant, by either table, blocks that need more bits than their PRBs
/// have, because the device may decode the block after a retransmission.
pub fn evidence(block: &Block, sizes: [Option<Bits>; 2], past: Option<&PastGrant>, missed: f32) -> f32 {
    let likely = |table: McsTable| likely(table, block, sizes[table as usize], past, missed);
    likely(McsTable::Qam256) - likely(McsTable::Qam64)
}

/// log2 of the probability of a block with a table, up to a term that is equal for both tables.
fn likely(table: McsTable, block: &Block, size: Option<Bits>, past: Option<&PastGrant>, missed: f32) -> f32 {
    let Some(row) = table.mcs(block.mcs) else { return f32::MIN };
    let toggles = past.map(|past| past.ndi != block.ndi);
    let first = past.and_then(|past| past.first[table as usize]);
    if row.i_tbs.is_some() {
        let version = if block.rv == 0 { 0.0 } else { PRIORS.table.later_version };
        return match (toggles, first) {
            (Some(false), Some(first)) if Some(first.size) == size => PRIORS.table.again_plain,
            // The decoder missed the grant of another block in between, and perhaps also the grant of this block's
            // first transmission.
            (Some(false), Some(_)) => missed + version.max(PRIORS.table.again_plain),
            (Some(false), None) => PRIORS.table.again_unknown,
            _ => version,
        };
    }
    // A retransmitted block contains the same data as the previous transmission, mostly with the same modulation.
    let again = if toggles == Some(true) { PRIORS.table.toggled_again } else { 0.0 };
    let version = if block.rv == 0 { PRIORS.table.first_version_again } else { 0.0 };
    let modulation = first.and_then(|first| table.mcs(first.mcs)).map(|row| row.modulation);
    let is_same = modulation.is_none_or(|modulation| modulation == row.modulation);
    PRIORS.table.reserved + again + version + if is_same { 0.0 } else { PRIORS.table.other_modulation }
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

    /// Probability of a missed grant without any indication (log2).
    fn usual() -> f32 {
        Misses::default().bits(false)
    }

    /// Block of 5000 bits according to the table up to 64QAM; its MCS is reserved in the other table.
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
    fn a_block_that_a_missed_grant_explains_leaves_the_table_unknown() {
        let again = |rv, missed| evidence(&block(28, true, rv), PLAIN, Some(&past_grant(13)), missed);
        assert!(
            again(0, usual()) + PRIORS.table.large < 0.0,
            "new data whose grant before was missed looks the same"
        );
        for rv in [0, 2, 3] {
            let one = again(rv, Misses::default().bits(true)) + PRIORS.table.large;
            assert!(one < TOLD, "version {rv} behind a lost subframe makes it known: {one}");
        }
        let mut misses = Misses::default();
        let both = [Some(Bits(300)), Some(Bits(600))];
        assert!(!misses.learn(both, &block(12, false, 0), Some(&past_grant(10))), "the indicator toggled");
        assert!(!misses.learn(PLAIN, &block(28, true, 0), Some(&past_grant(10))), "which may be sent again");
        (0..50).for_each(|_| assert!(misses.learn(both, &block(12, true, 0), Some(&past_grant(10)))));
        assert!(again(2, misses.bits(false)) + PRIORS.table.large < TOLD, "where much is missed");
    }

    #[test]
    fn what_is_sent_again_with_another_size_cannot_be_plain() {
        let clear = evidence(&block(28, true, 3), PLAIN, Some(&past_grant(16)), usual());
        assert!(
            clear + PRIORS.table.large > 0.0 && 2.0 * clear + PRIORS.table.large > TOLD,
            "two such blocks are enough: {clear}"
        );
    }

    #[test]
    fn a_block_sent_again_likely_keeps_its_modulation() {
        // MCS 2 is QPSK in both tables; 29 is QPSK in the table up to 64QAM, and 16QAM in the table up to 256QAM.
        assert!(evidence(&block(29, true, 1), [None; 2], Some(&past_grant(2)), usual()) < 0.0);
        // MCS 18 is 64QAM in both tables; 30 is 64QAM only in the table up to 256QAM.
        assert!(evidence(&block(30, true, 1), [None; 2], Some(&past_grant(18)), usual()) > 0.0);
    }
}
