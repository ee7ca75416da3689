//! Two and three flows of one phone over the recorded links: Table 2, Fig. 9, Table 3.

use std::sync::LazyLock;

use airpace_plot::{Area, Axis, Entry, Figure, Layer, Mark, Panel, Spans, Stack, Style};
use airpace_run::metrics::course::{INTERVAL, between};
use airpace_run::metrics::jain;
use airpace_run::statistics;
use airpace_sim::builtin;

use super::{LINKS, of_kind, over};
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs};

/// Table 2.
pub(crate) static TABLE_2: Experiment = Experiment {
    id: "biscay/table2",
    title: "Two and three flows of one phone over 260 links",
    source: "BISCAY §5.3.4 Table 2",
    world: "The links are those of Table 1. The rule compares BBR and CUBIC with BISCAY, because the links are others. The round trip \
            was chosen by the shortest mean delay of the paper, which our links do not reach: their capacity varies more within a \
            tenth of a second.",
    evidence: Evidence::Simulated(|size| vec![flows(size, "two", &TWO), flows(size, "three", &THREE)]),
    findings: table_2,
};

/// Fig. 9 and Table 3.
pub(crate) static FIG_9: Experiment = Experiment {
    id: "biscay/fig9",
    title: "Fairness of three flows of one phone",
    source: "BISCAY §5.3.5 Fig. 9, Table 3",
    world: "The paper shows one link and two regions of it. Ours are means over all links; the regions of a link are the 2 s after \
            its two largest changes of capacity.",
    evidence: Evidence::Simulated(|size| vec![flows(size, "three", &THREE)]),
    findings: fig_9,
};

/// The scenario with two flows.
static TWO: LazyLock<String> = LazyLock::new(|| with_flows(&["two"]));

/// The scenario with three flows.
static THREE: LazyLock<String> = LazyLock::new(|| with_flows(&["two", "three"]));

/// The scenario with further flows, like its own.
fn with_flows(labels: &[&str]) -> String {
    let own = builtin().iter().find(|(name, _)| *name == LINKS).map_or("", |(_, text)| *text);
    let flow = |label: &&str| format!("\n[[flow]]\nlabel = \"{label}\"\ndirection = \"up\"\nrtt_ms = 8\n");
    labels.iter().fold(own.to_owned(), |text, label| text + &flow(label))
}

const SCHEMES: &[&str] = &["biscay", "bbr", "cubic", "biscay@paper"];

fn flows(size: Size, name: &'static str, text: &'static str) -> Campaign {
    let schemes = size.choose(SCHEMES, &["biscay", "bbr"]);
    let per_stratum = size.choose(None, Some(1));
    Campaign { name, text, per_stratum, ..Campaign::of(LINKS, schemes, vec![1]) }
}

/// Mean of a metric over the flows of a run.
fn mean_of(run: &Run, of: impl Fn(&Run, usize) -> Option<f64>) -> Option<f64> {
    statistics::mean(&(0..run.courses.len()).filter_map(|flow| of(run, flow)).collect::<Vec<_>>())
}

fn rate(run: &Run) -> Option<f64> {
    mean_of(run, |run, flow| Some(run.flow(flow).throughput_mbps))
}

fn mean_delay(run: &Run) -> Option<f64> {
    mean_of(run, |run, flow| run.flow(flow).one_way_delay_ms.mean)
}

fn tail_delay(run: &Run) -> Option<f64> {
    mean_of(run, |run, flow| run.flow(flow).one_way_delay_ms.p95)
}

/// Mbit/s per flow, mean delay and p95 delay in ms of BISCAY, BBR and CUBIC, by number of flows and kind of link.
const PAPER: [(&str, &str, [[f64; 3]; 3]); 4] = [
    ("two", "mobile", [[12.76, 5.625, 7.64], [12.59, 7.68, 9.73], [13.54, 417.2, 802.9]]),
    ("two", "static", [[8.89, 10.92, 13.62], [8.46, 14.35, 19.69], [9.13, 768.9, 1536.0]]),
    ("three", "mobile", [[8.5, 5.78, 7.54], [8.42, 7.91, 10.05], [9.17, 397.33, 830.38]]),
    ("three", "static", [[5.91, 10.04, 12.79], [5.54, 17.01, 25.15], [5.91, 667.34, 1450.8]]),
];

