//! Section of the report page on one scenario.

use std::collections::BTreeMap;

use airpace_core::Direction;
use airpace_run::Verdict;
use airpace_run::manifest::{Manifest, ManifestScenario, PROGRAM, ReplayedTrace};
use airpace_run::metrics::JainWindow;
use airpace_run::summary::{NotJudged, RunSummary};
use airpace_run::{comparison, shell, wire};
use airpace_tables::direction;
use serde::Serialize;

use super::Material;
use super::agreement::AgreementData;
use super::cells::{self, CellCourse};
use super::emulation::{self, LinkRow};
use super::intervals::Intervals;
use super::series::{self, Budget, CapacityCourse, FlowCourse, is_first_seed};
use super::style::{SchemeStyle, styles};
use super::table::{Column, Row, columns, columns_of_programs, rows};
use super::transfers::TransferTable;
use super::videos::VideoTable;
use crate::PageError;

/// All data of the page about one scenario.
#[derive(Serialize)]
pub(super) struct ScenarioData {
    name: String,
    about: String,
    source: String,
    trace: Option<ReplayedTrace>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    also_replays: BTreeMap<String, ReplayedTrace>,
    /// Which parts of the trace files the runs use, as sentences.
    replays: Vec<String>,
    /// Command that reproduces the comparisons, and command that reproduces a time series.
    command: String,
    command_of_course: String,
    duration_s: f64,
    /// Seed of the run whose time series is drawn.
    seed: Option<u64>,
    flows: Vec<FlowLabel>,
    schemes: Vec<SchemeStyle>,
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// Comparison of the schemes' rates and queueing delays, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparison: Vec<String>,
    expectations: Vec<Expectation>,
    /// A row for each scheme and flow with transfers.
    #[serde(skip_serializing_if = "Option::is_none")]
    transfers: Option<TransferTable>,
    /// A row for each scheme and flow with an adaptive video.
    #[serde(skip_serializing_if = "Option::is_none")]
    videos: Option<VideoTable>,
    /// Length of the intervals of all time series, in s.
    interval_s: f64,
    courses: Vec<FlowCourse>,
    capacities: Vec<CapacityCourse>,
    cells: Vec<CellCourse>,
    jain: Vec<JainCourse>,
    /// For emulated runs: a row for each direction of each device.
    links: Vec<LinkRow>,
    /// The comparison, for emulated runs that were compared with virtual time.
    #[serde(skip_serializing_if = "Option::is_none")]
    agreement: Option<AgreementData>,
    /// For emulated runs: the expectations without a verdict.
    not_judged: Vec<NotJudged>,
}

/// A verdict, with the measured value as the text on the page.
#[derive(Serialize)]
struct Expectation {
    #[serde(flatten)]
    verdict: Verdict,
    measured_text: String,
}

#[derive(Serialize)]
struct FlowLabel {
    flow: String,
    device: u16,
    #[serde(with = "airpace_tables::direction")]
    direction: Direction,
    greedy: bool,
}

/// Jain's index over time under one scheme, among the flows of one direction.
#[derive(Serialize)]
struct JainCourse {
    scheme: String,
    #[serde(with = "airpace_tables::direction")]
    direction: Direction,
    bytes: Vec<JainWindow>,
    prbs: Vec<JainWindow>,
}

