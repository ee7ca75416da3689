//! Opening of files that an untrusted user may have prepared.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::special;

/// Opens a plain file for reading. This never blocks, and follows no link.
///
/// # Errors
/// The path is a link, a folder, a pipe or a device, or the system refuses.
pub fn open(path: &Path) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let file = File::from(opened.map_err(|error| match error {
        rustix::io::Errno::LOOP => special::link(path),
        other => other.into(),
    })?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(Error::new(ErrorKind::InvalidInput, "it is no plain file"))
}

/// Returns the text of a plain file of at most `max_bytes` bytes.
///
/// # Errors
/// The errors of [`open`]; an error if the file is longer, or is not text.
pub fn read_to_string(path: &Path, max_bytes: u64) -> Result<String> {
    text_at_most(open(path)?, max_bytes)
}

/// Returns all bytes of a file, a pipe or a decoder, if there are at most `max_bytes`.
///
/// # Errors
/// [`ErrorKind::FileTooLarge`] if there are more bytes; or an error of the reader.
pub fn read_at_most(reader: impl Read, max_bytes: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The file's length is not sufficient: the file may grow while it is read.
    reader.take(max_bytes + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > max_bytes {
        true => Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {max_bytes} bytes"))),
        false => Ok(bytes),
    }
}

/// Returns all bytes as text, if there are at most `max_bytes`.
///
/// # Errors
/// The errors of [`read_at_most`]; [`ErrorKind::InvalidData`] if the text is not UTF-8.
pub fn text_at_most(reader: impl Read, max_bytes: u64) -> Result<String> {
    String::from_utf8(read_at_most(reader, max_bytes)?)
        .map_err(|error| Error::new(ErrorKind::InvalidData, error.utf8_error()))
}
