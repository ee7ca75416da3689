//! Link adaptation: the device's delayed and quantized channel reports, and the MCS that the base station derives from
//! them.
//!
//! SINR (+ estimation noise) → CQI, 4 bits, every `cqi_period_ms` → at the base station after `cqi_delay_ms` → the CQI's
//! threshold SINR + the outer loop's offset → the highest MCS whose block error rate is within the target.

use std::collections::VecDeque;

use airpace_core::tables::Modulation;
use airpace_core::tables::lte::{McsTable, pdsch_res_per_prb};
use airpace_core::{Bits, Draws, Streams};
use airpace_radio::PrbSet;
use serde::{Deserialize, Serialize};

use super::bler::information::{SINR_FLOOR_DB, effective_sinr_db};
use super::bler::{Bler, BlerModel, Block};
use super::channel::{Channel, Grid, Snapshot};
use crate::config_error::{ConfigError, not_negative};

mod outer_loop;

pub(super) use outer_loop::OuterLoop;
pub use outer_loop::Step;

/// Scope of a CQI report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CqiScope {
    /// A report has one value for the whole band.
    #[default]
    Wideband,
    /// A report has one value per subband, in addition to the wideband value.
    Subband,
}

/// Rule that derives the MCS of a grant from the CQIs of its RBGs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantMcs {
    /// The MCS follows from the effective SINR of the CQIs: a block is coded across all its RBGs, so RBGs with a high
    /// SINR compensate for RBGs with a low SINR.
    #[default]
    EffectiveSinr,
    /// The MCS follows from the lowest CQI, as in ns-3's LENA. If the RBGs differ, most of the capacity of the better
    /// RBGs is lost.
    WorstRbg,
}

/// Configuration of link adaptation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptationConfig {
    /// Whether MCS and CQI use the tables with 256QAM.
    pub qam256: bool,
    /// Scope of CQI reports.
    pub cqi_scope: CqiScope,
    /// Rule that derives a grant's MCS from the CQIs of subbands. It has no effect on wideband reports.
    pub grant_mcs: GrantMcs,
    /// Subframes between reports.
    pub cqi_period_ms: u32,
    /// Subframes from the measurement to its first use.
    ///
    /// Chosen: 6. The device takes 4 subframes from reference to report, and the base station 1…4, which makes 6…8.
    pub cqi_delay_ms: u32,
    /// Standard deviation of the measured SINR's error in dB.
    pub measurement_sigma_db: f64,
    /// Whether the outer loop corrects the CQI by the errors of first transmissions. It has no effect unless errors
    /// follow the SINR (`BlerModel::Sinr`), because otherwise a lower MCS would not help.
    pub outer_loop: bool,
    /// Target share of first transmissions that are lost.
    pub outer_loop_target: f64,
    /// Step by which a lost first transmission lowers the SINR, in dB. A received first transmission raises the SINR by
    /// step · target / (1 - target).
    pub outer_loop_step_db: f64,
    /// Minimum offset that the outer loop adds to the SINR, in dB.
    pub outer_loop_min_db: f64,
    /// Maximum offset that the outer loop adds to the SINR, in dB.
    pub outer_loop_max_db: f64,
    /// Ports of cell-specific reference signals (1, 2 or 4). Together with the CFI they limit the MCS.
    pub antenna_ports: u8,
    /// Whether to emulate ns-3 LENA: its CQI switching points, a CQI for every RBG, every second MCS, no outer loop, no
    /// limit by the CFI.
    pub lena_compat: bool,
}

impl Default for AdaptationConfig {
    fn default() -> AdaptationConfig {
        AdaptationConfig {
            qam256: false,
            cqi_scope: CqiScope::Wideband,
            grant_mcs: GrantMcs::EffectiveSinr,
            cqi_period_ms: 5,
            cqi_delay_ms: 6,
            measurement_sigma_db: 0.0,
            outer_loop: true,
            outer_loop_target: 0.1,
            outer_loop_step_db: 0.5,
            outer_loop_min_db: -15.0,
            outer_loop_max_db: 5.0,
            antenna_ports: 2,
            lena_compat: false,
        }
    }
}

