//! A phone that walks from a good place to a bad one and back.

use std::time::Duration;

use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel, Point, Points};
use airpace_run::metrics::course::INTERVAL;
use airpace_run::statistics::Estimate;

use super::EIGHT;
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs, p95_delay, throughput};
use crate::statistics::{kendall, median};

/// Figs. 14 and 15.
pub(crate) static FIG_14: Experiment = Experiment {
    id: "pbe/fig14",
    title: "Throughput and delay of a phone that moves",
    source: "PBE-CC §6.2.2 Figs. 14, 15",
    world: "Round trip, queue and losses of the paper's network are not published; ours are fitted to PBE-CC's delay, and to \
            CUBIC's throughput and delay.",
    evidence: Evidence::Simulated(campaigns),
    findings,
};

/// Scheme, throughput in Mbit/s, p95 one-way delay in ms.
const PAPER: [(&str, f64, f64); 4] =
    [("pbe", 55.0, 64.0), ("bbr", 55.0, 156.0), ("cubic", 38.0, 296.0), ("verus@pantheon", 41.0, 467.0)];

fn campaigns(size: Size) -> Vec<Campaign> {
    let network = |name, loss: f64| {
        Campaign { name, ..Campaign::of("mobility", EIGHT, size.seeds(5)) }
            .with("flow.0.rtt_ms", 72)
            .with("device.0.radio.queue_bytes", 2_200_000)
            .with("forward.loss", loss)
    };
    match size {
        Size::Whole => vec![network("", 1e-4), network("without losses", 0.0)],
        Size::Quick => vec![network("", 1e-4)],
    }
}

fn findings(results: &Results) -> Findings {
    let mut numbers = Vec::new();
    for (world, suffix) in [("", ""), ("without losses", ", no losses")] {
        let runs = results.of(world);
        if runs.0.is_empty() {
            continue;
        }
        for (scheme, rate, p95) in PAPER {
            let (its, name) = (runs.with(scheme), look::name(scheme));
            let rate = Number::new(
                format!("{name}, throughput{suffix}"),
                "Mbit/s",
                rate,
                its.mean(throughput),
                Rule::Factor(1.2),
            );
            let p95 = Number::new(
                format!("{name}, p95 delay{suffix}"),
                "ms",
                p95,
                its.mean(p95_delay),
                Rule::Factor(1.5),
            );
            let is_fit = world.is_empty();
            numbers.push(if is_fit && scheme == "cubic" { rate.fitted() } else { rate });
            numbers.push(if is_fit && scheme == "cubic" || scheme == "pbe" { p95.fitted() } else { p95 });
        }
        let of = |value: fn(&Run) -> Option<f64>| -> Vec<f64> {
            PAPER.iter().filter_map(|(scheme, ..)| Some(runs.with(scheme).mean(value)?.value)).collect()
        };
        let order = kendall(&of(p95_delay), &PAPER.map(|(_, _, p95)| p95));
        let ours = order.map(|value| Estimate { value, interval: None });
        let what = format!("rank correlation of the four delays{suffix}");
        numbers.push(Number::claim(what, "", ours, Rule::AtLeast(0.6)));
    }
    let pictures = vec![
        Picture { name: "pbe-fig14", figure: scatter(&results.all()) },
        Picture { name: "pbe-fig15", figure: courses(&results.all()) },
    ];
    Findings { numbers, pictures }
}

/// Throughput over p95 delay, one point per scheme.
fn scatter(runs: &Runs<'_>) -> Figure {
    let point = |scheme: &&str| {
        let its = runs.with(scheme);
        let point = Point {
            x: its.mean(p95_delay)?.value,
            y: its.mean(throughput)?.value,
            label: look::name(scheme),
        };
        Some(Mark::Points(Points { style: look::style(scheme), points: vec![point], second_y: false }))
    };
    let panel = Panel {
        x: Axis { reversed: true, ..Axis::log("p95 one-way delay (ms)") },
        y: Axis::linear("throughput (Mbit/s)"),
        marks: EIGHT.iter().filter_map(point).collect(),
        ..Panel::default()
    };
    Figure {
        title: "PBE-CC Fig. 14".to_owned(),
        caption: "Mean throughput and 95th percentile of one-way delay while the phone moves; better is up and to the right."
            .to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 560.0,
        plot_height: 300.0,
        ..Figure::default()
    }
}

/// Medians per 2 s of throughput and delay, as in Fig. 15.
fn courses(runs: &Runs<'_>) -> Figure {
    const FOUR: [&str; 4] = ["pbe", "bbr", "cubic", "verus@pantheon"];
    let of = |value: &dyn Fn(&Run) -> Vec<Option<f64>>| -> Vec<Mark> {
        let line = |scheme: &&str| {
            let run = *runs.with(scheme).0.first()?;
            Some(Mark::Line(Line {
                markers: true,
                ..Line::new(look::style(scheme), medians(&value(run), 2.0))
            }))
        };
        FOUR.iter().filter_map(line).collect()
    };
    let rate = |run: &Run| run.courses[0].mbps().map(Some).collect();
    let delay = |run: &Run| run.courses[0].delay_ms.clone();
    let time = || Axis { range: Some((0.0, 40.0)), ..Axis::linear("time (s)") };
    let panels = vec![
        Panel { x: time(), y: Axis::linear("throughput (Mbit/s)"), marks: of(&rate), ..Panel::default() },
        Panel { x: time(), y: Axis::log("one-way delay (ms)"), marks: of(&delay), ..Panel::default() },
    ];
    Figure {
        title: "PBE-CC Fig. 15".to_owned(),
        caption: "Medians per 2 s. The phone stands at -85 dBm until 13 s, reaches -105 dBm at 26 s and is back at 30 s."
            .to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 2,
        ..Figure::default()
    }
}

/// Medians of the values of each span of `every_s`, at the middles of the spans. The values have intervals of 100 ms.
pub(crate) fn medians(values: &[Option<f64>], every_s: f64) -> Vec<(f64, f64)> {
    let count = (Duration::from_secs_f64(every_s).as_nanos() / INTERVAL.as_nanos()).max(1) as usize;
    let of = |(index, values): (usize, &[Option<f64>])| {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        Some(((index as f64 + 0.5) * every_s, median(&known)?))
    };
    values.chunks(count).enumerate().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_at_the_middles_of_their_spans() {
        let values: Vec<Option<f64>> =
            (0..40).map(|index| (index != 3).then_some(f64::from(index))).collect();
        assert_eq!(medians(&values, 2.0), [(1.0, 10.0), (3.0, 29.0)]);
    }
}