impl ScenarioData {
    pub(super) fn read(
        material: Material<'_>,
        scenario: &ManifestScenario,
        budget: Budget,
    ) -> Result<ScenarioData, PageError> {
        let Material { manifest, summary, tables, agreement } = material;
        let runs: Vec<&RunSummary> =
            summary.runs.iter().filter(|run| run.scenario == scenario.name).collect();
        let shown: Vec<&RunSummary> =
            runs.iter().copied().filter(|run| is_first_seed(summary, run)).collect();
        let duration_s = runs.first().map_or(0.0, |run| run.duration_s);
        let intervals = Intervals::of(duration_s, budget.intervals);
        let is_emulated = manifest.emulation.is_some();
        let (mut courses, mut capacities, mut cells) = (Vec::new(), Vec::new(), Vec::new());
        for run in &shown {
            let truth = series::capacities(tables, run, intervals)?;
            courses.extend(match is_emulated {
                true => series::emulated_flows(tables, run, intervals)?,
                false => series::flows(tables, run, intervals, &truth)?,
            });
            capacities.extend(truth);
            for direction in directions(run) {
                cells.extend(cells::read(tables, run, direction, intervals, budget.grants)?);
            }
        }
        let schemes: Vec<&str> = shown.iter().map(|run| run.scheme.as_str()).collect();
        let columns = if is_emulated { columns_of_programs() } else { columns(&runs) };
        let seed = shown.first().map(|run| run.seed);
        Ok(ScenarioData {
            name: scenario.name.clone(),
            about: scenario.about.clone(),
            source: scenario.source.clone(),
            trace: scenario.trace.clone(),
            also_replays: scenario.also_replays.clone(),
            replays: scenario.replays.clone(),
            command: command(manifest, scenario, &manifest.seeds),
            command_of_course: command(manifest, scenario, seed.as_slice()),
            duration_s,
            seed,
            flows: runs.first().map_or_else(Vec::new, |run| {
                let label = |flow: &airpace_run::summary::FlowSummary| FlowLabel {
                    flow: flow.flow.clone(),
                    device: flow.device,
                    direction: flow.direction,
                    greedy: flow.greedy,
                };
                run.flows.iter().map(label).collect()
            }),
            schemes: styles(&schemes),
            rows: rows(&runs, &columns),
            comparison: if is_emulated { Vec::new() } else { comparison::sentences(&runs) },
            links: emulation::links(runs.first().copied(), scenario, &columns),
            columns,
            agreement: agreement.cloned().filter(|_| is_emulated).map(AgreementData::of),
            transfers: TransferTable::of(&runs),
            videos: VideoTable::of(&runs),
            expectations: summary
                .expectations
                .iter()
                .filter(|verdict| verdict.scenario == scenario.name)
                .map(Expectation::of)
                .collect(),
            not_judged: summary
                .not_judged
                .iter()
                .filter(|expect| expect.scenario == scenario.name)
                .cloned()
                .collect(),
            interval_s: intervals.span_s(),
            courses,
            capacities,
            cells,
            jain: shown
                .iter()
                .flat_map(|run| directions(run).into_iter().map(|direction| JainCourse::of(run, direction)))
                .filter(|course| !course.bytes.is_empty() || !course.prbs.is_empty())
                .collect(),
        })
    }

    /// The states of all controllers, in order of first appearance.
    pub(super) fn states(&self) -> impl Iterator<Item = &str> {
        self.courses.iter().flat_map(FlowCourse::states)
    }
}

impl Expectation {
    fn of(verdict: &Verdict) -> Expectation {
        Expectation { verdict: verdict.clone(), measured_text: verdict.measured_text() }
    }
}

impl JainCourse {
    fn of(run: &RunSummary, direction: Direction) -> JainCourse {
        let those = |windows: &[JainWindow]| {
            windows.iter().filter(|window| window.direction == direction).copied().collect()
        };
        let (bytes, prbs) = (those(&run.jain), those(&run.jain_prbs));
        JainCourse { scheme: run.scheme.clone(), direction, bytes, prbs }
    }
}

/// The directions in which a run has flows.
fn directions(run: &RunSummary) -> Vec<Direction> {
    let goes = |direction: &Direction| run.flows.iter().any(|flow| flow.direction == *direction);
    direction::BOTH.into_iter().filter(goes).collect()
}

/// The command that reproduces a whole run.
pub(super) fn whole_command(manifest: &Manifest) -> String {
    if !is_simulated(manifest) {
        return real_command(manifest);
    }
    let of_one = |scenario| command(manifest, scenario, &manifest.seeds);
    shell::one_after_another(manifest.scenarios.iter().map(of_one))
}

/// The command that runs one scenario of a run with these seeds.
fn command(manifest: &Manifest, scenario: &ManifestScenario, seeds: &[u64]) -> String {
    if !is_simulated(manifest) {
        return real_command(manifest);
    }
    shell::sim(&manifest.host.program, &scenario.argument, &manifest.schemes, seeds, &scenario.set)
}

/// Whether the run was made by `airpace sim` alone.
fn is_simulated(manifest: &Manifest) -> bool {
    manifest.emulation.is_none() && manifest.schemes.iter().all(|scheme| wire::parts(scheme).is_none())
}

/// The command of a real-time run, with the program's name on this host.
fn real_command(manifest: &Manifest) -> String {
    match manifest.command.strip_prefix(PROGRAM) {
        Some(rest) if rest.starts_with(' ') => format!("{}{rest}", manifest.host.program),
        _ => manifest.command.clone(),
    }
}
