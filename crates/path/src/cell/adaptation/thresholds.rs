//! SINR thresholds of CQIs and MCSs.

use airpace_core::Bits;
use airpace_core::tables::lte::{self, pdsch_res_per_prb};
use airpace_core::tables::{CodeRate, Modulation, nr};
use airpace_radio::PrbSet;

use super::super::bler::information::SINR_FLOOR_DB;
use super::super::bler::{Bler, Block, CodeTable};
use super::super::channel::{Grid, Snapshot};
use super::{AdaptationPlan, CqiScope};

/// SINR thresholds in dB of CQIs and MCSs, with the limits by the CFI.
#[derive(Clone, Debug)]
pub(super) struct Thresholds {
    /// SINR thresholds of CQI 1…15, in dB.
    pub(super) cqi_db: [f64; 15],
    /// SINR thresholds of all MCSs that are not reserved, in dB.
    pub(super) mcs_db: Vec<f64>,
    /// Modulation of the MCS of CQI 1…15.
    cqi_modulation: [Modulation; 15],
    /// Highest MCS for CFI 1…3.
    caps: [u8; 3],
}

impl Thresholds {
    /// Computes the thresholds. The CQI is the highest index whose block error rate is at most 10 % on the reference
    /// resource.
    ///
    /// Source: TS 36.213 §7.2.3
    pub(super) fn new(plan: &AdaptationPlan, bler: &Bler, grid: Grid) -> Thresholds {
        let AdaptationPlan { config, table } = plan;
        let table = *table;
        let mut mcs_db: Vec<f64> =
            (0..=table.last_mcs()).map(|mcs| bler.sinr_db_for(reference_block(table, mcs), 0.1)).collect();
        if let CodeTable::Ldpc(_) = table {
            // Where the modulation changes, two MCSs of NR carry the same number of bits: the thresholds must not fall.
            for mcs in 1..mcs_db.len() {
                mcs_db[mcs] = mcs_db[mcs].max(mcs_db[mcs - 1]);
            }
        }
        let mcs_of_cqi = mcs_of_cqi(table);
        let cqi_db = match (config.lena_compat, config.cqi_scope) {
            (true, CqiScope::Subband) => LENA_SWITCHING_POINTS_DB,
            (true, CqiScope::Wideband) => lena_wideband_points_db(bler, grid),
            (false, _) => mcs_of_cqi.map(|mcs| mcs_db[usize::from(mcs)]),
        };
        Thresholds {
            cqi_db,
            mcs_db,
            cqi_modulation: mcs_of_cqi.map(|mcs| reference_block(table, mcs).modulation()),
            caps: [1, 2, 3].map(|cfi| match table {
                CodeTable::Turbo(table) => {
                    let res_per_prb = pdsch_res_per_prb(cfi, config.antenna_ports, grid.prbs);
                    table.highest_mcs(table.last_mcs(), grid.prbs, res_per_prb)
                }
                // The block size of NR follows from the resource elements, so the code rate is that of the MCS.
                CodeTable::Ldpc(table) => table.last_mcs(),
            }),
        }
    }

    /// The highest CQI that the SINR over these PRBs supports, with a measurement error of `error_db`; 0 if none.
    pub(super) fn cqi(&self, snapshot: &Snapshot<'_>, prbs: PrbSet, error_db: f64) -> u8 {
        let mut cqi = 15;
        let mut modulation = self.cqi_modulation[14];
        let mut sinr_db = snapshot.effective_sinr_db(prbs, modulation) + error_db;
        while cqi > 0 {
            let index = cqi - 1;
            if modulation != self.cqi_modulation[index] {
                modulation = self.cqi_modulation[index];
                sinr_db = snapshot.effective_sinr_db(prbs, modulation) + error_db;
            }
            if sinr_db >= self.cqi_db[index] {
                break;
            }
            cqi -= 1;
        }
        cqi as u8
    }

    /// The lowest SINR in dB at which a device reports this CQI.
    pub(super) fn sinr_db_of(&self, cqi: u8) -> f64 {
        match cqi {
            0 => SINR_FLOOR_DB,
            cqi => self.cqi_db[usize::from(cqi.min(15)) - 1],
        }
    }

    pub(super) fn modulation_of(&self, cqi: u8) -> Modulation {
        self.cqi_modulation[usize::from(cqi.clamp(1, 15)) - 1]
    }

    /// The highest MCS whose threshold is at most `sinr_db`; 0 if there is none.
    pub(super) fn highest_mcs(&self, sinr_db: f64) -> u8 {
        // Thresholds contain the rounding error of the inverse error curve. Such a small difference must not lower the
        // MCS.
        let reached = self.mcs_db.partition_point(|&threshold_db| threshold_db <= sinr_db + 1e-9);
        (reached.max(1) - 1) as u8
    }

