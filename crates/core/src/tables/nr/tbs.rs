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

/// Transport block size on `res` resource elements ([`Allocation::res`]) and `layers` spatial layers. The size is zero
/// if `res` is zero.
///
/// The computation is exact: the number of information bits (N_info) is a fraction, and early rounding would change
/// some sizes.
///
/// Source: TS 38.214 §5.1.3.2 steps 2 to 4
pub fn tbs(res: u32, modulation: Modulation, rate: CodeRate, layers: u8) -> Bits {
    // N_info in units of 1/2048 bit.
    let information = u64::from(res)
        * u64::from(rate.as_2048ths())
        * u64::from(modulation.bits_per_symbol())
        * u64::from(layers);
    if information == 0 {
        return Bits::ZERO;
    }
    if information <= 3824 * 2048 { small_block(information) } else { large_block(information, rate) }
}

/// Step 3: quantises N_info down to a multiple of 2ⁿ, then takes the next larger size of the table.
fn small_block(information: u64) -> Bits {
    let n = (information.ilog2().saturating_sub(11)).saturating_sub(6).max(3);
    let quantised = ((information >> (11 + n)) << n).max(24);
    let at = SMALL_BLOCKS.partition_point(|&size| u64::from(size) < quantised);
    Bits(u64::from(SMALL_BLOCKS[at]))
}

/// Step 4: quantises N_info to the nearest multiple of 2ⁿ, then rounds the result up to code blocks of equal size.
fn large_block(information: u64, rate: CodeRate) -> Bits {
    let information = information - 24 * 2048;
    let n = information.ilog2() - 11 - 5;
    let nearest = (information + (1024 << n)) >> (11 + n); // ties round up
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
    use super::*;

    #[test]
    fn a_prb_counts_at_most_156_resource_elements() {
        let res = |symbols, dmrs, overhead| {
            Allocation { n_prb: 2, symbols, dmrs_res_per_prb: dmrs, overhead_res_per_prb: overhead }.res()
        };
        assert_eq!([res(14, 6, 0), res(13, 12, 6), res(1, 12, 6)], [312, 276, 0]);
        assert_eq!(tbs(0, Modulation::Qpsk, CodeRate::from_1024ths(120), 1), Bits::ZERO);
    }
}
