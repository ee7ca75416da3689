//! One phone with two flows from two servers.

use super::EIGHT;
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run};
use airpace_plot::{Axis, Bar, Bars, Entry, Figure, Mark, Panel, Style};
use airpace_run::statistics::Estimate;

/// SIGCOMM Fig. 20.
pub(crate) static FIG_20: Experiment = Experiment {
    id: "pbe/fig20",
    title: "Two flows of one phone",
    source: "PBE-CC (SIGCOMM 2020) §6.3.4 Fig. 20",
    world: "The phone has two carriers of 50 PRBs. The paper's shares are compared, not its rates.",
    evidence: Evidence::Simulated(|size| {
        vec![Campaign::of("two-flows", EIGHT, size.seeds(5)).with("cell.carriers", 2).with("cell.prbs", 50)]
    }),
    findings,
};

/// The smaller throughput over the larger one.
fn balance(run: &Run) -> Option<f64> {
    let (one, other) = (run.flow(0).throughput_mbps, run.flow(1).throughput_mbps);
    (one.max(other) > 0.0).then(|| one.min(other) / one.max(other))
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let ours = |scheme: &str| runs.with(scheme).mean(balance);
    let numbers = vec![
        Number::new(
            "PBE-CC, smaller over larger throughput",
            "",
            26.0 / 28.0,
            ours("pbe"),
            Rule::Factor(1.15),
        ),
        Number::new("BBR, smaller over larger throughput", "", 10.0 / 35.0, ours("bbr"), Rule::AtMost(0.8)),
    ];
    let names: Vec<String> = EIGHT.iter().map(|scheme| look::name(scheme)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bars = |flow: usize, name: &str, colour: &str| {
        let bar = |(at, scheme): (usize, &&str)| {
            let mean: Option<Estimate> = runs.with(scheme).mean(|run| Some(run.flow(flow).throughput_mbps));
            Some(Bar { x: at as f64, value: mean?.value, error: mean?.interval })
        };
        let bars = EIGHT.iter().enumerate().filter_map(bar).collect();
        Mark::Bars(Bars { style: Style::new(name, colour), bars, second_y: false })
    };
    let panel = Panel {
        x: Axis::categories("", &names),
        y: Axis::linear("throughput (Mbit/s)"),
        marks: vec![bars(0, "nearer server", "#0072B2"), bars(1, "farther server", "#E69F00")],
        ..Panel::default()
    };
    let figure = Figure {
        title: "PBE-CC SIGCOMM Fig. 20".to_owned(),
        caption: "Throughput of two flows of one phone from servers at 52 and 64 ms.".to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 720.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "pbe-fig20", figure }] }
}
