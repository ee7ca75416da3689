//! Errors of run folders, tables and reports. Each message contains a remedy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpace_core::count::count;
use airpace_files::remedy;

/// Hint for a file of a run folder that cannot be read.
const IS_IT_A_RUN: &str = "is this a run folder, as `airpace sim --out DIR` makes it?";

/// Error of running, judging or reporting.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
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
    /// A folder is not empty and holds no run.
    #[error("`{}` is not empty and holds no run (no manifest.json); give --out another folder, or empty this one", path.display())]
    Occupied {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A run folder contains files that its run did not write.
    #[error(
        "`{}`{} is not what the run in this folder wrote, and would be in the way; move it elsewhere, or give --out another folder",
        path.display(), and_more(*more)
    )]
    Strangers {
        /// Path of the first such file.
        path: PathBuf,
        /// Number of further such files.
        more: usize,
    },
    /// The contents of a file of a run folder do not have the format of this version.
    #[error("`{}` is not what this version of airpace writes: {reason}; run the scenario again", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        reason: String,
    },
    /// A file of a sweep's folder is damaged.
    #[error("`{}` is damaged: {reason}; {remedy}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        reason: String,
        /// How to restore the file.
        remedy: &'static str,
    },
    /// A Parquet table could not be written or read.
    #[error("{}", table_failed(path, source))]
    Table {
        /// Path of the table.
        path: PathBuf,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },
    /// No figure with this name exists.
    #[error("no figure is called `{name}`; there are {}", crate::report::figures().join(", "))]
    NoFigure {
        /// The unknown name.
        name: String,
    },
    /// A page needs a table that was not kept in memory.
    #[error("table `{table}` was not kept, and figures are made from it; keep all tables")]
    NotKept {
        /// Name of the table.
        table: &'static str,
    },
    /// No table with this name exists.
    #[error("no table is called `{name}`; there are {}", crate::tables::TABLES.join(", "))]
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
    /// An expectation names a metric that does not exist.
    #[error("scenario {scenario}: `expect.metric` cannot be `{metric}`{instead}")]
    Metric {
        /// Name of the scenario.
        scenario: String,
        /// The unknown metric.
        metric: String,
        /// The most similar metric, and the list of all metrics.
        instead: String,
    },
    /// Several runs would write the same file of radio reports.
    #[error(
        "`device.{device}.reports` names one file, but {runs} runs would write it: give one --scheme and one seed (`--seeds 1`)"
    )]
    Reports {
        /// Index of the device in the scenario.
        device: usize,
        /// Number of runs of the scenario.
        runs: usize,
    },
    /// A file of radio reports cannot be written.
    #[error("cannot write `{}`; {}", path.display(), remedy(source, "--set device.N.reports=FILE"))]
    ReportFile {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Two scenarios of one matrix have the same name.
    #[error(
        "two scenarios are called `{name}`; tables are told apart by it: change `name` in one, or run them one by one"
    )]
    Twice {
        /// The name.
        name: String,
    },
    /// A scenario, or a file that it names, is invalid or cannot be read.
    #[error(transparent)]
    Scenario(#[from] airpace_sim::ScenarioError),
    /// A sweep is impossible as requested; the sentence contains the reason.
    #[error("{0}")]
    Sweep(String),
    /// Another process works on the sweep's folder.
    #[error("another sweep writes into `{}`; wait for its end, or give --out another folder", path.display())]
    Busy {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The listener stopped the runs. The manifest, if there is a folder, marks the run as incomplete.
    #[error("stopped; {ended} of {} had ended", count(*runs as u64, "run"))]
    Stopped {
        /// Number of runs that had ended.
        ended: usize,
        /// Number of all runs.
        runs: usize,
    },
    /// The simulator rejected a run or failed.
    #[error("{scenario} with {scheme}, seed {seed}: {reason}")]
    Run {
        /// Name of the scenario.
        scenario: String,
        /// The scheme under test, as spelled.
        scheme: String,
        /// The seed.
        seed: u64,
        /// The simulator's message.
        reason: String,
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
fn io_error_of<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e std::io::Error> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}

impl EvalError {
    /// The operating system's error that caused this error, if any.
    pub fn io_error(&self) -> Option<&std::io::Error> {
        io_error_of(self)
    }

    pub(crate) fn write(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> EvalError {
        let path = path.to_owned();
        move |source| EvalError::Write { doing, path, source }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> EvalError {
        let path = path.to_owned();
        move |source| EvalError::Read { path, source }
    }

    pub(crate) fn table(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> EvalError {
        let path = path.to_owned();
        move |source| EvalError::Table { path: path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_on_a_full_disk_is_named_with_the_remedy() {
        let full = std::io::Error::from(ErrorKind::StorageFull);
        let error = EvalError::table(Path::new("run/prbs/part.parquet"))(full.into());
        assert_eq!(
            error.to_string(),
            "cannot write table `run/prbs/part.parquet`; make room there, or choose another disk with --out DIR"
        );
        assert_eq!(error.io_error().map(std::io::Error::kind), Some(ErrorKind::StorageFull));
    }
}
