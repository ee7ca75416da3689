//! Errors of Parquet files that `--parquet` names.

use airpace_tables::FileError;
use anyhow::anyhow;
use parquet::errors::ParquetError;

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
