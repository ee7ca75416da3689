//! Uplink link adaptation. The base station itself measures a device's sounding signals, so it uses a SINR instead of a
//! CQI. The age of the measurement in use is between `srs_delay_ms` and `srs_delay_ms` plus one period.

use std::collections::VecDeque;

use airpace_core::tables::Modulation;
use airpace_core::tables::lte::{self, McsTable, PUSCH_RES_PER_PRB};
use airpace_core::tables::nr;
use airpace_core::{Bits, Draws, Streams};
use airpace_radio::PrbSet;

use super::super::adaptation::{AdaptationConfig, OuterLoop, Step};
use super::super::bler::information::{SINR_FLOOR_DB, effective_sinr_db, sinr_db_of};
use super::super::bler::{Bler, BlerModel, Block, CodeTable};
use super::super::channel::{Channel, Grid, Snapshot};
use super::super::config::uplink::UplinkConfig;
use super::super::scheduler::{BlockSize, MAX_RBGS};

/// The uplink's MCS table with the SINR thresholds of its rows.
#[derive(Clone, Debug)]
pub(super) struct UplinkTable {
    rows: Vec<Row>,
    /// The table whose error curves are used.
    curves: CodeTable,
}

/// One row of the uplink's MCS table.
#[derive(Clone, Copy, Debug)]
struct Row {
    size: BlockSize,
    /// The MCS whose error curve is used: in LTE the downlink MCS with the same TBS index, in NR the MCS itself.
    like: u8,
    /// Additional SINR in dB that the row's own modulation needs, compared with the downlink MCS `like`, for the same
    /// mutual information.
    penalty_db: f64,
    /// The SINR in dB at which a tenth of the row's blocks is lost.
    needed_db: f64,
}

impl UplinkTable {
    /// The rows that devices may use on carriers of LTE.
    ///
    /// Source: TS 36.213 §8.6.1. Chosen: error curves were measured with the downlink's modulations. If the uplink
    /// uses a lower modulation for the same block, the SINR is reduced by the difference at which the two modulations
    /// carry the same information per resource element.
    pub(super) fn lte(config: &UplinkConfig, bler: &Bler) -> UplinkTable {
        let last = if config.qam64 { 28 } else { 20 };
        let mut rows = Vec::new();
        for (modulation, i_tbs) in (0..=last).filter_map(|mcs| lte::uplink_mcs(mcs)?.initial) {
            let like = downlink_mcs(modulation, i_tbs);
            let bits = lte::tbs(i_tbs, REFERENCE_PRBS, 1).unwrap_or(Bits::ZERO);
            let block = Block { table: McsTable::Qam64.into(), mcs: like, bits };
            let per_element = bits.0 as f64 / f64::from(u32::from(REFERENCE_PRBS) * PUSCH_RES_PER_PRB);
            let at = |modulation: Modulation| {
                sinr_db_of(modulation, per_element / f64::from(modulation.bits_per_symbol()))
            };
            let penalty_db = at(modulation) - at(block.modulation());
            let needed_db = bler.sinr_db_for(block, 0.1) + penalty_db;
            // Rounding errors in the curves must not give a row a lower required SINR than the previous row.
            let least_db = rows.last().map_or(f64::NEG_INFINITY, |below: &Row| below.needed_db);
            let size = BlockSize::Lte { i_tbs, codewords: 1 };
            rows.push(Row { size, like, penalty_db, needed_db: needed_db.max(least_db) });
        }
        UplinkTable { rows, curves: McsTable::Qam64.into() }
    }

    /// The rows that devices may use on carriers of NR whose PRBs have this number of resource elements for data.
    ///
    /// Source: TS 38.214 §6.1.4.1. Chosen: one layer.
    pub(super) fn nr(
        config: &UplinkConfig,
        table: nr::McsTable,
        res_per_prb: u16,
        bler: &Bler,
    ) -> UplinkTable {
        let mut rows: Vec<Row> = Vec::new();
        for (mcs, row) in (0..=table.last_mcs()).filter_map(|mcs| Some((mcs, table.mcs(mcs)?))) {
            let Some(rate) = row.rate.filter(|_| config.qam64 || row.modulation < Modulation::Qam64) else {
                continue;
            };
            let size = BlockSize::Nr { modulation: row.modulation, rate, layers: 1, res_per_prb };
            let block = Block { table: table.into(), mcs, bits: Bits(size.bits(REFERENCE_PRBS)) };
            // Where the modulation changes, two MCSs carry the same number of bits: the required SINR must not fall.
            let least_db = rows.last().map_or(f64::NEG_INFINITY, |below| below.needed_db);
            let needed_db = bler.sinr_db_for(block, 0.1).max(least_db);
            rows.push(Row { size, like: mcs, penalty_db: 0.0, needed_db });
        }
        UplinkTable { rows, curves: table.into() }
    }

