//! Transport block size of a grant.

use crate::tables::{CodeRate, Modulation};
use crate::units::Bits;

/// Maximum number of resource elements per PRB that the computation of the transport block size counts.
///
/// Source: TS 38.214 §5.1.3.2
const MAX_RES_PER_PRB: u32 = 156;

/// Resources of a slot that a grant allocates to the PDSCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Number of allocated PRBs.
    pub n_prb: u16,
    /// Number of allocated OFDM symbols, 1…14.
    pub symbols: u8,
    /// Resource elements per PRB for DMRS, including CDM groups without data.
    pub dmrs_res_per_prb: u16,
    /// Overhead per PRB in addition to DMRS, in resource elements: 0, 6, 12 or 18 (`xOverhead`).
    pub overhead_res_per_prb: u16,
}

impl Allocation {
    /// Number of resource elements that the computation of the transport block size counts.
    ///
    /// Source: TS 38.214 §5.1.3.2 step 1
    pub fn res(&self) -> u32 {
        let all = 12 * u32::from(self.symbols);
        let overhead = u32::from(self.dmrs_res_per_prb) + u32::from(self.overhead_res_per_prb);
        all.saturating_sub(overhead).min(MAX_RES_PER_PRB) * u32::from(self.n_prb)
    }
}

/// Number of fraction bits of N_info. A code rate is a multiple of 1/2048 and the smallest scaling factor is 1/4, so
/// every N_info is a multiple of 1/8192 bit.
const FRACTION_BITS: u32 = 13;

/// Factor by which N_info is multiplied if the PDSCH contains paging or a random access response. The base station
/// signals the factor in DCI format 1_0.
///
/// Source: TS 38.214 §5.1.3.2 Table 5.1.3.2-2
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TbsScaling {
    /// Factor 1.
    #[default]
    One,
    /// Factor 1/2.
    Half,
    /// Factor 1/4.
    Quarter,
}

impl TbsScaling {
    /// The factor that the field "TB scaling" of DCI format 1_0 with P-RNTI or RA-RNTI signals; `None` for the reserved
    /// value 3 and above.
    ///
    /// Source: TS 38.214 §5.1.3.2 Table 5.1.3.2-2
    pub const fn from_field(field: u8) -> Option<TbsScaling> {
        match field {
            0 => Some(TbsScaling::One),
            1 => Some(TbsScaling::Half),
            2 => Some(TbsScaling::Quarter),
            _ => None,
        }
    }
}

/// Transport block size on `res` resource elements ([`Allocation::res`]) and `layers` spatial layers. The size is zero
/// if `res` is zero.
///
/// The computation is exact: the number of information bits (N_info) is a fraction, and early rounding would change
/// some sizes.
///
/// Source: TS 38.214 §5.1.3.2 steps 2 to 4
pub fn tbs(res: u32, modulation: Modulation, rate: CodeRate, layers: u8) -> Bits {
    tbs_scaled(res, modulation, rate, layers, TbsScaling::One)
}

/// Transport block size like [`tbs`], with N_info multiplied by `scaling`: the size of a block with paging messages or
/// with random access responses.
///
/// Source: TS 38.214 §5.1.3.2 steps 2 to 4 and Table 5.1.3.2-2
pub fn tbs_scaled(res: u32, modulation: Modulation, rate: CodeRate, layers: u8, scaling: TbsScaling) -> Bits {
    // The product has 11 fraction bits. Two more bits make the scaling exact.
    let unscaled = (u64::from(res)
        * u64::from(rate.as_2048ths())
        * u64::from(modulation.bits_per_symbol())
        * u64::from(layers))
        << (FRACTION_BITS - 11);
    let information = match scaling {
        TbsScaling::One => unscaled,
        TbsScaling::Half => unscaled / 2,
        TbsScaling::Quarter => unscaled / 4,
    };
    block_size(information, rate)
}

/// Steps 3 and 4 for N_info in units of 2^-[`FRACTION_BITS`] bit.
fn block_size(information: u64, rate: CodeRate) -> Bits {
    match information {
        0 => Bits::ZERO,
        1..=MAX_SMALL_INFORMATION => small_block(information),
        _ => large_block(information, rate),
    }
}

/// Maximum N_info of step 3 in units of 2^-[`FRACTION_BITS`] bit.
///
/// Source: TS 38.214 §5.1.3.2 step 2
const MAX_SMALL_INFORMATION: u64 = 3824 << FRACTION_BITS;

/// Step 3: quantises N_info down to a multiple of 2ⁿ, then takes the next larger size of the table.
fn small_block(information: u64) -> Bits {
    let n = (information.ilog2().saturating_sub(FRACTION_BITS)).saturating_sub(6).max(3);
    let quantised = ((information >> (FRACTION_BITS + n)) << n).max(24);
    let at = SMALL_BLOCKS.partition_point(|&size| u64::from(size) < quantised);
    Bits(u64::from(SMALL_BLOCKS[at]))
}

