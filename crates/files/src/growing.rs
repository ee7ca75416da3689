//! Files that others read while they grow.

use std::fs::File;
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::special::{self, Target};

/// A file that is written in place, so that who follows it sees it grow. What it held before goes when its first bytes come.
#[derive(Debug)]
pub struct Growing {
    path: PathBuf,
    out: BufWriter<File>,
    /// A plain file that holds what was there before.
    holds_others: bool,
}

impl Growing {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// A link or a folder at its name, a file with another name (a hard link), or what the system refuses.
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

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Empties it now: what was in it is of another time.
    ///
    /// # Errors
    /// If it cannot be emptied.
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
