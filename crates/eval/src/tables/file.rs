//! A table and its Parquet file, written row group by row group.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpace_files::Whole;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::ROWS_PER_GROUP;
use super::columns::Columns;
use crate::error::EvalError;

/// A table on its way to disk: rows gather in its columns until they make a row group.
pub(super) struct Table<C> {
    pub(super) columns: C,
    rows: usize,
    file: TableFile,
}

impl<C: Columns> Table<C> {
    /// Makes the folder and the file.
    pub(super) fn create(path: &Path, columns: C) -> Result<Table<C>, EvalError> {
        let file = TableFile::create(path, Schema::new(columns.fields()))?;
        Ok(Table { columns, rows: 0, file })
    }

    /// `rows` more rows are in the columns.
    pub(super) fn added(&mut self, rows: usize) -> Result<(), EvalError> {
        self.rows += rows;
        if self.rows < ROWS_PER_GROUP { Ok(()) } else { self.write_group() }
    }

    /// Writes what is left and gives the file its name.
    pub(super) fn finish(mut self) -> Result<(), EvalError> {
        self.write_group()?;
        self.file.finish()
    }

    fn write_group(&mut self) -> Result<(), EvalError> {
        self.rows = 0;
        self.file.write_group(self.columns.take())
    }
}

/// A file on its way to disk.
struct TableFile {
    writer: ArrowWriter<Whole>,
    schema: SchemaRef,
    path: PathBuf,
}

impl TableFile {
    /// Makes the folder and the file, which has its name once it is whole.
    fn create(path: &Path, schema: Schema) -> Result<TableFile, EvalError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(EvalError::write("make the folder", folder))?;
        let file = Whole::replace(path).map_err(EvalError::write("make the file", path))?;
        let schema = Arc::new(schema);
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties(&schema)))
            .map_err(EvalError::table(path))?;
        Ok(TableFile { writer, schema, path: path.to_owned() })
    }

    /// Writes `columns` as one row group.
    fn write_group(&mut self, columns: Vec<ArrayRef>) -> Result<(), EvalError> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|source| EvalError::table(&self.path)(ParquetError::from(source)))?;
        self.writer.write(&batch).and_then(|()| self.writer.flush()).map_err(EvalError::table(&self.path))
    }

    /// Ends the file and gives it its name.
    fn finish(self) -> Result<(), EvalError> {
        let file = self.writer.into_inner().map_err(EvalError::table(&self.path))?;
        file.finish().map_err(EvalError::write("write", &self.path))
    }
}

/// How columns are stored: numbers rarely repeat, so that a dictionary would only cost time.
fn properties(schema: &Schema) -> WriterProperties {
    let level = ZstdLevel::try_new(1).expect("1 is a level of zstd");
    let mut properties = WriterProperties::builder()
        .set_created_by("airpace".to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(false);
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
    // The time of a row group lets readers skip those they do not want.
    properties.set_column_statistics_enabled(ColumnPath::from("time_ms"), EnabledStatistics::Chunk).build()
}
