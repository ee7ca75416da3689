//! `packets`: one row per data packet that was delivered or lost, including duplicates.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `flow_label` | word | label of the flow in the scenario |
//! | `number` | u64 | packet number |
//! | `bytes` | u32 | size on the wire |
//! | `sent_ms` | f64 | time at which the sender handed the packet to the path |
//! | `arrived_ms` | f64 | time of arrival; null if the packet did not arrive |
//! | `dropped_ms` | f64 | time at which the packet was dropped or lost; null if the packet arrived |
//! | `one_way_delay_ms` | f32 | `arrived_ms - sent_ms` = `propagation_delay_ms + queueing_delay_ms`; null without arrival |
//! | `queueing_delay_ms` | f32 | one-way delay minus the delay of the empty path; null without arrival |
//! | `propagation_delay_ms` | f32 | delay of the empty path |
//! | `fate` | word | `delivered`, `queue_full`, `aqm`, `wire_loss`, `harq_failure` or `pdcp_discard` |
//! | `duplicate` | bool | whether the same bytes had arrived before |
//! | `marked` | bool | whether a queue of the path set the ECN mark |

use airpace_core::Ecn;
use airpace_event::{Arrived, Fate};

use super::columns::row;
use super::file::Table;
use super::words::{Label, Word};
use super::{fit, millis, span_millis};
use crate::error::FileError;
use crate::facts::FlowFacts;

row! {
    /// A data packet that was delivered or lost.
    struct Row {
        flow: u16,
        flow_label: Label,
        number: u64,
        bytes: u32,
        sent_ms: f64,
        arrived_ms: Option<f64>,
        dropped_ms: Option<f64>,
        one_way_delay_ms: Option<f32>,
        queueing_delay_ms: Option<f32>,
        propagation_delay_ms: f32,
        fate: Word,
        duplicate: bool,
        marked: bool,
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

pub(super) fn push(table: &mut Table<Rows>, arrived: &Arrived) -> Result<(), FileError> {
    let packet = &arrived.packet;
    let one_way = arrived.time - packet.sent;
    let queueing = one_way.saturating_sub(arrived.propagation_delay);
    let delivered = arrived.fate == Fate::Delivered;
    let fate = table.columns.fate.word(arrived.fate.name());
    table.columns.push(Row {
        flow: packet.flow.0,
        flow_label: Label(packet.flow),
        number: packet.number,
        bytes: fit(packet.bytes.0),
        sent_ms: millis(packet.sent),
        arrived_ms: delivered.then(|| millis(arrived.time)),
        dropped_ms: (!delivered).then(|| millis(arrived.time)),
        one_way_delay_ms: delivered.then(|| span_millis(one_way)),
        queueing_delay_ms: delivered.then(|| span_millis(queueing)),
        propagation_delay_ms: span_millis(arrived.propagation_delay),
        fate,
        duplicate: arrived.duplicate,
        marked: packet.ecn == Ecn::Ce,
    });
    table.added(1)
}
