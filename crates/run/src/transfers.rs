//! Table of transfers for the terminal and the page: a row per scheme and flow, over all seeds together.

use crate::metrics::Transfers;
use crate::numbers;
use crate::summary::{RunSummary, by_scheme, is_under_test};

/// A column: heading, and function that returns the value in seconds.
type Column = (&'static str, fn(&Transfers) -> Option<f64>);

/// The columns after the counts of transfers.
///
/// Chosen: the quantities of MORC's Fig. 4, and the 95th percentile.
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

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The scheme under test.
    pub scheme: String,
    /// Name of the flow.
    pub flow: String,
    /// The flow's own scheme, if the flow does not run the scheme under test.
    pub own_scheme: Option<String>,
    /// Transfers of the flow in all runs.
    pub transfers: Transfers,
}

impl Row {
    /// Number of completed transfers, of the transfers that were due.
    pub fn complete_text(&self) -> String {
        format!("{} of {}", self.transfers.complete, self.transfers.due)
    }

    /// The texts of [`COLUMNS`], in seconds.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        COLUMNS.iter().map(|(_, of)| seconds(of(&self.transfers)))
    }
}

/// The rows of one scenario's runs; empty if no flow has transfers. The transfers of all seeds are one sample.
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

/// Formats seconds with three decimals; a dash for `None`.
fn seconds(time: Option<f64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| numbers::text(time, 3))
}
