//! `packets`: one row per data packet whose journey ended, duplicates included.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `number` | u64 | packet number |
//! | `bytes` | u32 | size on the wire |
//! | `sent_ms` | f64 | when its sender handed it to the path |
//! | `arrived_ms` | f64 | when it arrived; null if it did not |
//! | `dropped_ms` | f64 | when it was dropped or lost; null if it arrived |
//! | `one_way_delay_ms` | f32 | `arrived_ms - sent_ms` = `propagation_delay_ms + queueing_delay_ms`; null if it did not arrive |
//! | `queueing_delay_ms` | f32 | what of it an empty path would not have taken; null if it did not arrive |
//! | `propagation_delay_ms` | f32 | what the journey takes on an empty path |
//! | `fate` | word | `delivered`, `queue_full`, `aqm`, `wire_loss` or `harq_failure` |
//! | `duplicate` | bool | whether these bytes had arrived before |

use std::path::Path;
use std::sync::Arc;

use airpace_core::event::{Arrived, Fate};
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Float32Builder, Float64Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, Field, Schema};

use super::file::TableFile;
use super::words::Words;
use super::{ROWS_PER_GROUP, fit, millis, span_millis};
use crate::error::EvalError;

pub(super) struct Packets {
    file: TableFile,
    flow: UInt16Builder,
    number: UInt64Builder,
    bytes: UInt32Builder,
    sent_ms: Float64Builder,
    arrived_ms: Float64Builder,
    dropped_ms: Float64Builder,
    one_way_delay_ms: Float32Builder,
    queueing_delay_ms: Float32Builder,
    propagation_delay_ms: Float32Builder,
    fate: Words,
    duplicate: BooleanBuilder,
}

impl Packets {
    pub(super) fn create(path: &Path) -> Result<Packets, EvalError> {
        let schema = Schema::new(vec![
            Field::new("flow", DataType::UInt16, false),
            Field::new("number", DataType::UInt64, false),
            Field::new("bytes", DataType::UInt32, false),
            Field::new("sent_ms", DataType::Float64, false),
            Field::new("arrived_ms", DataType::Float64, true),
            Field::new("dropped_ms", DataType::Float64, true),
            Field::new("one_way_delay_ms", DataType::Float32, true),
            Field::new("queueing_delay_ms", DataType::Float32, true),
            Field::new("propagation_delay_ms", DataType::Float32, false),
            Words::field("fate"),
            Field::new("duplicate", DataType::Boolean, false),
        ]);
        Ok(Packets {
            file: TableFile::create(path, schema)?,
            flow: UInt16Builder::new(),
            number: UInt64Builder::new(),
            bytes: UInt32Builder::new(),
            sent_ms: Float64Builder::new(),
            arrived_ms: Float64Builder::new(),
            dropped_ms: Float64Builder::new(),
            one_way_delay_ms: Float32Builder::new(),
            queueing_delay_ms: Float32Builder::new(),
            propagation_delay_ms: Float32Builder::new(),
            fate: Words::default(),
            duplicate: BooleanBuilder::new(),
        })
    }

    pub(super) fn push(&mut self, arrived: &Arrived) -> Result<(), EvalError> {
        let packet = &arrived.packet;
        let one_way = arrived.time - packet.sent;
        let delivered = arrived.fate == Fate::Delivered;
        let queueing = one_way.saturating_sub(arrived.propagation_delay);
        self.flow.append_value(packet.flow.0);
        self.number.append_value(packet.number);
        self.bytes.append_value(fit(packet.bytes.0));
        self.sent_ms.append_value(millis(packet.sent));
        self.arrived_ms.append_option(delivered.then(|| millis(arrived.time)));
        self.dropped_ms.append_option((!delivered).then(|| millis(arrived.time)));
        self.one_way_delay_ms.append_option(delivered.then(|| span_millis(one_way)));
        self.queueing_delay_ms.append_option(delivered.then(|| span_millis(queueing)));
        self.propagation_delay_ms.append_value(span_millis(arrived.propagation_delay));
        self.fate.push(arrived.fate.name());
        self.duplicate.append_value(arrived.duplicate);
        if self.fate.len() < ROWS_PER_GROUP {
            return Ok(());
        }
        self.write_group()
    }

    pub(super) fn finish(mut self) -> Result<(), EvalError> {
        self.write_group()?;
        self.file.finish()
    }

    fn write_group(&mut self) -> Result<(), EvalError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.flow.finish()),
            Arc::new(self.number.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.sent_ms.finish()),
            Arc::new(self.arrived_ms.finish()),
            Arc::new(self.dropped_ms.finish()),
            Arc::new(self.one_way_delay_ms.finish()),
            Arc::new(self.queueing_delay_ms.finish()),
            Arc::new(self.propagation_delay_ms.finish()),
            self.fate.take(),
            Arc::new(self.duplicate.finish()),
        ];
        self.file.write_group(columns)
    }
}
