//! Summary of all runs: the contents of `summary.json` and the output of `--json`.

use std::collections::{BTreeMap, BTreeSet};

use airpace_core::Direction;
use airpace_tables::facts::{RunFacts, RunKey};
use serde::{Deserialize, Serialize};

use crate::metrics::{Carrier, FlowMetrics, JainWindow, Measured, SegmentRates, Throughput100ms, Times};
use crate::numbers;

/// Maximum number of runs of a folder and of flows of a run, and maximum duration of a run (s).
///
/// Chosen: above the size of any evaluation, and at least the maximum that a scenario may have.
const MAX_RUNS: usize = 100_000;
const MAX_FLOWS: usize = 1_000;
const MAX_SECONDS: f64 = 1e6;

/// All metrics of all runs, and the verdicts on the scenarios' expectations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The completed runs: by scenario, then scheme, then seed, each in the order of the command.
    pub runs: Vec<RunSummary>,
    /// The verdicts, in the order of the scenarios and of their expectations. Empty until every run has ended.
    pub expectations: Vec<Verdict>,
    /// Expectations of an emulated run's scenario. The schemes that they name did not run, so there is no verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<NotJudged>,
}

/// Verdict on an expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Name of the scenario.
    pub scenario: String,
    /// The scheme that the expectation names.
    pub scheme: String,
    /// The flow that the expectation names.
    pub flow: String,
    /// The expectation, as a sentence.
    pub say: String,
    /// The measured quantity: path of the metric, and its divisor for a ratio.
    pub metric: String,
    /// The bounds, as text such as `at least 0.95`.
    pub wanted: String,
    /// Measured value: a mean over seeds. `None` if the runs have no value; the expectation is then not met.
    pub measured: Option<f64>,
    /// Whether the value lies within the bounds.
    pub passed: bool,
}

impl Verdict {
    /// The measured value as text for people, in the unit of [`Verdict::wanted`].
    ///
    /// Chosen: four decimals, one more than the bounds have.
    pub fn measured_text(&self) -> String {
        self.measured.map_or_else(|| "nothing".to_owned(), |value| numbers::text(value, 4))
    }
}

/// An expectation without a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotJudged {
    /// The scenario.
    pub scenario: String,
    /// The scheme that the expectation names.
    pub scheme: String,
    /// The expectation, as a sentence.
    pub say: String,
}

/// One run: a scheme in a scenario with a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The scenario.
    pub scenario: String,
    /// The scheme under test, as spelled.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// Duration of the run, in simulated seconds.
    pub duration_s: f64,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowSummary>,
    /// Jain's index of delivered bytes, for each window of 1 s in which at least two greedy flows of a direction were
    /// active.
    pub jain: Vec<JainWindow>,
    /// Jain's index of granted PRBs, for each window of 1 s with greedy flows of a direction on at least two devices.
    pub jain_prbs: Vec<JainWindow>,
    /// The same index of the PRBs on the primary carrier that the devices share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jain_primary: Vec<JainWindow>,
    /// Carriers of the cell; empty if the scenario has no cell.
    pub carriers: Vec<Carrier>,
    /// For emulated runs: metrics per device and direction, over all connections. Entries without packets and without a
    /// capacity are omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkSummary>,
}

/// One direction of a device in an emulated run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Index of the device in the scenario.
    pub device: u16,
    /// `down` to the device or `up` from the device.
    #[serde(with = "airpace_tables::direction")]
    pub direction: Direction,
    /// Number of connections. Above 65,536 connections, small ones may be counted more than once.
    pub connections: u64,
    /// Metrics of all packets of these connections, over the whole run.
    #[serde(flatten)]
    pub metrics: FlowMetrics,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Name of the flow in the scenario.
    pub flow: String,
    /// Index of the flow in the scenario: the `flow` column of the tables.
    pub index: u16,
    /// Index of the flow's device: the `device` column of the tables.
    pub device: u16,
    /// `down` if data is sent to the device, `up` if data is sent by the device.
    #[serde(with = "airpace_tables::direction", default)]
    pub direction: Direction,
    /// The scheme that the flow ran: the scheme under test, or the flow's own scheme.
    pub scheme: String,
    /// Whether the flow always has data to send and uses all available capacity.
    pub greedy: bool,
    /// Metrics of the flow.
    #[serde(flatten)]
    pub metrics: FlowMetrics,
}

/// Output of `--json` for a flow: one object per line, with exactly these keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // the keys are those of `RunSummary`, `FlowSummary` and `FlowMetrics`
pub struct FlowLine<'a> {
    pub scenario: &'a str,
    pub scheme: &'a str,
    pub seed: u64,
    pub flow: &'a str,
    pub throughput_mbps: f64,
    pub utilization: Option<f64>,
    pub one_way_delay_ms: crate::metrics::Delays,
    pub queueing_delay_ms: QueueingLine,
    pub loss_rate: Option<f64>,
    pub power: Option<f64>,
    pub jain: Option<f64>,
    pub throughput_100ms: Throughput100ms,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransfersLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoLine>,
}

/// Adaptive video in the output of `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // see `Video`
pub struct VideoLine {
    pub start_up_s: Option<f64>,
    pub stalls: u64,
    pub stalled_s: f64,
    pub stalled_share: Option<f64>,
    pub played_s: f64,
    pub bitrate_mbps: Option<f64>,
    pub switches: u64,
    pub abandoned: u64,
    pub score: Option<f64>,
    pub throughput_mbps: Option<f64>,
    pub segment_mbps: SegmentRates,
}

