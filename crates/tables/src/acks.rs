//! `acks`: one row per acknowledgement that a sender processed.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | time of processing |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `flow_label` | word | label of the flow in the scenario |
//! | `largest` | u64 | highest newly acknowledged packet number |
//! | `acked_bytes` | u32 | newly acknowledged bytes |
//! | `inflight_bytes` | u32 | outstanding bytes after the acknowledgement |
//! | `rtt_ms` | f32 | round-trip time sample; null if the ACK yields none |
//! | `delivery_rate_mbps` | f32 | delivery rate sample; null if the ACK yields none |

use airpace_event::Acked;

use super::columns::row;
use super::file::Table;
use super::words::Label;
use super::{fit, millis, span_millis};
use crate::error::FileError;
use crate::facts::FlowFacts;

row! {
    /// An acknowledgement.
    struct Row {
        time_ms: f64,
        flow: u16,
        flow_label: Label,
        largest: u64,
        acked_bytes: u32,
        inflight_bytes: u32,
        rtt_ms: Option<f32>,
        delivery_rate_mbps: Option<f32>,
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

pub(super) fn push(table: &mut Table<Rows>, acked: &Acked) -> Result<(), FileError> {
    table.columns.push(Row {
        time_ms: millis(acked.time),
        flow: acked.flow.0,
        flow_label: Label(acked.flow),
        largest: acked.largest,
        acked_bytes: fit(acked.acked.0),
        inflight_bytes: fit(acked.inflight.0),
        rtt_ms: acked.rtt.map(span_millis),
        delivery_rate_mbps: acked.delivery_rate.map(|rate| rate.as_mbps() as f32),
    });
    table.added(1)
}
