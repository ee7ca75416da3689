//! Table of the bandwidth granted according to a modem's log: a row per window, radio and direction.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | start of the window, relative to the first packet of the log |
//! | `radio` | u8 | radio of the modem; 1 belongs to the first SIM |
//! | `direction` | text | `down` to the phone or `up` from the phone |
//! | `blocks_mbps` | f64 | bandwidth from the sizes of transport blocks; null before the first packet with such sizes |
//! | `granted_mbps` | f64 | bandwidth from the bytes granted to the MAC layer; null before the first packet with such bytes |
//! | `prbs` | u64 | number of granted PRB pairs, over all TTIs and carriers |

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::columns::{Columns, row};
use super::memory::Batches;

row! {
    /// Row of a window.
    pub struct Window in WindowRows {
        /// Start of the window, in ms.
        time_ms: f64,
        /// Radio of the modem.
        radio: u8,
        /// `down` or `up`.
        direction: &'static str,
        /// Bandwidth from transport blocks, in Mbit/s.
        blocks_mbps: Option<f64>,
        /// Bandwidth from granted bytes, in Mbit/s.
        granted_mbps: Option<f64>,
        /// Number of granted PRB pairs.
        prbs: u64,
    }
}

/// Buffer of a table of windows.
#[derive(Default)]
pub struct Windows(WindowRows);

impl Windows {
    /// Adds a window.
    pub fn push(&mut self, window: Window) {
        self.0.push(window);
    }

    /// Converts the rows to an in-memory table.
    pub fn into_table(mut self) -> Batches {
        let schema = Arc::new(Schema::new(self.0.fields()));
        let batch =
            RecordBatch::try_new(schema.clone(), self.0.take()).expect("a cell for each row and column");
        Batches { schema, batches: vec![batch] }
    }
}
