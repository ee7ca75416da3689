//! Why a folder, a table or a report could not be made; each says what to do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpace_core::count::count;
use airpace_files::remedy;

/// What to ask if a file of a run folder cannot be read.
const IS_IT_A_RUN: &str = "is this a run folder, as `airpace sim --out DIR` makes it?";

/// Why judging a run failed.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The operating system refused something.
    #[error("cannot {doing} `{}`; {}", path.display(), remedy(source, "--out DIR"))]
    Write {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file of a run folder is missing or unreadable.
    #[error("cannot read `{}`; {}", path.display(), airpace_files::limit(source).unwrap_or(IS_IT_A_RUN))]
    Read {
        /// Which.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A folder is not empty and holds no run.
    #[error("`{}` is not empty and holds no run (no manifest.json); give --out another folder, or empty this one", path.display())]
    Occupied {
        /// Which.
        path: PathBuf,
    },
    /// A run folder holds files that its run did not write.
    #[error(
        "`{}`{} is not what the run in this folder wrote, and would be in the way; move it elsewhere, or give --out another folder",
        path.display(), and_more(*more)
    )]
    Strangers {
        /// The first such file.
        path: PathBuf,
        /// How many more there are.
        more: usize,
    },
    /// The content of a file of a run folder is not what this version writes.
    #[error("`{}` is not what this version of airpace writes: {reason}; run the scenario again", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of a sweep's folder is damaged.
    #[error("`{}` is damaged: {reason}; {remedy}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What makes it again.
        remedy: &'static str,
    },
    /// A Parquet table could not be written or read.
    #[error("{}", table_failed(path, source))]
    Table {
        /// Which.
        path: PathBuf,
        /// The reason.
        source: parquet::errors::ParquetError,
    },
    /// No figure has this name.
    #[error("no figure is called `{name}`; there are {}", crate::report::figures().join(", "))]
    NoFigure {
        /// The name.
        name: String,
    },
    /// A page needs a table that was not kept in memory.
    #[error("table `{table}` was not kept, and figures are made from it; keep all tables")]
    NotKept {
        /// Which.
        table: &'static str,
    },
    /// No table has this name.
    #[error("no table is called `{name}`; there are {}", crate::tables::TABLES.join(", "))]
    NoTable {
        /// The name.
        name: String,
    },
    /// A scheme showed a value that it had not named at the start, so its table has no column for that value.
    #[error(
        "flow {flow} names `{name}` for the first time at {time}; a scheme names the same values at every look"
    )]
    NewColumn {
        /// The flow.
        flow: u16,
        /// The value's name.
        name: String,
        /// When the scheme showed it.
        time: airpace_core::Time,
    },
    /// An expectation names a metric that does not exist.
    #[error("scenario {scenario}: `expect.metric` cannot be `{metric}`{instead}")]
    Metric {
        /// The scenario.
        scenario: String,
        /// The name.
        metric: String,
        /// The metric that was probably meant, and the metrics that exist.
        instead: String,
    },
    /// Several runs would write the same file of radio reports.
    #[error(
        "`device.{device}.reports` names one file, but {runs} runs would write it: give one --scheme and one seed (`--seeds 1`)"
    )]
    Reports {
        /// The device's index in the scenario.
        device: usize,
        /// How many runs there are of its scenario.
        runs: usize,
    },
    /// A file of radio reports cannot be written.
    #[error("cannot write `{}`; {}", path.display(), remedy(source, "--set device.N.reports=FILE"))]
    ReportFile {
        /// Which.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Two scenarios of one run have the same name.
    #[error(
        "two scenarios are called `{name}`; tables are told apart by it: change `name` in one, or run them one by one"
    )]
    Twice {
        /// The name.
        name: String,
    },
    /// A scenario's files cannot be read.
    #[error(transparent)]
    Scenario(#[from] airpace_sim::ScenarioError),
    /// A sweep cannot be as it was asked for; the sentence says why.
    #[error("{0}")]
    Sweep(String),
    /// Another process writes into the folder of a sweep.
    #[error("another sweep writes into `{}`; wait for its end, or give --out another folder", path.display())]
    Busy {
        /// Which.
        path: PathBuf,
    },
    /// The listener stopped the runs. The manifest of the folder, if there is one, says that the run is incomplete.
    #[error("stopped; {ended} of {} had ended", count(*runs as u64, "run"))]
    Stopped {
        /// How many runs had ended.
        ended: usize,
        /// How many runs there are.
        runs: usize,
    },
    /// The simulator refused or failed.
    #[error("{scenario} with {scheme}, seed {seed}: {reason}")]
    Run {
        /// The scenario.
        scenario: String,
        /// The scheme.
        scheme: String,
        /// The seed.
        seed: u64,
        /// The simulator's message.
        reason: String,
    },
}

/// What happened to a table, and the remedy.
fn table_failed(path: &Path, source: &parquet::errors::ParquetError) -> String {
    match io_error_of(source) {
        Some(error) if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            format!("cannot write table `{}`; {}", path.display(), remedy(error, "--out DIR"))
        }
        _ => format!("table `{}` failed; is the disk full, or was the run interrupted?", path.display()),
    }
}

/// The operating system's error among the reasons for an error.
fn io_error_of<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e std::io::Error> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}

impl EvalError {
    /// The operating system's error, if that is the reason.
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
