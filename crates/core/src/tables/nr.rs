//! NR tables of TS 38.214: MCS and CQI, and computation of the transport block size.

use super::{CodeRate, Cqi, Modulation, cqi_row, modulation};
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

/// Configured MCS and CQI tables of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum McsTable {
    /// Table 1: modulations up to 64QAM.
    #[default]
    Qam64,
    /// Table 2: modulations up to 256QAM.
    Qam256,
    /// Table 3: modulations up to 64QAM at low spectral efficiency, for reliability.
    LowEfficiency,
}

/// One row of an MCS table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mcs {
    /// Modulation.
    pub modulation: Modulation,
    /// Target code rate; `None` in a reserved row. A grant with such a row retransmits a block with its earlier size.
    pub rate: Option<CodeRate>,
}

impl McsTable {
    /// Highest MCS index that is not reserved.
    pub const fn last_mcs(self) -> u8 {
        match self {
            McsTable::Qam64 | McsTable::LowEfficiency => 28,
            McsTable::Qam256 => 27,
        }
    }

    /// Row `index` (0…31) of the MCS table; `None` above 31.
    ///
    /// Source: TS 38.214 §5.1.3.1 Tables 5.1.3.1-1, -2 and -3
    pub fn mcs(self, index: u8) -> Option<Mcs> {
        let rows = match self {
            McsTable::Qam64 => &MCS_QAM64,
            McsTable::Qam256 => &MCS_QAM256,
            McsTable::LowEfficiency => &MCS_LOW_EFFICIENCY,
        };
        rows.get(usize::from(index)).copied()
    }

    /// Row `index` (1…15) of the CQI table; `None` for 0, which means out of range, and above 15.
    ///
    /// Source: TS 38.214 §5.2.2.1 Tables 5.2.2.1-2, -3 and -4
    pub fn cqi(self, index: u8) -> Option<Cqi> {
        let rows = match self {
            McsTable::Qam64 => &CQI_QAM64,
            McsTable::Qam256 => &CQI_QAM256,
            McsTable::LowEfficiency => &CQI_LOW_EFFICIENCY,
        };
        rows.get(usize::from(index).checked_sub(1)?).copied()
    }

    /// Transport block size of MCS `index` for an allocation and `layers` layers; `None` for a reserved row and outside
    /// the table.
    pub fn tbs(self, index: u8, allocation: &Allocation, layers: u8) -> Option<Bits> {
        let mcs = self.mcs(index)?;
        Some(tbs(allocation.res(), mcs.modulation, mcs.rate?, layers))
    }
}

/// A row of an MCS table: Q_m and code rate × 2048 (the specification prints code rate × 1024).
const fn mcs_row(bits_per_symbol: u32, rate_2048ths: u16) -> Mcs {
    Mcs { modulation: modulation(bits_per_symbol), rate: Some(CodeRate::from_2048ths(rate_2048ths)) }
}

