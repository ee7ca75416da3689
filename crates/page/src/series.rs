//! Time series of a run, in as many intervals as a figure can show.

use airpace_core::Direction;
use airpace_run::metrics::{cdf, nearest_rank, significant};
use airpace_run::summary::{FlowSummary, RunSummary, Summary};
use airpace_tables::direction;
use airpace_tables::read::{Source, Words};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use serde::Serialize;

use super::intervals::Intervals;
use super::packets::{self, PacketCourse};
use crate::PageError;

/// Share of the page's size that each run may use. It keeps the page below 8 MB for any number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// Maximum number of intervals per run.
    pub(super) intervals: usize,
    /// Maximum number of grants in a PRB map.
    pub(super) grants: usize,
}

impl Budget {
    pub(super) fn of(summary: &Summary) -> Budget {
        let shown = summary.runs.iter().filter(|run| is_first_seed(summary, run));
        let (runs, flows) = shown.fold((0, 0), |(runs, flows), run| (runs + 1, flows + run.flows.len()));
        Budget {
            intervals: (60_000 / flows.max(1)).clamp(60, 400),
            grants: (120_000 / runs.max(1)).clamp(200, 2_500),
        }
    }
}

/// Whether `run` is the first run of its scenario and scheme. Only the time series of the first run is drawn.
pub(super) fn is_first_seed(summary: &Summary, run: &RunSummary) -> bool {
    let same = |other: &&RunSummary| other.scenario == run.scenario && other.scheme == run.scheme;
    summary.runs.iter().find(same).is_some_and(|first| first.seed == run.seed)
}

/// Time series of a flow.
#[derive(Serialize)]
pub(super) struct FlowCourse {
    scheme: String,
    flow: usize,
    #[serde(flatten)]
    packets: PacketCourse,
    states: Vec<String>,
    /// Periods in a state: (start in s, end in s, index in `states`).
    stays: Vec<(f64, f64, usize)>,
    /// The scheme's estimates of the path's rate, under the scheme's names.
    estimates: Vec<Estimate>,
}

impl FlowCourse {
    fn of(
        run: &RunSummary,
        index: usize,
        packets: PacketCourse,
        controller: ControllerCourse,
        truth: Option<&CapacityCourse>,
    ) -> FlowCourse {
        FlowCourse {
            scheme: run.scheme.clone(),
            flow: index,
            packets,
            estimates: controller.estimates(run.flows[index].device, truth),
            stays: controller.stays(run.duration_s),
            states: controller.states,
        }
    }

    pub(super) fn states(&self) -> impl Iterator<Item = &str> {
        self.states.iter().map(String::as_str)
    }
}

/// A scheme's estimate of a rate.
#[derive(Serialize)]
struct Estimate {
    /// Name of the column, and its meaning in words. The values are in Mbit/s.
    name: String,
    words: String,
    mbps: Vec<Option<f64>>,
    /// Distribution of the relative error against the device's capacity in the flow's direction: (error in %, fraction of
    /// intervals with at most this error).
    error_cdf: Vec<(f64, f64)>,
    /// Median of the relative error, in %.
    median_error_percent: Option<f64>,
}

/// Capacity of the last hop to or from one device.
#[derive(Serialize)]
pub(super) struct CapacityCourse {
    scheme: String,
    device: u16,
    #[serde(with = "airpace_tables::direction")]
    direction: Direction,
    capacity_mbps: Vec<f64>,
}

/// The schemes' names for their rate estimates, with the meaning of each.
const ESTIMATES: [(&str, &str); 13] = [
    ("base_mbps", "base rate of its trials"),
    ("btlbw_mbps", "bottleneck bandwidth BtlBw"),
    ("bw_shortterm_mbps", "short-term bound of the bandwidth"),
    ("capacity_mbps", "capacity"),
    ("cellular_mbps", "bandwidth of the cellular link"),
    ("cf_mbps", "fair share C_f"),
    ("cp_mbps", "physical capacity C_p"),
    ("ct_mbps", "capacity C_t for the transport"),
    ("downlink_mbps", "bandwidth of the downlink"),
    ("held_mbps", "held to what is delivered"),
    ("received_mbps", "received in the last interval"),
    ("sent_mbps", "sent in the last interval"),
    ("target_mbps", "capacity that is reported"),
];

