//! Errors of runs, sweeps and their folders, with facts and remedies.

use std::path::{Path, PathBuf};

use airpace_core::count::count;
use airpace_core::{Refused, Remedy};
use airpace_tables::error::{FileError, io_error_of};

/// Error of running or judging.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of a run folder cannot be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder is not empty and holds no run.
    #[error("`{}` is not empty and holds no run (no manifest.json)", path.display())]
    Occupied {
        /// Path of the folder.
        path: PathBuf,
        /// The remedy: another folder, or an empty one.
        #[source]
        remedy: Remedy,
    },
    /// A run folder contains files that its run did not write.
    #[error(
        "`{}`{} is not what the run in this folder wrote, and would be in the way",
        path.display(), and_more(*more)
    )]
    Strangers {
        /// Path of the first such file.
        path: PathBuf,
        /// Number of further such files.
        more: usize,
        /// The remedy: another folder, or another place for the files.
        #[source]
        remedy: Remedy,
    },
    /// A file of a sweep's folder is damaged.
    #[error("`{}` is damaged: {reason}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        reason: String,
        /// How to restore the file.
        #[source]
        remedy: Remedy,
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
    #[error("`device.{device}.reports` names one file, but {runs} runs would write it")]
    Reports {
        /// Index of the device in the scenario.
        device: usize,
        /// Number of runs of the scenario.
        runs: usize,
        /// The remedy: one scheme and one seed.
        #[source]
        remedy: Remedy,
    },
    /// A file of radio reports cannot be written.
    #[error("cannot write `{}`", path.display())]
    ReportFile {
        /// Path of the file.
        path: PathBuf,
        /// The remedy. Its `source()` is the error that the operating system returned.
        #[source]
        remedy: Remedy,
    },
    /// Two scenarios of one matrix have the same name.
    #[error(
        "two scenarios are called `{name}`, but tables identify a scenario by its name: change `name` in one, or run \
         them one by one"
    )]
    Twice {
        /// The common name of the scenarios.
        name: String,
    },
    /// A scenario, or a file that it names, is invalid or cannot be read.
    #[error(transparent)]
    Scenario(#[from] airpace_sim::ScenarioError),
    /// A sweep is impossible as requested.
    #[error(transparent)]
    Sweep(#[from] Refused),
    /// Another process works on the sweep's folder.
    #[error("another sweep writes into `{}`", path.display())]
    Busy {
        /// Path of the folder.
        path: PathBuf,
        /// The remedy: another folder, or patience.
        #[source]
        remedy: Remedy,
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
    #[error("{scenario} with {scheme}, seed {seed}")]
    Run {
        /// Name of the scenario.
        scenario: String,
        /// The scheme under test, as spelled.
        scheme: String,
        /// The seed.
        seed: u64,
        /// The simulator's message.
        #[source]
        reason: Refused,
    },
}

/// The remedy to choose another folder.
pub(crate) fn another_folder() -> Remedy {
    Remedy::new("give").parameter("out").text("another folder")
}

fn and_more(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" (and {more} more)") }
}

impl RunError {
    /// Error about files that are in the way of a run's files.
    pub(crate) fn strangers(first: &Path, more: usize) -> RunError {
        let remedy = Remedy::new("move it elsewhere, or give").parameter("out").text("another folder");
        RunError::Strangers { path: first.to_owned(), more, remedy }
    }

    /// Error of writing a file of radio reports.
    pub(crate) fn report_file(path: &Path, error: std::io::Error) -> RunError {
        let remedy = airpace_files::remedy(&error, "device.N.reports").caused_by(error);
        RunError::ReportFile { path: path.to_owned(), remedy }
    }

    /// The operating system's error that caused this error, if any.
    pub fn io_error(&self) -> Option<&std::io::Error> {
        io_error_of(self)
    }
}
