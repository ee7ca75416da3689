//! One flow over each of 260 recorded links: Table 1 and Fig. 8.

use super::{LINKS, SCENARIOS, of_kind, over};
use crate::experiment::{Campaign, Evidence, Experiment, Findings, Picture, Size};
use crate::look;
use crate::number::{Number, Rule};
use crate::results::{Results, Run, Runs, mean_delay, p95_delay, throughput};
use airpace_plot::{Axis, Entry, Figure, Mark, Panel, Percentiles, Spread};
use airpace_run::statistics::{self, Estimate};

/// Table 1.
pub(crate) static TABLE_1: Experiment = Experiment {
    id: "biscay/table1",
    title: "BISCAY against eight schemes over 260 links",
    source: "BISCAY §1 Table 1, §5.3.3",
    world: "The paper's traces are not published. Ours are recorded in simulated cells, uploads only; the widths of the cells are \
            such that the links carry about as much as the paper's, and the round trip is fitted. The paper does not state how \
            it averages: ours are the means over the links of the ratios, and the ratios of the means over the links. The \
            latter do not depend on a few links where a scheme starves. Capacity varies more within a tenth of a second than on \
            the paper's links: the Oracle has a mean delay of 11 to 13 ms here, and the paper's BISCAY 5.6 ms (Table 2). What \
            BISCAY leaves of a long queue is therefore more.",
    evidence: Evidence::Simulated(links),
    findings: table_1,
};

/// Fig. 8.
pub(crate) static FIG_8: Experiment = Experiment {
    id: "biscay/fig8",
    title: "Throughput and delay of ten schemes in four scenarios",
    source: "BISCAY §5.3.3 Fig. 8",
    world: "The distance of two schemes is |log of the ratio of their throughputs| + |log of the ratio of their p95 delays|; the \
            paper does not define one.",
    evidence: Evidence::Simulated(links),
    findings: fig_8,
};

/// BISCAY, the paper's eight schemes, the Oracle.
const TEN: &[&str] = &[
    "biscay",
    "bbr",
    "cubic",
    "copa@pantheon",
    "ledbat",
    "allegro@pantheon",
    "sprout@pantheon",
    "verus@pantheon",
    "vivace@pantheon",
    "oracle",
];

/// The same with BISCAY as printed.
const ALL: &[&str] = &[
    "biscay",
    "bbr",
    "cubic",
    "copa@pantheon",
    "ledbat",
    "allegro@pantheon",
    "sprout@pantheon",
    "verus@pantheon",
    "vivace@pantheon",
    "oracle",
    "biscay@paper",
];

fn links(size: Size) -> Vec<Campaign> {
    let schemes = size.choose(ALL, &["biscay", "bbr", "cubic", "oracle"]);
    vec![Campaign { per_stratum: size.choose(None, Some(1)), ..Campaign::of(LINKS, schemes, vec![1]) }]
}

/// Scheme; throughput of BISCAY over it; cut of the mean delay and of the p95 delay, in percent.
const PAPER: [(&str, f64, f64, f64); 8] = [
    ("bbr", 1.03, 58.51, 41.18),
    ("cubic", 0.96, 98.74, 99.03),
    ("copa@pantheon", 1.01, 96.41, 96.48),
    ("ledbat", 1.0, 92.9, 88.55),
    ("allegro@pantheon", 1.84, 94.97, 95.01),
    ("sprout@pantheon", 1.01, 80.69, 71.59),
    ("verus@pantheon", 1.56, 90.83, 97.28),
    ("vivace@pantheon", 1.72, 93.03, 94.05),
];

type Value = fn(&Run) -> Option<f64>;

