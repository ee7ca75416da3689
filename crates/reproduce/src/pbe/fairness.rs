//! Three phones that share a primary cell, with three, one and two carriers.

use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel};
use airpace_run::metrics::course::between;
use airpace_run::statistics;

use super::mobility::medians;
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::number::{Number, Rule};
use crate::results::{Results, Run};
use crate::statistics::jain_percent;

const WORLD: &str =
    "The phones have three, one and two carriers and share only the primary, as the paper's phones.";

const fn experiment(
    id: &'static str,
    title: &'static str,
    source: &'static str,
    campaigns: fn(Size) -> Vec<Campaign>,
    findings: fn(&Results) -> Findings,
) -> Experiment {
    Experiment { id, title, source, world: WORLD, evidence: Evidence::Simulated(campaigns), findings }
}

/// Fig. 18a.
pub(crate) static FIG_18A: Experiment = experiment(
    "pbe/fig18a",
    "Three phones that come and go",
    "PBE-CC §6.3.1 Fig. 18a",
    |size| phones("join-leave", size),
    |results| findings(results, "pbe-fig18a", [99.97, 98.73]),
);

/// Fig. 18b.
pub(crate) static FIG_18B: Experiment = experiment(
    "pbe/fig18b",
    "Three phones with round trips of 52, 64 and 297 ms",
    "PBE-CC §6.3.2 Fig. 18b",
    |size| phones("rtt-fairness", size),
    |results| findings(results, "pbe-fig18b", [99.74, 99.45]),
);

/// Fig. 18c.
pub(crate) static FIG_18C: Experiment = experiment(
    "pbe/fig18c",
    "Two phones with PBE-CC and one with BBR",
    "PBE-CC §6.3.3 Fig. 18c",
    |size| phones("friendly-bbr", size),
    |results| findings(results, "pbe-fig18c", [99.96, 98.52]),
);

/// Fig. 18d.
pub(crate) static FIG_18D: Experiment = experiment(
    "pbe/fig18d",
    "Two phones with PBE-CC and one with CUBIC",
    "PBE-CC §6.3.3 Fig. 18d",
    |size| phones("friendly-cubic", size),
    |results| findings(results, "pbe-fig18d", [99.95, 98.34]),
);

fn phones(scenario: &'static str, size: Size) -> Vec<Campaign> {
    let campaign = Campaign::of(scenario, &["pbe", "pbe@paper"], size.seeds(5))
        .with("cell.prbs", 50)
        .with("cell.carriers", 4)
        .with("device.0.radio.carriers", "[0,1,2]")
        .with("device.1.radio.carriers", "[0]")
        .with("device.2.radio.carriers", "[0,3]");
    vec![campaign]
}

/// The spans in which the same flows are active, with these flows: from, until, flows.
fn phases(run: &Run) -> Vec<(f64, f64, Vec<usize>)> {
    // The flows of these scenarios start and stop at whole seconds; a flow without PRBs for a second is not there.
    let flows = 0..run.courses.len();
    let is_there = |flow: usize, second: f64| {
        between(&run.courses[flow].primary_prbs, (second, second + 1.0)).iter().sum::<u64>() > 0
    };
    let mut phases: Vec<(f64, f64, Vec<usize>)> = Vec::new();
    for second in (0..run.summary.duration_s as u32).map(f64::from) {
        let there: Vec<usize> = flows.clone().filter(|&flow| is_there(flow, second)).collect();
        match phases.last_mut() {
            Some((_, until, known)) if *known == there => *until = second + 1.0,
            _ => phases.push((second, second + 1.0, there)),
        }
    }
    // Shorter spans are those in which a flow ends within a second.
    phases.retain(|(from, until, _)| until - from >= 3.0);
    phases
}

/// Jain's index in percent of the PRBs of the primary cell: the mean over the phases with this many flows.
fn jain_of_phases(run: &Run, count: usize) -> Option<f64> {
    let phases = phases(run);
    let its: Vec<f64> = phases
        .iter()
        .filter(|(_, _, flows)| flows.len() == count)
        .filter_map(|(from, until, flows)| {
            let prbs = |flow: &usize| {
                between(&run.courses[*flow].primary_prbs, (*from, *until)).iter().sum::<u64>() as f64
            };
            jain_percent(&flows.iter().map(prbs).collect::<Vec<_>>())
        })
        .collect();
    statistics::mean(&its).filter(|_| !its.is_empty())
}

fn findings(results: &Results, name: &'static str, paper: [f64; 2]) -> Findings {
    let runs = results.all();
    let mut numbers = Vec::new();
    for (scheme, suffix) in [("pbe", ""), ("pbe@paper", ", PBE-CC as printed")] {
        for (count, paper) in [2, 3].into_iter().zip(paper) {
            let ours = runs.with(scheme).mean(|run| jain_of_phases(run, count));
            let what = format!("Jain's index of the primary cell's PRBs, {count} flows{suffix}");
            numbers.push(Number::new(what, "%", paper, ours, Rule::AtLeast(paper - 1.5)));
        }
    }
    let marks = runs.with("pbe").0.first().map_or(Vec::new(), |run| {
        let line = |(flow, course): (usize, &airpace_run::metrics::Course)| {
            const COLOURS: [&str; 3] = ["#0072B2", "#E69F00", "#009E73"];
            let flow_name = &run.summary.flows[flow].flow;
            let style = airpace_plot::Style::new(flow_name, COLOURS[flow % COLOURS.len()]);
            let prbs: Vec<Option<f64>> =
                course.primary_prbs.iter().map(|prbs| Some(*prbs as f64 / 100.0)).collect();
            Mark::Line(Line { stepped: true, ..Line::new(style, medians(&prbs, 0.5)) })
        };
        run.courses.iter().enumerate().map(line).collect()
    });
    let panel = Panel {
        x: Axis::linear("time (s)"),
        y: Axis { range: Some((0.0, 50.0)), ..Axis::linear("PRBs of the primary cell") },
        marks,
        ..Panel::default()
    };
    let figure = Figure {
        title: format!("PBE-CC {}", name.replace("pbe-fig", "Fig. ")),
        caption: "PRBs per subframe that each phone gets in the primary cell, medians per 0.5 s.".to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 720.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name, figure }] }
}
