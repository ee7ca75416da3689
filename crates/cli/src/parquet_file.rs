//! Parquet files that `--parquet` names, and the errors if they cannot be written.

use std::path::Path;

use airpace_tables::{FileError, ParquetFile};
use anyhow::anyhow;
use arrow_schema::Field;
use parquet::errors::ParquetError;

use crate::cmd::outputs;

/// Creates the file.
///
/// # Errors
/// The file cannot be created.
pub fn create(path: &Path, columns: Vec<Field>) -> anyhow::Result<ParquetFile> {
    ParquetFile::new(outputs::whole("--parquet", path)?, columns).map_err(refused)
}

/// The error if a file cannot be written. It contains the system's error if that is the cause, with the remedy.
pub fn refused(error: FileError) -> anyhow::Error {
    let remedy = error.io_error().map(|error| airpace_files::remedy(error, "--parquet"));
    let remedy = remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
    let (path, cause) = match error {
        FileError::Table { path, source: ParquetError::External(cause) } => (path, anyhow!(cause)),
        FileError::Table { path, source } => (path, source.into()),
        FileError::Write { path, source, .. } => (path, source.into()),
        other => return other.into(),
    };
    cause.context(format!("cannot write `{}`{remedy}", path.display()))
}
