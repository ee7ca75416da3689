//! Radio samples, read piece by piece from SigMF recordings, raw files and pipes, and written to recordings.
//!
//! | module | purpose |
//! | --- | --- |
//! | `locate` | the files that a name refers to: samples, their description, an archive of both |
//! | `meta` | the contents of a description |
//! | `bytes` | bytes of a file or pipe, decompressed if they are zstd |
//! | `reader` | conversion of bytes to samples, with detection of missing ones |
//! | `doubt` | detection of samples that do not match their format |
//! | `source` | the common interface of sources of samples |
//! | `joined` | several sources as the antennas of one receiver |
//! | `pace` | recordings at the pace at which they were received |
//! | `format` | the encoding of a sample |
//! | `writer`, `recorded` | writing of a recording, directly or while a source is read |
//!
//! Source: SigMF specification 1.2 (<https://sigmf.org>)

mod bytes;
mod doubt;
mod format;
mod joined;
mod locate;
mod meta;
mod pace;
mod reader;
mod recorded;
mod source;
mod writer;

use airpace_core::Remedy;
pub use doubt::Doubt;
pub use format::{Format, NoFormat};
pub use joined::Joined;
pub use locate::files_of;
pub use meta::{MAX_ANTENNAS, Meta, Segment};
pub use pace::{Lag, Paced};
pub use reader::{Flaw, Piece, Reader};
pub use recorded::Recorded;
pub use source::{Source, Until};
pub use writer::Writer;

use std::path::{Path, PathBuf};

/// Error of reading or writing samples.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened or read.
    #[error("cannot read {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system. The cause is part of this error's message. Therefore it is not the error's
        /// `source`, which would be printed again.
        cause: std::io::Error,
    },
    /// The file could not be created or written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system, which is part of this error's message.
        cause: std::io::Error,
    },
    /// A SigMF description is not JSON.
    #[error("{} is not JSON: line {line}, column {column}: {what}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Line number.
        line: usize,
        /// Column in the line.
        column: usize,
        /// The expected syntax.
        what: String,
    },
    /// A field of a SigMF description is missing or has an invalid value.
    #[error("{}: {field}: {what}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// The error, and the expected value.
        what: String,
    },
    /// Raw samples without their rate or format.
    #[error("{}: raw samples have no description", path.display())]
    Undescribed {
        /// The file.
        path: PathBuf,
        /// The remedy: rate and format.
        #[source]
        remedy: Remedy,
    },
    /// There is no description next to the samples.
    #[error("{}: there is no {} beside it", path.display(), meta.display())]
    NoMeta {
        /// The file of samples.
        path: PathBuf,
        /// The missing description.
        meta: PathBuf,
        /// The remedy: rate and format.
        #[source]
        remedy: Remedy,
    },
    /// There are no samples next to the description.
    #[error("{}: the samples it describes are missing: there is no {}", meta.display(), data.display())]
    NoData {
        /// The description.
        meta: PathBuf,
        /// The missing file of samples.
        data: PathBuf,
    },
    /// An archive does not contain exactly one recording.
    #[error("{}: {what}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The archive's contents, and the remedy.
        what: String,
    },
    /// The recordings cannot be the antennas of one receiver.
    #[error("{names}: {what}")]
    Join {
        /// Names of the recordings.
        names: String,
        /// The reason, and the remedy.
        what: String,
    },
    /// A radio cannot be opened, cannot be configured as requested, or returns no more samples.
    #[error("{device}: {what}")]
    Radio {
        /// Name of the radio.
        device: String,
        /// The error.
        what: String,
        /// The remedy.
        #[source]
        remedy: Option<Remedy>,
    },
}

impl Error {
    /// Adds a remedy to the error of a radio.
    #[cfg(feature = "sdr")]
    pub(crate) fn but(self, remedy: Remedy) -> Error {
        match self {
            Error::Radio { device, what, .. } => Error::Radio { device, what, remedy: Some(remedy) },
            other => other,
        }
    }

    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |cause| Error::Io { path: path.to_owned(), cause }
    }

    fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |cause| Error::Write { path: path.to_owned(), cause }
    }
}
