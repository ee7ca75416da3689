//! Files that grow while other programs read them.

use std::fs::File;
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::special::{self, Target};

/// A file that is written in place, so that readers see its growth. Its previous content is removed when the first new
/// bytes are written.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    out: BufWriter<File>,
    /// Whether this is a plain file that still has its previous content.
    holds_others: bool,
}

impl Growing {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// The path is a link or a folder, the file has a second name (a hard link), or the system refuses.
    pub fn open(path: &Path) -> Result<Growing> {
        let (file, holds_others) = match special::look(path)? {
            Target::Stream(stream) => (stream, false),
            Target::Plain => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = rustix::fs::open(path, flags, Mode::from_raw_mode(0o666));
                let file = File::from(opened.map_err(|error| match error {
                    Errno::LOOP => special::link(path),
                    other => other.into(),
                })?);
                let about = file.metadata()?;
                if about.nlink() > 1 {
                    let reason = "it has another name too (a hard link), under which it would be overwritten; give a new name";
                    return Err(Error::new(ErrorKind::InvalidInput, reason));
                }
                (file, about.is_file() && about.len() > 0)
            }
        };
        Ok(Growing { path: path.to_owned(), out: BufWriter::new(file), holds_others })
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Empties the file now, because its content is outdated.
    ///
    /// # Errors
    /// The file cannot be emptied.
    pub fn begin(&mut self) -> Result<()> {
        match std::mem::take(&mut self.holds_others) {
            true => self.out.get_ref().set_len(0),
            false => Ok(()),
        }
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.begin()?;
        self.out.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }
}