impl AdaptationConfig {
    /// The table that MCS and CQI use.
    pub const fn mcs_table(&self) -> McsTable {
        if self.qam256 { McsTable::Qam256 } else { McsTable::Qam64 }
    }

    /// The validated plan of this link adaptation.
    /// # Errors
    /// The configuration cannot be used; the error names the key and the remedy.
    pub fn plan(&self) -> Result<AdaptationPlan, ConfigError> {
        self.check()?;
        Ok(AdaptationPlan { config: self.clone() })
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.cqi_period_ms == 0 {
            return Err(ConfigError::new("cqi_period_ms", "is 0; give at least 1"));
        }
        not_negative("measurement_sigma_db", self.measurement_sigma_db)?;
        if !(0.001..=0.5).contains(&self.outer_loop_target) {
            let reason = format!("is {}; give 0.001 to 0.5 (0.1 is usual)", self.outer_loop_target);
            return Err(ConfigError::new("outer_loop_target", reason));
        }
        not_negative("outer_loop_step_db", self.outer_loop_step_db)?;
        not_negative("outer_loop_max_db", self.outer_loop_max_db)?;
        if !(-40.0..=0.0).contains(&self.outer_loop_min_db) {
            let reason = format!("is {}; give -40 to 0", self.outer_loop_min_db);
            return Err(ConfigError::new("outer_loop_min_db", reason));
        }
        if ![1, 2, 4].contains(&self.antenna_ports) {
            return Err(ConfigError::new(
                "antenna_ports",
                format!("is {}; give 1, 2 or 4", self.antenna_ports),
            ));
        }
        if self.lena_compat && self.qam256 {
            return Err(ConfigError::new(
                "qam256",
                "is true, but lena_compat knows no 256QAM; drop one of them",
            ));
        }
        Ok(())
    }
}

/// A validated link adaptation that can be instantiated any number of times.
#[derive(Clone, Debug)]
pub struct AdaptationPlan {
    config: AdaptationConfig,
}

impl AdaptationPlan {
    /// The configuration of the plan.
    pub fn config(&self) -> &AdaptationConfig {
        &self.config
    }
}

/// Link adaptation of one device on one carrier: the device's reports and the base station's choice of MCS.
#[derive(Clone, Debug)]
pub struct LinkAdaptation {
    config: AdaptationConfig,
    grid: Grid,
    tables: Thresholds,
    subband_prbs: u16,
    /// Whether the outer loop is active: it is enabled, and errors depend on the SINR.
    outer_loop: bool,
    /// The subframe within the period in which this device sends reports.
    phase: u64,
    /// The next subframe with a report; 0 before the first report, which is sent when the device attaches.
    report_at: u64,
    /// The next subframe in which a report is sent or arrives.
    wakes_at: u64,
    /// Reports in flight, with the subframe from which the base station can use them.
    under_way: VecDeque<(u64, Report)>,
    report: Report,
    outer: OuterLoop,
    /// Cached result of `mcs_of` for the whole band, without the limit by the CFI. This MCS is read far more often than
    /// it changes.
    wideband_mcs: Option<u8>,
    /// Input of the outer loop: the value of `wideband_mcs`, and the lowest offset with which this MCS is chosen.
    step: Step,
    /// Random measurement errors of the SINR, by subframe.
    noise: Draws,
}

/// One CQI report. CQI 0 means "out of range".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Report {
    wideband: u8,
    /// CQI of each subband; empty if only the wideband CQI was sent.
    subbands: Vec<u8>,
}

impl LinkAdaptation {
    /// Link adaptation on a carrier with this grid. The reports' phase and the measurement noise come from the stream and
    /// the draws with the name `name`.
    pub fn new(
        plan: &AdaptationPlan,
        bler: &Bler,
        grid: Grid,
        streams: &Streams,
        name: &str,
    ) -> LinkAdaptation {
        let config = &plan.config;
        let period = u64::from(config.cqi_period_ms);
        let phase = if config.lena_compat { 0 } else { streams.stream(name).below(period) };
        LinkAdaptation {
            tables: Thresholds::new(config, bler, grid),
            subband_prbs: if config.lena_compat { grid.rbg_prbs } else { subband_prbs(grid.prbs) },
            outer_loop: config.outer_loop && !config.lena_compat && bler.model() == BlerModel::Sinr,
            phase,
            report_at: 0,
            wakes_at: 0,
            under_way: VecDeque::new(),
            report: Report::default(),
            outer: OuterLoop::new(config),
            wideband_mcs: None,
            step: Step::default(),
            noise: streams.draws(name),
            grid,
            config: config.clone(),
        }
    }

