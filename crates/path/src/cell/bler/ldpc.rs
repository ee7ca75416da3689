//! Error curves of LDPC code blocks, for the MCS tables of NR.
//!
//! Chosen: the middle of a curve is the SINR at which the modulation carries the information of the code rate, plus a gap
//! that depends on the size of the code block. The gap and the slope of a size are the medians over the measured curves
//! of turbo code blocks. At the sizes of data blocks, the two codes differ by a few tenths of a decibel.
//!
//! Source: TS 38.212 §5.2.2 (segmentation), §7.2.2 (base graphs); the curves of turbo codes are measured

use airpace_core::Bits;
use airpace_core::tables::Modulation;
use airpace_core::tables::lte;
use airpace_core::tables::nr::McsTable;

use super::information::sinr_db_of;
use super::{CodeTable, Curve, code_block_size, nominal_rate};

/// Curves of all MCSs of the three tables.
#[derive(Clone, Debug)]
pub(super) struct Curves {
    tables: [Vec<Sizes>; 3],
}

/// Curves of one MCS by the size of a code block, smallest size first.
type Sizes = Vec<Curve>;

impl Curves {
    /// Derives the curves from those of turbo codes.
    pub(super) fn new(turbo: &[[Curve; 6]]) -> Curves {
        let gaps = gaps(turbo);
        let of_table = |table: McsTable| {
            let rows = 0..=table.last_mcs();
            rows.map(|mcs| sizes(&gaps, CodeTable::Ldpc(table), mcs)).collect()
        };
        Curves { tables: [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency].map(of_table) }
    }

    /// The curve of a code block of `size` bits. Between two known sizes the curve is interpolated; beyond the largest
    /// size, it is that of the largest size. Below the smallest size, slope ∝ 1/√bits, and the middle rises by three
    /// times the increase of the slope, as for turbo codes.
    pub(super) fn curve(&self, table: McsTable, mcs: u8, size: u64) -> Curve {
        let rows = &self.tables[match table {
            McsTable::Qam64 => 0,
            McsTable::Qam256 => 1,
            McsTable::LowEfficiency => 2,
        }];
        let sizes = &rows[usize::from(mcs.min(table.last_mcs()))];
        let bits = size.max(16) as f64;
        let smallest = sizes[0];
        if bits <= smallest.bits {
            let slope_db = smallest.slope_db * libm::sqrt(smallest.bits / bits);
            let middle_db = smallest.middle_db + 3.0 * (slope_db - smallest.slope_db);
            return Curve { bits, middle_db, slope_db };
        }
        let Some(above) = sizes.iter().position(|curve| bits <= curve.bits) else {
            return sizes[sizes.len() - 1];
        };
        let (low, high) = (sizes[above - 1], sizes[above]);
        let share = (bits - low.bits) / (high.bits - low.bits);
        let between = |low: f64, high: f64| low + share * (high - low);
        Curve {
            bits,
            middle_db: between(low.middle_db, high.middle_db),
            slope_db: between(low.slope_db, high.slope_db),
        }
    }
}

/// Gap and slope of a curve by the size of a code block, smallest size first: the median over all MCSs of the turbo code.
/// The field `middle_db` of the result contains the gap.
fn gaps(turbo: &[[Curve; 6]]) -> Sizes {
    let bound_db = |mcs| sinr_db_of(turbo_modulation(mcs), nominal_rate(lte::McsTable::Qam64, mcs));
    let all = || (0..29_u8).flat_map(|mcs| turbo[usize::from(mcs)].map(|curve| (mcs, curve)));
    let sizes = SIZE_CLASSES.windows(2).filter_map(|class| {
        let size_of = |curve: &Curve| code_block_size(Bits(curve.bits as u64));
        let of_class = || all().filter(|(_, curve)| (class[0]..class[1]).contains(&size_of(curve)));
        Some(Curve {
            bits: median(of_class().map(|(_, curve)| size_of(&curve) as f64))?,
            middle_db: median(of_class().map(|(mcs, curve)| curve.middle_db - bound_db(mcs)))?,
            slope_db: median(of_class().map(|(_, curve)| curve.slope_db))?,
        })
    });
    sizes.collect()
}

