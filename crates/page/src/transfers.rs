//! Table of transfers on the report page.

use serde::Serialize;

use airpace_run::summary::RunSummary;
use airpace_run::transfers::{COLUMNS, rows};

/// The table: headings, and texts of each row.
#[derive(Serialize)]
pub(super) struct TransferTable {
    headings: Vec<&'static str>,
    rows: Vec<TransferRow>,
}

#[derive(Serialize)]
struct TransferRow {
    scheme: String,
    flow: String,
    own_scheme: Option<String>,
    complete: String,
    texts: Vec<String>,
    /// Unrounded values of the texts, in seconds, for export.
    values: Vec<Option<f64>>,
}

impl TransferTable {
    /// The table of one scenario's runs; `None` if no flow has transfers.
    pub(super) fn of(runs: &[&RunSummary]) -> Option<TransferTable> {
        let rows: Vec<TransferRow> = rows(runs)
            .into_iter()
            .map(|row| TransferRow {
                complete: row.complete_text(),
                texts: row.texts().collect(),
                values: COLUMNS.iter().map(|(_, of)| of(&row.transfers)).collect(),
                scheme: row.scheme,
                flow: row.flow,
                own_scheme: row.own_scheme,
            })
            .collect();
        let headings = COLUMNS.iter().map(|(heading, _)| *heading).collect();
        (!rows.is_empty()).then_some(TransferTable { headings, rows })
    }
}
