//! A phone beside a phone that receives 60 Mbit/s in 4 s of every 8.

use airpace_plot::{Axis, Colour, Entry, Figure, Line, Mark, Panel, Point, Points, Spans, Style};

use super::EIGHT;
use super::mobility::medians;
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs, mean_delay, p95_delay, throughput};

/// Figs. 16 and 17.
pub(crate) static FIG_16: Experiment = Experiment {
    id: "pbe/fig16",
    title: "Throughput and delay beside a competitor that comes and goes",
    source: "PBE-CC §6.2.3 Figs. 16, 17",
    world: "The phone has one carrier and the competitor two, as the paper's phones (Redmi 8, MIX3). Round trip and queue are \
            fitted to PBE-CC's mean delay and CUBIC's p95 delay.",
    evidence: Evidence::Simulated(campaigns),
    findings,
};

/// Scheme, throughput in Mbit/s, mean and p95 one-way delay in ms.
const PAPER: [(&str, f64, f64, f64); 4] = [
    ("pbe", 57.0, 61.0, 71.0),
    ("bbr", 62.0, 147.0, 227.0),
    ("cubic", 58.0, 252.0, 416.0),
    ("verus@pantheon", 56.0, 263.0, 403.0),
];

fn campaigns(size: Size) -> Vec<Campaign> {
    let campaign = Campaign::of("competitor", EIGHT, size.seeds(5))
        .with("cell.carriers", 2)
        .with("device.0.radio.carriers", "[0]")
        .with("flow.0.rtt_ms", 92)
        .with("device.0.radio.queue_bytes", 2_200_000);
    vec![campaign]
}

fn findings(results: &Results) -> Findings {
    let runs = results.all();
    let mut numbers = Vec::new();
    for (scheme, rate, mean, p95) in PAPER {
        let (its, name) = (runs.with(scheme), look::name(scheme));
        numbers.push(Number::new(
            format!("{name}, throughput"),
            "Mbit/s",
            rate,
            its.mean(throughput),
            Rule::Factor(1.15),
        ));
        let mean =
            Number::new(format!("{name}, mean delay"), "ms", mean, its.mean(mean_delay), Rule::Factor(1.5));
        numbers.push(if scheme == "pbe" { mean.fitted() } else { mean });
        let p95 =
            Number::new(format!("{name}, p95 delay"), "ms", p95, its.mean(p95_delay), Rule::Factor(1.5));
        numbers.push(if scheme == "cubic" { p95.fitted() } else { p95 });
    }
    let pictures = vec![
        Picture { name: "pbe-fig16", figure: scatter(&runs) },
        Picture { name: "pbe-fig17", figure: courses(&runs) },
    ];
    Findings { numbers, pictures }
}

fn scatter(runs: &Runs<'_>) -> Figure {
    let panel = |title: &str, label: &str, of: fn(&Run) -> Option<f64>| Panel {
        title: title.to_owned(),
        x: Axis { reversed: true, ..Axis::log(label) },
        y: Axis::linear("throughput (Mbit/s)"),
        marks: EIGHT
            .iter()
            .filter_map(|scheme| {
                let its = runs.with(scheme);
                let (x, y) = (its.mean(of)?.value, its.mean(throughput)?.value);
                let points = vec![Point { x, y, label: look::name(scheme) }];
                Some(Mark::Points(Points { style: look::style(scheme), points, second_y: false }))
            })
            .collect(),
        ..Panel::default()
    };
    let panels = vec![
        panel("a", "mean one-way delay (ms)", mean_delay),
        panel("b", "p95 one-way delay (ms)", p95_delay),
    ];
    Figure {
        title: "PBE-CC Fig. 16".to_owned(),
        caption: "Throughput and one-way delay beside the competitor; better is up and to the right."
            .to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 2,
        ..Figure::default()
    }
}

/// Throughput and delay per 200 ms, with the times at which the competitor sends.
fn courses(runs: &Runs<'_>) -> Figure {
    const FOUR: [&str; 4] = ["pbe", "bbr", "cubic", "verus@pantheon"];
    let rival = || {
        let style = Style { name: "competitor sends".to_owned(), colour: Colour::Soft, ..Style::default() };
        Mark::Spans(Spans {
            style,
            ranges: (0..5).map(|turn| (4.0 + 8.0 * f64::from(turn), 8.0 + 8.0 * f64::from(turn))).collect(),
        })
    };
    let panel = |scheme: &&str, label: &str, of: &dyn Fn(&Run) -> Vec<Option<f64>>| {
        let line =
            runs.with(scheme).0.first().map(|run| Line::new(look::style(scheme), medians(&of(run), 0.2)));
        Panel {
            title: look::name(scheme),
            x: Axis { range: Some((0.0, 40.0)), ..Axis::linear("time (s)") },
            y: Axis { range: Some((0.0, 600.0)).filter(|_| label.contains("ms")), ..Axis::linear(label) },
            marks: std::iter::once(rival()).chain(line.map(Mark::Line)).collect(),
            ..Panel::default()
        }
    };
    let rate = |run: &Run| run.courses[0].mbps().map(Some).collect();
    let delay = |run: &Run| run.courses[0].delay_ms.clone();
    let panels: Vec<Panel> = FOUR
        .iter()
        .flat_map(|scheme| {
            [panel(scheme, "throughput (Mbit/s)", &rate), panel(scheme, "one-way delay (ms)", &delay)]
        })
        .collect();
    Figure {
        title: "PBE-CC Fig. 17".to_owned(),
        caption: "Medians per 200 ms of throughput and one-way delay.".to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 2,
        plot_height: 150.0,
        ..Figure::default()
    }
}
