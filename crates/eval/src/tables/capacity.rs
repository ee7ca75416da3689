//! `capacity`: one row per interval and device.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | start of the interval |
//! | `span_ms` | f32 | its length |
//! | `device` | u16 | index of the device in the scenario |
//! | `capacity_bytes` | u32 | IP bytes that the last hop could have carried to the device: what it did, and what nobody used |
//! | `capacity_mbps` | f32 | the same as a rate |

use std::path::Path;
use std::sync::Arc;

use airpace_core::event::Capacity;
use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, Float32Builder, Float64Builder, UInt16Builder, UInt32Builder};
use arrow_schema::{DataType, Field, Schema};

use super::file::TableFile;
use super::{ROWS_PER_GROUP, fit, millis, nanos, span_millis};
use crate::error::EvalError;

pub(super) struct Capacities {
    file: TableFile,
    time_ms: Float64Builder,
    span_ms: Float32Builder,
    device: UInt16Builder,
    capacity_bytes: UInt32Builder,
    capacity_mbps: Float32Builder,
}

impl Capacities {
    pub(super) fn create(path: &Path) -> Result<Capacities, EvalError> {
        let schema = Schema::new(vec![
            Field::new("time_ms", DataType::Float64, false),
            Field::new("span_ms", DataType::Float32, false),
            Field::new("device", DataType::UInt16, false),
            Field::new("capacity_bytes", DataType::UInt32, false),
            Field::new("capacity_mbps", DataType::Float32, false),
        ]);
        Ok(Capacities {
            file: TableFile::create(path, schema)?,
            time_ms: Float64Builder::new(),
            span_ms: Float32Builder::new(),
            device: UInt16Builder::new(),
            capacity_bytes: UInt32Builder::new(),
            capacity_mbps: Float32Builder::new(),
        })
    }

    pub(super) fn push(&mut self, capacity: &Capacity) -> Result<(), EvalError> {
        self.time_ms.append_value(millis(capacity.time));
        self.span_ms.append_value(span_millis(capacity.span));
        self.device.append_value(capacity.device.0);
        self.capacity_bytes.append_value(fit(capacity.bytes.0));
        self.capacity_mbps.append_value(mbps(capacity) as f32);
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
            Arc::new(self.span_ms.finish()),
            Arc::new(self.device.finish()),
            Arc::new(self.capacity_bytes.finish()),
            Arc::new(self.capacity_mbps.finish()),
        ];
        self.file.write_group(columns)
    }
}

/// The rate that moves the capacity's bytes in its span, in Mbit/s; 0 for an empty span.
fn mbps(capacity: &Capacity) -> f64 {
    let nanos = nanos(capacity.span);
    if nanos == 0 { 0.0 } else { capacity.bytes.0 as f64 * 8e3 / nanos as f64 }
}
