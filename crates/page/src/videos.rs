//! Table of adaptive videos on the report page.

use serde::Serialize;

use airpace_run::summary::RunSummary;
use airpace_run::videos::{COLUMNS, rows};

/// The table: headings, and texts of each row.
#[derive(Serialize)]
pub(super) struct VideoTable {
    headings: Vec<&'static str>,
    rows: Vec<VideoRow>,
}

#[derive(Serialize)]
struct VideoRow {
    scheme: String,
    flow: String,
    own_scheme: Option<String>,
    texts: Vec<String>,
}

impl VideoTable {
    /// The table of one scenario's runs; `None` if no flow has a video.
    pub(super) fn of(runs: &[&RunSummary]) -> Option<VideoTable> {
        let rows: Vec<VideoRow> = rows(runs)
            .into_iter()
            .map(|row| VideoRow {
                scheme: row.scheme,
                flow: row.flow,
                own_scheme: row.own_scheme,
                texts: row.texts,
            })
            .collect();
        let headings = COLUMNS.iter().map(|(heading, ..)| *heading).collect();
        (!rows.is_empty()).then_some(VideoTable { headings, rows })
    }
}
