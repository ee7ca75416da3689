//! Which MCS table a user is configured with: nothing in a grant says it, but not all is possible by both.

use airpace_core::Bits;
use airpace_core::tables::lte::McsTable;

use crate::dci::Block;
use crate::harq::Held;

/// log2 of the odds that a user of whom nothing is known has the table up to 256QAM.
pub const PRIOR: f32 = -2.8;

/// log2 of how seldom new data has a later redundancy version.
const LATER_VERSION: f32 = -5.5;

/// log2 of how seldom an indicator that did not toggle comes with a plain MCS: for a block of the same size, which is
/// sent again with its MCS; where the size before is not known; and of another size, for grants in between were missed.
const AGAIN_PLAIN: f32 = -3.5;
const AGAIN_UNKNOWN: f32 = -5.5;
const AGAIN_OTHER: f32 = -8.0;

/// log2 of how seldom a block is sent again with its indicator toggled.
const NOT_OLD: f32 = -6.0;

/// log2 of how seldom a given reserved MCS is used, against a given plain one.
const RESERVED: f32 = -1.7;

/// log2 of how seldom the first redundancy version is sent again.
const FIRST_VERSION: f32 = -2.0;

/// log2 of how seldom a block is sent again in another modulation: a base station may, where it gives it other PRBs.
const OTHER_MODULATION: f32 = -1.0;

/// What one block speaks for the table up to 256QAM, against that up to 64QAM, in bits. `sizes` are those that it has
/// by both tables, `held` is what its HARQ process held before.
///
/// Chosen: code rates do not count. Blocks that need more bits than their PRBs have are granted by both tables, for a
/// device may hear enough of the next transmission.
pub fn evidence(block: &Block, sizes: [Option<Bits>; 2], held: Option<&Held>) -> f32 {
    let likely = |table: McsTable| likely(table, block, sizes[table as usize], held);
    likely(McsTable::Qam256) - likely(McsTable::Qam64)
}

/// log2 of how likely a block is by a table, up to what is the same for both.
fn likely(table: McsTable, block: &Block, size: Option<Bits>, held: Option<&Held>) -> f32 {
    let Some(row) = table.mcs(block.mcs) else { return f32::MIN };
    let toggles = held.map(|held| held.ndi != block.ndi);
    let first = held.and_then(|held| held.first[table as usize]);
    if row.i_tbs.is_some() {
        let version = if block.rv == 0 { 0.0 } else { LATER_VERSION };
        return match (toggles, first) {
            (Some(false), Some(first)) if Some(first.size) == size => AGAIN_PLAIN,
            (Some(false), Some(_)) => AGAIN_OTHER + version,
            (Some(false), None) => AGAIN_UNKNOWN,
            _ => version,
        };
    }
    // What is sent again holds the data of before, mostly in the modulation of before.
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

    fn held(mcs: u8) -> Held {
        let first = |size| Some(First { mcs, size: Bits(size) });
        Held { ndi: true, first: [first(1000), first(2000)], at: 0 }
    }

    /// By the table up to 64QAM, a block of 5000 bits; by the other its MCS is reserved.
    const PLAIN: [Option<Bits>; 2] = [Some(Bits(5000)), None];

    #[test]
    fn new_data_of_mcs_28_is_of_the_table_in_which_that_has_a_size() {
        assert!(evidence(&block(28, false, 0), PLAIN, Some(&held(10))) < -6.0);
        assert!(evidence(&block(28, false, 0), PLAIN, None) < 0.0, "of a process that nobody knows");
        assert!(
            evidence(&block(28, true, 2), [Some(Bits(1000)), None], Some(&held(3))) > 0.0,
            "sent again, which the table up to 64QAM says otherwise"
        );
        let both = [Some(Bits(300)), Some(Bits(600))];
        assert_eq!(evidence(&block(12, true, 0), both, None), 0.0, "an MCS that is plain in both");
    }

    #[test]
    fn what_is_sent_again_with_another_size_cannot_be_plain() {
        let clear = evidence(&block(28, true, 3), PLAIN, Some(&held(16)));
        assert!(clear + PRIOR > 3.0, "one such block is enough: {clear}");
    }

    #[test]
    fn a_block_sent_again_likely_keeps_its_modulation() {
        // MCS 2 is QPSK by both tables; 29 is QPSK up to 64QAM, and 16QAM up to 256QAM.
        assert!(evidence(&block(29, true, 1), [None; 2], Some(&held(2))) < 0.0);
        // MCS 18 is 64QAM by both; so is 30 up to 256QAM only.
        assert!(evidence(&block(30, true, 1), [None; 2], Some(&held(18))) > 0.0);
    }
}
