//! Radio samples piece by piece: from files, SigMF recordings and raw ones, and into them.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `locate` | which files a name means: samples, their description, an archive of both |
//! | `meta` | what a description says |
//! | `bytes` | bytes of a file, a pipe, or what zstd made of either |
//! | `reader` | bytes to samples, with what is missing |
//! | `doubt` | whether samples look like their format |
//! | `source` | whatever gives samples |
//! | `joined` | several sources as the antennas of one receiver |
//! | `pace` | recordings as slowly as they were received |
//! | `format` | how a sample is written |
//! | `writer`, `recorded` | samples into a recording, on their own or while they go by |
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

pub use doubt::Doubt;
pub use format::{Format, NoFormat};
pub use joined::Joined;
pub use locate::files_of;
pub use meta::{MOST_ANTENNAS, Meta, Segment};
pub use pace::{Lag, Paced};
pub use reader::{Flaw, Piece, Reader};
pub use recorded::Recorded;
pub use source::{Source, Until};
pub use writer::Writer;

use std::path::{Path, PathBuf};

/// Why samples cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened or read.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system. It is part of the message and so not a source, which would be printed again.
        cause: std::io::Error,
    },
    /// The file could not be made or written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system, as above.
        cause: std::io::Error,
    },
    /// A SigMF description is not JSON.
    #[error("{}: line {line}, column {column}: {what}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The column in the line.
        column: usize,
        /// What was expected.
        what: String,
    },
    /// A field of a SigMF description is missing or has an impossible value.
    #[error("{}: {field}: {what}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What is wrong, and what it should be.
        what: String,
    },
    /// Raw samples without their rate or format.
    #[error("{}: raw samples say nothing of themselves: give --rate (samples per second) and --format ({formats})", path.display(), formats = Format::NAMES)]
    Undescribed {
        /// Which file.
        path: PathBuf,
    },
    /// There is no description next to the samples.
    #[error("{}: there is no {} beside it; give --rate and --format to read it as raw samples", path.display(), meta.display())]
    NoMeta {
        /// The samples.
        path: PathBuf,
        /// The description that was looked for.
        meta: PathBuf,
    },
    /// There are no samples next to the description.
    #[error("{}: the samples it describes are missing: there is no {}", meta.display(), data.display())]
    NoData {
        /// The description.
        meta: PathBuf,
        /// The samples that were looked for.
        data: PathBuf,
    },
    /// An archive does not hold one recording.
    #[error("{}: {what}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What the archive holds, and what to do.
        what: String,
    },
    /// Recordings cannot be those of the antennas of one receiver.
    #[error("{names}: {what}")]
    Join {
        /// The recordings.
        names: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A radio cannot be opened, cannot listen as requested, or gives no more samples.
    #[error("{device}: {what}")]
    Radio {
        /// The radio.
        device: String,
        /// What is wrong, and what to do.
        what: String,
    },
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |cause| Error::Io { path: path.to_owned(), cause }
    }

    fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |cause| Error::Write { path: path.to_owned(), cause }
    }
}
