//! A scheme over a real transport beside the same scheme in the simulator: how far they are apart, and whether they agree.
//!
//! A run over a transport stands in a summary as `SCHEME over TRANSPORT`, with the numbers that a simulated run has.

use serde::Serialize;

use crate::summary::{RunSummary, Summary};

/// How far apart throughputs may be, as a part of the simulator's.
pub const THROUGHPUT: f64 = 0.03;

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
    /// Why nothing can be said: what the machine did not keep up with.
    pub unfit_because: Vec<String>,
}

impl Beside {
    /// Whether throughput and delay agree.
    pub fn agrees(&self) -> bool {
        self.throughput_agrees && self.delay_agrees
    }

    fn of(simulated: &RunSummary, wire: &RunSummary, unfit_because: &[String]) -> Vec<Beside> {
        let Some((scheme, transport)) = parts(&wire.scheme) else { return vec![] };
        let beside = |(one, other): (&crate::FlowSummary, &crate::FlowSummary)| {
            let throughput_mbps = [one, other].map(|flow| flow.metrics.throughput_mbps);
            let [before, after] = [one, other].map(|flow| flow.metrics.one_way_delay_ms.mean);
            let one_way_delay_ms = before.zip(after).map(|(before, after)| [before, after]);
            let [before, after] = throughput_mbps;
            Beside {
                scheme: scheme.to_owned(),
                transport: transport.to_owned(),
                flow: one.flow.clone(),
                throughput_mbps,
                one_way_delay_ms,
                throughput_agrees: (after - before).abs() <= THROUGHPUT * before,
                delay_agrees: one_way_delay_ms
                    .is_some_and(|[before, after]| (after - before).abs() <= DELAY_MS.max(DELAY * before)),
                unfit_because: unfit_because.to_vec(),
            }
        };
        simulated.flows.iter().zip(&wire.flows).map(beside).collect()
    }
}

/// Every flow of every run over a transport beside the simulated run of the same scenario, scheme and seed. `unfit` says of
/// runs by their label why nothing can be said of them.
pub fn beside(summary: &Summary, unfit: &[(String, Vec<String>)]) -> Vec<Beside> {
    let mut all = vec![];
    for wire in &summary.runs {
        let Some((scheme, _)) = parts(&wire.scheme) else { continue };
        let same = |run: &&RunSummary| {
            run.scheme == scheme && run.scenario == wire.scenario && run.seed == wire.seed
        };
        let Some(simulated) = summary.runs.iter().find(same) else { continue };
        let why = unfit.iter().find(|(label, _)| *label == wire.scheme);
        all.extend(Beside::of(simulated, wire, why.map_or(&[], |(_, why)| why)));
    }
    all
}
