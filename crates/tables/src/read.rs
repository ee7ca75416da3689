//! Reads tables back, batch by batch. A run folder is untrusted input: a malformed table is an error and never causes a
//! panic.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type};
use arrow_array::{ArrayRef, RecordBatch, UInt16Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::memory::{self, Batches, Memory, key, keyed, keyed_schema};
use super::pages::ParquetTable;
use super::{TABLES, fields, known_fields, partition};
use crate::error::FileError;
use crate::facts::RunKey;

/// Maximum number of rows that a table may declare per byte of its file, and number of rows that every table may declare.
///
/// Chosen: the tables of a demo have at most 0.9 rows per byte. Without the limit, a file of a few bytes could declare
/// billions of rows.
const MAX_ROWS_PER_BYTE: u64 = 1_000;
const ROWS_OF_ANY: u64 = 1 << 20;

/// Location of the tables of runs.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A run folder with this root.
    Folder(&'a Path),
    /// Tables that are kept in memory.
    Memory(&'a Memory),
}

impl Source<'_> {
    /// The part of `table` that belongs to `run`. A table that was not kept in memory is an error.
    pub fn part(self, table: &'static str, run: RunKey<'_>) -> Result<Part, FileError> {
        match self {
            Source::Folder(root) => Ok(Part::of(root, table, run)),
            Source::Memory(memory) => {
                let rows = memory.table(table, &[run]);
                let rows = rows.ok_or(FileError::NotKept { table })?;
                Ok(Part { table, path: PathBuf::from(table), rows: Some(rows) })
            }
        }
    }
}

/// Part of a table that belongs to one run.
pub struct Part {
    table: &'static str,
    /// Path of the file, or the table's name if the rows are in memory.
    path: PathBuf,
    rows: Option<Batches>,
}

impl Part {
    /// The part of a table that this file contains.
    pub fn file(table: &'static str, path: PathBuf) -> Part {
        Part { table, path, rows: None }
    }

    /// The part of `table` that `run` wrote below the run folder `root`.
    pub fn of(root: &Path, table: &'static str, run: RunKey<'_>) -> Part {
        Part::file(table, partition(root, table, run).join("part.parquet"))
    }

    /// Whether the file of the table exists.
    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// The names of the table's columns.
    pub fn columns(&self) -> Result<Vec<String>, FileError> {
        if let Some(rows) = &self.rows {
            // The columns that identify the run come after the table's own columns.
            let own = rows.schema.fields().len().saturating_sub(memory::KEYS);
            return Ok(rows.schema.fields().iter().take(own).map(|field| field.name().clone()).collect());
        }
        Ok(self.open()?.schema().fields().iter().map(|field| field.name().clone()).collect())
    }

    /// Calls `each` with batches of the table's rows. The size of a batch is limited. All requested columns are present
    /// and have the types of this version. Batches from a file contain no other columns. If `each` rejects the rows, it
    /// returns the reason.
    pub fn for_each(
        &self,
        columns: &[&str],
        mut each: impl FnMut(&RecordBatch) -> Result<(), String>,
    ) -> Result<(), FileError> {
        if let Some(rows) = &self.rows {
            self.check_types(columns, &rows.schema)?;
            return rows
                .batches
                .iter()
                .try_for_each(|batch| each(batch).map_err(|reason| self.malformed(reason)));
        }
        let table = self.open()?;
        self.check_types(columns, table.schema())?;
        for batch in table.batches(Some(columns)).map_err(FileError::table(&self.path))? {
            let batch = batch
                .and_then(|batch| widened(batch, &known_fields(self.table)))
                .map_err(|error| FileError::table(&self.path)(ParquetError::from(error)))?;
            if let Some(missing) = columns.iter().find(|column| batch.column_by_name(column).is_none()) {
                return Err(self.malformed(format!("it has no column `{missing}`")));
            }
            each(&batch).map_err(|reason| self.malformed(reason))?;
        }
        Ok(())
    }

    fn check_types(&self, columns: &[&str], schema: &SchemaRef) -> Result<(), FileError> {
        let known = known_fields(self.table);
        for column in columns {
            let Ok(found) = schema.field_with_name(column) else {
                return Err(self.malformed(format!("it has no column `{column}`")));
            };
            let known = known.iter().find(|field| field.name() == column);
            // All other columns are values of the scheme, which are numbers.
            let wanted = known.map_or(&DataType::Float64, |field| field.data_type());
            if found.data_type() != wanted && !is_narrower(found.data_type(), wanted) {
                let reason = format!("its column `{column}` is {}, not {wanted}", found.data_type());
                return Err(self.malformed(reason));
            }
        }
        Ok(())
    }

    fn open(&self) -> Result<ParquetTable, FileError> {
        let file = airpace_files::open(&self.path).map_err(FileError::read(&self.path))?;
        let bytes = file.metadata().map_err(FileError::read(&self.path))?.len();
        let table = ParquetTable::open(file).map_err(FileError::table(&self.path))?;
        let rows = table.metadata().file_metadata().num_rows();
        let most = bytes.saturating_mul(MAX_ROWS_PER_BYTE).max(ROWS_OF_ANY);
        if u64::try_from(rows).is_ok_and(|rows| rows <= most) {
            self.check_places(table.metadata(), bytes)?;
            return Ok(table);
        }
        Err(self.malformed(format!("it claims to have {rows} rows in {bytes} bytes")))
    }

    /// Checks that the columns can be decompressed, and that they lie within the file. The Parquet library does not check
    /// the latter and would panic.
    fn check_places(&self, metadata: &ParquetMetaData, bytes: u64) -> Result<(), FileError> {
        for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
            if !matches!(column.compression(), Compression::UNCOMPRESSED | Compression::ZSTD(_)) {
                let (name, found) = (column.column_path().string(), column.compression());
                return Err(self.malformed(format!(
                    "its column `{name}` is compressed by {found}, and it reads ZSTD and tables without compression only"
                )));
            }
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let size = column.compressed_size();
            let end = u64::try_from(start).ok().zip(u64::try_from(size).ok());
            if end.is_none_or(|(start, size)| start + size > bytes) || column.num_values() < 0 {
                let name = column.column_path().string();
                let reason = format!(
                    "its column `{name}` lies at byte {start}, {size} long, but it has {bytes} bytes"
                );
                return Err(self.malformed(reason));
            }
        }
        Ok(())
    }

    /// An error about the rows of this part.
    pub fn malformed(&self, reason: String) -> FileError {
        FileError::Malformed { path: self.path.clone(), reason }
    }
}

