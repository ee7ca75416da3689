//! Folders that can be changed by this user only.

use std::fs::DirBuilder;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Mode bits for write access by the group and by everyone.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Mode bit of a folder in which everyone may create files, but only owners may remove theirs.
const STICKY: u32 = 0o1000;

/// Returns whether a folder with this name exists that only this user can change: no link, owned by this user (or by
/// root), and not writable by others. Returns `false` if nothing has the name.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] if another kind of object has the name; the text states which.
pub fn is_own_folder(path: &Path) -> Result<bool> {
    let refuse = |reason: String| Err(Error::new(ErrorKind::PermissionDenied, reason));
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if !about.is_dir() {
        return refuse("it is a link or a file, and must be a folder of this user; remove it".to_owned());
    }
    let user = rustix::process::geteuid().as_raw();
    if about.uid() != user && about.uid() != 0 {
        return refuse(format!(
            "it belongs to another user (number {}), who could exchange what lies there; remove it, or run as that user",
            about.uid()
        ));
    }
    if about.mode() & WRITTEN_BY_OTHERS != 0 {
        return refuse("others may write there; remove it, or type: chmod go-w on it".to_owned());
    }
    Ok(true)
}

/// Creates a folder with mode 0700 if nothing has the name, and checks it like [`is_own_folder`]. The parent folder must
/// not let others rename it: it is owned by this user or root, and is writable by others only with the sticky bit.
///
/// # Errors
/// The errors of [`is_own_folder`], or the system refuses.
pub fn make_own_folder(path: &Path) -> Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let about = above.metadata()?;
    let user = rustix::process::geteuid().as_raw();
    let is_shared = about.mode() & WRITTEN_BY_OTHERS != 0 && about.mode() & STICKY == 0;
    if is_shared || (about.uid() != user && about.uid() != 0) {
        let reason = format!("other users may rename what lies in `{}`", above.display());
        return Err(Error::new(ErrorKind::PermissionDenied, reason));
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // The folder may have existed before.
    is_own_folder(path).map(drop)
}
