//! The table of transfers, as the terminal and the page show it: a row per scheme and flow, all seeds together.

use crate::metrics::Transfers;
use crate::numbers;
use crate::summary::{RunSummary, by_scheme, is_under_test};

/// A column: its heading, and the value in seconds that it shows.
type Column = (&'static str, fn(&Transfers) -> Option<f64>);

/// The columns behind the counts of transfers.
///
/// Chosen: what MORC's Fig. 4 lists, and the 95th percentile.
pub static COLUMNS: [Column; 8] = [
    ("start-up p50", |all| all.start_up_s.p50),
    ("start-up p95", |all| all.start_up_s.p95),
    ("min", |all| all.completion_s.min),
    ("p50", |all| all.completion_s.p50),
    ("mean", |all| all.completion_s.mean),
    ("p95", |all| all.completion_s.p95),
    ("max", |all| all.completion_s.max),
    ("sigma", |all| all.completion_s.sigma),
];

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The scheme under test.
    pub scheme: String,
    /// The flow.
    pub flow: String,
    /// The scheme that it ran, if that is its own and not the one under test.
    pub own_scheme: Option<String>,
    /// Its transfers in all runs.
    pub transfers: Transfers,
}

impl Row {
    /// How many arrived of those that were due.
    pub fn complete_text(&self) -> String {
        format!("{} of {}", self.transfers.complete, self.transfers.due)
    }

    /// The texts of [`COLUMNS`], in seconds.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        COLUMNS.iter().map(|(_, of)| seconds(of(&self.transfers)))
    }
}

/// The rows of one scenario's runs; none where no flow has transfers. The transfers of all seeds are one sample.
pub fn rows(runs: &[&RunSummary]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (scheme, its) in by_scheme(runs) {
        for (index, flow) in its[0].flows.iter().enumerate() {
            let of_runs = its.iter().map(|run| run.flows.get(index)?.metrics.transfers.as_ref());
            let Some(transfers) = Transfers::pooled(of_runs) else { continue };
            let own_scheme = (!is_under_test(runs, index)).then(|| flow.scheme.clone());
            rows.push(Row { scheme: scheme.to_owned(), flow: flow.flow.clone(), own_scheme, transfers });
        }
    }
    rows
}

/// Seconds with three decimals; a dash where there is no time.
fn seconds(time: Option<f64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| numbers::text(time, 3))
}
