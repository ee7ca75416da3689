//! Comparison of a scheme over a real transport with the same scheme in the simulator.
//!
//! In a summary, a run over a transport has the scheme name `SCHEME over TRANSPORT` and the metrics of a simulated run.
//!
//! In the simulator, the throughput of a flow depends on the seed, and on shifts of the flow's start by fractions of a
//! millisecond. [`Spread`] is the range of results over such runs. This range distinguishes a systematic difference
//! from chance.

use serde::Serialize;

use crate::FlowSummary;
use crate::summary::{RunSummary, Summary};

/// Maximum difference of throughputs that agree, relative to the simulator's throughput.
pub const THROUGHPUT: f64 = 0.03;

/// Like [`THROUGHPUT`], for flows of the kernel's TCP, which is an independent implementation.
pub const THROUGHPUT_KERNEL: f64 = 0.05;

/// Name of the kernel's TCP as a transport.
pub const KERNEL: &str = "kernel";

/// Maximum difference of mean one-way delays that agree (ms). The larger of this bound and [`DELAY`] applies.
pub const DELAY_MS: f64 = 5.0;
/// Maximum difference of mean one-way delays that agree, relative to the simulator's delay.
pub const DELAY: f64 = 0.10;

/// Scheme name in the results for a scheme over a transport.
pub fn label(scheme: &str, transport: &str) -> String {
    format!("{scheme} over {transport}")
}

/// Splits a name made by [`label`] into scheme and transport; `None` for a simulated run.
pub fn parts(label: &str) -> Option<(&str, &str)> {
    label.rsplit_once(" over ")
}

/// Range of a flow's results over several simulated runs that differ in seed and by fractions of a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of runs.
    pub runs: usize,
    /// Minimum and maximum throughput, in Mbit/s.
    pub throughput_mbps: [f64; 2],
    /// Minimum and maximum of the mean one-way delay, in ms; `None` if any run delivered no packet.
    pub one_way_delay_ms: Option<[f64; 2]>,
}

impl Spread {
    /// The range of results over `flows`; `None` if there are no flows.
    fn of<'a>(flows: impl Iterator<Item = &'a FlowSummary> + Clone) -> Option<Spread> {
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(None, |range: Option<[f64; 2]>, value| {
                let [least, most] = range.unwrap_or([value; 2]);
                Some([least.min(value), most.max(value)])
            })
        };
        let delays: Option<Vec<f64>> = flows.clone().map(|flow| flow.metrics.one_way_delay_ms.mean).collect();
        Some(Spread {
            runs: flows.clone().count(),
            throughput_mbps: range(&mut flows.map(|flow| flow.metrics.throughput_mbps))?,
            one_way_delay_ms: delays.and_then(|delays| range(&mut delays.into_iter())),
        })
    }
}

/// Verdict of the comparison for one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Throughput and delay agree with the simulated run.
    Agrees,
    /// Throughput or delay differ from the simulated run, but agree with the range of results of further simulated runs.
    WithinSpread,
    /// Throughput or delay differ from all simulated runs.
    Differs,
    /// The machine did not keep up, so the comparison is invalid.
    Unfit,
}

/// Comparison of a flow over a transport with the same flow in the simulator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The scheme under test.
    pub scheme: String,
    /// The transport.
    pub transport: String,
    /// The flow's name.
    pub flow: String,
    /// Throughput in the simulator and over the transport, in Mbit/s.
    pub throughput_mbps: [f64; 2],
    /// Mean one-way delay in the simulator and over the transport, in ms; `None` where no packet arrived.
    pub one_way_delay_ms: Option<[f64; 2]>,
    /// Whether the throughputs agree.
    pub throughput_agrees: bool,
    /// Whether the delays agree.
    pub delay_agrees: bool,
    /// Range of results of the simulated runs; `None` if there was only one run.
    pub spread: Option<Spread>,
    /// Reasons why the comparison is invalid: where the machine did not keep up. Empty if it is valid.
    pub unfit_because: Vec<String>,
    /// Verdict from the fields above.
    pub verdict: Verdict,
}