/// Whether a column that an older version wrote with type `found` can be converted to `wanted`. Older versions stored
/// PRBs in columns of 8 bits.
fn is_narrower(found: &DataType, wanted: &DataType) -> bool {
    matches!((found, wanted), (DataType::UInt8, DataType::UInt16))
}

/// The rows, with each column converted to the type of this version.
fn widened(batch: RecordBatch, known: &[Field]) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let wanted = |field: &Field| {
        let known = known.iter().find(|known| known.name() == field.name())?;
        is_narrower(field.data_type(), known.data_type()).then(|| known.clone())
    };
    if !schema.fields().iter().any(|field| wanted(field).is_some()) {
        return Ok(batch);
    }
    let column = |(field, column): (&Arc<Field>, &ArrayRef)| match wanted(field) {
        Some(wide) => {
            let column = UInt16Array::from_unary(column.as_primitive::<UInt8Type>(), u16::from);
            (Arc::new(wide.with_nullable(field.is_nullable())), Arc::new(column) as ArrayRef)
        }
        None => (field.clone(), column.clone()),
    };
    let (fields, columns): (Vec<_>, Vec<_>) = schema.fields().iter().zip(batch.columns()).map(column).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// A categorical column: the distinct words, and for each row the index of its word.
pub struct Words {
    /// The distinct words. The last word is empty and belongs to rows without a word.
    words: Vec<String>,
    rows: Vec<usize>,
}

impl Words {
    /// Decodes a column of a batch from [`Part::for_each`].
    pub fn of(batch: &RecordBatch, column: &str) -> Words {
        let dictionary = batch[column].as_dictionary::<Int32Type>();
        let values = dictionary.values().as_string::<i32>();
        let mut words: Vec<String> = values.iter().map(|word| word.unwrap_or_default().to_owned()).collect();
        let none = words.len();
        words.push(String::new());
        let key = |key: Option<i32>| {
            key.and_then(|key| usize::try_from(key).ok()).filter(|key| *key < none).unwrap_or(none)
        };
        Words { words, rows: dictionary.keys().iter().map(key).collect() }
    }

    /// Maps each word to a value. [`Words::place`] returns the index of a row's word in the result.
    pub fn map<T>(&self, each: impl FnMut(&String) -> T) -> Vec<T> {
        self.words.iter().map(each).collect()
    }

    /// The index of a row's word among all words.
    pub fn place(&self, row: usize) -> usize {
        self.rows[row]
    }

    /// The word of a row.
    pub fn word(&self, row: usize) -> &str {
        &self.words[self.rows[row]]
    }
}

/// Reads a sweep's Parquet file with all columns unchanged. The rows are held in memory, so the file must have at least
/// one byte for each declared row; the metrics of a flow alone take more.
pub fn whole(path: &Path) -> Result<(SchemaRef, Vec<RecordBatch>), FileError> {
    let part = Part { table: "results", path: path.to_owned(), rows: None };
    let table = part.open()?;
    let rows = table.metadata().file_metadata().num_rows();
    let bytes = std::fs::metadata(path).map_err(FileError::read(path))?.len();
    if !u64::try_from(rows).is_ok_and(|rows| rows <= bytes) {
        return Err(part.malformed(format!("it claims to have {rows} rows in {bytes} bytes")));
    }
    let rows = table.batches(None).map_err(FileError::table(path))?.collect::<Result<Vec<_>, ArrowError>>();
    Ok((table.schema().clone(), rows.map_err(|error| FileError::table(path)(ParquetError::from(error)))?))
}

/// Reads a table of the run folder `root` into memory: the rows of these runs, one run after the other. The table is empty
/// if no run has it.
///
/// # Errors
/// No table has this name, or a file cannot be read or is not a table of a run.
pub fn read_table(root: &Path, table: &str, runs: &[RunKey<'_>]) -> Result<Batches, FileError> {
    let Some(table) = TABLES.iter().copied().find(|known| *known == table) else {
        return Err(FileError::NoTable { name: table.to_owned() });
    };
    let mut batches: Vec<RecordBatch> = vec![];
    for &run in runs {
        let part = Part::of(root, table, run);
        if !part.exists() {
            continue;
        }
        let columns = part.columns()?;
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        part.for_each(&columns, |batch| {
            let keyed = keyed(batch, &key(run)).map_err(|error| error.to_string())?;
            match batches.first() {
                Some(first) if first.schema().fields() != keyed.schema().fields() => {
                    return Err("its columns are not those of the other runs".to_owned());
                }
                _ => batches.push(keyed),
            }
            Ok(())
        })?;
    }
    let schema = batches.first().map_or_else(|| keyed_schema(&fields(table)), RecordBatch::schema);
    Ok(Batches { schema, batches })
}
