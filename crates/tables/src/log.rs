//! Tables of a modem's log: packets of one code, and KPI samples. Every file is one table, and is not part of a run folder.
//!
//! Columns of a [`CodeFile`], which has a row per innermost record of a packet:
//!
//! | column | type | meaning |
//! | --- | --- | --- |
//! | `time_utc` | timestamp in ns, UTC | time of the packet on the modem's clock |
//! | `radio` | u8 | radio of the modem; 1 belongs to the first SIM |
//! | `packet` | u64 | number of the packet in the log, from 0 |
//! | `layout_version` | word | version of the layout by which the packet was read |
//! | names of fields | by the field | values of the fields; null if the record has no such field |

use std::sync::Arc;

use airpace_diag::LogPacket;
use airpace_diag::export::table::{ColumnKind, Table};
use airpace_diag::export::text;
use airpace_diag::kpi::{Sample, Wanted};
use airpace_diag::layout::{Code, Decoded, Value};
use airpace_files::Whole;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, Float64Builder, Int64Builder, StringBuilder, StringDictionaryBuilder,
    TimestampNanosecondBuilder, UInt8Builder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_schema::{DataType, Field, TimeUnit};

use crate::words::Words;
use crate::{FileError, ParquetFile, ROWS_PER_GROUP, kpis};

fn time_field() -> Field {
    Field::new("time_utc", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false)
}

fn time_builder() -> TimestampNanosecondBuilder {
    TimestampNanosecondBuilder::new().with_timezone("UTC")
}

/// Parquet file of KPI samples: one row per sample. The columns are those of [`kpis`].
pub struct SampleFile {
    file: ParquetFile,
    rows: kpis::Rows,
}

impl SampleFile {
    /// Writes into a file that is already open.
    ///
    /// # Errors
    /// [`FileError::Table`] if the file cannot be written.
    pub fn new(file: Whole) -> Result<SampleFile, FileError> {
        Ok(SampleFile { file: ParquetFile::new(file, kpis::Rows::fields())?, rows: kpis::Rows::default() })
    }

    /// Adds a sample of a selected value.
    ///
    /// # Errors
    /// [`FileError::Table`] if a row group cannot be written.
    pub fn add(&mut self, sample: &Sample, wanted: &Wanted) -> Result<(), FileError> {
        if self.rows.push_sample(sample, wanted) < ROWS_PER_GROUP { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), FileError> {
        self.file.write_group(self.rows.take())
    }

    /// Writes the remaining rows and completes the file.
    ///
    /// # Errors
    /// [`FileError::Table`] or [`FileError::Write`] if the file cannot be written.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.write()?;
        self.file.finish()
    }
}

/// Parquet file of the packets of one log code. Rows are collected in memory until they make a row group.
pub struct CodeFile {
    file: ParquetFile,
    table: Table,
    rows: usize,
    time: TimestampNanosecondBuilder,
    radio: UInt8Builder,
    packet: UInt64Builder,
    version: StringDictionaryBuilder<Int32Type>,
    values: Vec<Values>,
}

impl CodeFile {
    /// Writes into a file that is already open. The columns are the fields of all versions of the code.
    ///
    /// # Errors
    /// [`FileError::Table`] if the file cannot be written.
    pub fn new(file: Whole, code: &'static Code) -> Result<CodeFile, FileError> {
        let table = Table::of(code);
        let mut fields = vec![
            time_field(),
            Field::new("radio", DataType::UInt8, false),
            Field::new("packet", DataType::UInt64, false),
            Words::field("layout_version"),
        ];
        let columns = table.columns();
        fields.extend(columns.iter().map(|column| Field::new(&column.path, data_type(column.kind), true)));
        let values = columns.iter().map(|column| Values::new(column.kind)).collect();
        Ok(CodeFile {
            file: ParquetFile::new(file, fields)?,
            table,
            rows: 0,
            time: time_builder(),
            radio: UInt8Builder::new(),
            packet: UInt64Builder::new(),
            version: StringDictionaryBuilder::new(),
            values,
        })
    }