impl Beside {
    fn judge(&mut self) {
        self.verdict = match (self.unfit_because.is_empty(), self.throughput_agrees && self.delay_agrees) {
            (false, _) => Verdict::Unfit,
            (true, true) => Verdict::Agrees,
            (true, false) if self.is_within_spread() => Verdict::WithinSpread,
            (true, false) => Verdict::Differs,
        };
    }

    /// Whether throughput and delay agree with some value within the range of the simulated runs.
    fn is_within_spread(&self) -> bool {
        let Some(spread) = self.spread else { return false };
        let nearest = |range: [f64; 2], value: f64| value.clamp(range[0], range[1]);
        let [_, carried] = self.throughput_mbps;
        let delay = spread.one_way_delay_ms.zip(self.one_way_delay_ms);
        throughputs_agree(&self.transport, nearest(spread.throughput_mbps, carried), carried)
            && delay.is_some_and(|(range, [_, wire])| delays_agree(nearest(range, wire), wire))
    }

    fn of(
        simulated: &RunSummary,
        wire: &RunSummary,
        unfit_because: &[String],
        more: &Summary,
    ) -> Vec<Beside> {
        let Some((scheme, transport)) = parts(&wire.scheme) else { return vec![] };
        let beside = |(index, (one, other)): (usize, (&FlowSummary, &FlowSummary))| {
            let further = more.runs.iter().filter(|run| run.scheme == scheme);
            let further: Vec<_> = further.filter_map(|run| run.flows.get(index)).collect();
            let all = std::iter::once(one).chain(further.iter().copied());
            let throughput_mbps = [one, other].map(|flow| flow.metrics.throughput_mbps);
            let [before, after] = [one, other].map(|flow| flow.metrics.one_way_delay_ms.mean);
            let one_way_delay_ms = before.zip(after).map(|(before, after)| [before, after]);
            let [before, after] = throughput_mbps;
            let mut row = Beside {
                scheme: scheme.to_owned(),
                transport: transport.to_owned(),
                flow: one.flow.clone(),
                throughput_mbps,
                one_way_delay_ms,
                throughput_agrees: throughputs_agree(transport, before, after),
                delay_agrees: one_way_delay_ms.is_some_and(|[before, after]| delays_agree(before, after)),
                spread: if further.is_empty() { None } else { Spread::of(all) },
                unfit_because: unfit_because.to_vec(),
                verdict: Verdict::Differs,
            };
            row.judge();
            row
        };
        simulated.flows.iter().zip(&wire.flows).enumerate().map(beside).collect()
    }
}

fn throughputs_agree(transport: &str, simulated: f64, wire: f64) -> bool {
    let part = if transport == KERNEL { THROUGHPUT_KERNEL } else { THROUGHPUT };
    (wire - simulated).abs() <= part * simulated
}

fn delays_agree(simulated_ms: f64, wire_ms: f64) -> bool {
    (wire_ms - simulated_ms).abs() <= DELAY_MS.max(DELAY * simulated_ms)
}

/// Compares every flow of every run over a transport with the simulated run of the same scenario, scheme and seed.
/// `unfit` lists the runs, by scheme name, whose comparison is invalid, with the reasons. `more` contains further
/// simulated runs, from which the [`Spread`] is computed.
pub fn beside(summary: &Summary, unfit: &[(String, Vec<String>)], more: &Summary) -> Vec<Beside> {
    let mut all = vec![];
    for wire in &summary.runs {
        let Some((scheme, _)) = parts(&wire.scheme) else { continue };
        let same = |run: &&RunSummary| {
            run.scheme == scheme && run.scenario == wire.scenario && run.seed == wire.seed
        };
        let Some(simulated) = summary.runs.iter().find(same) else { continue };
        let why = unfit.iter().find(|(label, _)| *label == wire.scheme);
        all.extend(Beside::of(simulated, wire, why.map_or(&[], |(_, why)| why), more));
    }
    all
}