    #[inline]
    pub(super) fn cap(&self, cfi: u8) -> u8 {
        self.caps[usize::from(cfi.clamp(1, 3)) - 1]
    }
}

/// The MCS that LENA uses for a CQI 1…15: only even MCSs, up to 28.
pub(super) fn even_mcs(cqi: u8) -> u8 {
    2 * (cqi - 1)
}

/// The MCS for each CQI 1…15. In LTE, it has the modulation of the CQI, and the code rate nearest to the code rate of the
/// CQI. In NR, it is the highest MCS whose spectral efficiency is at most that of the CQI.
pub(super) fn mcs_of_cqi(table: CodeTable) -> [u8; 15] {
    match table {
        CodeTable::Turbo(lte::McsTable::Qam64) => [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28],
        CodeTable::Turbo(lte::McsTable::Qam256) => [0, 2, 4, 6, 8, 10, 11, 13, 15, 17, 19, 21, 23, 25, 27],
        CodeTable::Ldpc(table) => {
            let efficiency = |modulation: Modulation, rate: CodeRate| {
                modulation.bits_per_symbol() * u32::from(rate.as_2048ths())
            };
            let of_mcs = |mcs: u8| {
                let row = table.mcs(mcs)?;
                Some(efficiency(row.modulation, row.rate?))
            };
            std::array::from_fn(|index| {
                let cqi = table.cqi(index as u8 + 1);
                let most = cqi.map_or(0, |cqi| efficiency(cqi.modulation, cqi.rate));
                let usable = |mcs: &u8| of_mcs(*mcs).is_some_and(|of_mcs| of_mcs <= most);
                (0..=table.last_mcs()).rfind(usable).unwrap_or(0)
            })
        }
    }
}

/// The transport block for which the SINR thresholds are defined.
///
/// Chosen: 50 PRB pairs. The standard's reference resource is the whole band, which shifts thresholds by at most 0.2 dB.
pub(super) fn reference_block(table: CodeTable, mcs: u8) -> Block {
    let bits = match table {
        CodeTable::Turbo(table) => table.tbs(mcs, 50, 1),
        CodeTable::Ldpc(table) => {
            let allocation =
                nr::Allocation { n_prb: 50, symbols: 12, dmrs_res_per_prb: 12, overhead_res_per_prb: 0 };
            table.tbs(mcs, &allocation, 1)
        }
    };
    Block { table, mcs, bits: bits.unwrap_or(Bits::ZERO) }
}

/// Minimum SINR in dB for wideband CQI 1…15 in LENA. As for an RBG, LENA tests MCS 2k - 1 for CQI k and takes the
/// highest CQI before the first MCS that fails. But for the wideband CQI it tests a block of the whole band, whose
/// error curve is steeper.
///
/// Source: our measurements of ns-3.37 (round robin, which reads this CQI, gives MCS 8 at 2 dB where the schedulers that
/// read RBGs' give 6)
fn lena_wideband_points_db(bler: &Bler, grid: Grid) -> [f64; 15] {
    let table = lte::McsTable::Qam64;
    let needed_db = |mcs| {
        let bits = table.tbs(mcs, grid.prbs, 1).unwrap_or(Bits::ZERO);
        bler.sinr_db_for(Block { table: table.into(), mcs, bits }, 0.1)
    };
    std::array::from_fn(|index| {
        let last = if index == 14 { 28 } else { 2 * index as u8 + 1 };
        (0..=last).map(needed_db).fold(f64::MIN, f64::max)
    })
}

/// Minimum SINR in dB for CQI 1…15 of an RBG in LENA, as measured on ns-3.37.
const LENA_SWITCHING_POINTS_DB: [f64; 15] =
    [-4.40, -3.45, -1.30, 0.50, 2.05, 4.35, 6.05, 7.75, 10.25, 11.50, 13.60, 15.50, 16.95, 18.90, 19.85];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cqi_of_nr_uses_the_highest_mcs_that_is_not_more_efficient() {
        // Of two MCSs with equal efficiency, such as 16 and 17 of table 1, the one with the higher modulation is used.
        let qam64 = mcs_of_cqi(nr::McsTable::Qam64.into());
        assert_eq!(qam64, [0, 0, 2, 4, 6, 8, 11, 13, 15, 18, 20, 22, 24, 26, 28]);
        assert_eq!(mcs_of_cqi(nr::McsTable::Qam256.into())[14], 27);
        for table in [nr::McsTable::Qam64, nr::McsTable::Qam256, nr::McsTable::LowEfficiency] {
            let of_cqi = mcs_of_cqi(table.into());
            assert!(of_cqi.windows(2).all(|pair| pair[0] <= pair[1]), "{table:?}: {of_cqi:?}");
        }
    }
}