/// Meaning of an estimate's column. An unknown column keeps its name without the unit.
fn words_of(column: &str) -> String {
    let known = ESTIMATES.iter().find(|(name, _)| *name == column);
    known.map_or_else(|| column.trim_end_matches("_mbps").replace('_', " "), |(_, words)| (*words).to_owned())
}

/// Maximum number of estimates that are shown for one flow.
const MAX_ESTIMATES: usize = 4;
/// Maximum number of estimates in a table (columns times flows).
///
/// Chosen: a hundred flows with all of [`ESTIMATES`] have 1,200. The maximum takes 130 MB.
const MAX_BELIEFS: usize = 20_000;
/// Maximum number of states of a flow's scheme.
///
/// Chosen: more than the distinguishable entries of a legend.
const MAX_STATES: usize = 200;
/// Maximum number of devices times directions in a table of capacities. A scenario has at most a thousand devices.
const MAX_SIDES: usize = 2_000;
/// Maximum number of changes of a flow's state in a table.
///
/// Chosen: a change every 10 ms in ten hours. The maximum takes 60 MB.
const MAX_CHANGES: usize = 4_000_000;
/// Maximum number of state periods that are shown for one flow. Above this number, periods are merged.
const MAX_STAYS: usize = 600;

/// Reads the time series of all flows of a run.
pub(super) fn flows(
    source: Source<'_>,
    run: &RunSummary,
    intervals: Intervals,
    capacities: &[CapacityCourse],
) -> Result<Vec<FlowCourse>, PageError> {
    let packets = packets::of_packets(source, run, intervals)?;
    let controllers = controllers(source, run, intervals)?;
    let flows = run.flows.iter().zip(packets).zip(controllers).enumerate();
    let course = |(index, ((flow, packets), controller)): (
        usize,
        ((&FlowSummary, PacketCourse), ControllerCourse),
    )| {
        let whose = (flow.device, flow.direction);
        let truth = capacities.iter().find(|capacity| (capacity.device, capacity.direction) == whose);
        FlowCourse::of(run, index, packets, controller, truth)
    };
    Ok(flows.map(course).collect())
}

/// Reads the time series of all flows of an emulated run, without controllers, which are unknown.
pub(super) fn emulated_flows(
    source: Source<'_>,
    run: &RunSummary,
    intervals: Intervals,
) -> Result<Vec<FlowCourse>, PageError> {
    let courses = packets::of_departures(source, run, intervals)?.into_iter().enumerate();
    let course = |(index, packets)| FlowCourse::of(run, index, packets, ControllerCourse::default(), None);
    Ok(courses.map(course).collect())
}

/// Reads the capacity of the last hop over time, for each device of a run and each direction.
pub(super) fn capacities(
    source: Source<'_>,
    run: &RunSummary,
    intervals: Intervals,
) -> Result<Vec<CapacityCourse>, PageError> {
    let mut sides: Vec<((u16, Direction), Vec<u64>)> = Vec::new();
    let columns = ["time_ms", "device", "direction", "capacity_bytes"];
    source.part("capacity", run.key())?.for_each(&columns, |batch| {
        let time_ms = batch["time_ms"].as_primitive::<Float64Type>();
        let device = batch["device"].as_primitive::<UInt16Type>();
        let bytes = batch["capacity_bytes"].as_primitive::<UInt32Type>();
        let ways = Words::of(batch, "direction");
        for row in 0..batch.num_rows() {
            let side = (device.value(row), direction::of_word(ways.word(row)));
            let known = sides.iter().position(|(known, _)| *known == side);
            if known.is_none() && sides.len() == MAX_SIDES {
                return Err(format!("it names more than {MAX_SIDES} devices and directions"));
            }
            let place = known.unwrap_or_else(|| {
                sides.push((side, vec![0; intervals.count()]));
                sides.len() - 1
            });
            if let Some(index) = intervals.index(time_ms.value(row)) {
                sides[place].1[index] += u64::from(bytes.value(row));
            }
        }
        Ok(())
    })?;
    sides.sort_unstable();
    let course = |((device, direction), bytes): ((u16, Direction), Vec<u64>)| CapacityCourse {
        scheme: run.scheme.clone(),
        device,
        direction,
        capacity_mbps: bytes.iter().enumerate().map(|(index, bytes)| intervals.mbps(index, *bytes)).collect(),
    };
    Ok(sides.into_iter().map(course).collect())
}

