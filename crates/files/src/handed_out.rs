//! Files that are sent to other users, checked for private keys.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;

use crate::private_key::{self, CONTEXT};

/// Number of bytes that are examined in one step.
///
/// Chosen: two reads of a transfer, so that only an eighth of the bytes is examined twice.
const STEP: usize = 128 << 10;

/// A plain file whose bytes are examined before they are returned: no byte at or after the start of a private key is
/// returned.
///
/// The examination takes 160 KiB of memory for a file of any length. Bytes are examined in order from the start of the
/// file. If a read starts further behind, all bytes before it are examined first.
#[derive(Debug)]
pub struct HandedOut {
    file: File,
    /// Number of bytes from the start of the file that contain no key.
    examined: u64,
}

impl HandedOut {
    /// Wraps a file whose first `examined` bytes were examined before.
    pub(crate) fn new(file: File, examined: u64) -> Result<HandedOut> {
        let mut handed_out = HandedOut { file, examined };
        if examined == 0 {
            handed_out.examine(0)?;
        }
        Ok(handed_out)
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn metadata(&self) -> Result<Metadata> {
        self.file.metadata()
    }

    /// Returns the number of examined bytes. With this number, the same file may be opened again
    /// ([`Inside::hand_out_again`](crate::Inside::hand_out_again)).
    pub fn examined(&self) -> u64 {
        self.examined
    }

    /// Reads from this offset. Returns the number of bytes; 0 at the end of the file.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] if a private key starts before the end of the read range; or an error of the
    /// system.
    pub fn read_at(&mut self, into: &mut [u8], at: u64) -> Result<usize> {
        self.examine(at.saturating_add(into.len() as u64))?;
        loop {
            match self.file.read_at(into, at) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Examines the file at least up to this offset, or to its end.
    fn examine(&mut self, until: u64) -> Result<()> {
        let mut part = Vec::new();
        while self.examined < until || self.examined == 0 {
            // Each part starts with the last bytes of the previous part and ends with the first bytes of the next one, so
            // that a key across a boundary is found.
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
