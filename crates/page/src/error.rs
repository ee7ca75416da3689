//! Errors of pages.

use airpace_run::RunError;
use airpace_tables::FileError;

/// Error of making a page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A file of the folder cannot be read, or the page cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder is not a run folder.
    #[error(transparent)]
    Run(#[from] RunError),
    /// No figure with this name exists.
    #[error("no figure is called `{name}`; there are {}", known.join(", "))]
    NoFigure {
        /// The unknown name.
        name: String,
        /// Names of the figures that exist.
        known: Vec<&'static str>,
    },
}
