//! Packets and samples in Parquet files. Rows are collected in memory until they make a row group.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpace_diag::export::table::{ColumnKind, Table};
use airpace_diag::export::{sample, text};
use airpace_diag::kpi::{Sample, Wanted};
use airpace_diag::layout::{Record, Value};
use airpace_diag::{LogCode, LogPacket, Stamp, log};
use airpace_tables::{ParquetFile, ROWS_PER_GROUP, kpis};
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, Float64Builder, Int64Builder, StringBuilder, StringDictionaryBuilder,
    TimestampNanosecondBuilder, UInt8Builder, UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_schema::{DataType, Field, TimeUnit};

use super::{Kind, Writer};
use crate::cmd::NothingFound;
use crate::cmd::outputs::{self, Named};
use crate::parquet_file::{self, refused};

fn time_field() -> Field {
    Field::new("time_utc", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), false)
}

fn time_builder() -> TimestampNanosecondBuilder {
    TimestampNanosecondBuilder::new().with_timezone("UTC")
}

/// Converts a timestamp to Parquet's format. Times after Parquet's maximum, in the year 2262, become this maximum.
fn nanos(stamp: Stamp) -> i64 {
    i64::try_from(stamp.unix_nanos()).unwrap_or(i64::MAX)
}

fn word_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// File of KPI samples, one row per sample.
pub struct Samples {
    /// The file; `None` once the file is complete.
    file: Option<ParquetFile>,
    rows: kpis::Rows,
    /// Buffer for the name of a KPI.
    name: Vec<u8>,
}

impl Samples {
    /// Creates the file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path) -> anyhow::Result<Samples> {
        let file = Some(parquet_file::create(path, kpis::Rows::fields())?);
        Ok(Samples { file, rows: kpis::Rows::default(), name: vec![] })
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// A row group cannot be written.
    pub fn add(&mut self, sample: &Sample, wanted: &Wanted) -> anyhow::Result<()> {
        self.name.clear();
        sample::name(wanted, &mut self.name);
        let rows = self.rows.push(&kpis::Row {
            unix_nanos: nanos(sample.stamp),
            kpi: std::str::from_utf8(&self.name)?,
            value: sample.value,
            unit: wanted.unit(),
            radio: wanted.radio.0,
            carrier: sample.carrier,
            subframe: sample.subframe,
        });
        if rows < ROWS_PER_GROUP { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_group(self.rows.take()).map_err(refused)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        self.write()?;
        self.file.take().map_or(Ok(()), ParquetFile::finish).map_err(refused)
    }
}

/// Packets by code: one folder with a file for each code, a row per innermost record.
pub struct Codes {
    folder: PathBuf,
    /// The input files. None of them is overwritten.
    inputs: Vec<Named>,
    codes: BTreeMap<LogCode, CodeFile>,
    packets: u64,
}

impl Codes {
    /// Writes the contents of these logs into a folder.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(folder: &Path, inputs: Vec<Named>) -> anyhow::Result<Codes> {
        outputs::folder("--parquet", folder)?;
        Ok(Codes { folder: folder.to_owned(), inputs, codes: BTreeMap::new(), packets: 0 })
    }
}

impl Writer for Codes {
    fn packet(&mut self, packet: &LogPacket<'_>) -> anyhow::Result<Option<Kind>> {
        let number = self.packets;
        self.packets += 1;
        let reading = log::read(packet);
        if let (Some(code), Ok(decoded)) = (log::code(packet.code), &reading) {
            let file = match self.codes.entry(packet.code) {
                Entry::Occupied(file) => file.into_mut(),
                Entry::Vacant(place) => {
                    let path = self.folder.join(format!("{}.parquet", packet.code));
                    outputs::check(&self.inputs, &[Named::by("--parquet", &path)])?;
                    place.insert(CodeFile::create(&path, Table::of(code))?)
                }
            };
            file.add(packet, number, &decoded.version.to_string(), &decoded.fields)?;
        }
        Ok(Kind::of(packet.code, &reading))
    }

    fn finish(&mut self) -> anyhow::Result<Option<NothingFound>> {
        let codes = std::mem::take(&mut self.codes);
        let nothing = || NothingFound("no packet could be read: nothing is written".to_owned());
        let nothing = codes.is_empty().then(nothing);
        for mut file in codes.into_values() {
            file.write()?;
            file.file.finish().map_err(refused)?;
        }
        Ok(nothing)
    }
}

/// Parquet file of one log code.
struct CodeFile {
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
    fn create(path: &Path, table: Table) -> anyhow::Result<CodeFile> {
        let mut fields = vec![
            time_field(),
            Field::new("radio", DataType::UInt8, false),
            Field::new("packet", DataType::UInt64, false),
            Field::new("layout_version", word_type(), false),
        ];
        let columns = table.columns();
        fields.extend(columns.iter().map(|column| Field::new(&column.path, data_type(column.kind), true)));
        let values = columns.iter().map(|column| Values::new(column.kind)).collect();
        Ok(CodeFile {
            file: parquet_file::create(path, fields)?,
            table,
            rows: 0,
            time: time_builder(),
            radio: UInt8Builder::new(),
            packet: UInt64Builder::new(),
            version: StringDictionaryBuilder::new(),
            values,
        })
    }

    fn add(
        &mut self,
        packet: &LogPacket<'_>,
        number: u64,
        version: &str,
        fields: &Record<'_>,
    ) -> anyhow::Result<()> {
        let CodeFile { table, rows, time, radio, packet: packets, version: versions, values, .. } = self;
        table.rows(fields, |row| {
            *rows += 1;
            time.append_value(nanos(packet.stamp));
            radio.append_value(packet.radio.0);
            packets.append_value(number);
            versions.append_value(version);
            for (column, value) in values.iter_mut().zip(row) {
                column.add(*value);
            }
        });
        if self.rows < ROWS_PER_GROUP { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.rows = 0;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.time.finish()),
            Arc::new(self.radio.finish()),
            Arc::new(self.packet.finish()),
            Arc::new(self.version.finish()),
        ];
        columns.extend(self.values.iter_mut().map(Values::take));
        self.file.write_group(columns).map_err(refused)
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