    fn row(&self, mcs: u8) -> Row {
        self.rows[usize::from(mcs)]
    }

    /// The size of blocks of this MCS.
    pub(super) fn size(&self, mcs: u8) -> BlockSize {
        self.row(mcs).size
    }

    /// The block of this MCS on `prbs` PRB pairs.
    pub(super) fn block(&self, mcs: u8, prbs: u16) -> Block {
        let row = self.row(mcs);
        Block { table: self.curves, mcs: row.like, bits: Bits(row.size.bits(prbs)) }
    }

    /// The SINR in dB at which the block's curve is evaluated, for the actual SINR of its transmission.
    pub(super) fn judged_db(&self, mcs: u8, sinr_db: f64) -> f64 {
        sinr_db - self.row(mcs).penalty_db
    }

    fn highest(&self, sinr_db: f64) -> u8 {
        let reached = self.rows.partition_point(|row| row.needed_db <= sinr_db + 1e-9);
        (reached.max(1) - 1) as u8
    }
}

/// PRB pairs of the block for which thresholds are defined, as for the downlink.
const REFERENCE_PRBS: u16 = 50;

/// The downlink MCS with this TBS index. If there are two, the MCS with this modulation.
fn downlink_mcs(modulation: Modulation, i_tbs: u8) -> u8 {
    let rows = || (0..=McsTable::Qam64.last_mcs()).filter_map(|mcs| Some((mcs, McsTable::Qam64.mcs(mcs)?)));
    let same = |(_, row): &(u8, lte::Mcs)| row.i_tbs == Some(i_tbs);
    let exact = rows().filter(same).find(|(_, row)| row.modulation == modulation);
    exact.or_else(|| rows().find(same)).map_or(0, |(mcs, _)| mcs)
}

/// The base station's measurement of one device's channel on one uplink carrier.
#[derive(Clone, Debug)]
pub(super) struct Sounding {
    period: u64,
    delay: u64,
    sigma_db: f64,
    power_prbs: Option<u16>,
    /// The slot within the period in which this device sends its sounding signal.
    phase: u64,
    grid: Grid,
    under_way: VecDeque<(u64, Measured)>,
    known: Option<Measured>,
    /// The MCS for the whole band if the device's power is sufficient, as of the last update.
    mcs: Option<u8>,
    /// Input of the outer loop: the value of `mcs`, and the lowest offset with which this MCS is chosen.
    step: Step,
    /// The measured SINR in dB for which the outer loop learned its current offset.
    settled_db: f64,
    /// The outer loop; present only if a lower MCS helps.
    outer: Option<OuterLoop>,
    outer_config: AdaptationConfig,
    /// Random measurement errors of the SINR, by slot.
    noise: Draws,
}

/// Minimum change of the SINR in dB after which the outer loop retries a failed MCS.
///
/// Chosen: 1 dB. The outer loop of the downlink retries when the CQI changes; 1 dB is half the step from one CQI to the
/// next.
const MOVED_DB: f64 = 1.0;

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Measured {
    sinr_db: f64,
    /// SINR of each RBG in dB; `None` if all RBGs have the same SINR.
    rbgs_db: Option<[f64; MAX_RBGS]>,
}

impl Measured {
    fn of(snapshot: &Snapshot<'_>, error_db: f64) -> Measured {
        let mut rbgs_db = [0.0; MAX_RBGS];
        for (known, &sinr_db) in rbgs_db.iter_mut().zip(snapshot.rbg_sinr_db) {
            *known = sinr_db + error_db;
        }
        let is_flat = snapshot.rbg_sinr_db.is_empty();
        Measured { sinr_db: snapshot.sinr_db + error_db, rbgs_db: (!is_flat).then_some(rbgs_db) }
    }
}

impl Sounding {
    pub(super) fn new(
        config: &UplinkConfig,
        adaptation: &AdaptationConfig,
        bler: &Bler,
        grid: Grid,
        streams: &Streams,
        name: &str,
    ) -> Sounding {
        let slots_per_ms = grid.numerology.slots_per_subframe();
        let period = u64::from(config.srs_period_ms) * slots_per_ms;
        let has_outer = adaptation.outer_loop && bler.model() == BlerModel::Sinr;
        Sounding {
            period,
            delay: u64::from(config.srs_delay_ms) * slots_per_ms,
            sigma_db: config.measurement_sigma_db,
            power_prbs: config.power_prbs,
            phase: streams.stream(name).below(period),
            grid,
            under_way: VecDeque::new(),
            known: None,
            mcs: None,
            step: Step::default(),
            settled_db: f64::INFINITY,
            outer: has_outer.then(|| OuterLoop::new(adaptation)),
            outer_config: adaptation.clone(),
            noise: streams.draws(name),
        }
    }

