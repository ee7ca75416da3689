//! Table of all metrics, and points of the throughput–delay figure: means over seeds, and the values of each seed.

use serde::Serialize;

use airpace_run::comparison::{is_oracle, share_of_oracle};
use airpace_run::expect::value;
use airpace_run::metrics::FlowMetrics;
use airpace_run::metrics::significant;
use airpace_run::numbers::{SHARE_OF_ORACLE, Shown, Spread, is_zero, shown};
use airpace_run::summary::{FlowSummary, RunSummary, by_scheme, is_under_test};

/// A column: path of the metric in `summary.json`, heading and unit.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Column {
    pub(super) path: &'static str,
    heading: &'static str,
    unit: &'static str,
    /// Whether larger values are better, smaller values are better, or neither.
    better: Option<Better>,
    #[serde(skip)]
    pub(super) shown: &'static Shown,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Better {
    More,
    Less,
}

/// The columns, in descending order of importance. A phone shows only the first ones without scrolling.
const COLUMNS: [(&str, &str, Option<Better>); 19] = [
    ("throughput_mbps", "throughput", Some(Better::More)),
    ("one_way_delay_ms.p95", "one-way delay p95", Some(Better::Less)),
    ("queueing_delay_ms.p95", "queueing delay p95", Some(Better::Less)),
    ("loss_rate", "loss of packets", Some(Better::Less)),
    (SHARE_OF_ORACLE, "of the Oracle", Some(Better::More)),
    ("utilization", "used of capacity", Some(Better::More)),
    ("jain", "Jain", Some(Better::More)),
    ("power", "power", Some(Better::More)),
    ("one_way_delay_ms.mean", "one-way delay mean", Some(Better::Less)),
    ("one_way_delay_ms.p50", "one-way delay p50", Some(Better::Less)),
    ("one_way_delay_ms.p99", "one-way delay p99", Some(Better::Less)),
    ("queueing_delay_ms.mean", "queueing delay mean", Some(Better::Less)),
    ("queueing_delay_ms.p50", "queueing delay p50", Some(Better::Less)),
    ("queueing_delay_ms.p99", "queueing delay p99", Some(Better::Less)),
    ("throughput_100ms.p10", "throughput per 100 ms p10", None),
    ("throughput_100ms.p25", "throughput per 100 ms p25", None),
    ("throughput_100ms.p50", "throughput per 100 ms p50", None),
    ("throughput_100ms.p75", "throughput per 100 ms p75", None),
    ("throughput_100ms.p90", "throughput per 100 ms p90", None),
];

/// The columns of an emulated run, in descending order of importance. Fairness is omitted, because the demand of the
/// programs is unknown.
const OF_PROGRAMS: [&str; 16] = [
    "throughput_mbps",
    "one_way_delay_ms.p50",
    "one_way_delay_ms.p95",
    "queueing_delay_ms.p50",
    "queueing_delay_ms.p95",
    "loss_rate",
    "utilization",
    "one_way_delay_ms.mean",
    "one_way_delay_ms.p99",
    "queueing_delay_ms.mean",
    "queueing_delay_ms.p99",
    "throughput_100ms.p10",
    "throughput_100ms.p25",
    "throughput_100ms.p50",
    "throughput_100ms.p75",
    "throughput_100ms.p90",
];

/// The columns of simulated `runs` with their units. Without the Oracle among the runs, the share of the Oracle's rate is
/// omitted.
pub(super) fn columns(runs: &[&RunSummary]) -> Vec<Column> {
    let has_oracle = runs.iter().any(|run| is_oracle(&run.scheme));
    all_columns().into_iter().filter(|column| column.path != SHARE_OF_ORACLE || has_oracle).collect()
}

fn all_columns() -> Vec<Column> {
    let column = |(path, heading, better): (&'static str, &'static str, Option<Better>)| {
        let shown = shown(path);
        Column { path, heading, unit: shown.unit, better, shown }
    };
    COLUMNS.map(column).into()
}

/// The columns of an emulated run with their units. Programs have different tasks, so no value is marked as better.
pub(super) fn columns_of_programs() -> Vec<Column> {
    let all = all_columns();
    let column = |path: &&str| all.iter().find(|column| column.path == *path).copied();
    let those = OF_PROGRAMS.iter().filter_map(column);
    those.map(|column| Column { better: None, ..column }).collect()
}

/// The texts of a link's metrics, one per column.
pub(super) fn texts(metrics: &FlowMetrics, columns: &[Column]) -> Vec<String> {
    columns.iter().map(|column| column.shown.text(value(metrics, column.path))).collect()
}

/// A flow under one scheme, over all seeds.
#[derive(Serialize)]
pub(super) struct Row {
    scheme: String,
    flow: String,
    /// The flow's own scheme, if the flow does not run the scheme under test.
    own_scheme: Option<String>,
    seeds: usize,
    /// A cell per column.
    cells: Vec<Cell>,
    /// Means over seeds, for the throughput–delay figure.
    point: Option<Point>,
    /// The point of each seed.
    points: Vec<Point>,
}

