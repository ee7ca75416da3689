//! Errors of Parquet files that `--parquet` names.

use airpace_core::Refused;
use airpace_tables::FileError;

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
