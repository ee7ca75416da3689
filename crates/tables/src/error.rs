//! Errors of the files of a run: tables, and all other files of its folder. Each message contains a remedy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpace_files::remedy;

/// Hint for a file of a run folder that cannot be read.
const IS_IT_A_RUN: &str = "is this a run folder, as `airpace sim --out DIR` makes it?";

/// Error of a file of a run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused an operation.
    #[error("cannot {doing} `{}`; {}", path.display(), remedy(source, "--out DIR"))]
    Write {
        /// The operation.
        doing: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A file of a run folder is missing or unreadable.
    #[error("cannot read `{}`; {}", path.display(), airpace_files::limit(source).unwrap_or(IS_IT_A_RUN))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The contents of a file of a run folder do not have the format of this version.
    #[error("`{}` is not what this version of airpace writes: {reason}; run the scenario again", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        reason: String,
    },
    /// A Parquet table could not be written or read.
    #[error("{}", table_failed(path, source))]
    Table {
        /// Path of the table.
        path: PathBuf,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },
    /// A page needs a table that was not kept in memory.
    #[error("table `{table}` was not kept, and figures are made from it; keep all tables")]
    NotKept {
        /// Name of the table.
        table: &'static str,
    },
    /// No table with this name exists.
    #[error("no table is called `{name}`; there are {}", crate::TABLES.join(", "))]
    NoTable {
        /// The unknown name.
        name: String,
    },
    /// A scheme reported a value that it had not named at the start, so the table has no column for this value.
    #[error(
        "flow {flow} names `{name}` for the first time at {time}; a scheme names the same values at every look"
    )]
    NewColumn {
        /// Index of the flow.
        flow: u16,
        /// Name of the value.
        name: String,
        /// Time at which the scheme reported the value.
        time: airpace_core::Time,
    },
}

/// Message about a failed table, with the remedy.
fn table_failed(path: &Path, source: &parquet::errors::ParquetError) -> String {
    match io_error_of(source) {
        Some(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            format!("cannot write table `{}`; {}", path.display(), remedy(error, "--out DIR"))
        }
        _ => format!("table `{}` failed; is the disk full, or was the run interrupted?", path.display()),
    }
}

/// The operating system's error in the chain of sources of an error.
pub fn io_error_of<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e std::io::Error> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
}

impl FileError {
    /// The operating system's error that caused this error, if any.
    pub fn io_error(&self) -> Option<&std::io::Error> {
        io_error_of(self)
    }

    /// Converts an error of the operating system from writing `path`. `doing` is the operation, such as "make the folder".
    pub fn write(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> FileError {
        let path = path.to_owned();
        move |source| FileError::Write { doing, path, source }
    }

    /// Converts an error of the operating system from reading `path`.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> FileError {
        let path = path.to_owned();
        move |source| FileError::Read { path, source }
    }

    /// Converts an error of the Parquet library about the table at `path`.
    pub fn table(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> FileError {
        let path = path.to_owned();
        move |source| FileError::Table { path: path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_on_a_full_disk_is_named_with_the_remedy() {
        let full = std::io::Error::from(ErrorKind::StorageFull);
        let error = FileError::table(Path::new("run/prbs/part.parquet"))(full.into());
        assert_eq!(
            error.to_string(),
            "cannot write table `run/prbs/part.parquet`; make room there, or choose another disk with --out DIR"
        );
        assert_eq!(error.io_error().map(std::io::Error::kind), Some(ErrorKind::StorageFull));
    }
}
