//! The bandwidth that a modem's log says was granted: a row per window, radio and direction.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | when the window begins, from the first packet of the log |
//! | `radio` | u8 | the radio: 1 is the first SIM's |
//! | `direction` | text | `down` to the phone or `up` from it |
//! | `blocks_mbps` | f64 | by the sizes of the transport blocks; null before the first packet that tells of any |
//! | `granted_mbps` | f64 | by the bytes that the MAC layer was granted; null likewise |
//! | `prbs` | u64 | PRB pairs granted, all TTIs and carriers together |

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::columns::{Columns, row};
use super::memory::Batches;

row! {
    /// A window.
    pub struct Window in WindowRows {
        /// When it begins, in ms.
        time_ms: f64,
        /// The radio.
        radio: u8,
        /// `down` or `up`.
        direction: &'static str,
        /// By transport blocks.
        blocks_mbps: Option<f64>,
        /// By granted bytes.
        granted_mbps: Option<f64>,
        /// PRB pairs.
        prbs: u64,
    }
}

/// A table of windows, column by column while they come.
#[derive(Default)]
pub struct Windows(WindowRows);

impl Windows {
    /// Adds a window.
    pub fn push(&mut self, window: Window) {
        self.0.push(window);
    }

    /// The table.
    pub fn into_table(mut self) -> Batches {
        let schema = Arc::new(Schema::new(self.0.fields()));
        let batch =
            RecordBatch::try_new(schema.clone(), self.0.take()).expect("a cell for each row and column");
        Batches { schema, batches: vec![batch] }
    }
}
