//! Samples of a modem's KPIs: a row for each.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_utc` | timestamp in ns, UTC | when, by the modem's clock |
//! | `kpi` | word | the KPI, as it was asked for |
//! | `value` | f64 | its value |
//! | `unit` | word | the value's unit |
//! | `radio` | u8 | the radio: 1 is the first SIM's |
//! | `carrier` | u8 | the carrier: 0 is the primary one |
//! | `subframe` | u16 | 10 · SFN + subframe; null where the log does not say it |

use std::sync::Arc;

use arrow_array::builder::{
    Float64Builder, StringDictionaryBuilder, TimestampNanosecondBuilder, UInt8Builder, UInt16Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::memory::Batches;
use super::words::Words;

/// A row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Nanoseconds since 1970.
    pub unix_nanos: i64,
    /// The KPI's name.
    pub kpi: &'a str,
    /// Its value.
    pub value: f64,
    /// The unit.
    pub unit: &'a str,
    /// The radio.
    pub radio: u8,
    /// The carrier.
    pub carrier: u8,
    /// The subframe.
    pub subframe: Option<u16>,
}

/// Rows that are not yet written, column by column.
pub struct Rows {
    count: usize,
    time: TimestampNanosecondBuilder,
    kpi: StringDictionaryBuilder<Int32Type>,
    value: Float64Builder,
    unit: StringDictionaryBuilder<Int32Type>,
    radio: UInt8Builder,
    carrier: UInt8Builder,
    subframe: UInt16Builder,
}

impl Default for Rows {
    /// No row.
    fn default() -> Rows {
        Rows {
            count: 0,
            time: TimestampNanosecondBuilder::new().with_timezone("UTC"),
            kpi: StringDictionaryBuilder::new(),
            value: Float64Builder::new(),
            unit: StringDictionaryBuilder::new(),
            radio: UInt8Builder::new(),
            carrier: UInt8Builder::new(),
            subframe: UInt16Builder::new(),
        }
    }
}

impl Rows {
    /// The columns.
    pub fn fields() -> Vec<Field> {
        vec![
            Field::new("time_utc", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false),
            Words::field("kpi"),
            Field::new("value", DataType::Float64, false),
            Words::field("unit"),
            Field::new("radio", DataType::UInt8, false),
            Field::new("carrier", DataType::UInt8, false),
            Field::new("subframe", DataType::UInt16, true),
        ]
    }

    /// Adds a row. Returns how many there are now.
    pub fn push(&mut self, row: &Row<'_>) -> usize {
        self.time.append_value(row.unix_nanos);
        self.kpi.append_value(row.kpi);
        self.value.append_value(row.value);
        self.unit.append_value(row.unit);
        self.radio.append_value(row.radio);
        self.carrier.append_value(row.carrier);
        self.subframe.append_option(row.subframe);
        self.count += 1;
        self.count
    }

    /// Takes the rows so far: the cells of each column.
    pub fn take(&mut self) -> Vec<ArrayRef> {
        self.count = 0;
        vec![
            Arc::new(self.time.finish()),
            Arc::new(self.kpi.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.unit.finish()),
            Arc::new(self.radio.finish()),
            Arc::new(self.carrier.finish()),
            Arc::new(self.subframe.finish()),
        ]
    }

    /// The rows so far as a table in memory.
    pub fn into_table(mut self) -> Batches {
        let schema = Arc::new(Schema::new(Rows::fields()));
        let batch = (self.count > 0).then(|| {
            RecordBatch::try_new(schema.clone(), self.take()).expect("columns have the types of their fields")
        });
        Batches { schema, batches: batch.into_iter().collect() }
    }
}
