//! How often and from where the bandwidth is read: Figs. 6 and 11a.

use airpace_plot::{Axis, Entry, Figure, Line, Mark, Panel, Point, Points, Rule as Across, Style};
use airpace_run::statistics;

use super::{LINKS, over};
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs, mean_delay, p95_delay, throughput};

/// Fig. 6.
pub(crate) static FIG_6: Experiment = Experiment {
    id: "biscay/fig6",
    title: "Sampling interval of the modem's KPIs",
    source: "BISCAY §5.2 Fig. 6",
    world: "The paper shows one mobile link with carrier aggregation; ours are means over eight such links. Below 100 ms, the \
            modem's summary of granted bytes does not change between two samples; so the intervals up to 100 ms read sums of \
            transport blocks over the interval itself (bandwidth=tbs, tbs_ttis), from KPIs of every millisecond. Above, the \
            summary of the last 100 ms is sampled.",
    evidence: Evidence::Simulated(sampled),
    findings: fig_6,
};

/// Fig. 11a.
pub(crate) static FIG_11A: Experiment = Experiment {
    id: "biscay/fig11a",
    title: "BISCAY against PBE-CC on downlinks of 4G",
    source: "BISCAY §5.4 Fig. 11a",
    world: "The paper measured in commercial cells of 4G. Ours are the 40 places of PBE-CC's experiments, where both schemes read \
            their own reports of the same simulated cell: BISCAY the modem's, PBE-CC the control channel's. The paper's PBE-CC \
            is its authors' program, which stands between PBE-CC as printed and ours.",
    evidence: Evidence::Simulated(|size| {
        let schemes = &["biscay", "pbe", "pbe@paper"];
        let per_stratum = size.choose(None, Some(1));
        vec![Campaign { per_stratum, ..Campaign::of("pbe-places", schemes, size.seeds(2)) }]
    }),
    findings: fig_11a,
};

/// A value of a run.
type Value = fn(&Run) -> Option<f64>;

/// Sampling intervals in ms, with the options of a scheme that samples so.
const SAMPLES: [(u32, &str); 9] = [
    (1, "bandwidth=tbs:tbs_ttis=1:sample_ms=1"),
    (10, "bandwidth=tbs:tbs_ttis=10:sample_ms=10"),
    (20, "bandwidth=tbs:tbs_ttis=20:sample_ms=20"),
    (50, "bandwidth=tbs:tbs_ttis=50:sample_ms=50"),
    (100, "bandwidth=tbs:tbs_ttis=100:sample_ms=100"),
    (200, "sample_ms=200"),
    (500, "sample_ms=500"),
    (1000, "sample_ms=1000"),
    (1500, "sample_ms=1500"),
];

const SCHEMES: &[&str] = &[
    "biscay:bandwidth=tbs:tbs_ttis=1:sample_ms=1",
    "biscay:bandwidth=tbs:tbs_ttis=10:sample_ms=10",
    "biscay:bandwidth=tbs:tbs_ttis=20:sample_ms=20",
    "biscay:bandwidth=tbs:tbs_ttis=50:sample_ms=50",
    "biscay:bandwidth=tbs:tbs_ttis=100:sample_ms=100",
    "biscay:sample_ms=200",
    "biscay:sample_ms=500",
    "biscay:sample_ms=1000",
    "biscay:sample_ms=1500",
    "biscay:sample_ms=once",
    "biscay@paper:bandwidth=tbs:tbs_ttis=1:sample_ms=1",
    "biscay@paper:bandwidth=tbs:tbs_ttis=10:sample_ms=10",
    "biscay@paper:bandwidth=tbs:tbs_ttis=20:sample_ms=20",
    "biscay@paper:bandwidth=tbs:tbs_ttis=50:sample_ms=50",
    "biscay@paper:bandwidth=tbs:tbs_ttis=100:sample_ms=100",
    "biscay@paper:sample_ms=200",
    "biscay@paper:sample_ms=500",
    "biscay@paper:sample_ms=1000",
    "biscay@paper:sample_ms=1500",
    "biscay@paper:sample_ms=once",
    "bbr",
];

const QUICK: &[&str] = &[
    "biscay:bandwidth=tbs:tbs_ttis=1:sample_ms=1",
    "biscay:bandwidth=tbs:tbs_ttis=100:sample_ms=100",
    "biscay:sample_ms=1500",
    "bbr",
];

/// The links: mobile ones in busy hours with two carriers.
const MOBILE: &str = "lte-mobile-peak-01,lte-mobile-peak-02,lte-mobile-peak-03,lte-mobile-peak-04,lte-mobile-peak-05,\
                      lte-mobile-peak-06,lte-mobile-peak-07,lte-mobile-peak-08";

fn sampled(size: Size) -> Vec<Campaign> {
    let links = size.choose(MOBILE, "lte-mobile-peak-01");
    let campaign = Campaign::of(LINKS, size.choose(SCHEMES, QUICK), vec![1]);
    vec![campaign.with("variant", links).with("trace.kpi_every_ms", 1)]
}

/// The presets, with the suffix of their numbers.
const PRESETS: [(&str, &str); 2] = [("biscay", ""), ("biscay@paper", ", BISCAY as printed")];