/// Time series of a flow's controller: its states and estimates.
#[derive(Default)]
struct ControllerCourse {
    states: Vec<String>,
    /// State changes: (time in s, index in `states`).
    entries: Vec<(f64, usize)>,
    /// For each column: sum and count of the values in each interval.
    beliefs: Vec<(String, Vec<(f64, u64)>)>,
}

fn controllers(
    source: Source<'_>,
    run: &RunSummary,
    intervals: Intervals,
) -> Result<Vec<ControllerCourse>, PageError> {
    let part = source.part("controller", run.key())?;
    let names: Vec<String> = part
        .columns()?
        .into_iter()
        .filter(|name| name.ends_with("_mbps") && name != "pacing_rate_mbps")
        .collect();
    if names.len() * run.flows.len() > MAX_BELIEFS {
        let (columns, flows) = (names.len(), run.flows.len());
        let reason =
            format!("it has {columns} rates for each of {flows} flows, more than any scheme reports");
        return Err(part.malformed(reason).into());
    }
    let beliefs: Vec<_> =
        names.iter().map(|name| (name.clone(), vec![(0.0, 0); intervals.count()])).collect();
    let mut courses: Vec<ControllerCourse> = (0..run.flows.len())
        .map(|_| ControllerCourse { beliefs: beliefs.clone(), ..ControllerCourse::default() })
        .collect();
    let mut columns = vec!["time_ms", "flow", "state"];
    columns.extend(names.iter().map(String::as_str));
    part.for_each(&columns, |batch| {
        let time_ms = batch["time_ms"].as_primitive::<Float64Type>();
        let flow = batch["flow"].as_primitive::<UInt16Type>();
        let states = Words::of(batch, "state");
        for row in 0..batch.num_rows() {
            let Some(course) = courses.get_mut(usize::from(flow.value(row))) else { continue };
            course.enter(time_ms.value(row) / 1e3, states.word(row))?;
            let Some(index) = intervals.index(time_ms.value(row)) else { continue };
            for (name, belief) in &mut course.beliefs {
                let column = batch[name.as_str()].as_primitive::<Float64Type>();
                if column.is_valid(row) {
                    belief[index].0 += column.value(row);
                    belief[index].1 += 1;
                }
            }
        }
        Ok(())
    })?;
    Ok(courses)
}

impl ControllerCourse {
    fn enter(&mut self, time_s: f64, state: &str) -> Result<(), String> {
        if let Some((_, present)) = self.entries.last()
            && self.states[*present] == state
        {
            return Ok(());
        }
        let known = self.states.iter().position(|known| known == state);
        let place = match known {
            Some(place) => place,
            None if self.states.len() == MAX_STATES => {
                return Err(format!("it names more than {MAX_STATES} states of one flow"));
            }
            None => {
                self.states.push(state.to_owned());
                self.states.len() - 1
            }
        };
        if self.entries.len() == MAX_CHANGES {
            return Err(format!("a flow changes its state more than {MAX_CHANGES} times"));
        }
        self.entries.push((time_s, place));
        Ok(())
    }

    /// The periods in states. If there are too many to be visible, each short interval shows only the state that takes
    /// the largest part of the interval.
    fn stays(&self, duration_s: f64) -> Vec<(f64, f64, usize)> {
        let ends = self.entries.iter().skip(1).map(|(time, _)| *time).chain([duration_s]);
        let stays: Vec<_> =
            self.entries.iter().zip(ends).map(|((start, state), end)| (*start, end, *state)).collect();
        let stays = if stays.len() <= MAX_STAYS { stays } else { self.merged(&stays, duration_s) };
        stays
            .into_iter()
            .map(|(start, end, state)| (to_millisecond(start), to_millisecond(end), state))
            .collect()
    }

