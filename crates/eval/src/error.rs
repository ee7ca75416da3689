//! Why a folder, a table or a report could not be made; each says what to do.

use std::path::{Path, PathBuf};

use airpace_files::remedy;

/// Why judging a run failed.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The operating system refused something.
    #[error("cannot {doing} `{}`; {}", path.display(), remedy(source, "--out DIR"))]
    Write {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of a run folder is missing or unreadable.
    #[error("cannot read `{}`; is this a run folder, as `airpace sim --out DIR` makes it?", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A folder holds other things than a run.
    #[error("`{}` is not empty and holds no run (no manifest.json); give --out another folder, or empty this one", path.display())]
    Occupied {
        /// Which.
        path: PathBuf,
    },
    /// A run folder holds what its run did not write.
    #[error(
        "`{}`{} is not what the run in this folder wrote, and would be in the way; move it elsewhere, or give --out another folder",
        path.display(), and_more(*more)
    )]
    Strangers {
        /// The first.
        path: PathBuf,
        /// How many more there are.
        more: usize,
    },
    /// A file of a run folder has another content than this version writes.
    #[error("`{}` is not what this version of airpace writes: {reason}; run the scenario again", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A Parquet table could not be written or read.
    #[error("table `{}` failed; is the disk full, or was the run interrupted?", path.display())]
    Table {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: parquet::errors::ParquetError,
    },
    /// A scheme named a value that it had not named at first, so that its table has no column for it.
    #[error(
        "flow {flow} names `{name}` for the first time at {time}; a scheme names the same values at every look"
    )]
    NewColumn {
        /// The flow.
        flow: u16,
        /// The value's name.
        name: String,
        /// When.
        time: airpace_core::Time,
    },
    /// An expectation names a metric that does not exist.
    #[error("scenario {scenario}: `expect.metric` cannot be `{metric}`{instead}")]
    Metric {
        /// The scenario.
        scenario: String,
        /// The name.
        metric: String,
        /// What was meant, and those that exist.
        instead: String,
    },
    /// A file of radio reports would be written by several runs.
    #[error(
        "`device.{device}.reports` names one file, but {runs} runs would write it: give one --scheme and one seed (`--seeds 1`)"
    )]
    Reports {
        /// The device, by its place.
        device: usize,
        /// How many runs there are of its scenario.
        runs: usize,
    },
    /// A file of radio reports cannot be written.
    #[error("cannot write `{}`; {}", path.display(), remedy(source, "--set device.N.reports=FILE"))]
    ReportFile {
        /// Which.
        path: PathBuf,
        /// Why not.
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
    /// The listener stopped the runs; the folder, if there is one, says that it is incomplete.
    #[error("stopped; {ended} of {runs} runs had ended")]
    Stopped {
        /// How many runs had come to their end.
        ended: usize,
        /// How many there are.
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
        /// What it says.
        reason: String,
    },
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}

impl EvalError {
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
