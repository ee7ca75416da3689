//! Table of a modem's KPI samples: one row per sample.
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_utc` | timestamp in ns, UTC | time of the sample on the modem's clock |
//! | `kpi` | word | name of the KPI, as requested |
//! | `value` | f64 | value of the KPI |
//! | `unit` | word | unit of the value |
//! | `radio` | u8 | radio of the modem; 1 belongs to the first SIM |
//! | `carrier` | u8 | component carrier; 0 is the primary one |
//! | `subframe` | u16 | 10 · SFN + subframe; null if the log does not contain it |

use std::sync::Arc;

use airpace_diag::Stamp;
use airpace_diag::export::sample;
use airpace_diag::kpi::{Sample, Wanted};
use arrow_array::builder::{
    Float64Builder, StringDictionaryBuilder, TimestampNanosecondBuilder, UInt8Builder, UInt16Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::memory::Batches;
use super::words::Words;

/// A KPI sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Time in nanoseconds since 1970.
    pub unix_nanos: i64,
    /// Name of the KPI.
    pub kpi: &'a str,
    /// Value of the KPI.
    pub value: f64,
    /// Unit of the value.
    pub unit: &'a str,
    /// Radio of the modem.
    pub radio: u8,
    /// Component carrier.
    pub carrier: u8,
    /// Subframe, as 10 · SFN + subframe.
    pub subframe: Option<u16>,
}

/// Buffer of the rows that are not yet written.
pub struct Rows {
    count: usize,
    time: TimestampNanosecondBuilder,
    kpi: StringDictionaryBuilder<Int32Type>,
    value: Float64Builder,
    unit: StringDictionaryBuilder<Int32Type>,
    radio: UInt8Builder,
    carrier: UInt8Builder,
    subframe: UInt16Builder,
    /// Buffer for the name of a KPI.
    name: Vec<u8>,
}

impl Default for Rows {
    /// A buffer without rows.
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
            name: vec![],
        }
    }
}

/// Converts a timestamp to Parquet's format. Times after Parquet's maximum, in the year 2262, become this maximum.
pub(crate) fn nanos(stamp: Stamp) -> i64 {
    i64::try_from(stamp.unix_nanos()).unwrap_or(i64::MAX)
}

impl Rows {
    /// The columns of the table.
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

    /// Adds a row. Returns the number of rows in the buffer.
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

    /// Adds the sample of a selected value. Returns the number of rows in the buffer.
    pub fn push_sample(&mut self, sample: &Sample, wanted: &Wanted) -> usize {
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        sample::name(wanted, &mut name);
        let rows = self.push(&Row {
            unix_nanos: nanos(sample.stamp),
            kpi: &String::from_utf8_lossy(&name),
            value: sample.value,
            unit: wanted.unit(),
            radio: wanted.radio.0,
            carrier: sample.carrier,
            subframe: sample.subframe,
        });
        self.name = name;
        rows
    }

    /// Removes and returns the cells of each column.
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

    /// Converts the rows to an in-memory table.
    pub fn into_table(mut self) -> Batches {
        let schema = Arc::new(Schema::new(Rows::fields()));
        let batch = (self.count > 0).then(|| {
            RecordBatch::try_new(schema.clone(), self.take()).expect("columns have the types of their fields")
        });
        Batches { schema, batches: batch.into_iter().collect() }
    }
}