/// A metric: name, unit, value of a run.
type Metric = (&'static str, &'static str, fn(&Run) -> Option<f64>);

/// Metrics in the order of [`PAPER`].
const METRICS: [Metric; 3] =
    [("throughput", "Mbit/s", rate), ("mean delay", "ms", mean_delay), ("p95 delay", "ms", tail_delay)];

fn table_2(results: &Results) -> Findings {
    let mut numbers = Vec::new();
    for (count, kind, [biscay, bbr, cubic]) in PAPER {
        let runs = of_kind(&results.of(count), kind);
        for (at, (what, unit, of)) in METRICS.into_iter().enumerate() {
            let name = format!("BISCAY, {what}, {count} flows, {kind}");
            let number = Number::new(name, unit, biscay[at], runs.with("biscay").mean(of), Rule::Factor(1.5));
            // The widths of the cells were chosen by these numbers. The round trip was chosen by a delay that it does not reach.
            let is_fitted = count == "two" && at == 0;
            numbers.push(if is_fitted { number.fitted() } else { number });
        }
        for (scheme, paper) in [("bbr", bbr), ("cubic", cubic)] {
            for (at, (what, _, of)) in METRICS.into_iter().enumerate() {
                let mean = |scheme: &str| statistics::mean(&runs.with(scheme).values(of));
                let name = format!("{} ÷ BISCAY, {what}, {count} flows, {kind}", look::name(scheme));
                let ours = over(mean(scheme), mean("biscay"));
                numbers.push(Number::new(name, "", paper[at] / biscay[at], ours, Rule::Factor(1.5)));
            }
        }
    }
    for kind in ["mobile", "static"] {
        let mean = |count: &str| {
            statistics::mean(&of_kind(&results.of(count), kind).with("biscay").values(mean_delay))
        };
        let name =
            format!("BISCAY, mean delay of three flows ÷ two flows, {kind}; the paper: similar or lower");
        numbers.push(Number::claim(name, "", over(mean("three"), mean("two")), Rule::AtMost(1.1)));
    }
    Findings { numbers, ..Findings::default() }
}

/// Length of a region of Table 3, in seconds.
///
/// Chosen: 2 s, about the width of the paper's shaded areas.
const REGION_S: f64 = 2.0;

/// The first seconds of a run, in which flows start.
const START_S: f64 = 3.0;

/// The two regions of a run after the largest changes of the link's capacity.
fn regions(run: &Run) -> Vec<(f64, f64)> {
    regions_of(&run.courses[0].capacity_bytes, run.summary.duration_s)
}

/// The two regions after the largest changes of a capacity, which do not overlap, as (from, until) in seconds.
fn regions_of(capacity: &[f64], duration_s: f64) -> Vec<(f64, f64)> {
    let bytes = |from: f64| between(capacity, (from, from + REGION_S)).iter().sum::<f64>();
    let step_s = INTERVAL.as_secs_f64() * 5.0;
    let steps = ((duration_s - START_S - 2.0 * REGION_S) / step_s).max(0.0) as usize;
    let starts = (0..=steps).map(|step| START_S + REGION_S + step as f64 * step_s);
    let mut changes: Vec<(f64, f64)> =
        starts.map(|at| ((bytes(at) - bytes(at - REGION_S)).abs(), at)).collect();
    changes.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut found: Vec<(f64, f64)> = Vec::new();
    for (_, at) in changes {
        if found.len() < 2 && found.iter().all(|(from, _)| (from - at).abs() >= REGION_S) {
            found.push((at, at + REGION_S));
        }
    }
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found
}

/// Jain's index of the flows' bytes in a span of a run.
fn jain_in(run: &Run, span_s: (f64, f64)) -> Option<f64> {
    let bytes =
        |course: &airpace_run::metrics::Course| between(&course.bytes, span_s).iter().sum::<u64>() as f64;
    jain(&run.courses.iter().map(bytes).collect::<Vec<_>>())
}

fn jain_of_run(run: &Run) -> Option<f64> {
    jain_in(run, (0.0, run.summary.duration_s))
}

