//! `losses`: one row each time a sender declared packets lost (rightly or not; `packets` knows the truth).
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_ms` | f64 | when |
//! | `flow` | u16 | index of the flow in the scenario |
//! | `packets` | u32 | how many packets |
//! | `bytes` | u32 | how many bytes |

use std::path::Path;
use std::sync::Arc;

use airpace_core::event::Lost;
use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, Float64Builder, UInt16Builder, UInt32Builder};
use arrow_schema::{DataType, Field, Schema};

use super::file::TableFile;
use super::{ROWS_PER_GROUP, fit, millis};
use crate::error::EvalError;

pub(super) struct Losses {
    file: TableFile,
    time_ms: Float64Builder,
    flow: UInt16Builder,
    packets: UInt32Builder,
    bytes: UInt32Builder,
}

impl Losses {
    pub(super) fn create(path: &Path) -> Result<Losses, EvalError> {
        let schema = Schema::new(vec![
            Field::new("time_ms", DataType::Float64, false),
            Field::new("flow", DataType::UInt16, false),
            Field::new("packets", DataType::UInt32, false),
            Field::new("bytes", DataType::UInt32, false),
        ]);
        Ok(Losses {
            file: TableFile::create(path, schema)?,
            time_ms: Float64Builder::new(),
            flow: UInt16Builder::new(),
            packets: UInt32Builder::new(),
            bytes: UInt32Builder::new(),
        })
    }

    pub(super) fn push(&mut self, lost: &Lost) -> Result<(), EvalError> {
        self.time_ms.append_value(millis(lost.time));
        self.flow.append_value(lost.flow.0);
        self.packets.append_value(fit(lost.packets));
        self.bytes.append_value(fit(lost.bytes.0));
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
            Arc::new(self.packets.finish()),
            Arc::new(self.bytes.finish()),
        ];
        self.file.write_group(columns)
    }
}
