//! Allocation of PRBs to users: over the whole run, and as a PRB map around the largest change.

use airpace_core::Direction;
use airpace_run::metrics::Carrier;
use airpace_run::metrics::significant;
use airpace_run::summary::RunSummary;
use airpace_tables::direction;
use airpace_tables::read::{Part, Source, Words};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use serde::Serialize;

use super::intervals::Intervals;
use crate::PageError;

/// Maximum number of subframes and of slots in the map.
///
/// Chosen: a slot is at least two pixels wide on a screen.
const MAP_SUBFRAMES: usize = 200;
const MAP_SLOTS: usize = 400;
/// Length of the intervals whose comparison yields the largest change (ms).
const CHANGE_MS: f64 = 100.0;

/// Maximum number of intervals in which the largest change is searched. In longer runs, the intervals are longer. The
/// duration of a run is an untrusted value from its folder.
///
/// Chosen: the intervals of one day.
const MAX_INTERVALS: usize = 864_000;

/// PRB allocation in one direction of the cell under one scheme.
#[derive(Serialize)]
pub(super) struct CellCourse {
    scheme: String,
    #[serde(with = "airpace_tables::direction")]
    direction: Direction,
    carriers: Vec<Carrier>,
    /// Users of PRBs: each device of the scenario, `background`, `control`, and `idle` for unused PRBs.
    users: Vec<String>,
    /// For each user and interval: share of all PRBs of all carriers, in %. All PRBs are those of the slots that can carry
    /// data of this direction.
    share_percent: Vec<Vec<f64>>,
    /// For each device in `users`: the granted bandwidth.
    granted: Vec<Granted>,
    /// Whether all blocks of a grant with a retransmitted block count as retransmitted. This is the case if the table was
    /// written by an older version and lacks the column `new_bits`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repeats_whole_grants: bool,
    map: PrbMap,
}

/// Bandwidth of a device's grants per interval, in Mbit/s, from the transport blocks of all carriers. New blocks are the
/// bandwidth from which BISCAY computes its sending rate.
///
/// Source: BISCAY §3.2.2
#[derive(Serialize)]
struct Granted {
    device: u16,
    /// Blocks that were transmitted for the first time.
    new_mbps: Vec<f64>,
    /// Blocks that HARQ retransmitted.
    again_mbps: Vec<f64>,
}

/// Map of PRB × slot for a part of the run. A slot of a carrier of LTE is a subframe.
#[derive(Serialize)]
struct PrbMap {
    /// Start of the map, in ms.
    start_ms: f64,
    /// Length of the map in subframes, that is in ms.
    subframes: usize,
    /// All users with a grant in the map.
    owners: Vec<String>,
    /// Grants as (slot from the start of the map, carrier, first PRB, number of PRBs, index in `owners`, MCS or -1, 1 if retransmitted).
    grants: Vec<(usize, u8, u16, u16, usize, i16, u8)>,
}

