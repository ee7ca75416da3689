//! Table of adaptive videos for the terminal: a row per scheme and flow, with means over seeds.

use crate::expect::value;
use crate::metrics::{FlowMetrics, Video};
use crate::numbers::{self, Spread};
use crate::summary::{RunSummary, by_scheme, is_under_test};

/// The columns: heading, path of the metric, and number of decimals.
///
/// Chosen: the quantities of MORC §4.2.
pub static COLUMNS: [(&str, &str, usize); 7] = [
    ("start-up s", "video.start_up_s", 2),
    ("stalls", "video.stalls", 1),
    ("stalled s", "video.stalled_s", 2),
    ("bitrate", "video.bitrate_mbps", 2),
    ("switches", "video.switches", 1),
    ("sent at", "video.throughput_mbps", 2),
    ("score", "video.score", 2),
];

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The scheme under test.
    pub scheme: String,
    /// Name of the flow.
    pub flow: String,
    /// The flow's own scheme, if the flow does not run the scheme under test.
    pub own_scheme: Option<String>,
    /// The texts of [`COLUMNS`].
    pub texts: Vec<String>,
}

/// The texts of [`COLUMNS`] for one video. A metric without a value is a dash.
pub fn texts(video: &Video) -> Vec<String> {
    let metrics = FlowMetrics { video: Some(video.clone()), ..FlowMetrics::default() };
    let text = |(_, path, decimals): &(&str, &str, usize)| text(value(&metrics, path), *decimals);
    COLUMNS.iter().map(text).collect()
}

fn text(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| numbers::text(value, decimals))
}

/// The rows of one scenario's runs; empty if no flow has a video. A mean over only some seeds is a dash.
pub fn rows(runs: &[&RunSummary]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (scheme, its) in by_scheme(runs) {
        let flows = its[0].flows.iter().enumerate();
        for (index, flow) in flows.filter(|(_, flow)| flow.metrics.video.is_some()) {
            let mean = |path: &str| {
                let values = its.iter().map(|run| value(&run.flows.get(index)?.metrics, path));
                Spread::of(values).map(|spread| spread.mean)
            };
            let text = |(_, path, decimals): &(&str, &str, usize)| text(mean(path), *decimals);
            rows.push(Row {
                scheme: scheme.to_owned(),
                flow: flow.flow.clone(),
                own_scheme: (!is_under_test(runs, index)).then(|| flow.scheme.clone()),
                texts: COLUMNS.iter().map(text).collect(),
            });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, score: Option<f64>) -> RunSummary {
        let video = Video { start_up_s: Some(seed as f64), score, ..Video::default() };
        let metrics = FlowMetrics { video: Some(video), ..FlowMetrics::default() };
        let mut flow = serde_json::to_value(metrics).unwrap();
        let names = serde_json::json!({
            "flow": "phone", "index": 0, "device": 0, "scheme": "morc", "greedy": false,
        });
        flow.as_object_mut().unwrap().extend(names.as_object().unwrap().clone());
        serde_json::from_value(serde_json::json!({
            "scenario": "video", "scheme": "morc", "seed": seed, "duration_s": 60.0, "flows": [flow],
            "jain": [], "jain_prbs": [], "carriers": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_row_has_means_over_all_seeds_or_dashes() {
        let (one, other) = (run(1, Some(3.0)), run(2, None));
        let rows = rows(&[&one, &other]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].scheme.as_str(), &rows[0].own_scheme), ("morc", &None));
        assert_eq!(rows[0].texts[0], "1.50");
        assert_eq!(rows[0].texts[6], "–", "one seed has no score");
    }
}
