//! Errors of the files of a run: tables, and all other files of its folder. Errors of the system have a remedy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpace_core::remedy::{Remedy, UserTask};
use airpace_files::remedy;

/// Error of a file of a run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused an operation.
    #[error("cannot {doing} `{}`", path.display())]
    Write {
        /// The operation.
        doing: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// The remedy. Its `source()` is the error that the operating system returned.
        #[source]
        remedy: Remedy,
    },
    /// A file of a run folder is missing or unreadable.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The remedy. Its `source()` is the error that the operating system returned.
        #[source]
        remedy: Remedy,
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
    #[error("cannot write or read table `{}`", path.display())]
    Table {
        /// Path of the table.
        path: PathBuf,
        /// The remedy. Its `source()` is the error that the Parquet library returned.
        #[source]
        remedy: Remedy,
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

/// The remedy for a failed table.
fn table_remedy(source: &parquet::errors::ParquetError) -> Remedy {
    match io_error_of(source) {
        Some(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            remedy(error, "out")
        }
        _ => Remedy::new("is the disk full, or was the run interrupted?"),
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

    /// Whether a file of a run folder does not exist.
    pub fn is_missing_file(&self) -> bool {
        let missing = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
        matches!(self, FileError::Read { .. }) && self.io_error().is_some_and(missing)
    }

    /// Converts an error of the operating system from writing `path`. `doing` is the operation, such as "make the folder".
    pub fn write(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> FileError {
        let path = path.to_owned();
        move |source| FileError::Write { doing, path, remedy: remedy(&source, "out").caused_by(source) }
    }

    /// Converts an error of the operating system from reading `path`.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> FileError {
        let path = path.to_owned();
        move |source| {
            let remedy = match airpace_files::limit(&source) {
                Some(limit) => Remedy::new(limit),
                None => Remedy::new("is this a run folder, as made by")
                    .task(UserTask::Simulate)
                    .text("with")
                    .parameter("out")
                    .text("?"),
            };
            FileError::Read { path, remedy: remedy.caused_by(source) }
        }
    }

    /// Converts an error of the Parquet library about the table at `path`.
    pub fn table(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> FileError {
        let path = path.to_owned();
        move |source| FileError::Table { path: path.clone(), remedy: table_remedy(&source).caused_by(source) }
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::remedy::explain_plainly;

    use super::*;

    #[test]
    fn a_table_on_a_full_disk_is_named_with_the_remedy() {
        let full = std::io::Error::from(ErrorKind::StorageFull);
        let error = FileError::table(Path::new("run/prbs/part.parquet"))(full.into());
        let text = explain_plainly(&error);
        assert!(text.starts_with("cannot write or read table `run/prbs/part.parquet`: "), "{text}");
        assert!(text.ends_with("; make room there, or choose another disk with `out`"), "{text}");
        assert_eq!(error.io_error().map(std::io::Error::kind), Some(ErrorKind::StorageFull));
    }
}
