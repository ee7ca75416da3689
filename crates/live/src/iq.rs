//! Radio samples in files: SigMF recordings and raw ones, read and written piece by piece.
//!
//! Source: SigMF specification 1.0 (<https://sigmf.org>)

mod format;
mod meta;
mod reader;
mod source;
mod writer;

pub use format::Format;
pub use meta::{Meta, Segment};
pub use reader::{Piece, Reader};
pub use source::{Source, Until};
pub use writer::Writer;

use std::path::PathBuf;

/// Why samples cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A SigMF description is not JSON.
    #[error("{}: line {line}, column {column}: {what}", path.display())]
    Json {
        /// Which.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
        /// What was expected.
        what: String,
    },
    /// A field of a SigMF description is missing or says what cannot be.
    #[error("{}: {field}: {what}", path.display())]
    Field {
        /// Which file.
        path: PathBuf,
        /// Which field.
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
    /// There is no description beside the samples.
    #[error("{}: there is no {} beside it; give --rate and --format to read it as raw samples", path.display(), meta.display())]
    NoMeta {
        /// The samples.
        path: PathBuf,
        /// The description that was looked for.
        meta: PathBuf,
    },
}

impl Error {
    fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_owned(), source }
    }
}
