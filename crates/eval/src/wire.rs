//! A scheme over a real transport beside the same scheme in the simulator: how far they are apart, and whether they agree.
//!
//! A run over a transport stands in a summary as `SCHEME over TRANSPORT`, with the numbers that a simulated run has.
//!
//! The simulator itself gives a flow another throughput with another seed, or when it begins a fraction of a millisecond
//! later. [`Spread`] is how far such runs lie apart, so that a difference can be told from chance.

use serde::Serialize;

use crate::FlowSummary;
use crate::summary::{RunSummary, Summary};

/// How far apart throughputs may be, as a part of the simulator's.
pub const THROUGHPUT: f64 = 0.03;

/// As [`THROUGHPUT`], for flows of the kernel's TCP, which are programs of their own.
pub const THROUGHPUT_KERNEL: f64 = 0.05;

/// The transport of flows of the kernel's TCP.
pub const KERNEL: &str = "kernel";

/// How far apart mean one-way delays may be, in ms or as a part of the simulator's, whichever is more.
pub const DELAY_MS: f64 = 5.0;
/// As [`DELAY_MS`].
pub const DELAY: f64 = 0.10;

/// What results call a scheme over a transport.
pub fn label(scheme: &str, transport: &str) -> String {
    format!("{scheme} over {transport}")
}

/// The scheme and the transport of such a label; `None` for a simulated run.
pub fn parts(label: &str) -> Option<(&str, &str)> {
    label.rsplit_once(" over ")
}

/// Between what numbers a flow's results lie in several runs of the simulator that differ in their seed and by fractions of
/// a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many runs these are.
    pub runs: usize,
    /// The least and the greatest throughput, in Mbit/s.
    pub throughput_mbps: [f64; 2],
    /// The least and the greatest mean one-way delay, in ms; `None` where a run delivered no packet.
    pub one_way_delay_ms: Option<[f64; 2]>,
}

impl Spread {
    /// The spread of these runs of a flow; `None` of no run.
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

/// What the comparison says of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Throughput and delay are those of the simulator's run.
    Agrees,
    /// They are not, but runs of the simulator itself lie as far apart.
    WithinSpread,
    /// They are not.
    Differs,
    /// The machine did not keep up, so that nothing can be said.
    Unfit,
}

/// A flow over a transport, and in the simulator.
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
    /// How far apart runs of the simulator are; `None` if there was one only.
    pub spread: Option<Spread>,
    /// Why nothing can be said: what the machine did not keep up with.
    pub unfit_because: Vec<String>,
    /// What all this says.
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

    /// Whether a run of the simulator could have had this throughput, and one this delay.
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

/// Every flow of every run over a transport beside the simulated run of the same scenario, scheme and seed. `unfit` says of
/// runs by their label why nothing can be said of them. `more` are further runs of the simulator, which show the spread.
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
