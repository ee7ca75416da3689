//! `losses`: one row per loss declaration of a sender, correct or spurious. Actual losses are in `packets`.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | time of the declaration |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `flow_label` | word | label of the flow in the scenario |
//! | `packets` | u32 | number of packets |
//! | `bytes` | u32 | number of bytes |

use airpace_event::Lost;

use super::columns::row;
use super::file::Table;
use super::words::Label;
use super::{fit, millis};
use crate::error::FileError;
use crate::facts::FlowFacts;

row! {
    /// A declaration of packets as lost.
    struct Row {
        time_ms: f64,
        flow: u16,
        flow_label: Label,
        packets: u32,
        bytes: u32,
    }
}

impl Rows {
    /// An empty table for a run with these flows.
    pub(super) fn of(flows: &[FlowFacts]) -> Rows {
        let mut rows = Rows::default();
        rows.flow_label.know(flows);
        rows
    }
}

pub(super) fn push(table: &mut Table<Rows>, lost: &Lost) -> Result<(), FileError> {
    table.columns.push(Row {
        time_ms: millis(lost.time),
        flow: lost.flow.0,
        flow_label: Label(lost.flow),
        packets: fit(lost.packets),
        bytes: fit(lost.bytes.0),
    });
    table.added(1)
}
