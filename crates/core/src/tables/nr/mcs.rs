//! MCS and CQI tables.

use super::tbs::{Allocation, tbs};
use crate::tables::{CodeRate, Cqi, Modulation, cqi_row, modulation};
use crate::units::Bits;

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
    fn outside_of_the_tables_there_is_nothing() {
        let one = Allocation { n_prb: 1, symbols: 12, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };
        assert_eq!(McsTable::Qam256.tbs(28, &one, 1), None, "a reserved MCS has no size of its own");
        assert!(McsTable::Qam64.mcs(32).is_none() && McsTable::Qam64.cqi(0).is_none());
    }
}
