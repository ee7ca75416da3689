//! Link adaptation: the device's delayed and quantized channel reports, and the MCS that the base station derives from
//! them.
//!
//! SINR (+ estimation noise) → CQI, 4 bits, every `cqi_period_ms` → at the base station after `cqi_delay_ms` → the CQI's
//! threshold SINR + the outer loop's offset → the highest MCS whose block error rate is within the target.

use std::collections::VecDeque;

use airpace_core::tables::{lte, nr};
use airpace_core::{Draws, Streams};
use airpace_radio::PrbSet;
use serde::{Deserialize, Serialize};

use super::bler::information::effective_sinr_db;
use super::bler::{Bler, BlerModel, CodeTable};
use super::channel::{Channel, Grid, Snapshot};
use crate::config_error::{ConfigError, not_negative};

mod outer_loop;
mod thresholds;

pub(super) use outer_loop::OuterLoop;
pub use outer_loop::Step;
use thresholds::{Thresholds, even_mcs};

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
    /// The table that MCS and CQI of LTE use.
    pub const fn mcs_table(&self) -> lte::McsTable {
        if self.qam256 { lte::McsTable::Qam256 } else { lte::McsTable::Qam64 }
    }

    /// The validated plan of this link adaptation on carriers of LTE.
    /// # Errors
    /// The configuration cannot be used; the error names the key and the remedy.
    pub fn plan(&self) -> Result<AdaptationPlan, ConfigError> {
        self.check()?;
        Ok(AdaptationPlan { config: self.clone(), table: self.mcs_table().into() })
    }

    /// The validated plan of this link adaptation on carriers of NR, with this table of MCS and CQI.
    /// # Errors
    /// As [`AdaptationConfig::plan`].
    pub fn plan_nr(&self, table: nr::McsTable) -> Result<AdaptationPlan, ConfigError> {
        self.check()?;
        Ok(AdaptationPlan { config: self.clone(), table: table.into() })
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
    table: CodeTable,
}

impl AdaptationPlan {
    /// The configuration of the plan.
    pub fn config(&self) -> &AdaptationConfig {
        &self.config
    }

    /// The table of MCS and CQI.
    pub fn table(&self) -> CodeTable {
        self.table
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
    /// Slots between reports.
    period: u64,
    /// Slots from the measurement to its first use.
    delay: u64,
    /// The slot within the period in which this device sends reports.
    phase: u64,
    /// The next slot with a report; 0 before the first report, which is sent when the device attaches.
    report_at: u64,
    /// The next slot in which a report is sent or arrives.
    wakes_at: u64,
    /// Reports in flight, with the slot from which the base station can use them.
    under_way: VecDeque<(u64, Report)>,
    report: Report,
    outer: OuterLoop,
    /// Cached result of `mcs_of` for the whole band, without the limit by the CFI. This MCS is read far more often than
    /// it changes.
    wideband_mcs: Option<u8>,
    /// Input of the outer loop: the value of `wideband_mcs`, and the lowest offset with which this MCS is chosen.
    step: Step,
    /// Random measurement errors of the SINR, by slot.
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
        let slots_per_ms = grid.numerology.slots_per_subframe();
        let period = u64::from(config.cqi_period_ms) * slots_per_ms;
        let phase = if config.lena_compat { 0 } else { streams.stream(name).below(period) };
        LinkAdaptation {
            tables: Thresholds::new(plan, bler, grid),
            subband_prbs: match plan.table {
                CodeTable::Turbo(_) if !config.lena_compat => subband_prbs(grid.prbs),
                _ => grid.rbg_prbs,
            },
            outer_loop: config.outer_loop && !config.lena_compat && bler.model() == BlerModel::Sinr,
            period,
            delay: u64::from(config.cqi_delay_ms) * slots_per_ms,
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

    /// Updates the reports at the start of a slot: measures `channel` if a report is due, and applies reports that
    /// have arrived. Call it once in every slot with data, before choosing an MCS. A report that is due in another slot is
    /// measured in the next slot with data, because the device measures signals of the downlink.
    ///
    /// The first report is applied immediately, because the device sent it when it attached.
    #[inline]
    pub fn update(&mut self, slot: u64, channel: &mut Channel) {
        if slot >= self.wakes_at {
            self.exchange_reports(slot, channel);
        }
    }

    /// Sends and receives the reports that are due in this slot.
    #[inline(never)]
    fn exchange_reports(&mut self, slot: u64, channel: &mut Channel) {
        if slot >= self.report_at {
            self.send_report(slot, channel);
        }
        while self.under_way.front().is_some_and(|(known_from, _)| *known_from <= slot) {
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

    /// Measures `channel` if a report is due in this slot, and determines the slot of the next report.
    fn send_report(&mut self, slot: u64, channel: &mut Channel) {
        let since = (slot % self.period + self.period - self.phase) % self.period;
        if self.report_at == 0 {
            self.report = self.measure(slot, &channel.at(slot));
            self.choose_wideband_mcs();
        } else {
            let report = self.measure(slot, &channel.at(slot));
            self.under_way.push_back((slot + self.delay, report));
        }
        self.report_at = slot + self.period - since;
    }

    /// The SINR in dB for which the base station holds the device: that of the wideband CQI in use.
    pub(super) fn reported_sinr_db(&self) -> f64 {
        self.tables.sinr_db_of(self.report.wideband)
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

    fn measure(&self, slot: u64, snapshot: &Snapshot<'_>) -> Report {
        let error_db = match self.config.measurement_sigma_db {
            0.0 => 0.0,
            sigma_db => sigma_db * self.noise.at(slot, 0).normal(),
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

#[cfg(test)]
mod tests;