    fn merged(&self, stays: &[(f64, f64, usize)], duration_s: f64) -> Vec<(f64, f64, usize)> {
        let moment = duration_s / MAX_STAYS as f64;
        let mut merged: Vec<(f64, f64, usize)> = Vec::new();
        let mut first = 0;
        for index in 0..MAX_STAYS {
            let (start, end) = (index as f64 * moment, (index + 1) as f64 * moment);
            while stays.get(first).is_some_and(|stay| stay.1 <= start) {
                first += 1;
            }
            let mut seconds = vec![0.0; self.states.len()];
            for stay in stays[first..].iter().take_while(|stay| stay.0 < end) {
                seconds[stay.2] += stay.1.min(end) - stay.0.max(start);
            }
            let most = (0..seconds.len()).rev().max_by(|a, b| f64::total_cmp(&seconds[*a], &seconds[*b]));
            let Some(state) = most.filter(|state| seconds[*state] > 0.0) else { continue };
            match merged.last_mut() {
                Some(last) if last.2 == state => last.1 = end,
                _ => merged.push((start, end, state)),
            }
        }
        merged
    }

    fn estimates(&self, device: u16, truth: Option<&CapacityCourse>) -> Vec<Estimate> {
        debug_assert!(truth.is_none_or(|truth| truth.device == device));
        let known = self.beliefs.iter().filter(|(_, belief)| belief.iter().any(|(_, count)| *count > 0));
        known.take(MAX_ESTIMATES).map(|(name, belief)| Estimate::new(name, belief, truth)).collect()
    }
}

impl Estimate {
    fn new(name: &str, belief: &[(f64, u64)], truth: Option<&CapacityCourse>) -> Estimate {
        let mbps: Vec<Option<f64>> = belief
            .iter()
            .map(|(sum, count)| (*count > 0).then(|| significant(sum / *count as f64)))
            .collect();
        let truth = truth.map_or(&[][..], |truth| &truth.capacity_mbps);
        let mut errors: Vec<f64> = mbps
            .iter()
            .zip(truth)
            .filter(|(_, truth)| **truth > 0.0)
            .filter_map(|(estimate, truth)| Some((estimate.as_ref()? / truth - 1.0).abs() * 100.0))
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        Estimate {
            name: name.to_owned(),
            words: words_of(name),
            mbps,
            error_cdf: cdf(&errors),
            median_error_percent: nearest_rank(&errors, 0.5).copied().map(significant),
        }
    }
}

fn to_millisecond(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use airpace_sim::{SCHEMES, SchemeSpec};

    use super::*;

    #[test]
    fn every_estimate_of_a_rate_has_words() {
        let mut known: Vec<&str> = Vec::new();
        for scheme in SCHEMES {
            let names = SchemeSpec::parse(scheme.name).unwrap().inspected().unwrap();
            known.extend(names.into_iter().filter(|name| name.ends_with("_mbps")));
        }
        for column in &known {
            let words = words_of(column);
            assert!(
                ESTIMATES.iter().any(|(name, _)| name == column) && !words.contains("_mbps"),
                "`{column}` is shown as it is spelled; say in ESTIMATES what it is"
            );
        }
        let dead: Vec<_> = ESTIMATES.iter().filter(|(name, _)| !known.contains(name)).collect();
        assert!(dead.is_empty(), "no scheme has these any more: {dead:?}");
        assert_eq!(words_of("wire_rate_mbps"), "wire rate", "a column of another version's scheme");
    }

    #[test]
    fn states_without_end_are_refused() {
        let mut course = ControllerCourse::default();
        for state in 0..MAX_STATES {
            course.enter(state as f64, &format!("state {state}")).unwrap();
        }
        course.enter(1e3, "state 0").expect("it is known");
        let refusal = course.enter(2e3, "one more").unwrap_err();
        assert_eq!(refusal, "it names more than 200 states of one flow");
    }
}