/// Reads the PRB allocation of a run in one direction; `None` if the last hop is not a cell.
pub(super) fn read(
    source: Source<'_>,
    run: &RunSummary,
    direction: Direction,
    intervals: Intervals,
    most_grants: usize,
) -> Result<Option<CellCourse>, PageError> {
    if run.carriers.is_empty() {
        return Ok(None);
    }
    let devices = devices(run);
    let users = users(&devices);
    let part = source.part("prbs", run.key())?;
    let mut prbs = vec![vec![0_u64; intervals.count()]; users.len()];
    // By device: bits of new blocks, and bits of retransmitted blocks.
    let mut bits = vec![[(); 2].map(|()| vec![0_u64; intervals.count()]); devices.len()];
    let changes =
        Intervals::of(run.duration_s, ((run.duration_s * 1e3 / CHANGE_MS) as usize).min(MAX_INTERVALS));
    let mut others = vec![0_i64; changes.count()];
    let repeats_whole_grants = !part.columns()?.iter().any(|column| column == "new_bits");
    let of_new_blocks = if repeats_whole_grants { "retransmission" } else { "new_bits" };
    part.for_each(&["time_ms", "direction", "owner", "n_prb", "tbs_bits", of_new_blocks], |batch| {
        let tbs_bits = batch["tbs_bits"].as_primitive::<UInt32Type>();
        let new_bits = |row: usize| match repeats_whole_grants {
            true if batch["retransmission"].as_boolean().value(row) => 0,
            true => tbs_bits.value(row),
            false => batch["new_bits"].as_primitive::<UInt32Type>().value(row),
        };
        let goes_this_way = rows_that_go(direction, batch);
        let time_ms = batch["time_ms"].as_primitive::<Float64Type>();
        let n_prb = batch["n_prb"].as_primitive::<UInt16Type>();
        let owners = Words::of(batch, "owner");
        let users_of_owners = owners.map(|owner| user_of(&users, owner));
        for row in (0..batch.num_rows()).filter(|row| goes_this_way[*row]) {
            let (time_ms, n_prb) = (time_ms.value(row), n_prb.value(row));
            let user = users_of_owners[owners.place(row)];
            if let Some(index) = intervals.index(time_ms) {
                prbs[user][index] += u64::from(n_prb);
                // Only the first row of a grant contains its bits.
                if let Some(of_device) = bits.get_mut(user).filter(|_| tbs_bits.is_valid(row)) {
                    let (all, new) = (tbs_bits.value(row), new_bits(row));
                    of_device[0][index] += u64::from(new);
                    of_device[1][index] += u64::from(all.saturating_sub(new));
                }
            }
            if user != 0
                && let Some(index) = changes.index(time_ms)
            {
                others[index] += i64::from(n_prb);
            }
        }
        Ok(())
    })?;
    let per_ms: f64 =
        run.carriers.iter().map(|carrier| f64::from(carrier.prbs) * carrier.slots_per_ms(direction)).sum();
    let mbps = |bits: &[u64]| -> Vec<f64> {
        bits.iter().enumerate().map(|(index, bits)| intervals.mbps(index, bits / 8)).collect()
    };
    let granted = devices.iter().zip(&bits).map(|(&device, [new, again])| Granted {
        device,
        new_mbps: mbps(new),
        again_mbps: mbps(again),
    });
    Ok(Some(CellCourse {
        scheme: run.scheme.clone(),
        direction,
        carriers: run.carriers.clone(),
        share_percent: shares(&prbs, intervals, run.duration_s, per_ms),
        granted: granted.collect(),
        repeats_whole_grants,
        users,
        map: PrbMap::read(&part, direction, &run.carriers, moment_of_change(&others), most_grants)?,
    }))
}

/// For each row, whether its grant is for this direction.
fn rows_that_go(direction: Direction, batch: &RecordBatch) -> Vec<bool> {
    let ways = Words::of(batch, "direction");
    let is_it = ways.map(|name| direction::of_word(name) == direction);
    (0..batch.num_rows()).map(|row| is_it[ways.place(row)]).collect()
}

/// The devices of the run's flows, without duplicates.
fn devices(run: &RunSummary) -> Vec<u16> {
    let mut devices: Vec<u16> = run.flows.iter().map(|flow| flow.device).collect();
    devices.sort_unstable();
    devices.dedup();
    devices
}

/// The names of the devices of the run's flows, then `background`, `control` and `idle`.
fn users(devices: &[u16]) -> Vec<String> {
    let mut users: Vec<String> = devices.iter().map(|device| format!("device {device}")).collect();
    users.extend(["background", "control", "idle"].map(str::to_owned));
    users
}

/// Index in `users` of an owner that the table names.
fn user_of(users: &[String], owner: &str) -> usize {
    let background = users.len() - 3;
    match users.iter().position(|user| user == owner) {
        Some(place) => place,
        None if owner == "control" => background + 1,
        None => background,
    }
}

/// Share of each user in all PRBs, by interval. `per_ms` is the number of PRBs per ms, over all slots and carriers.
fn shares(prbs: &[Vec<u64>], intervals: Intervals, duration_s: f64, per_ms: f64) -> Vec<Vec<f64>> {
    let mut shares: Vec<Vec<f64>> = prbs.iter().map(|_| Vec::new()).collect();
    for index in 0..intervals.count() {
        let start_s = index as f64 * intervals.span_s();
        let subframes = (intervals.span_s().min(duration_s - start_s) * 1e3).round();
        let all = per_ms * subframes;
        let mut idle = 100.0;
        for (share, prbs) in shares.iter_mut().zip(prbs).take(prbs.len() - 1) {
            let percent = prbs[index] as f64 / all * 100.0;
            idle -= percent;
            share.push(significant(percent));
        }
        // Rounding errors must not make the share negative.
        shares[prbs.len() - 1].push(significant(idle.max(0.0)));
    }
    shares
}

