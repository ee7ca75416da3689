//! Errors of runs, sweeps and their folders. Each message contains a remedy.

use std::path::PathBuf;

use airpace_core::count::count;
use airpace_files::remedy;
use airpace_tables::error::{FileError, io_error_of};

/// Error of running or judging.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of a run folder cannot be written or read.
    #[error(transparent)]
    File(#[from] FileError),
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
        /// The common name of the scenarios.
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

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}

impl RunError {
    /// The operating system's error that caused this error, if any.
    pub fn io_error(&self) -> Option<&std::io::Error> {
        io_error_of(self)
    }
}