    /// Updates the reports at the start of a subframe: measures `channel` if a report is due, and applies reports that
    /// have arrived. Call it once in every subframe, before choosing an MCS.
    ///
    /// The first report is applied immediately, because the device sent it when it attached.
    #[inline]
    pub fn update(&mut self, subframe: u64, channel: &mut Channel) {
        if subframe >= self.wakes_at {
            self.exchange_reports(subframe, channel);
        }
    }

    /// Sends and receives the reports that are due in this subframe.
    #[inline(never)]
    fn exchange_reports(&mut self, subframe: u64, channel: &mut Channel) {
        if subframe >= self.report_at {
            self.send_report(subframe, channel);
        }
        while self.under_way.front().is_some_and(|(known_from, _)| *known_from <= subframe) {
            if let Some((_, report)) = self.under_way.pop_front() {
                if report.wideband != self.report.wideband {
                    self.outer.channel_changed();
                }
                self.report = report;
                self.choose_wideband_mcs();
            }
        }
        let arrives_at = self.under_way.front().map_or(u64::MAX, |(known_from, _)| *known_from);
        self.wakes_at = self.report_at.min(arrives_at);
    }

    /// Measures `channel` if a report is due in this subframe, and determines the subframe of the next report.
    fn send_report(&mut self, subframe: u64, channel: &mut Channel) {
        let period = u64::from(self.config.cqi_period_ms);
        let since = (subframe % period + period - self.phase) % period;
        if self.report_at == 0 {
            self.report = self.measure(subframe, &channel.at(subframe));
            self.choose_wideband_mcs();
        } else if since == 0 {
            let report = self.measure(subframe, &channel.at(subframe));
            self.under_way.push_back((subframe + u64::from(self.config.cqi_delay_ms), report));
        }
        self.report_at = subframe + period - since;
    }

    /// The wideband CQI in use, 0…15; 0 means that even a block with the lowest MCS would not be received.
    pub fn cqi(&self) -> u8 {
        self.report.wideband
    }

    /// The MCS for data over the whole band under this CFI; `None` while the device is out of range.
    #[inline]
    pub fn mcs(&self, cfi: u8) -> Option<u8> {
        self.wideband_mcs.map(|mcs| self.limited(mcs, cfi))
    }

    /// The MCS for a flat band with this SINR, without measurement noise and without corrections of the outer loop;
    /// `None` if the device is out of range.
    pub(super) fn nominal_mcs(&self, sinr_db: f64, cfi: u8) -> Option<u8> {
        let cqi = self.tables.cqi_db.partition_point(|&needed_db| needed_db <= sinr_db) as u8;
        let mcs = match cqi {
            0 => return None,
            cqi if self.config.lena_compat => even_mcs(cqi),
            cqi => self.tables.highest_mcs(self.tables.sinr_db_of(cqi)),
        };
        Some(self.limited(mcs, cfi))
    }

    /// The MCS for RBG `index` alone. Schedulers compare users by this MCS.
    pub fn rbg_mcs(&self, index: u16, cfi: u8) -> Option<u8> {
        self.mcs_of(self.rbg_cqi(index)).map(|mcs| self.limited(mcs, cfi))
    }

    /// Whether RBGs that are out of range must not be granted together with other RBGs, because the RBG with the lowest
    /// CQI determines the MCS.
    pub fn shuns_bad_rbgs(&self) -> bool {
        self.config.grant_mcs == GrantMcs::WorstRbg
    }