    /// Updates the measurements at a slot. It must be called once in each slot. The first measurement is used
    /// immediately, because the device sent a sounding signal when it attached.
    pub(super) fn update(&mut self, slot: u64, table: &UplinkTable, channel: &mut Channel) {
        if self.known.is_none() {
            self.known = Some(self.measure(slot, &channel.at(slot)));
        } else if slot % self.period == self.phase {
            let measured = self.measure(slot, &channel.at(slot));
            self.under_way.push_back((slot + self.delay, measured));
        }
        while let Some(&(known_from, measured)) = self.under_way.front()
            && known_from <= slot
        {
            self.under_way.pop_front();
            self.known = Some(measured);
            let has_moved = (self.settled_db - measured.sinr_db).abs() >= MOVED_DB;
            if let Some(outer) = self.outer.as_mut().filter(|_| has_moved) {
                self.settled_db = measured.sinr_db;
                outer.channel_changed();
            }
        }
        self.mcs = self.known.and_then(|known| self.mcs_at(table, known.sinr_db, 1));
        if let Some(known) = self.known {
            let mcs = self.mcs.unwrap_or(0);
            self.step = Step { mcs, from_db: table.row(mcs).needed_db - known.sinr_db };
        }
    }

    /// The step of the outer loop at present. It belongs to the blocks that are granted now.
    pub(super) fn step(&self) -> Step {
        self.step
    }

    /// The SINR in dB that the base station measured.
    pub(super) fn known_sinr_db(&self) -> f64 {
        self.known.map_or(SINR_FLOOR_DB, |known| known.sinr_db)
    }

    /// The MCS for a block on `count` PRB pairs; `None` while even a block with the lowest MCS would not be received.
    pub(super) fn mcs(&self, table: &UplinkTable, count: u16) -> Option<u8> {
        if self.is_power_limited(count) { self.mcs_at(table, self.known?.sinr_db, count) } else { self.mcs }
    }

    /// As [`Sounding::mcs`], but before the first measurement, the MCS for a measurement of `sinr_db`.
    pub(super) fn mcs_or_of(&self, table: &UplinkTable, count: u16, sinr_db: f64) -> Option<u8> {
        self.mcs_at(table, self.known.map_or(sinr_db, |known| known.sinr_db), count)
    }

    /// The MCS on these PRB pairs.
    pub(super) fn mcs_on(&self, table: &UplinkTable, prbs: PrbSet) -> Option<u8> {
        let Some(Measured { rbgs_db: Some(rbgs_db), sinr_db }) = &self.known else {
            return self.mcs(table, prbs.len());
        };
        let parts = (0..self.grid.rbgs())
            .zip(rbgs_db)
            .map(|(rbg, &sinr_db)| (sinr_db, f64::from(self.grid.rbg(rbg).intersection(prbs).len())));
        let modulation = table.block(table.highest(*sinr_db), prbs.len()).modulation();
        self.mcs_at(table, effective_sinr_db(modulation, parts), prbs.len())
    }

    fn mcs_at(&self, table: &UplinkTable, sinr_db: f64, count: u16) -> Option<u8> {
        let sinr_db = sinr_db - self.thinning_db(count);
        if sinr_db < table.rows[0].needed_db {
            return None;
        }
        let offset_db = self.outer.as_ref().map_or(0.0, |outer| outer.offset_db());
        Some(table.highest(sinr_db + offset_db))
    }

    /// Reduction of the SINR in dB because the device's power is spread over `count` PRB pairs.
    pub(super) fn thinning_db(&self, count: u16) -> f64 {
        match self.power_prbs {
            Some(enough) if count > enough => 10.0 * libm::log10(f64::from(count) / f64::from(enough)),
            _ => 0.0,
        }
    }

    /// Whether the MCS depends on the number of PRB pairs.
    pub(super) fn is_power_limited(&self, count: u16) -> bool {
        self.power_prbs.is_some_and(|enough| count > enough)
    }

    /// Processes whether a block was received at the first attempt. `step` was valid when the block was granted.
    pub(super) fn on_first_transmission(&mut self, step: Step, is_received: bool) {
        if let Some(outer) = &mut self.outer {
            outer.on_first_transmission(step, is_received);
        }
    }

    /// Discards measurements and corrections, for example after a handover.
    pub(super) fn reset(&mut self) {
        self.under_way.clear();
        self.known = None;
        self.mcs = None;
        self.outer = self.outer.as_ref().map(|_| OuterLoop::new(&self.outer_config));
    }

    fn measure(&self, slot: u64, snapshot: &Snapshot<'_>) -> Measured {
        let error_db = match self.sigma_db {
            0.0 => 0.0,
            sigma_db => sigma_db * self.noise.at(slot, 0).normal(),
        };
        Measured::of(snapshot, error_db)
    }
}