/// Time in ms of the largest change in the other users' PRBs.
fn moment_of_change(others: &[i64]) -> f64 {
    let changes = others.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    // If changes are equal, take the earliest.
    let greatest = changes.enumerate().rev().max_by_key(|(_, change)| *change);
    greatest.map_or(0.0, |(index, _)| (index + 1) as f64 * CHANGE_MS)
}

/// Number of slots of a carrier in a subframe of 1 ms. The numerology is an untrusted number of a run folder.
fn slots_per_subframe(carrier: &Carrier) -> usize {
    carrier.nr.map_or(1, |nr| 1 << nr.numerology.min(4))
}

impl PrbMap {
    /// Reads the map whose middle is at `middle_ms`.
    fn read(
        part: &Part,
        direction: Direction,
        carriers: &[Carrier],
        middle_ms: f64,
        most_grants: usize,
    ) -> Result<PrbMap, PageError> {
        let most_slots = carriers.iter().map(slots_per_subframe).max().unwrap_or(1);
        let subframes = MAP_SUBFRAMES.min(MAP_SLOTS / most_slots);
        let start_ms = (middle_ms - subframes as f64 / 2.0).max(0.0);
        let mut map = PrbMap { start_ms, subframes, owners: Vec::new(), grants: Vec::new() };
        let columns =
            ["time_ms", "carrier", "direction", "owner", "first_prb", "n_prb", "mcs", "retransmission"];
        // On a carrier of NR, a downlink slot can grant several uplink slots. The map shows the slots of the data.
        let has_offsets = part.columns()?.iter().any(|column| column == "offset_slots");
        let of_nr: &[&str] = if has_offsets { &["offset_slots"] } else { &[] };
        part.for_each(&[&columns, of_nr].concat(), |batch| {
            let time_ms = batch["time_ms"].as_primitive::<Float64Type>();
            let bytes = |column: &str| batch[column].as_primitive::<UInt8Type>();
            let (carrier, mcs) = (bytes("carrier"), bytes("mcs"));
            let prbs = |column: &str| batch[column].as_primitive::<UInt16Type>();
            let (first_prb, n_prb) = (prbs("first_prb"), prbs("n_prb"));
            let again = batch["retransmission"].as_boolean();
            let offsets = has_offsets.then(|| bytes("offset_slots"));
            let offset = |row: usize| {
                offsets.filter(|column| column.is_valid(row)).map_or(0, |column| column.value(row))
            };
            let owners = Words::of(batch, "owner");
            let goes_this_way = rows_that_go(direction, batch);
            for row in (0..batch.num_rows()).filter(|row| goes_this_way[*row]) {
                let on = carriers.iter().find(|known| known.carrier == carrier.value(row));
                let per_subframe = on.map_or(1, slots_per_subframe);
                let slot = (time_ms.value(row) - start_ms) * per_subframe as f64 + f64::from(offset(row));
                if slot < 0.0 || slot >= (map.subframes * per_subframe) as f64 {
                    continue;
                }
                let slot = slot as usize;
                if map.grants.len() >= most_grants {
                    // The map ends before the first subframe whose grants would exceed the maximum.
                    map.subframes = slot / per_subframe;
                    map.cut(carriers);
                    continue;
                }
                let owner = map.owner(owners.word(row));
                let mcs = if mcs.is_valid(row) { i16::from(mcs.value(row)) } else { -1 };
                let (first, len) = (first_prb.value(row), n_prb.value(row));
                let again = u8::from(again.value(row));
                map.grants.push((slot, carrier.value(row), first, len, owner, mcs, again));
            }
            Ok(())
        })?;
        Ok(map)
    }

    /// Removes the grants after the end of the map.
    fn cut(&mut self, carriers: &[Carrier]) {
        let subframes = self.subframes;
        self.grants.retain(|&(slot, carrier, ..)| {
            let on = carriers.iter().find(|known| known.carrier == carrier);
            slot / on.map_or(1, slots_per_subframe) < subframes
        });
    }

    fn owner(&mut self, name: &str) -> usize {
        self.owners.iter().position(|known| known == name).unwrap_or_else(|| {
            self.owners.push(name.to_owned());
            self.owners.len() - 1
        })
    }
}