    /// The MCS for an allocation, from the reports for its PRBs by the rule [`AdaptationConfig::grant_mcs`].
    pub fn mcs_on(&self, prbs: PrbSet, cfi: u8) -> Option<u8> {
        if self.report.subbands.is_empty() {
            return self.mcs(cfi);
        }
        if self.config.grant_mcs == GrantMcs::WorstRbg {
            let granted =
                (0..self.grid.rbgs()).filter(|&rbg| !self.grid.rbg(rbg).intersection(prbs).is_empty());
            let worst = granted.map(|rbg| self.rbg_cqi(rbg)).min()?;
            return self.mcs_of(worst).map(|mcs| self.limited(mcs, cfi));
        }
        let modulation = self.tables.modulation_of(self.report.wideband);
        let parts = (0..self.grid.rbgs()).map(|rbg| {
            let share = f64::from(self.grid.rbg(rbg).intersection(prbs).len());
            (self.tables.sinr_db_of(self.rbg_cqi(rbg)), share)
        });
        let sinr_db = effective_sinr_db(modulation, parts);
        if sinr_db < self.tables.cqi_db[0] {
            return None;
        }
        Some(self.tables.highest_mcs(sinr_db + self.offset_db()).min(self.tables.cap(cfi)))
    }

    /// The step of the outer loop at present. It belongs to the blocks whose MCS is chosen now.
    pub fn step(&self) -> Step {
        self.step
    }

    /// Informs the outer loop whether a *first* transmission was received. `step` was valid when the MCS of the block
    /// was chosen.
    pub fn on_first_transmission(&mut self, step: Step, received: bool) {
        if self.outer_loop {
            self.outer.on_first_transmission(step, received);
            self.choose_wideband_mcs();
        }
    }

    /// Offset in dB that the outer loop adds to the reported SINR.
    pub fn offset_db(&self) -> f64 {
        if self.outer_loop { self.outer.offset_db() } else { 0.0 }
    }

    /// Discards reports and corrections, for example after a handover.
    pub fn reset(&mut self) {
        self.report_at = 0;
        self.wakes_at = 0;
        self.under_way.clear();
        self.report = Report::default();
        self.outer = OuterLoop::new(&self.config);
        self.choose_wideband_mcs();
    }

    fn rbg_cqi(&self, index: u16) -> u8 {
        let subband = index * self.grid.rbg_prbs / self.subband_prbs;
        self.report.subbands.get(usize::from(subband)).copied().unwrap_or(self.report.wideband)
    }

    fn choose_wideband_mcs(&mut self) {
        self.wideband_mcs = self.mcs_of(self.report.wideband);
        let mcs = self.wideband_mcs.unwrap_or(0);
        let from_db = self.tables.mcs_db[usize::from(mcs)] - self.tables.sinr_db_of(self.report.wideband);
        self.step = Step { mcs, from_db };
    }

    /// The MCS for this CQI, without the limit by the CFI; `None` if the device is out of range.
    fn mcs_of(&self, cqi: u8) -> Option<u8> {
        if cqi == 0 {
            return None;
        }
        if self.config.lena_compat {
            return Some(even_mcs(cqi));
        }
        Some(self.tables.highest_mcs(self.tables.sinr_db_of(cqi) + self.offset_db()))
    }

    /// The MCS within the limit by the CFI. In LENA mode there is no such limit.
    #[inline]
    fn limited(&self, mcs: u8, cfi: u8) -> u8 {
        if self.config.lena_compat { mcs } else { mcs.min(self.tables.cap(cfi)) }
    }

    fn measure(&self, subframe: u64, snapshot: &Snapshot<'_>) -> Report {
        let error_db = match self.config.measurement_sigma_db {
            0.0 => 0.0,
            sigma_db => sigma_db * self.noise.at(subframe, 0).normal(),
        };
        let wideband = self.tables.cqi(snapshot, self.grid.all(), error_db);
        let subbands = match self.config.cqi_scope {
            CqiScope::Wideband => Vec::new(),
            CqiScope::Subband if snapshot.rbg_sinr_db.is_empty() => Vec::new(),
            CqiScope::Subband => (0..self.grid.prbs)
                .step_by(usize::from(self.subband_prbs))
                .map(|start| {
                    let subband = PrbSet::run(start, self.subband_prbs.min(self.grid.prbs - start));
                    self.tables.cqi(snapshot, subband, error_db)
                })
                .collect(),
        };
        Report { wideband, subbands }
    }
}