fn jain_of_regions(run: &Run) -> Option<f64> {
    statistics::mean(&regions(run).into_iter().filter_map(|region| jain_in(run, region)).collect::<Vec<_>>())
}

fn fig_9(results: &Results) -> Findings {
    let runs = results.of("three");
    let mut numbers = Vec::new();
    for scheme in ["biscay", "bbr", "cubic"] {
        let (its, name) = (runs.with(scheme), look::name(scheme));
        let whole = its.mean(jain_of_run);
        numbers.push(Number::new(
            format!("{name}, Jain's index, whole run"),
            "",
            1.0,
            whole,
            Rule::AtLeast(0.99),
        ));
        let rule = if scheme == "biscay" { Rule::AtLeast(0.98) } else { Rule::AtMost(0.95) };
        let what = format!("{name}, Jain's index, two regions of 2 s");
        numbers.push(Number::claim(what, "", its.mean(jain_of_regions), rule));
    }
    let printed = runs.with("biscay@paper").mean(jain_of_regions);
    let what = "BISCAY as printed, Jain's index, two regions of 2 s";
    numbers.push(Number::claim(what, "", printed, Rule::AtLeast(0.98)));
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig9", figure: stacked(&runs) }] }
}

/// The flows of one link on top of each other, with the link's capacity behind them.
fn stacked(runs: &Runs<'_>) -> Figure {
    /// The link of the figure: the first of the largest stratum.
    const LINK: &str = "nr-mobile-peak-01";
    const COLOURS: [&str; 3] = ["#0072B2", "#E69F00", "#009E73"];
    let panel = |scheme: &str| {
        let link = runs.with(scheme).such(|run| run.variant.starts_with("nr-mobile-peak-"));
        let run = *link.0.iter().find(|run| run.variant == LINK).or(link.0.first())?;
        let every_s = INTERVAL.as_secs_f64();
        let seconds = |at: usize| at as f64 * every_s;
        let mbps = |bytes: f64| bytes * 8e-6 / every_s;
        let capacity = run.courses[0].capacity_bytes.iter().enumerate();
        let capacity = Area {
            style: Style::new("link", "#BBBBBB"),
            points: capacity.map(|(at, bytes)| (seconds(at), mbps(*bytes))).collect(),
            stepped: true,
            second_y: false,
        };
        let layer = |(flow, course): (usize, &airpace_run::metrics::Course)| Layer {
            style: Style::new(&format!("flow {}", flow + 1), COLOURS[flow % COLOURS.len()]),
            heights: course.mbps().collect(),
        };
        let stack = Stack {
            x: (0..run.courses[0].bytes.len()).map(seconds).collect(),
            layers: run.courses.iter().enumerate().map(layer).collect(),
            stepped: true,
        };
        let shaded = Spans { style: Style::new("regions", "#CC79A7"), ranges: regions(run) };
        Some(Panel {
            title: look::name(scheme),
            x: Axis { range: Some((0.0, run.summary.duration_s)), ..Axis::linear("time (s)") },
            y: Axis::linear("throughput (Mbit/s)"),
            marks: vec![Mark::Spans(shaded), Mark::Area(capacity), Mark::Stack(stack)],
            ..Panel::default()
        })
    };
    let panels: Vec<Panel> = ["biscay", "bbr", "cubic"].into_iter().filter_map(panel).collect();
    Figure {
        title: "BISCAY Fig. 9".to_owned(),
        caption: "Throughput per 100 ms of three flows of one phone, on top of each other, over the capacity of its link. The two \
                  regions of Table 3 are shaded."
            .to_owned(),
        legend: Entry::of(&panels),
        panels,
        panel_width: 720.0,
        plot_height: 160.0,
        ..Figure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_follow_the_largest_changes_and_do_not_overlap() {
        let rate = |interval: usize| match interval {
            0..80 => 10.0,
            80..140 => 90.0,
            _ => 30.0,
        };
        let capacity: Vec<f64> = (0..200).map(rate).collect();
        assert_eq!(regions_of(&capacity, 20.0), [(8.0, 10.0), (14.0, 16.0)]);
        assert!(regions_of(&capacity[..50], 5.0).len() < 2, "a short run has no room for two regions");
    }
}
