//! A file that a stranger gets.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;

use crate::private_key::{self, CONTEXT};

/// Bytes that are examined at once.
///
/// Chosen: two reads of a transfer, so that the bytes that are examined twice are an eighth.
const STEP: usize = 128 << 10;

/// A plain file whose bytes are examined before they are given: none is given from a private key on.
///
/// Examining takes 160 KiB of memory, whatever the file's length is. Bytes are examined in order from the file's first one. If
/// a reader starts further behind, all before it is examined first.
#[derive(Debug)]
pub struct HandedOut {
    file: File,
    /// Bytes from the start of the file that hold no key.
    examined: u64,
}

impl HandedOut {
    /// A file whose first bytes, so many, were examined before.
    pub(crate) fn new(file: File, examined: u64) -> Result<HandedOut> {
        let mut handed_out = HandedOut { file, examined };
        if examined == 0 {
            handed_out.examine(0)?;
        }
        Ok(handed_out)
    }

    /// What the system says of the file.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn metadata(&self) -> Result<Metadata> {
        self.file.metadata()
    }

    /// Bytes that were examined so far. With this number, the same file may be opened again
    /// ([`Inside::hand_out_again`](crate::Inside::hand_out_again)).
    pub fn examined(&self) -> u64 {
        self.examined
    }

    /// Reads from this offset on. Returns the number of bytes; 0 at the end of the file.
    ///
    /// # Errors
    /// With [`ErrorKind::PermissionDenied`] if a private key starts before the end of what would be read; or if the
    /// system refuses.
    pub fn read_at(&mut self, into: &mut [u8], at: u64) -> Result<usize> {
        self.examine(at.saturating_add(into.len() as u64))?;
        loop {
            match self.file.read_at(into, at) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Examines the file up to this offset at least, if it is as long.
    fn examine(&mut self, until: u64) -> Result<()> {
        let mut part = Vec::new();
        while self.examined < until || self.examined == 0 {
            // Each part begins with the last bytes of the part before it and ends with the first of the next one, so that a
            // key across a border is found.
            let from = self.examined.saturating_sub(CONTEXT as u64);
            part.resize((self.examined - from) as usize + STEP + CONTEXT, 0);
            let filled = fill(&self.file, &mut part, from)?;
            if private_key::is_in(&part[..filled], from) {
                return Err(Error::new(
                    ErrorKind::PermissionDenied,
                    "it holds a private key, which is never handed out; move it out of the folder",
                ));
            }
            let is_all = filled < part.len();
            self.examined = if is_all { from + filled as u64 } else { self.examined + STEP as u64 };
            if is_all {
                break;
            }
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &File, into: &mut [u8], at: u64) -> Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
