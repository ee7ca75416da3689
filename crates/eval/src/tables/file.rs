//! Tables and where their rows go: into Parquet files, written row group by row group, or into memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpace_files::Whole;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use super::ROWS_PER_GROUP;
use super::columns::Columns;
use super::memory::Part;
use crate::error::EvalError;

/// The number of rows from which on a table that goes to a file has room for a whole row group: a buffer that grows copies its cells time and
/// again, and memory that is reserved costs nothing until it is used.
const FEW_ROWS: usize = 256;

/// A table that is being written: its columns collect rows until they make a row group.
pub(super) struct Table<C> {
    pub(super) columns: C,
    rows: usize,
    store: Store,
}

/// Where row groups go.
enum Store {
    File(Box<ParquetFile>),
    Memory(Part),
    /// Nobody wants them.
    Nowhere,
}

impl<C: Columns> Table<C> {
    /// Makes the folder and the file.
    pub(super) fn create(path: &Path, columns: C) -> Result<Table<C>, EvalError> {
        let file = ParquetFile::create(path, Schema::new(columns.fields()))?;
        Ok(Table { columns, rows: 0, store: Store::File(Box::new(file)) })
    }

    /// Writes into a file that was opened before.
    pub(super) fn on(file: Whole, columns: C) -> Result<Table<C>, EvalError> {
        let file = ParquetFile::new(file, columns.fields())?;
        Ok(Table { columns, rows: 0, store: Store::File(Box::new(file)) })
    }

    /// Keeps the rows in memory, or nowhere.
    pub(super) fn in_memory(part: Option<Part>, columns: C) -> Table<C> {
        Table { columns, rows: 0, store: part.map_or(Store::Nowhere, Store::Memory) }
    }

    /// Whether anybody wants its rows.
    pub(super) fn is_kept(&self) -> bool {
        !matches!(self.store, Store::Nowhere)
    }

    /// Notes that the columns now hold `rows` more rows.
    pub(super) fn added(&mut self, rows: usize) -> Result<(), EvalError> {
        let grows = self.rows < FEW_ROWS && self.rows + rows >= FEW_ROWS;
        if grows && matches!(self.store, Store::File(_)) {
            self.columns.reserve(ROWS_PER_GROUP);
        }
        self.rows += rows;
        if self.rows < ROWS_PER_GROUP { Ok(()) } else { self.write_group() }
    }

    /// Writes the remaining rows and gives the file its name.
    pub(super) fn finish(mut self) -> Result<(), EvalError> {
        self.write_group()?;
        match self.store {
            Store::File(file) => file.finish(),
            Store::Memory(part) => {
                part.finish(&self.columns.fields());
                Ok(())
            }
            Store::Nowhere => Ok(()),
        }
    }

    fn write_group(&mut self) -> Result<(), EvalError> {
        let is_empty = std::mem::take(&mut self.rows) == 0;
        match &mut self.store {
            Store::File(file) => file.write_group(self.columns.take()),
            Store::Memory(_) if is_empty => Ok(()),
            Store::Memory(part) => {
                part.push(self.columns.fields(), self.columns.take());
                Ok(())
            }
            Store::Nowhere => Ok(()),
        }
    }
}

/// A Parquet file that is being written. It gets its name only when it is complete.
pub struct ParquetFile {
    writer: ArrowWriter<Whole>,
    schema: SchemaRef,
    path: PathBuf,
}

impl ParquetFile {
    /// Makes the folder and the file of a run's table.
    fn create(path: &Path, schema: Schema) -> Result<ParquetFile, EvalError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(EvalError::write("make the folder", folder))?;
        let file = Whole::replace(path).map_err(EvalError::write("make the file", path))?;
        let properties = properties(&schema);
        ParquetFile::with(file, schema, properties)
    }

    /// Writes a table of these columns into a file. All columns have dictionaries and statistics.
    ///
    /// # Errors
    /// [`EvalError::Table`] if it cannot be written.
    pub fn new(file: Whole, columns: Vec<Field>) -> Result<ParquetFile, EvalError> {
        ParquetFile::with(file, Schema::new(columns), compressed().build())
    }

    fn with(file: Whole, schema: Schema, properties: WriterProperties) -> Result<ParquetFile, EvalError> {
        let (schema, path) = (Arc::new(schema), file.path().to_owned());
        let writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(EvalError::table(&path))?;
        Ok(ParquetFile { writer, schema, path })
    }

    /// Writes one row group: the cells of each column, in the order of the columns.
    ///
    /// # Errors
    /// [`EvalError::Table`] if it cannot be written, if columns differ in their number of cells, or if a cell has the
    /// wrong type.
    pub fn write_group(&mut self, columns: Vec<ArrayRef>) -> Result<(), EvalError> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|source| EvalError::table(&self.path)(ParquetError::from(source)))?;
        self.writer.write(&batch).and_then(|()| self.writer.flush()).map_err(EvalError::table(&self.path))
    }

    /// Completes the file and gives it its name. A file without rows is valid too.
    ///
    /// # Errors
    /// [`EvalError::Table`] or [`EvalError::Write`] if it cannot be written.
    pub fn finish(self) -> Result<(), EvalError> {
        let file = self.writer.into_inner().map_err(EvalError::table(&self.path))?;
        file.finish().map_err(EvalError::write("write", &self.path))
    }
}

/// The properties that all files have in common.
fn compressed() -> WriterPropertiesBuilder {
    let level = ZstdLevel::try_new(1).expect("1 is a level of zstd");
    WriterProperties::builder().set_created_by("airpace".to_owned()).set_compression(Compression::ZSTD(level))
}

/// How columns of a run's tables are stored. Numbers rarely repeat, so a dictionary would only cost time.
fn properties(schema: &Schema) -> WriterProperties {
    let mut properties =
        compressed().set_statistics_enabled(EnabledStatistics::None).set_dictionary_enabled(false);
    for field in schema.fields() {
        let column = ColumnPath::from(field.name().as_str());
        properties = match field.data_type() {
            DataType::Dictionary(..) => properties.set_column_dictionary_enabled(column, true),
            DataType::Float32 | DataType::Float64 => {
                properties.set_column_encoding(column, Encoding::BYTE_STREAM_SPLIT)
            }
            DataType::UInt64 => properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED),
            _ => properties,
        };
    }
    // With the times of a row group, readers can skip the groups that they do not want.
    let with_statistics = ["time_ms", "release_ms"].into_iter().fold(properties, |properties, column| {
        properties.set_column_statistics_enabled(ColumnPath::from(column), EnabledStatistics::Chunk)
    });
    with_statistics.build()
}
