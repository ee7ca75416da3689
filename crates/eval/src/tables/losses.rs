//! `losses`: one row each time a sender declared packets lost, rightly or not. `packets` holds which packets were lost.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | when |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `flow_label` | word | what the scenario calls that flow |
//! | `packets` | u32 | how many packets |
//! | `bytes` | u32 | how many bytes |

use airpace_event::Lost;

use super::columns::row;
use super::file::Table;
use super::words::Label;
use super::{fit, millis};
use crate::error::EvalError;
use crate::facts::FlowFacts;

row! {
    /// Packets declared lost.
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

pub(super) fn push(table: &mut Table<Rows>, lost: &Lost) -> Result<(), EvalError> {
    table.columns.push(Row {
        time_ms: millis(lost.time),
        flow: lost.flow.0,
        flow_label: Label(lost.flow),
        packets: fit(lost.packets),
        bytes: fit(lost.bytes.0),
    });
    table.added(1)
}
