//! Folders that belong to this user alone.

use std::fs::DirBuilder;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Bits for others who may write a file or folder: its group, and everyone.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Everybody may put files there, and nobody may remove those of others.
const STICKY: u32 = 0o1000;

/// Whether there is a folder of this name that only this user can change: no link, owned by this user (or by root), and
/// not writable by others. `false` if nothing has the name.
///
/// # Errors
/// With [`ErrorKind::PermissionDenied`] if something else has the name: the sentence says what.
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

/// Makes a folder with mode 0700 if nothing has the name, and checks it as [`is_own_folder`] does. The folder above it must
/// be one in which nobody else can rename it: owned by this user or root, and writable by others only with the sticky bit.
///
/// # Errors
/// As [`is_own_folder`], or if the system refuses.
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
    // It may have been there before.
    is_own_folder(path).map(drop)
}
