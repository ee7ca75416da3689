//! Errors of experiments.

use std::io;
use std::path::{Path, PathBuf};

use airpace_core::Refused;
use airpace_emu::EmuError;
use airpace_run::RunError;
use airpace_sim::ScenarioError;
use airpace_tables::FileError;

/// Error of an experiment.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The emulator could not carry out a step.
    #[error(transparent)]
    Emu(#[from] EmuError),
    /// The results cannot be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run in virtual time failed.
    #[error(transparent)]
    Simulation(#[from] airpace_sim::RunError),
    /// A file of the results cannot be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The scenario, or a file that it names, is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A scheme is unknown, or its options are invalid.
    #[error(transparent)]
    Scheme(#[from] airpace_cc::SchemeError),
    /// The folder for the results cannot be written.
    #[error("cannot write into `{}`; choose another folder", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The operating system refused a step.
    #[error("{step}")]
    System {
        /// The step that failed, as a sentence.
        step: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// A thread of the experiment panicked.
    #[error("the thread `{0}` failed; please report this")]
    Thread(&'static str),
    /// The experiment was interrupted before its end.
    #[error("interrupted")]
    Interrupted,
    /// A request that cannot be fulfilled, or a result that cannot be used: one sentence.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A program of the experiment failed.
    #[error("{said}")]
    Program {
        /// The failure, and the output of the program.
        said: String,
    },
}

impl LabError {
    /// For `map_err`: a request that cannot be fulfilled, with the facts and remedies of another error.
    pub(crate) fn refused(error: impl std::error::Error + 'static) -> LabError {
        LabError::Refused(Refused::of(&error))
    }

    /// For `map_err`: the error of a step that the operating system refused.
    pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        let step = step.into();
        move |source| LabError::System { step, source }
    }

    /// For `map_err`: the error of a folder that cannot be written.
    pub(crate) fn folder(path: &Path) -> impl FnOnce(io::Error) -> LabError {
        let path = path.to_owned();
        move |source| LabError::Folder { path, source }
    }
}

/// Returns an error about a request that cannot be fulfilled; the arguments are those of `format!`.
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err($crate::error::LabError::Refused(format!($($text)*).into()))
    };
}
pub(crate) use refuse;
