//! `controller`: one row per look into a flow's scheme, at a fixed cadence and at every change of state.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | when |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `state` | word | the controller's state, in its paper's words |
//! | `state_changed` | bool | whether it differs from the row before of this flow |
//! | `cwnd_bytes` | u64 | congestion window; null while unlimited |
//! | `pacing_rate_mbps` | f64 | pacing rate; null while unpaced |
//! | `inflight_bytes` | u64 | bytes outstanding |
//! | one per named value | f64 | the scheme's internals, each name ending in its unit; null where unknown or another scheme's |

use std::path::Path;
use std::sync::Arc;

use airpace_core::event::Inspected;
use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, BooleanBuilder, Float64Builder, UInt16Builder, UInt64Builder};
use arrow_schema::{DataType, Field, Schema};

use super::file::TableFile;
use super::words::Words;
use super::{ROWS_PER_GROUP, millis};
use crate::error::EvalError;

pub(super) struct Controllers {
    file: TableFile,
    time_ms: Float64Builder,
    flow: UInt16Builder,
    state: Words,
    state_changed: BooleanBuilder,
    cwnd_bytes: UInt64Builder,
    pacing_rate_mbps: Float64Builder,
    inflight_bytes: UInt64Builder,
    /// Names as the tables' schema has them, and their rows.
    values: Vec<(String, Float64Builder)>,
}

impl Controllers {
    pub(super) fn create(path: &Path, names: &[String]) -> Result<Controllers, EvalError> {
        let mut fields = vec![
            Field::new("time_ms", DataType::Float64, false),
            Field::new("flow", DataType::UInt16, false),
            Words::field("state"),
            Field::new("state_changed", DataType::Boolean, false),
            Field::new("cwnd_bytes", DataType::UInt64, true),
            Field::new("pacing_rate_mbps", DataType::Float64, true),
            Field::new("inflight_bytes", DataType::UInt64, false),
        ];
        fields.extend(names.iter().map(|name| Field::new(name, DataType::Float64, true)));
        Ok(Controllers {
            file: TableFile::create(path, Schema::new(fields))?,
            time_ms: Float64Builder::new(),
            flow: UInt16Builder::new(),
            state: Words::default(),
            state_changed: BooleanBuilder::new(),
            cwnd_bytes: UInt64Builder::new(),
            pacing_rate_mbps: Float64Builder::new(),
            inflight_bytes: UInt64Builder::new(),
            values: names.iter().map(|name| (name.clone(), Float64Builder::new())).collect(),
        })
    }

    pub(super) fn push(&mut self, inspected: &Inspected<'_>) -> Result<(), EvalError> {
        self.time_ms.append_value(millis(inspected.time));
        self.flow.append_value(inspected.flow.0);
        self.state.push(inspected.state);
        self.state_changed.append_value(inspected.state_changed);
        self.cwnd_bytes.append_option((inspected.cwnd.0 < u64::MAX).then_some(inspected.cwnd.0));
        self.pacing_rate_mbps.append_option(inspected.pacing_rate.map(|rate| rate.as_mbps()));
        self.inflight_bytes.append_value(inspected.inflight.0);
        for (name, value) in inspected.values {
            let Some((_, column)) = self.values.iter_mut().find(|(known, _)| known == name) else {
                let (flow, name, time) = (inspected.flow.0, (*name).to_owned(), inspected.time);
                return Err(EvalError::NewColumn { flow, name, time });
            };
            column.append_option(value.is_finite().then_some(*value));
        }
        let rows = self.time_ms.len();
        for (_, column) in &mut self.values {
            if column.len() < rows {
                column.append_null();
            }
        }
        if rows < ROWS_PER_GROUP {
            return Ok(());
        }
        self.write_group()
    }

    pub(super) fn finish(mut self) -> Result<(), EvalError> {
        self.write_group()?;
        self.file.finish()
    }

    fn write_group(&mut self) -> Result<(), EvalError> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.time_ms.finish()),
            Arc::new(self.flow.finish()),
            self.state.take(),
            Arc::new(self.state_changed.finish()),
            Arc::new(self.cwnd_bytes.finish()),
            Arc::new(self.pacing_rate_mbps.finish()),
            Arc::new(self.inflight_bytes.finish()),
        ];
        columns.extend(self.values.iter_mut().map(|(_, column)| Arc::new(column.finish()) as ArrayRef));
        self.file.write_group(columns)
    }
}
