//! Files with secrets, such as keys.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

/// Creates a file that only its owner can read, with these bytes. Links in the folders of its path are followed.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if an object has that name already, possibly a link; or the system refuses.
pub fn new_secret(path: &Path, contents: &[u8]) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(0o600))?);
    file.write_all(contents)?;
    file.sync_all()
}

/// Returns the text of a file of at most `max_bytes` bytes that belongs to this user and is not accessible to others.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] with a remedy if others could read or change it; otherwise the errors of
/// [`crate::open`].
pub fn read_secret(path: &Path, max_bytes: u64) -> Result<String> {
    let file = crate::open(path)?;
    let about = file.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    if about.uid() != user && about.uid() != 0 {
        let reason = format!(
            "it belongs to another user (number {}); a key must be in a file of your own",
            about.uid()
        );
        return Err(Error::new(ErrorKind::PermissionDenied, reason));
    }
    if about.mode() & 0o077 != 0 {
        let reason = format!("others may read or change it; type: chmod 600 '{}'", path.display());
        return Err(Error::new(ErrorKind::PermissionDenied, reason));
    }
    crate::text_at_most(file, max_bytes)
}
