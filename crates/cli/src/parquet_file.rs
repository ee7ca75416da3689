//! Parquet files that `--parquet` names, and the errors if they cannot be written.

use std::path::Path;

use airpace_core::Refused;
use airpace_tables::{FileError, ParquetFile};
use arrow_schema::Field;

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
    let Some(remedy) = error.io_error().map(|error| airpace_files::remedy(error, "parquet")) else {
        return error.into();
    };
    match &error {
        FileError::Table { path, .. } | FileError::Write { path, .. } => {
            let cause = error.io_error().map(ToString::to_string).unwrap_or_default();
            Refused::new(format!("cannot write `{}`: {cause}", path.display())).but(remedy).into()
        }
        _ => error.into(),
    }
}
