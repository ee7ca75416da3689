//! Which MCS table a user is configured with: nothing in a grant says it, but not all is possible by both.

use airpace_core::tables::lte::McsTable;

use crate::dci::Block;
use crate::harq::Held;

/// log2 of the odds that a user of whom nothing is known has the table up to 256QAM.
pub const PRIOR: f32 = -2.8;

/// log2 of how seldom new data does not toggle its indicator or has a later redundancy version.
const NOT_NEW: f32 = -5.5;

/// log2 of how seldom a block is sent again with its indicator toggled.
const NOT_OLD: f32 = -6.0;

/// log2 of how seldom a given reserved MCS is used, against a given plain one.
const RESERVED: f32 = -1.7;

/// log2 of how seldom a block is sent again in another modulation: a base station may, where it gives it other PRBs.
const OTHER_MODULATION: f32 = -1.0;

/// What one block speaks for the table up to 256QAM, against that up to 64QAM, in bits. `held` is what its HARQ process
/// held before.
///
/// Chosen: code rates do not count. Blocks that need more bits than their PRBs have are granted by both tables, for a
/// device may hear enough of the next transmission.
pub fn evidence(block: &Block, held: Option<&Held>) -> f32 {
    likely(McsTable::Qam256, block, held) - likely(McsTable::Qam64, block, held)
}

/// log2 of how likely a block is by a table, up to what is the same for both.
fn likely(table: McsTable, block: &Block, held: Option<&Held>) -> f32 {
    let Some(row) = table.mcs(block.mcs) else { return f32::MIN };
    let toggles = held.map(|held| held.ndi != block.ndi);
    if row.i_tbs.is_some() {
        return if toggles == Some(false) || block.rv != 0 { NOT_NEW } else { 0.0 };
    }
    // What is sent again holds the data of before, mostly in the modulation of before.
    let again = if toggles == Some(true) { NOT_OLD } else { 0.0 };
    let first = held.and_then(|held| held.mcs).and_then(|mcs| table.mcs(mcs));
    let is_same = first.is_none_or(|first| first.modulation == row.modulation);
    RESERVED + again + if is_same { 0.0 } else { OTHER_MODULATION }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Bits;

    fn block(mcs: u8, ndi: bool, rv: u8) -> Block {
        Block { mcs, ndi, rv }
    }

    fn held(mcs: u8) -> Held {
        Held { ndi: true, size: Some(Bits(1000)), mcs: Some(mcs), at: 0 }
    }

    #[test]
    fn new_data_of_mcs_28_is_of_the_table_in_which_that_has_a_size() {
        assert!(evidence(&block(28, false, 0), Some(&held(10))) < -6.0);
        assert!(
            evidence(&block(28, true, 2), Some(&held(3))) > 3.0,
            "sent again, which that table cannot say"
        );
        assert_eq!(evidence(&block(12, true, 0), None), 0.0, "an MCS that is plain in both");
    }

    #[test]
    fn a_block_sent_again_likely_keeps_its_modulation() {
        // MCS 2 is QPSK by both tables; 29 is QPSK up to 64QAM, and 16QAM up to 256QAM.
        assert!(evidence(&block(29, true, 1), Some(&held(2))) < 0.0);
        // MCS 18 is 64QAM by both; so is 30 up to 256QAM only.
        assert!(evidence(&block(30, true, 1), Some(&held(18))) > 0.0);
    }
}
