//! Parquet files as every command writes them: rows gather in memory until they make a row group.

use std::path::Path;
use std::sync::Arc;

use airpace_files::Whole;
use anyhow::Context;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::cmd::outputs;

/// Rows after which a row group is written.
pub const ROWS_PER_GROUP: usize = 1 << 15;

/// A Parquet file on its way to disk, where it has its name only once it is whole.
pub struct ParquetFile {
    name: String,
    schema: SchemaRef,
    /// None once the file is whole.
    writer: Option<ArrowWriter<Whole>>,
}

impl ParquetFile {
    /// Makes the file.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(path: &Path, fields: Vec<Field>) -> anyhow::Result<ParquetFile> {
        let name = path.display().to_string();
        let file = outputs::whole("--parquet", path)?;
        let level = ZstdLevel::try_new(1).expect("1 is a level of zstd");
        let properties = WriterProperties::builder()
            .set_created_by("airpace".to_owned())
            .set_compression(Compression::ZSTD(level))
            .build();
        let schema = Arc::new(Schema::new(fields));
        let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))?;
        Ok(ParquetFile { name, schema, writer: Some(writer) })
    }

    /// Writes a row group.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> anyhow::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        writer
            .write(&batch)
            .and_then(|()| writer.flush())
            .map_err(cause)
            .with_context(|| format!("cannot write `{}`", self.name))
    }

    /// Ends the file, which is valid without a row too.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn close(&mut self) -> anyhow::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let name = || format!("cannot write `{}`", self.name);
        writer.into_inner().map_err(cause).with_context(name)?.finish().with_context(name)
    }
}

/// What the system says, where that is behind it.
fn cause(error: ParquetError) -> anyhow::Error {
    match error {
        ParquetError::External(cause) => anyhow::anyhow!(cause),
        other => other.into(),
    }
}

/// A column of rows that gather: its name, what it holds so far, and whether it may hold nothing.
pub type Column = (&'static str, ArrayRef, bool);

/// Rows that gather column by column.
pub trait Rows: Default {
    /// All columns so far; none are left. Their types are the same every time.
    fn finish(&mut self) -> Vec<Column>;
}

/// A table on its way to disk.
pub struct ParquetRows<R> {
    file: ParquetFile,
    rows: R,
    count: usize,
}

impl<R: Rows> ParquetRows<R> {
    /// Makes the file.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(path: &Path) -> anyhow::Result<ParquetRows<R>> {
        let mut rows = R::default();
        // The columns of no rows say the types.
        let field =
            |(name, column, is_nullable): Column| Field::new(name, column.data_type().clone(), is_nullable);
        let fields = rows.finish().into_iter().map(field).collect();
        Ok(ParquetRows { file: ParquetFile::create(path, fields)?, rows, count: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If a row group cannot be written.
    pub fn add(&mut self, row: impl FnOnce(&mut R)) -> anyhow::Result<()> {
        row(&mut self.rows);
        self.count += 1;
        if self.count < ROWS_PER_GROUP { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.count = 0;
        self.file.write(self.rows.finish().into_iter().map(|(_, column, _)| column).collect())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        if self.count > 0 {
            self.write()?;
        }
        self.file.close()
    }
}
