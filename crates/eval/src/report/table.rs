//! The table of all metrics, and the points of the throughput–delay figure: means over seeds, and each seed.

use serde::Serialize;

use super::series::significant;
use crate::expect::value;
use crate::summary::{FlowSummary, RunSummary};

/// One column: the metric's path in `summary.json`, its heading and unit.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Column {
    path: &'static str,
    heading: &'static str,
    unit: &'static str,
    /// Whether more is better, less is better, or neither.
    better: Option<Better>,
    digits: u8,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Better {
    More,
    Less,
}

const fn column(
    path: &'static str,
    heading: &'static str,
    unit: &'static str,
    better: Option<Better>,
    digits: u8,
) -> Column {
    Column { path, heading, unit, better, digits }
}

/// The columns, in order.
pub(super) const COLUMNS: [Column; 17] = [
    column("throughput_mbps", "throughput", "Mbit/s", Some(Better::More), 2),
    column("utilization", "utilization", "of capacity", Some(Better::More), 3),
    column("one_way_delay_ms.p95", "one-way delay p95", "ms", Some(Better::Less), 1),
    column("one_way_delay_ms.mean", "mean", "ms", Some(Better::Less), 1),
    column("one_way_delay_ms.p50", "p50", "ms", Some(Better::Less), 1),
    column("one_way_delay_ms.p99", "p99", "ms", Some(Better::Less), 1),
    column("queueing_delay_ms.p95", "queueing delay p95", "ms", Some(Better::Less), 1),
    column("queueing_delay_ms.mean", "mean", "ms", Some(Better::Less), 1),
    column("queueing_delay_ms.p99", "p99", "ms", Some(Better::Less), 1),
    column("loss_rate", "loss", "of packets", Some(Better::Less), 5),
    column("power", "power", "Mbit/s per ms", Some(Better::More), 3),
    column("jain", "Jain", "index", Some(Better::More), 4),
    column("throughput_100ms.p10", "throughput per 100 ms p10", "Mbit/s", None, 2),
    column("throughput_100ms.p25", "p25", "Mbit/s", None, 2),
    column("throughput_100ms.p50", "p50", "Mbit/s", None, 2),
    column("throughput_100ms.p75", "p75", "Mbit/s", None, 2),
    column("throughput_100ms.p90", "p90", "Mbit/s", None, 2),
];

/// One scheme's flow over all seeds.
#[derive(Serialize)]
pub(super) struct Row {
    scheme: String,
    flow: String,
    /// The scheme it ran, where that is not the one under test.
    own_scheme: Option<String>,
    seeds: usize,
    /// Mean over seeds, per column; `None` where a seed has no value.
    mean: Vec<Option<f64>>,
    /// Standard deviation over seeds, per column; `None` of fewer than two seeds.
    deviation: Vec<Option<f64>>,
    /// The point that the throughput–delay figure draws.
    point: Option<Point>,
    /// The same for each seed.
    points: Vec<Point>,
}

/// A point of the throughput–delay figure.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Point {
    seed: Option<u64>,
    one_way_delay_p95_ms: f64,
    throughput_mbps: f64,
    /// Quartiles of the throughput per 100 ms: the box.
    p25_mbps: f64,
    p75_mbps: f64,
}

/// The rows of one scenario's `runs`, by scheme, then flow, in the order of the runs.
pub(super) fn rows(runs: &[&RunSummary]) -> Vec<Row> {
    let mut schemes: Vec<&str> = Vec::new();
    for run in runs {
        if !schemes.contains(&run.scheme.as_str()) {
            schemes.push(&run.scheme);
        }
    }
    let mut rows = Vec::new();
    for scheme in schemes {
        let its: Vec<&RunSummary> = runs.iter().copied().filter(|run| run.scheme == scheme).collect();
        for index in 0..its[0].flows.len() {
            let flows: Vec<(u64, &FlowSummary)> =
                its.iter().map(|run| (run.seed, &run.flows[index])).collect();
            rows.push(row(scheme, &flows));
        }
    }
    rows
}

fn row(scheme: &str, flows: &[(u64, &FlowSummary)]) -> Row {
    let columns: Vec<Option<Vec<f64>>> = COLUMNS
        .iter()
        .map(|column| flows.iter().map(|(_, flow)| value(&flow.metrics, column.path)).collect())
        .collect();
    let points: Vec<Point> = flows.iter().filter_map(|(seed, flow)| Point::of(*seed, flow)).collect();
    let first = flows[0].1;
    Row {
        scheme: scheme.to_owned(),
        flow: first.flow.clone(),
        own_scheme: (first.scheme != scheme).then(|| first.scheme.clone()),
        seeds: flows.len(),
        mean: columns.iter().map(|values| values.as_deref().map(mean).map(significant)).collect(),
        deviation: columns
            .iter()
            .map(|values| values.as_deref().and_then(deviation).map(significant))
            .collect(),
        point: (points.len() == flows.len()).then(|| Point::mean(&points)),
        points,
    }
}

impl Point {
    /// `None` of a flow that delivered nothing, or was never active for 100 ms.
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

/// Sample standard deviation.
fn deviation(values: &[f64]) -> Option<f64> {
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre) * (value - centre)).sum();
    (values.len() >= 2).then(|| (squares / (values.len() - 1) as f64).sqrt())
}