/// Step 4: quantises N_info to the nearest multiple of 2ⁿ, then rounds the result up to code blocks of equal size.
fn large_block(information: u64, rate: CodeRate) -> Bits {
    let information = information - (24 << FRACTION_BITS);
    let n = information.ilog2() - FRACTION_BITS - 5;
    let half = 1 << (FRACTION_BITS + n - 1);
    let nearest = (information + half) >> (FRACTION_BITS + n); // ties round up
    let quantised = (nearest << n).max(3840);
    let blocks = if rate <= CodeRate::from_1024ths(256) {
        (quantised + 24).div_ceil(3816)
    } else if quantised > 8424 {
        (quantised + 24).div_ceil(8424)
    } else {
        1
    };
    Bits(8 * blocks * (quantised + 24).div_ceil(8 * blocks) - 24)
}

/// Transport block sizes in bits up to 3824.
///
/// Source: TS 38.214 §5.1.3.2 Table 5.1.3.2-1
#[rustfmt::skip]
static SMALL_BLOCKS: [u16; 93] = [
    24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192,
    208, 224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 408, 432, 456, 480, 504, 528, 552, 576,
    608, 640, 672, 704, 736, 768, 808, 848, 888, 928, 984, 1032, 1064, 1128, 1160, 1192, 1224, 1256, 1288,
    1320, 1352, 1416, 1480, 1544, 1608, 1672, 1736, 1800, 1864, 1928, 2024, 2088, 2152, 2216, 2280, 2408,
    2472, 2536, 2600, 2664, 2728, 2792, 2856, 2976, 3104, 3240, 3368, 3496, 3624, 3752, 3824,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tables::nr::McsTable;

    #[test]
    fn a_prb_counts_at_most_156_resource_elements() {
        let res = |symbols, dmrs, overhead| {
            Allocation { n_prb: 2, symbols, dmrs_res_per_prb: dmrs, overhead_res_per_prb: overhead }.res()
        };
        assert_eq!([res(14, 6, 0), res(13, 12, 6), res(1, 12, 6)], [312, 276, 0]);
        assert_eq!(tbs(0, Modulation::Qpsk, CodeRate::from_1024ths(120), 1), Bits::ZERO);
    }

    #[test]
    fn a_response_to_random_access_is_smaller_by_the_scaling_factor() {
        // A grant of 48 PRBs in 12 symbols with MCS 0: N_info = 48 · 132 · 2 · 120 / 1024 = 1485 bits.
        let size = |field| {
            let scaling = TbsScaling::from_field(field)?;
            Some(tbs_scaled(48 * 132, Modulation::Qpsk, CodeRate::from_1024ths(120), 1, scaling).0)
        };
        // 1485, 742.5 and 371.25 bits are quantised to 1472, 736 and 368 bits.
        assert_eq!([size(0), size(1), size(2), size(3)], [Some(1480), Some(736), Some(368), None]);
    }

    #[test]
    fn every_vector_of_an_independent_implementation_has_its_block_size() {
        let Some(path) = airpace_testing::recordings("3gpp/nr/tbs_vectors.csv") else { return };
        let text = std::fs::read_to_string(path).expect("a table");
        let mut rows = 0;
        for row in text.lines().skip(1) {
            // Columns: symbols, DMRS per PRB, overhead, Q_m, R × 1024, layers, scaling exponent, PRBs, TBS.
            let fields: Vec<&str> = row.split(',').collect();
            let number = |at: usize| fields[at].parse::<u32>().unwrap();
            let allocation = Allocation {
                n_prb: number(7) as u16,
                symbols: number(0) as u8,
                dmrs_res_per_prb: number(1) as u16,
                overhead_res_per_prb: number(2) as u16,
            };
            // The vectors have code rates of one decimal, which are no multiples of 1/2048. N_info is rounded down
            // to a multiple of 1/8192 bit. Steps 3 and 4 round N_info down to coarser multiples, so the size does not
            // change.
            let (whole, tenth) = fields[4].split_once('.').expect("a code rate with one decimal");
            let rate_10240ths = format!("{whole}{tenth}").parse::<u64>().unwrap();
            let product = u64::from(allocation.res()) * rate_10240ths * u64::from(number(3) * number(5));
            let information = (product << FRACTION_BITS) / (10_240 << number(6));
            let ours = block_size(information, CodeRate::from_1024ths((rate_10240ths / 10) as u16));
            assert_eq!(ours, Bits(u64::from(number(8))), "{row}");
            rows += 1;
        }
        assert_eq!(rows, 256, "the table has 256 rows");
    }

    proptest! {
        #[test]
        fn a_scaling_factor_is_undone_by_the_inverse_number_of_resource_elements(
            res in 1_u32..43_000,
            layers in 1_u8..=4,
            mcs in 0_u8..28,
        ) {
            let row = McsTable::Qam256.mcs(mcs).unwrap();
            let (modulation, rate) = (row.modulation, row.rate.unwrap());
            let plain = tbs(res, modulation, rate, layers);
            prop_assert_eq!(tbs_scaled(2 * res, modulation, rate, layers, TbsScaling::Half), plain);
            prop_assert_eq!(tbs_scaled(4 * res, modulation, rate, layers, TbsScaling::Quarter), plain);
        }
    }
}