/// SINR thresholds in dB of CQIs and MCSs, with the limits by the CFI.
#[derive(Clone, Debug)]
struct Thresholds {
    /// SINR thresholds of CQI 1…15, in dB.
    cqi_db: [f64; 15],
    /// SINR thresholds of MCS 0…28 (0…27 in the table with 256QAM), in dB.
    mcs_db: Vec<f64>,
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
    fn new(config: &AdaptationConfig, bler: &Bler, grid: Grid) -> Thresholds {
        let table = config.mcs_table();
        let mcs_db: Vec<f64> =
            (0..=table.last_mcs()).map(|mcs| bler.sinr_db_for(reference_block(table, mcs), 0.1)).collect();
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
            caps: [1, 2, 3].map(|cfi| {
                let res_per_prb = pdsch_res_per_prb(cfi, config.antenna_ports, grid.prbs);
                table.highest_mcs(table.last_mcs(), grid.prbs, res_per_prb)
            }),
        }
    }

    /// The highest CQI that the SINR over these PRBs supports, with a measurement error of `error_db`; 0 if none.
    fn cqi(&self, snapshot: &Snapshot<'_>, prbs: PrbSet, error_db: f64) -> u8 {
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
    fn sinr_db_of(&self, cqi: u8) -> f64 {
        match cqi {
            0 => SINR_FLOOR_DB,
            cqi => self.cqi_db[usize::from(cqi.min(15)) - 1],
        }
    }

    fn modulation_of(&self, cqi: u8) -> Modulation {
        self.cqi_modulation[usize::from(cqi.clamp(1, 15)) - 1]
    }

    /// The highest MCS whose threshold is at most `sinr_db`; 0 if there is none.
    fn highest_mcs(&self, sinr_db: f64) -> u8 {
        // Thresholds contain the rounding error of the inverse error curve. Such a small difference must not lower the
        // MCS.
        let reached = self.mcs_db.partition_point(|&threshold_db| threshold_db <= sinr_db + 1e-9);
        (reached.max(1) - 1) as u8
    }

    #[inline]
    fn cap(&self, cfi: u8) -> u8 {
        self.caps[usize::from(cfi.clamp(1, 3)) - 1]
    }
}

/// The MCS that LENA uses for a CQI 1…15: only even MCSs, up to 28.
fn even_mcs(cqi: u8) -> u8 {
    2 * (cqi - 1)
}

/// The MCS for each CQI 1…15. It has the modulation of the CQI, and the code rate nearest to the code rate of the CQI.
fn mcs_of_cqi(table: McsTable) -> [u8; 15] {
    match table {
        McsTable::Qam64 => [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28],
        McsTable::Qam256 => [0, 2, 4, 6, 8, 10, 11, 13, 15, 17, 19, 21, 23, 25, 27],
    }
}

/// The transport block for which the SINR thresholds are defined.
///
/// Chosen: 50 PRB pairs. The standard's reference resource is the whole band, which shifts thresholds by at most 0.2 dB.
fn reference_block(table: McsTable, mcs: u8) -> Block {
    Block { table, mcs, bits: table.tbs(mcs, 50, 1).unwrap_or(Bits::ZERO) }
}

/// PRB pairs of a subband. On carriers of up to 6 PRB pairs, the only subband is the whole band.
///
/// Source: TS 36.213 §7.2.1 Table 7.2.1-3
const fn subband_prbs(carrier_prbs: u16) -> u16 {
    match carrier_prbs {
        0..=6 => 6,
        7..=26 => 4,
        27..=63 => 6,
        _ => 8,
    }
}

/// Minimum SINR in dB for wideband CQI 1…15 in LENA. As for an RBG, LENA tests MCS 2k - 1 for CQI k and takes the
/// highest CQI before the first MCS that fails. But for the wideband CQI it tests a block of the whole band, whose
/// error curve is steeper.
///
/// Source: our measurements of ns-3.37 (round robin, which reads this CQI, gives MCS 8 at 2 dB where the schedulers that
/// read RBGs' give 6)
fn lena_wideband_points_db(bler: &Bler, grid: Grid) -> [f64; 15] {
    let table = McsTable::Qam64;
    let needed_db = |mcs| {
        let bits = table.tbs(mcs, grid.prbs, 1).unwrap_or(Bits::ZERO);
        bler.sinr_db_for(Block { table, mcs, bits }, 0.1)
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
mod tests;