const fn reserved_row(bits_per_symbol: u32) -> Mcs {
    Mcs { modulation: modulation(bits_per_symbol), rate: None }
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

#[rustfmt::skip]
static MCS_QAM64: [Mcs; 32] = [
    mcs_row(2, 240), mcs_row(2, 314), mcs_row(2, 386), mcs_row(2, 502), mcs_row(2, 616), mcs_row(2, 758),
    mcs_row(2, 898), mcs_row(2, 1052), mcs_row(2, 1204), mcs_row(2, 1358), mcs_row(4, 680),
    mcs_row(4, 756), mcs_row(4, 868), mcs_row(4, 980), mcs_row(4, 1106), mcs_row(4, 1232),
    mcs_row(4, 1316), mcs_row(6, 876), mcs_row(6, 932), mcs_row(6, 1034), mcs_row(6, 1134),
    mcs_row(6, 1232), mcs_row(6, 1332), mcs_row(6, 1438), mcs_row(6, 1544), mcs_row(6, 1644),
    mcs_row(6, 1746), mcs_row(6, 1820), mcs_row(6, 1896), reserved_row(2), reserved_row(4),
    reserved_row(6),
];

#[rustfmt::skip]
static MCS_QAM256: [Mcs; 32] = [
    mcs_row(2, 240), mcs_row(2, 386), mcs_row(2, 616), mcs_row(2, 898), mcs_row(2, 1204), mcs_row(4, 756),
    mcs_row(4, 868), mcs_row(4, 980), mcs_row(4, 1106), mcs_row(4, 1232), mcs_row(4, 1316),
    mcs_row(6, 932), mcs_row(6, 1034), mcs_row(6, 1134), mcs_row(6, 1232), mcs_row(6, 1332),
    mcs_row(6, 1438), mcs_row(6, 1544), mcs_row(6, 1644), mcs_row(6, 1746), mcs_row(8, 1365),
    mcs_row(8, 1422), mcs_row(8, 1508), mcs_row(8, 1594), mcs_row(8, 1682), mcs_row(8, 1770),
    mcs_row(8, 1833), mcs_row(8, 1896), reserved_row(2), reserved_row(4), reserved_row(6), reserved_row(8),
];

#[rustfmt::skip]
static MCS_LOW_EFFICIENCY: [Mcs; 32] = [
    mcs_row(2, 60), mcs_row(2, 80), mcs_row(2, 100), mcs_row(2, 128), mcs_row(2, 156), mcs_row(2, 198),
    mcs_row(2, 240), mcs_row(2, 314), mcs_row(2, 386), mcs_row(2, 502), mcs_row(2, 616), mcs_row(2, 758),
    mcs_row(2, 898), mcs_row(2, 1052), mcs_row(2, 1204), mcs_row(4, 680), mcs_row(4, 756), mcs_row(4, 868),
    mcs_row(4, 980), mcs_row(4, 1106), mcs_row(4, 1232), mcs_row(6, 876), mcs_row(6, 932),
    mcs_row(6, 1034), mcs_row(6, 1134), mcs_row(6, 1232), mcs_row(6, 1332), mcs_row(6, 1438),
    mcs_row(6, 1544), reserved_row(2), reserved_row(4), reserved_row(6),
];

#[rustfmt::skip]
static CQI_QAM64: [Cqi; 15] = [
    cqi_row(2, 78), cqi_row(2, 120), cqi_row(2, 193), cqi_row(2, 308), cqi_row(2, 449), cqi_row(2, 602),
    cqi_row(4, 378), cqi_row(4, 490), cqi_row(4, 616), cqi_row(6, 466), cqi_row(6, 567), cqi_row(6, 666),
    cqi_row(6, 772), cqi_row(6, 873), cqi_row(6, 948),
];

#[rustfmt::skip]
static CQI_QAM256: [Cqi; 15] = [
    cqi_row(2, 78), cqi_row(2, 193), cqi_row(2, 449), cqi_row(4, 378), cqi_row(4, 490), cqi_row(4, 616),
    cqi_row(6, 466), cqi_row(6, 567), cqi_row(6, 666), cqi_row(6, 772), cqi_row(6, 873), cqi_row(8, 711),
    cqi_row(8, 797), cqi_row(8, 885), cqi_row(8, 948),
];

#[rustfmt::skip]
static CQI_LOW_EFFICIENCY: [Cqi; 15] = [
    cqi_row(2, 30), cqi_row(2, 50), cqi_row(2, 78), cqi_row(2, 120), cqi_row(2, 193), cqi_row(2, 308),
    cqi_row(2, 449), cqi_row(2, 602), cqi_row(4, 378), cqi_row(4, 490), cqi_row(4, 616), cqi_row(6, 466),
    cqi_row(6, 567), cqi_row(6, 666), cqi_row(6, 772),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn size(table: McsTable, mcs: u8, n_prb: u16, symbols: u8, dmrs: u16, overhead: u16, layers: u8) -> u64 {
        let allocation =
            Allocation { n_prb, symbols, dmrs_res_per_prb: dmrs, overhead_res_per_prb: overhead };
        table.tbs(mcs, &allocation, layers).unwrap().0
    }

    #[test]
    fn block_sizes_worked_out_by_exact_fractions() {
        use McsTable::{LowEfficiency, Qam64, Qam256};
        assert_eq!(size(Qam256, 27, 273, 13, 12, 0, 4), 1_179_864);
        assert_eq!(size(Qam64, 28, 106, 12, 12, 0, 2), 155_776);
        // These MCS have the code rates 682.5 / 1024 and 916.5 / 1024.
        assert_eq!(size(Qam256, 20, 51, 12, 12, 0, 2), 71_688);
        assert_eq!(size(Qam256, 20, 1, 4, 12, 6, 1), 152);
        assert_eq!(size(Qam256, 26, 106, 13, 24, 18, 4), 344_376);
        assert_eq!(size(Qam256, 26, 3, 10, 12, 0, 1), 2408);
        assert_eq!(size(Qam256, 0, 273, 12, 12, 0, 1), 8448);
        assert_eq!(size(Qam256, 22, 217, 12, 18, 0, 3), 483_464);
        assert_eq!(size(LowEfficiency, 0, 106, 12, 12, 0, 1), 848);
        assert_eq!(size(LowEfficiency, 14, 24, 12, 12, 0, 2), 7424);
    }

    #[test]
    fn a_prb_counts_at_most_156_resource_elements() {
        let res = |symbols, dmrs, overhead| {
            Allocation { n_prb: 2, symbols, dmrs_res_per_prb: dmrs, overhead_res_per_prb: overhead }.res()
        };
        assert_eq!([res(14, 6, 0), res(13, 12, 6), res(1, 12, 6)], [312, 276, 0]);
        assert_eq!(tbs(0, Modulation::Qpsk, CodeRate::from_1024ths(120), 1), Bits::ZERO);
    }

    #[test]
    fn outside_of_the_tables_there_is_nothing() {
        let one = Allocation { n_prb: 1, symbols: 12, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };
        assert_eq!(McsTable::Qam256.tbs(28, &one, 1), None, "a reserved MCS has no size of its own");
        assert!(McsTable::Qam64.mcs(32).is_none() && McsTable::Qam64.cqi(0).is_none());
    }
}