/// A metric over seeds: values in the unit of `summary.json`, by which the table is sorted and which the page exports,
/// and the text on the page.
#[derive(Serialize)]
struct Cell {
    /// The mean; `None` if a seed has no value.
    mean: Option<f64>,
    /// The standard deviation; `None` for fewer than two seeds.
    deviation: Option<f64>,
    text: String,
    /// Text of the deviation; `None` if there is no deviation, or if the deviation rounds to zero.
    deviation_text: Option<String>,
}

/// A point of the throughput–delay figure.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Point {
    seed: Option<u64>,
    one_way_delay_p95_ms: f64,
    throughput_mbps: f64,
    /// Quartiles of the throughput per 100 ms, which form the box in the figure.
    p25_mbps: f64,
    p75_mbps: f64,
}

/// The rows of one scenario's `runs`, by scheme, then flow, in the order of the runs. Flows that ran the scheme under
/// test come before their rivals.
pub(super) fn rows(runs: &[&RunSummary], columns: &[Column]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (scheme, its) in by_scheme(runs) {
        for index in 0..its[0].flows.len() {
            let flows: Vec<(u64, &FlowSummary)> =
                its.iter().map(|run| (run.seed, &run.flows[index])).collect();
            let own_scheme = (!is_under_test(runs, index)).then(|| flows[0].1.scheme.clone());
            // For a rival, the share of the Oracle's rate is meaningless: it would measure how much rate the Oracle left
            // over.
            let share = if own_scheme.is_none() { share_of_oracle(&its, runs, index) } else { None };
            rows.push(row(scheme, own_scheme, &flows, columns, share));
        }
    }
    rows.sort_by_key(|row| row.own_scheme.is_some());
    rows
}

fn row(
    scheme: &str,
    own_scheme: Option<String>,
    flows: &[(u64, &FlowSummary)],
    columns: &[Column],
    share_of_oracle: Option<Spread>,
) -> Row {
    let points: Vec<Point> = flows.iter().filter_map(|(seed, flow)| Point::of(*seed, flow)).collect();
    let first = flows[0].1;
    let over_seeds = |column: &Column| match column.path {
        SHARE_OF_ORACLE => share_of_oracle,
        path => Spread::of(flows.iter().map(|(_, flow)| value(&flow.metrics, path))),
    };
    let cells: Vec<Cell> = columns.iter().map(|column| Cell::of(column, over_seeds(column))).collect();
    Row {
        scheme: scheme.to_owned(),
        flow: first.flow.clone(),
        own_scheme,
        seeds: flows.len(),
        cells,
        point: (points.len() == flows.len()).then(|| Point::mean(&points)),
        points,
    }
}

impl Cell {
    fn of(column: &Column, spread: Option<Spread>) -> Cell {
        let mean = spread.map(|spread| spread.mean);
        let deviation = spread.and_then(|spread| spread.deviation);
        Cell {
            mean: mean.map(significant),
            deviation: deviation.map(significant),
            text: column.shown.text(mean),
            deviation_text: deviation
                .map(|deviation| column.shown.text(Some(deviation)))
                .filter(|text| !is_zero(text)),
        }
    }
}

impl Point {
    /// The point of a flow; `None` if the flow delivered nothing, or was never active for 100 ms.
    fn of(seed: u64, flow: &FlowSummary) -> Option<Point> {
        Some(Point {
            seed: Some(seed),
            one_way_delay_p95_ms: flow.metrics.one_way_delay_ms.p95?,
            throughput_mbps: flow.metrics.throughput_mbps,
            p25_mbps: flow.metrics.throughput_100ms.p25?,
            p75_mbps: flow.metrics.throughput_100ms.p75?,
        })
    }

    fn mean(points: &[Point]) -> Point {
        let of = |field: fn(&Point) -> f64| significant(mean(&points.iter().map(field).collect::<Vec<_>>()));
        Point {
            seed: None,
            one_way_delay_p95_ms: of(|point| point.one_way_delay_p95_ms),
            throughput_mbps: of(|point| point.throughput_mbps),
            p25_mbps: of(|point| point.p25_mbps),
            p75_mbps: of(|point| point.p75_mbps),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_run::numbers::SHOWN;

    #[test]
    fn every_metric_that_is_shown_has_a_column() {
        let mut columns: Vec<&str> = all_columns().iter().map(|column| column.path).collect();
        let mut known: Vec<&str> = SHOWN.iter().map(|shown| shown.path).collect();
        columns.sort_unstable();
        known.sort_unstable();
        assert_eq!(columns, known);
        assert_eq!(columns_of_programs().len(), OF_PROGRAMS.len(), "each is one of these");
    }
}