/// Limits of the classes of code block sizes, in bits.
const SIZE_CLASSES: [u64; 6] = [0, 512, 1024, 2048, 4096, 6145];

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The curves of an MCS.
fn sizes(gaps: &[Curve], table: CodeTable, mcs: u8) -> Sizes {
    let bound_db = sinr_db_of(table.modulation(mcs), table.nominal_rate(mcs));
    gaps.iter().map(|gap| Curve { middle_db: bound_db + gap.middle_db, ..*gap }).collect()
}

fn turbo_modulation(mcs: u8) -> Modulation {
    CodeTable::Turbo(lte::McsTable::Qam64).modulation(mcs)
}

/// Whether a transport block uses base graph 2.
///
/// Source: TS 38.212 §7.2.2
fn uses_base_graph_2(bits: Bits, rate: f64) -> bool {
    bits.0 <= 292 || rate <= 0.25 || (bits.0 <= 3824 && rate <= 0.67)
}

/// Number of code blocks of a transport block.
///
/// Source: TS 38.212 §5.2.2, §7.2.1 (a CRC of 24 bits above 3824 bits, else of 16 bits)
pub(super) fn code_blocks(bits: Bits, rate: f64) -> u64 {
    let with_crc = bits.0 + if bits.0 > 3824 { 24 } else { 16 };
    let largest = if uses_base_graph_2(bits, rate) { 3840 } else { 8448 };
    if with_crc <= largest { 1 } else { with_crc.div_ceil(largest - 24) }
}

/// Coded bits per information bit of the mother code. The buffer of a large block is limited to a rate of 2/3 at the
/// peak rate of the device.
///
/// Source: TS 38.212 §5.3.2 (base graph 1: 1/3, base graph 2: 1/5), §5.4.2.1 (limited buffer). Chosen: the limit is
/// ignored, because it depends on the device's capabilities, and retransmissions at those rates are rare.
pub(super) fn expansion(bits: Bits, rate: f64) -> f64 {
    if uses_base_graph_2(bits, rate) { 5.0 } else { 3.0 }
}

#[cfg(test)]
mod tests {
    use super::super::{Bler, BlerConfig, Block};
    use super::*;

    #[test]
    fn a_large_block_has_code_blocks_of_at_most_8448_bits() {
        for (bits, rate, blocks) in [
            (8424, 0.9, 1),
            (8425, 0.9, 2),
            (1_179_864, 0.93, 141),
            (3824, 0.5, 1),
            (3848, 0.2, 2),
            (292, 0.9, 1),
        ] {
            assert_eq!(code_blocks(Bits(bits), rate), blocks, "{bits} bits at rate {rate}");
        }
    }

    #[test]
    fn each_mcs_needs_more_sinr_than_the_previous_and_at_least_that_of_its_information() {
        let bler = Bler::new(&BlerConfig { implementation_loss_db: 0.0, ..BlerConfig::default() }).unwrap();
        for table in [McsTable::Qam64, McsTable::Qam256, McsTable::LowEfficiency] {
            let mut previous_db = f64::NEG_INFINITY;
            for mcs in 0..=table.last_mcs() {
                let block = Block { table: table.into(), mcs, bits: Bits(20_000) };
                let needed_db = bler.sinr_db_for(block, 0.1);
                let bound_db = sinr_db_of(block.modulation(), block.table.nominal_rate(mcs));
                let gap_db = needed_db - bound_db;
                assert!((0.2..2.2).contains(&gap_db), "{table:?} MCS {mcs}: {gap_db:.2} dB above the bound");
                // The tables repeat a spectral efficiency where the modulation changes.
                assert!(needed_db > previous_db - 0.4, "{table:?} MCS {mcs}: {needed_db:.2} dB");
                previous_db = needed_db;
            }
        }
    }
}
