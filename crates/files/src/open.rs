//! Opens files that a stranger may have prepared.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::special;

/// Opens a plain file for reading. It never waits, and follows no link.
///
/// # Errors
/// If its name is a link, a folder, a pipe or a device, or if the system refuses.
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

/// The text of a plain file of at most `most_bytes` bytes.
///
/// # Errors
/// As [`open`]; also if the file is longer, or is not text.
pub fn read_to_string(path: &Path, most_bytes: u64) -> Result<String> {
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    open(path)?.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {most_bytes} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error.utf8_error()))
}