fn table_1(results: &Results) -> Findings {
    let runs = results.all();
    let of_links = |one: &str, other: &str, of: Value| runs.ratio(one, other, of);
    let of_means = |one: &str, other: &str, of: Value| {
        let mean = |scheme: &str| statistics::mean(&runs.with(scheme).values(of));
        over(mean(one), mean(other))
    };
    let mut numbers = Vec::new();
    let mut rows =
        |one: &str, suffix: &str, ratio: &dyn Fn(&str, &str, Value) -> Option<Estimate>, only: usize| {
            for (scheme, rate, mean, tail) in PAPER.into_iter().take(only) {
                let name = look::name(scheme);
                let is_learning = scheme.starts_with("allegro") || scheme.starts_with("vivace");
                let factor = if is_learning { 1.5 } else { 1.15 };
                let what = |of: &str| format!("{of}, BISCAY ÷ {name}{suffix}");
                let left = |cut: f64| 1.0 - cut / 100.0;
                let rate_rule = Rule::Factor(factor);
                numbers.extend([
                    Number::new(what("throughput"), "", rate, ratio(one, scheme, throughput), rate_rule),
                    Number::new(
                        what("mean delay"),
                        "",
                        left(mean),
                        ratio(one, scheme, mean_delay),
                        Rule::Factor(2.0),
                    ),
                    Number::new(
                        what("p95 delay"),
                        "",
                        left(tail),
                        ratio(one, scheme, p95_delay),
                        Rule::Factor(2.0),
                    ),
                ]);
            }
        };
    rows("biscay", "", &of_links, PAPER.len());
    rows("biscay", ", of the means", &of_means, PAPER.len());
    rows("biscay@paper", ", BISCAY as printed", &of_links, 1);
    Findings { numbers, ..Findings::default() }
}

/// Mean percentiles over links.
fn percentiles(runs: &Runs<'_>, of: impl Fn(&Run) -> Option<[f64; 5]>) -> Option<Percentiles> {
    let all: Vec<[f64; 5]> = runs.0.iter().filter_map(|run| of(run)).collect();
    let mean = |at: usize| statistics::mean(&all.iter().map(|values| values[at]).collect::<Vec<_>>());
    Some(Percentiles { p10: mean(0)?, p25: mean(1)?, p50: mean(2)?, p75: mean(3)?, p90: mean(4)? })
}

fn delays(run: &Run) -> Option<[f64; 5]> {
    run.courses[0].delay_quantiles_ms.as_slice().try_into().ok()
}

fn rates(run: &Run) -> Option<[f64; 5]> {
    let rate = run.flow(0).throughput_100ms;
    Some([rate.p10?, rate.p25?, rate.p50?, rate.p75?, rate.p90?])
}

/// Rank of BISCAY among the schemes by their distance from the Oracle: 1 is the nearest.
fn rank(runs: &Runs<'_>) -> Option<f64> {
    let of = |scheme: &str, value: Value| statistics::mean(&runs.with(scheme).values(value));
    let apart = |one: f64, other: f64| libm::log(one / other).abs();
    let oracle = (of("oracle", throughput)?, of("oracle", p95_delay)?);
    let distance = |scheme: &str| {
        Some(apart(of(scheme, throughput)?, oracle.0) + apart(of(scheme, p95_delay)?, oracle.1))
    };
    let own = distance("biscay")?;
    let others = PAPER.iter().filter_map(|(scheme, ..)| distance(scheme));
    Some(1.0 + others.filter(|other| *other < own).count() as f64)
}

fn fig_8(results: &Results) -> Findings {
    let runs = results.all();
    let mut numbers = Vec::new();
    let mut panels = Vec::new();
    for (title, kind) in SCENARIOS {
        let its = of_kind(&runs, kind);
        let rank = rank(&its).map(|value| Estimate { value, interval: None });
        let what = format!("rank of BISCAY by distance from the Oracle, {title}; the paper: the nearest");
        numbers.push(Number::claim(what, "", rank, Rule::AtMost(1.0)));
        let mark = |scheme: &&str| {
            let its = its.with(scheme);
            let (x, y) = (percentiles(&its, delays)?, percentiles(&its, rates)?);
            Some(Mark::PercentileBox(Spread { style: look::style(scheme), x, y, labelled: true }))
        };
        panels.push(Panel {
            title: title.to_owned(),
            x: Axis { reversed: true, ..Axis::log("one-way delay (ms)") },
            y: Axis::linear("throughput (Mbit/s)"),
            marks: TEN.iter().filter_map(mark).collect(),
            ..Panel::default()
        });
    }
    let figure = Figure {
        title: "BISCAY Fig. 8".to_owned(),
        caption: "Means over the links of the 10th, 25th, 50th, 75th and 90th percentiles of throughput per 100 ms and of one-way \
                  delay. Better is up and to the right."
            .to_owned(),
        legend: Entry::of(&panels),
        panels,
        columns: 2,
        plot_height: 260.0,
        ..Figure::default()
    };
    Findings { numbers, pictures: vec![Picture { name: "biscay-fig8", figure }] }
}
