//! Tables, and the storage of their rows: Parquet files that are written per row group, or memory.

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
use crate::error::FileError;

/// Number of rows at which a table in a file reserves capacity for a whole row group. A buffer that grows step by step
/// copies its cells repeatedly, and reserved memory costs nothing until it is used.
const FEW_ROWS: usize = 256;

/// A table that is being written. Its columns collect rows until they fill a row group.
pub(super) struct Table<C> {
    pub(super) columns: C,
    rows: usize,
    store: Store,
}

/// Storage of row groups.
enum Store {
    File(Box<ParquetFile>),
    Memory(Part),
    /// Rows are discarded.
    Nowhere,
}

impl<C: Columns> Table<C> {
    /// Creates the folder and the file.
    pub(super) fn create(path: &Path, columns: C) -> Result<Table<C>, FileError> {
        let file = ParquetFile::create(path, Schema::new(columns.fields()))?;
        Ok(Table { columns, rows: 0, store: Store::File(Box::new(file)) })
    }

    /// Writes into a file that is already open.
    pub(super) fn on(file: Whole, columns: C) -> Result<Table<C>, FileError> {
        let file = ParquetFile::new(file, columns.fields())?;
        Ok(Table { columns, rows: 0, store: Store::File(Box::new(file)) })
    }

    /// Keeps the rows in memory, or discards them for `None`.
    pub(super) fn in_memory(part: Option<Part>, columns: C) -> Table<C> {
        Table { columns, rows: 0, store: part.map_or(Store::Nowhere, Store::Memory) }
    }

    /// Whether the rows are stored.
    pub(super) fn is_kept(&self) -> bool {
        !matches!(self.store, Store::Nowhere)
    }

    /// Registers that the columns contain `rows` more rows.
    pub(super) fn added(&mut self, rows: usize) -> Result<(), FileError> {
        let grows = self.rows < FEW_ROWS && self.rows + rows >= FEW_ROWS;
        if grows && matches!(self.store, Store::File(_)) {
            self.columns.reserve(ROWS_PER_GROUP);
        }
        self.rows += rows;
        if self.rows < ROWS_PER_GROUP { Ok(()) } else { self.write_group() }
    }

    /// Writes the remaining rows and moves the file to its final name.
    pub(super) fn finish(mut self) -> Result<(), FileError> {
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

    fn write_group(&mut self) -> Result<(), FileError> {
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

/// A Parquet file that is being written. It is moved to its final name only when it is complete.
pub struct ParquetFile {
    writer: ArrowWriter<Whole>,
    schema: SchemaRef,
    path: PathBuf,
}

impl ParquetFile {
    /// Creates the folder and the file of a run's table.
    fn create(path: &Path, schema: Schema) -> Result<ParquetFile, FileError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(FileError::write("make the folder", folder))?;
        let file = Whole::replace(path).map_err(FileError::write("make the file", path))?;
        let properties = properties(&schema);
        ParquetFile::with(file, schema, properties)
    }

    /// Opens a table with these columns in `file`. All columns have dictionaries and statistics.
    ///
    /// # Errors
    /// [`FileError::Table`] if the file cannot be written.
    pub fn new(file: Whole, columns: Vec<Field>) -> Result<ParquetFile, FileError> {
        ParquetFile::with(file, Schema::new(columns), compressed().build())
    }

    fn with(file: Whole, schema: Schema, properties: WriterProperties) -> Result<ParquetFile, FileError> {
        let (schema, path) = (Arc::new(schema), file.path().to_owned());
        let writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(FileError::table(&path))?;
        Ok(ParquetFile { writer, schema, path })
    }

    /// Writes one row group: the cells of each column, in the order of the columns.
    ///
    /// # Errors
    /// [`FileError::Table`] if the file cannot be written, if columns differ in their number of cells, or if a cell has
    /// the wrong type.
    pub fn write_group(&mut self, columns: Vec<ArrayRef>) -> Result<(), FileError> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|source| FileError::table(&self.path)(ParquetError::from(source)))?;
        self.writer.write(&batch).and_then(|()| self.writer.flush()).map_err(FileError::table(&self.path))
    }

    /// Completes the file and moves it to its final name. A file without rows is valid.
    ///
    /// # Errors
    /// [`FileError::Table`] or [`FileError::Write`] if the file cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        let file = self.writer.into_inner().map_err(FileError::table(&self.path))?;
        file.finish().map_err(FileError::write("write", &self.path))
    }
}

/// Properties that all files have in common.
fn compressed() -> WriterPropertiesBuilder {
    let level = ZstdLevel::try_new(1).expect("1 is a level of zstd");
    WriterProperties::builder().set_created_by("airpace".to_owned()).set_compression(Compression::ZSTD(level))
}

/// Properties of a run's tables. Columns of numbers have no dictionary, because numbers rarely repeat and a dictionary
/// would only cost time.
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
    // Readers use the times of a row group to skip groups that they do not need.
    let with_statistics = ["time_ms", "release_ms"].into_iter().fold(properties, |properties, column| {
        properties.set_column_statistics_enabled(ColumnPath::from(column), EnabledStatistics::Chunk)
    });
    with_statistics.build()
}
