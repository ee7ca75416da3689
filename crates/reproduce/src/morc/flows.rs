//! Five downloads that join and leave: Fig. 5.

use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel, Style};
use airpace_run::metrics::course::between;
use airpace_run::statistics;

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture};
use crate::number::{Number, Rule};
use crate::results::{Results, Run};
use crate::statistics::jain_percent;

/// Fig. 5.
pub(crate) static FIG_5: Experiment = Experiment {
    id: "morc/fig5",
    title: "Five downloads that join and leave every 5 s",
    source: "MORC §4.1 Fig. 5",
    world: "",
    evidence: Evidence::Simulated(|size| {
        vec![Campaign::of("morc-five-flows", &["morc", "morc@paper"], size.seeds(5))]
    }),
    findings,
};

/// Jain's index in percent of the last two seconds of each phase of 5 s, mean over the phases with several flows.
fn jain_at_ends(run: &Run) -> Option<f64> {
    let phases = (1..10).filter_map(|phase| {
        let end = 5.0 * f64::from(phase);
        let there = |flow: &usize| {
            let (from, until) = (5.0 * *flow as f64, 30.0 + 5.0 * *flow as f64);
            (from..until).contains(&(end - 1.0))
        };
        let bytes =
            |flow: usize| between(&run.courses[flow].bytes, (end - 2.0, end)).iter().sum::<u64>() as f64;
        let shares: Vec<f64> = (0..run.courses.len()).filter(there).map(bytes).collect();
        (shares.len() > 1).then(|| jain_percent(&shares)).flatten()
    });
    let phases: Vec<f64> = phases.collect();
    statistics::mean(&phases).filter(|_| !phases.is_empty())
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let number = |scheme: &str, name: &str| {
        let what =
            format!("{name}, Jain's index at the ends of the phases; the paper: converges to equal shares");
        Number::claim(what, "%", runs.with(scheme).mean(jain_at_ends), Rule::AtLeast(95.0))
    };
    let lines = |scheme: &str| {
        const COLOURS: [&str; 5] = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"];
        let run = runs.with(scheme).0.first().copied()?;
        let line = |(flow, course): (usize, &airpace_run::metrics::Course)| {
            let rates: Vec<Option<f64>> = course.mbps().map(Some).collect();
            let style = Style::new(&run.summary.flows[flow].flow, COLOURS[flow % COLOURS.len()]);
            Mark::Line(Line::new(style, crate::pbe::mobility::medians(&rates, 0.5)))
        };
        Some(run.courses.iter().enumerate().map(line).collect())
    };
    let panel = |scheme: &str, title: &str| Panel {
        title: title.to_owned(),
        x: Axis::linear("time (s)"),
        y: Axis { range: Some((0.0, 100.0)), ..Axis::linear("throughput (Mbit/s)") },
        marks: lines(scheme).unwrap_or_default(),
        ..Panel::default()
    };
    let panels = vec![panel("morc", "MORC"), panel("morc@paper", "MORC as printed")];
    let figure = Figure {
        title: "MORC Fig. 5".to_owned(),
        caption: "Throughput of five downloads over 100 Mbit/s and 20 ms, medians per 0.5 s.".to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 2,
        ..Figure::default()
    };
    Findings {
        numbers: vec![number("morc", "MORC"), number("morc@paper", "MORC as printed")],
        pictures: vec![Picture { name: "morc-fig5", figure }],
    }
}
