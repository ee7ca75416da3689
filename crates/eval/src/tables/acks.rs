//! `acks`: one row per acknowledgement as its sender processed it.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | when |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `largest` | u64 | highest packet number newly acknowledged |
//! | `acked_bytes` | u32 | bytes newly acknowledged |
//! | `inflight_bytes` | u32 | bytes outstanding afterwards |
//! | `rtt_ms` | f32 | round-trip time sample; null if the ACK gave none |
//! | `delivery_rate_mbps` | f32 | delivery-rate sample; null if the ACK gave none |

use std::path::Path;
use std::sync::Arc;

use airpace_core::event::Acked;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, Float32Builder, Float64Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, Field, Schema};

use super::file::TableFile;
use super::{ROWS_PER_GROUP, fit, millis, span_millis};
use crate::error::EvalError;

pub(super) struct Acks {
    file: TableFile,
    time_ms: Float64Builder,
    flow: UInt16Builder,
    largest: UInt64Builder,
    acked_bytes: UInt32Builder,
    inflight_bytes: UInt32Builder,
    rtt_ms: Float32Builder,
    delivery_rate_mbps: Float32Builder,
}

impl Acks {
    pub(super) fn create(path: &Path) -> Result<Acks, EvalError> {
        let schema = Schema::new(vec![
            Field::new("time_ms", DataType::Float64, false),
            Field::new("flow", DataType::UInt16, false),
            Field::new("largest", DataType::UInt64, false),
            Field::new("acked_bytes", DataType::UInt32, false),
            Field::new("inflight_bytes", DataType::UInt32, false),
            Field::new("rtt_ms", DataType::Float32, true),
            Field::new("delivery_rate_mbps", DataType::Float32, true),
        ]);
        Ok(Acks {
            file: TableFile::create(path, schema)?,
            time_ms: Float64Builder::new(),
            flow: UInt16Builder::new(),
            largest: UInt64Builder::new(),
            acked_bytes: UInt32Builder::new(),
            inflight_bytes: UInt32Builder::new(),
            rtt_ms: Float32Builder::new(),
            delivery_rate_mbps: Float32Builder::new(),
        })
    }

    pub(super) fn push(&mut self, acked: &Acked) -> Result<(), EvalError> {
        self.time_ms.append_value(millis(acked.time));
        self.flow.append_value(acked.flow.0);
        self.largest.append_value(acked.largest);
        self.acked_bytes.append_value(fit(acked.acked.0));
        self.inflight_bytes.append_value(fit(acked.inflight.0));
        self.rtt_ms.append_option(acked.rtt.map(span_millis));
        self.delivery_rate_mbps.append_option(acked.delivery_rate.map(|rate| rate.as_mbps() as f32));
        if self.time_ms.len() < ROWS_PER_GROUP {
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
            Arc::new(self.time_ms.finish()),
            Arc::new(self.flow.finish()),
            Arc::new(self.largest.finish()),
            Arc::new(self.acked_bytes.finish()),
            Arc::new(self.inflight_bytes.finish()),
            Arc::new(self.rtt_ms.finish()),
            Arc::new(self.delivery_rate_mbps.finish()),
        ];
        self.file.write_group(columns)
    }
}