    /// Adds the records of a packet, which is packet `number` of the log.
    ///
    /// # Errors
    /// [`FileError::Table`] if a row group cannot be written.
    pub fn add(
        &mut self,
        packet: &LogPacket<'_>,
        number: u64,
        decoded: &Decoded<'_>,
    ) -> Result<(), FileError> {
        let version = decoded.version.to_string();
        let CodeFile { table, rows, time, radio, packet: packets, version: versions, values, .. } = self;
        table.rows(&decoded.fields, |row| {
            *rows += 1;
            time.append_value(kpis::nanos(packet.stamp));
            radio.append_value(packet.radio.0);
            packets.append_value(number);
            versions.append_value(&version);
            for (column, value) in values.iter_mut().zip(row) {
                column.add(*value);
            }
        });
        if self.rows < ROWS_PER_GROUP { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), FileError> {
        self.rows = 0;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.time.finish()),
            Arc::new(self.radio.finish()),
            Arc::new(self.packet.finish()),
            Arc::new(self.version.finish()),
        ];
        columns.extend(self.values.iter_mut().map(Values::take));
        self.file.write_group(columns)
    }

    /// Writes the remaining rows and completes the file.
    ///
    /// # Errors
    /// [`FileError::Table`] or [`FileError::Write`] if the file cannot be written.
    pub fn finish(mut self) -> Result<(), FileError> {
        self.write()?;
        self.file.finish()
    }
}

fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Unsigned => DataType::UInt64,
        ColumnKind::Signed => DataType::Int64,
        ColumnKind::Real => DataType::Float64,
        ColumnKind::Text => DataType::Utf8,
        ColumnKind::Bytes => DataType::Binary,
    }
}

/// The values of a column that have not been written yet.
enum Values {
    Unsigned(UInt64Builder),
    Signed(Int64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl Values {
    fn new(kind: ColumnKind) -> Values {
        match kind {
            ColumnKind::Unsigned => Values::Unsigned(UInt64Builder::new()),
            ColumnKind::Signed => Values::Signed(Int64Builder::new()),
            ColumnKind::Real => Values::Real(Float64Builder::new()),
            ColumnKind::Text => Values::Text(StringBuilder::new()),
            ColumnKind::Bytes => Values::Bytes(BinaryBuilder::new()),
        }
    }

    /// Adds a value or null.
    fn add(&mut self, value: Option<&Value<'_>>) {
        match (self, value) {
            (Values::Unsigned(column), Some(Value::Unsigned(number))) => column.append_value(*number),
            (Values::Unsigned(column), _) => column.append_null(),
            (Values::Signed(column), Some(Value::Signed(number))) => column.append_value(*number),
            (Values::Signed(column), _) => column.append_null(),
            (Values::Real(column), Some(Value::Real(number))) => column.append_value(*number),
            (Values::Real(column), Some(Value::Unsigned(number))) => column.append_value(*number as f64),
            (Values::Real(column), Some(Value::Signed(number))) => column.append_value(*number as f64),
            (Values::Real(column), _) => column.append_null(),
            (Values::Text(column), None | Some(Value::Absent)) => column.append_null(),
            (Values::Text(column), Some(Value::Name(name))) => column.append_value(name),
            (Values::Text(column), Some(value)) => {
                let mut words = vec![];
                text::value(value, &mut words);
                column.append_value(String::from_utf8_lossy(&words));
            }
            (Values::Bytes(column), Some(Value::Bytes(bytes))) => column.append_value(bytes),
            (Values::Bytes(column), _) => column.append_null(),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Values::Unsigned(column) => Arc::new(column.finish()),
            Values::Signed(column) => Arc::new(column.finish()),
            Values::Real(column) => Arc::new(column.finish()),
            Values::Text(column) => Arc::new(column.finish()),
            Values::Bytes(column) => Arc::new(column.finish()),
        }
    }
}
