//! `losses`: one row each time a sender declared packets lost (rightly or not; `packets` knows the truth).
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | when |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `packets` | u32 | how many packets |
//! | `bytes` | u32 | how many bytes |

use airpace_core::event::Lost;

use super::columns::row;
use super::file::Table;
use super::{fit, millis};
use crate::error::EvalError;

row! {
    /// Packets declared lost.
    struct Row {
        time_ms: f64,
        flow: u16,
        packets: u32,
        bytes: u32,
    }
}

pub(super) fn push(table: &mut Table<Rows>, lost: &Lost) -> Result<(), EvalError> {
    table.columns.push(Row {
        time_ms: millis(lost.time),
        flow: lost.flow.0,
        packets: fit(lost.packets),
        bytes: fit(lost.bytes.0),
    });
    table.added(1)
}
