//! The wired part of the path becomes the bottleneck: Fig. 10.

use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel};

use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::pbe::mobility::medians;
use crate::results::{Results, Run};

/// Fig. 10.
pub(crate) static FIG_10: Experiment = Experiment {
    id: "biscay/fig10",
    title: "The wired part of the path becomes the bottleneck three times",
    source: "BISCAY §5.3.6 Fig. 10",
    world: "",
    evidence: Evidence::Simulated(|size: Size| {
        vec![Campaign::of("biscay-wired-bottleneck", &["biscay"], size.seeds(5))]
    }),
    findings,
};

/// Start, end and rate of each bottleneck, in seconds and Mbit/s.
const BOTTLENECKS: [(f64, f64, f64); 3] = [(10.0, 18.0, 5.0), (26.0, 34.0, 10.0), (42.0, 50.0, 15.0)];

fn is_fallback(state: &str) -> bool {
    state.starts_with("Fallback")
}

/// Time from `at_s` until the controller is in its fallback, or out of it, in seconds; infinite if it never is.
fn time_until(run: &Run, at_s: f64, fallback: bool) -> f64 {
    let states = &run.courses[0].states;
    let before = states.iter().rev().find(|(time, _)| *time <= at_s);
    if before.is_some_and(|(_, state)| is_fallback(state) == fallback) {
        return 0.0;
    }
    let next = states.iter().find(|(time, state)| *time > at_s && is_fallback(state) == fallback);
    next.map_or(f64::INFINITY, |(time, _)| time - at_s)
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let mut numbers = Vec::new();
    for (start, end, rate) in BOTTLENECKS {
        let into = runs.mean(|run| Some(time_until(run, start, true)));
        let back = runs.mean(|run| Some(time_until(run, end, false)));
        let what = |way: &str| format!("time {way} the fallback, {rate} Mbit/s; the paper: swiftly");
        numbers.push(Number::claim(what("into"), "s", into, Rule::AtMost(2.5)));
        numbers.push(Number::claim(what("out of"), "s", back, Rule::AtMost(2.5)));
    }
    let marks = runs.0.first().map_or(Vec::new(), |run| {
        let rates: Vec<Option<f64>> = run.courses[0].mbps().map(Some).collect();
        let wired = |points: &mut Vec<(f64, f64)>, (start, end, rate): (f64, f64, f64)| {
            points.extend([(start, 30.0), (start, rate), (end, rate), (end, 30.0)]);
        };
        let mut path = vec![(0.0, 30.0)];
        BOTTLENECKS.iter().for_each(|bottleneck| wired(&mut path, *bottleneck));
        path.push((60.0, 30.0));
        let mut ours = look::style("biscay");
        ours.name = "BISCAY".to_owned();
        let link = airpace_plot::Style {
            name: "what the path carries".to_owned(),
            dash: airpace_plot::Dash::Dashed,
            ..airpace_plot::Style::default()
        };
        vec![Mark::Line(Line::new(link, path)), Mark::Line(Line::new(ours, medians(&rates, 0.5)))]
    });
    let panel = Panel {
        x: Axis { range: Some((0.0, 60.0)), ..Axis::linear("time (s)") },
        y: Axis { range: Some((0.0, 35.0)), ..Axis::linear("throughput (Mbit/s)") },
        marks,
        ..Panel::default()
    };
    let figure = Figure {
        title: "BISCAY Fig. 10".to_owned(),
        caption: "Throughput of an upload while the wired part of its path is limited three times."
            .to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 720.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig10", figure }] }
}
