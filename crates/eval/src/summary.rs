//! Every number of every run, as `summary.json` holds it and as `--json` prints it.

use std::collections::{BTreeMap, BTreeSet};

use airpace_core::Direction;
use serde::{Deserialize, Serialize};

use crate::expect::Verdict;
use crate::facts::RunFacts;
use crate::metrics::{Carrier, FlowMetrics, JainWindow, Measured, Throughput100ms, Times};

/// The most runs of a folder, flows of a run and seconds of a run.
///
/// Chosen: more than any evaluation has, and what a scenario may have.
const MOST_RUNS: usize = 100_000;
const MOST_FLOWS: usize = 1_000;
const MOST_SECONDS: f64 = 1e6;

/// Every number of every run, and the verdicts on the scenarios' expectations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The runs that ended: by scenario, then scheme, then seed, each in the order asked for.
    pub runs: Vec<RunSummary>,
    /// The verdicts, in the order of the scenarios and of their expectations; none until every run has ended.
    pub expectations: Vec<Verdict>,
    /// What the scenario of an emulated run expects of schemes. They did not run, so there is no verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_judged: Vec<NotJudged>,
}

/// An expectation without a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotJudged {
    /// The scenario.
    pub scenario: String,
    /// The scheme that it is about.
    pub scheme: String,
    /// The expectation as a sentence.
    pub say: String,
}

/// One run: a scheme in a scenario with a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The scenario.
    pub scenario: String,
    /// The scheme under test, as it was spelled.
    pub scheme: String,
    /// The seed.
    pub seed: u64,
    /// Its duration, in simulated seconds.
    pub duration_s: f64,
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowSummary>,
    /// Jain's index of bytes delivered, per window of 1 s with at least two greedy flows of a direction.
    pub jain: Vec<JainWindow>,
    /// Jain's index of PRBs given, per window of 1 s with at least two devices of greedy flows of a direction.
    pub jain_prbs: Vec<JainWindow>,
    /// The carriers of the cell; none where there is no cell.
    pub carriers: Vec<Carrier>,
    /// Of an emulated run: each device and direction with packets or a capacity, all connections together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkSummary>,
}

/// One direction of a device in an emulated run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// The device, by its index in the scenario.
    pub device: u16,
    /// `down` to the device or `up` from it.
    #[serde(with = "crate::direction")]
    pub direction: Direction,
    /// How many connections there were. Above 65,536, small ones may count more than once.
    pub connections: u64,
    /// The numbers of all their packets, over the whole run.
    #[serde(flatten)]
    pub metrics: FlowMetrics,
}

/// One flow of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Its name in the scenario.
    pub flow: String,
    /// Its index in the scenario: the `flow` column of the tables.
    pub index: u16,
    /// Its device: the `device` column of the tables.
    pub device: u16,
    /// `down` if its data goes to its device, `up` if it comes from there.
    #[serde(with = "crate::direction", default)]
    pub direction: Direction,
    /// The scheme it ran: the one under test, or its own.
    pub scheme: String,
    /// Whether it takes all that it can get.
    pub greedy: bool,
    /// Its numbers.
    #[serde(flatten)]
    pub metrics: FlowMetrics,
}

/// What `--json` prints for each flow: one object per line, with exactly these keys.
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
}

/// Transfers as `--json` prints them.
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

/// Queueing delay as `--json` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)] // see `Delays`
pub struct QueueingLine {
    pub mean: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// `runs` by scheme, in the order in which the schemes come.
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

/// Whether the flow with this index runs the scheme under test in all of these runs of a scenario. A flow with a scheme of its
/// own may run the same scheme in some of them.
pub fn is_under_test(runs: &[&RunSummary], index: usize) -> bool {
    runs.iter().all(|run| run.flows.get(index).is_some_and(|flow| flow.scheme == run.scheme))
}

impl RunSummary {
    /// A run's numbers, with the names from its facts.
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
            carriers: measured.carriers,
            links: Vec::new(),
        }
    }

    /// The lines that `--json` prints, one per flow.
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
            }
        })
    }
}

impl Summary {
    /// Checks whether runs can have these numbers. A summary that was read from a file may have been written by hand.
    ///
    /// # Errors
    /// What is not possible.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.runs.len() > MOST_RUNS {
            return Err(format!(
                "it has {} runs; {MOST_RUNS} are the most that can be shown",
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
            if !(*duration_s > 0.0 && *duration_s <= MOST_SECONDS) {
                return Err(format!("`duration_s` of {which} is {duration_s}"));
            }
            if flows.len() > MOST_FLOWS {
                return Err(format!("{which} has {} flows", flows.len()));
            }
            let (count, first) = flows_of.entry(scenario).or_insert((flows.len(), *seed));
            if flows.len() != *count {
                return Err(format!("{which} has {} flows, but {count} with seed {first}", flows.len()));
            }
        }
        Ok(())
    }

    /// Whether every expectation was met.
    pub fn all_expectations_met(&self) -> bool {
        self.expectations.iter().all(|verdict| verdict.passed)
    }
}