fn fig_6(results: &Results) -> Findings {
    let runs = results.all();
    let mean = |scheme: &str, of: Value| statistics::mean(&runs.with(scheme).values(of));
    let mut numbers = Vec::new();
    for (preset, suffix) in PRESETS {
        if runs.with(&sample(preset, 1)).0.is_empty() {
            continue;
        }
        let ratio = |of: Value, interval_ms: u32, other: &str| {
            over(mean(&sample(preset, interval_ms), of), mean(other, of))
        };
        let at_100 = sample(preset, 100);
        let flat = |what: &str, of: Value| {
            let what = format!("{what} at 1 ms ÷ at 100 ms{suffix}; the paper: no difference");
            Number::new(what, "", 1.0, ratio(of, 1, &at_100), Rule::Within(0.1))
        };
        numbers.extend([
            flat("throughput", throughput),
            flat("mean delay", mean_delay),
            flat("p95 delay", p95_delay),
        ]);
        let rising = |what: &str, of: Value| {
            let what = format!("{what} at 1500 ms ÷ at 100 ms{suffix}; the paper: rises");
            Number::claim(what, "", ratio(of, 1500, &at_100), Rule::AtLeast(1.1))
        };
        numbers.extend([rising("mean delay", mean_delay), rising("p95 delay", p95_delay)]);
        let beyond = |what: &str, of: Value| {
            let what = format!("{what} at 1500 ms ÷ BBR{suffix}; the paper: as BBR or worse");
            Number::claim(what, "", ratio(of, 1500, "bbr"), Rule::AtLeast(1.0))
        };
        numbers.extend([beyond("mean delay", mean_delay), beyond("p95 delay", p95_delay)]);
        let once = runs.with(&format!("{preset}:sample_ms=once"));
        let what = |what: &str| format!("{what}, sampled once{suffix}");
        numbers.push(Number::new(what("mean delay"), "ms", 27.0, once.mean(mean_delay), Rule::Factor(2.0)));
        numbers.push(Number::new(what("p95 delay"), "ms", 107.0, once.mean(p95_delay), Rule::Factor(2.0)));
    }
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig6", figure: intervals(&runs) }] }
}

/// The scheme that samples at this interval.
fn sample(preset: &str, interval_ms: u32) -> String {
    let options = SAMPLES.iter().find(|(ms, _)| *ms == interval_ms).map_or("", |(_, options)| *options);
    format!("{preset}:{options}")
}

/// Throughput and delays over the sampling interval, with those of BBR as lines.
fn intervals(runs: &Runs<'_>) -> Figure {
    let panel = |title: &str, label: &str, of: Value| {
        let line = |(preset, _): &(&str, &str)| {
            let point = |(ms, _): &(u32, &str)| {
                Some((f64::from(*ms), statistics::mean(&runs.with(&sample(preset, *ms)).values(of))?))
            };
            let points = SAMPLES.iter().filter_map(point).collect();
            Mark::Line(Line { markers: true, ..Line::new(look::style(preset), points) })
        };
        let mut marks: Vec<Mark> = PRESETS.iter().map(line).collect();
        marks.extend(statistics::mean(&runs.with("bbr").values(of)).map(|at| {
            let style = Style { dash: airpace_plot::Dash::Dashed, ..look::style("bbr") };
            Mark::HorizontalLine(Across { style, at, text: String::new(), second_y: false })
        }));
        Panel {
            title: title.to_owned(),
            x: Axis::log("sampling interval (ms)"),
            y: Axis { range: None, ..Axis::linear(label) },
            marks,
            ..Panel::default()
        }
    };
    let panels = vec![
        panel("throughput", "throughput (Mbit/s)", throughput),
        panel("mean", "mean one-way delay (ms)", mean_delay),
        panel("tail", "p95 one-way delay (ms)", p95_delay),
    ];
    Figure {
        title: "BISCAY Fig. 6".to_owned(),
        caption: "Means over eight mobile links. Dashed: BBR.".to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 3,
        ..Figure::default()
    }
}

fn fig_11a(results: &Results) -> Findings {
    let runs = results.all();
    let mut numbers = Vec::new();
    for other in ["pbe@paper", "pbe"] {
        let what = |of: &str| format!("{of}, BISCAY ÷ {}", look::name(other));
        let ratio = |of: Value| runs.ratio("biscay", other, of);
        numbers.extend([
            Number::new(what("throughput"), "", 1.0, ratio(throughput), Rule::Factor(1.1)),
            Number::new(what("mean delay"), "", 0.5, ratio(mean_delay), Rule::Within(0.15)),
            Number::new(what("p95 delay"), "", 0.5, ratio(p95_delay), Rule::Within(0.15)),
        ]);
    }
    let marks = ["biscay", "pbe", "pbe@paper"].iter().filter_map(|scheme| {
        let its = runs.with(scheme);
        let point = Point {
            x: its.mean(p95_delay)?.value,
            y: its.mean(throughput)?.value,
            label: look::name(scheme),
        };
        Some(Mark::Points(Points { style: look::style(scheme), points: vec![point], second_y: false }))
    });
    let panel = Panel {
        x: Axis { reversed: true, ..Axis::linear("p95 one-way delay (ms)") },
        y: Axis::linear("throughput (Mbit/s)"),
        marks: marks.collect(),
        ..Panel::default()
    };
    let figure = Figure {
        title: "BISCAY Fig. 11a".to_owned(),
        caption: "Means over 40 places of throughput and of the 95th percentile of one-way delay. Better is up and to the right."
            .to_owned(),
        legend: Entry::of(std::slice::from_ref(&panel)),
        panels: vec![panel],
        panel_width: 480.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig11a", figure }] }
}