/// Transfers in the output of `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // see `Transfers`
pub struct TransfersLine {
    pub due: u64,
    pub begun: u64,
    pub complete: u64,
    pub completion_s: Times,
    pub start_up_s: Times,
    pub first_byte_s: Times,
}

/// Queueing delay in the output of `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // see `Delays`
pub struct QueueingLine {
    pub mean: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// Groups `runs` by scheme, in order of first appearance.
pub fn by_scheme<'a>(runs: &[&'a RunSummary]) -> Vec<(&'a str, Vec<&'a RunSummary>)> {
    let mut schemes: Vec<(&str, Vec<&RunSummary>)> = Vec::new();
    for &run in runs {
        match schemes.iter_mut().find(|(scheme, _)| *scheme == run.scheme) {
            Some((_, of_scheme)) => of_scheme.push(run),
            None => schemes.push((&run.scheme, vec![run])),
        }
    }
    schemes
}

/// Whether the flow with this index runs the scheme under test in all of these runs of a scenario. A flow with its own
/// scheme may coincide with the scheme under test in some of the runs.
pub fn is_under_test(runs: &[&RunSummary], index: usize) -> bool {
    runs.iter().all(|run| run.flows.get(index).is_some_and(|flow| flow.scheme == run.scheme))
}

impl RunSummary {
    /// Key of the run.
    pub fn key(&self) -> RunKey<'_> {
        RunKey { scenario: &self.scenario, scheme: &self.scheme, seed: self.seed }
    }

    /// Combines the metrics of a run with the names from its facts.
    pub fn new(facts: &RunFacts, measured: Measured) -> RunSummary {
        let flows = facts.flows.iter().zip(measured.flows);
        RunSummary {
            scenario: facts.scenario.clone(),
            scheme: facts.scheme.clone(),
            seed: facts.seed,
            duration_s: facts.duration.as_secs_f64(),
            flows: flows
                .map(|(facts, metrics)| FlowSummary {
                    flow: facts.name.clone(),
                    index: facts.flow.0,
                    device: facts.device.0,
                    direction: facts.direction,
                    scheme: facts.scheme.clone(),
                    greedy: facts.greedy,
                    metrics,
                })
                .collect(),
            jain: measured.jain,
            jain_prbs: measured.jain_prbs,
            jain_primary: measured.jain_primary,
            carriers: measured.carriers,
            links: Vec::new(),
        }
    }

    /// The lines of `--json`, one per flow.
    pub fn lines(&self) -> impl Iterator<Item = FlowLine<'_>> {
        self.flows.iter().map(|flow| {
            let metrics = &flow.metrics;
            let queueing = metrics.queueing_delay_ms;
            FlowLine {
                scenario: &self.scenario,
                scheme: &self.scheme,
                seed: self.seed,
                flow: &flow.flow,
                throughput_mbps: metrics.throughput_mbps,
                utilization: metrics.utilization,
                one_way_delay_ms: metrics.one_way_delay_ms,
                queueing_delay_ms: QueueingLine { mean: queueing.mean, p95: queueing.p95, p99: queueing.p99 },
                loss_rate: metrics.loss_rate,
                power: metrics.power,
                jain: metrics.jain,
                throughput_100ms: metrics.throughput_100ms,
                transfers: metrics.transfers.as_ref().map(|transfers| TransfersLine {
                    due: transfers.due,
                    begun: transfers.begun,
                    complete: transfers.complete,
                    completion_s: transfers.completion_s,
                    start_up_s: transfers.start_up_s,
                    first_byte_s: transfers.first_byte_s,
                }),
                video: metrics.video.as_ref().map(|video| VideoLine {
                    start_up_s: video.start_up_s,
                    stalls: video.stalls,
                    stalled_s: video.stalled_s,
                    stalled_share: video.stalled_share,
                    played_s: video.played_s,
                    bitrate_mbps: video.bitrate_mbps,
                    switches: video.switches,
                    abandoned: video.abandoned,
                    score: video.score,
                    throughput_mbps: video.throughput_mbps,
                    segment_mbps: video.segment_mbps,
                }),
            }
        })
    }
}

impl Summary {
    /// Checks whether runs can have these numbers. A summary from a file may have been written by hand.
    ///
    /// # Errors
    /// Description of the impossible number.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.runs.len() > MAX_RUNS {
            return Err(format!(
                "it has {} runs; {MAX_RUNS} are the most that can be shown",
                self.runs.len()
            ));
        }
        let mut flows_of: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
        let mut known: BTreeSet<(&str, &str, u64)> = BTreeSet::new();
        for run in &self.runs {
            let RunSummary { scenario, scheme, seed, duration_s, flows, .. } = run;
            let which = format!("{scenario} with {scheme}, seed {seed}");
            if !known.insert((scenario, scheme, *seed)) {
                return Err(format!("{which} is in it twice"));
            }
            if !(*duration_s > 0.0 && *duration_s <= MAX_SECONDS) {
                return Err(format!("`duration_s` of {which} is {duration_s}"));
            }
            if flows.len() > MAX_FLOWS {
                return Err(format!("{which} has {} flows", flows.len()));
            }
            let (count, first) = flows_of.entry(scenario).or_insert((flows.len(), *seed));
            if flows.len() != *count {
                return Err(format!("{which} has {} flows, but {count} with seed {first}", flows.len()));
            }
        }
        Ok(())
    }

    /// Keys of the runs, in order.
    pub fn keys(&self) -> Vec<RunKey<'_>> {
        self.runs.iter().map(RunSummary::key).collect()
    }

    /// Whether every expectation was met.
    pub fn all_expectations_met(&self) -> bool {
        self.expectations.iter().all(|verdict| verdict.passed)
    }
}
