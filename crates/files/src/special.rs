//! Writing to paths that are not plain files.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Returns whether a path names an open file of this process: such paths are links, but the system itself made them.
fn is_own(path: &Path) -> bool {
    let numbered = ["/dev/fd/", "/proc/self/fd/"];
    let text = path.to_str().unwrap_or_default();
    let number = numbered.iter().find_map(|folder| text.strip_prefix(folder));
    ["/dev/stdout", "/dev/stderr"].contains(&text)
        || number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The target of a write to a path.
pub enum Target {
    /// A pipe, a terminal or another device, open for writing; bytes are written directly.
    Stream(File),
    /// A plain file, which may exist already.
    Plain,
}

/// Determines the kind of object at a path.
///
/// # Errors
/// The path is a link, a folder, a disk or has no file name, or the system refuses.
pub fn look(path: &Path) -> Result<Target> {
    if is_own(path) {
        // If the open file is a plain file, this process has already written to it.
        return File::options().append(true).open(path).map(Target::Stream);
    }
    if path.file_name().is_none() {
        return Err(Error::new(ErrorKind::InvalidInput, "this path ends without the name of a file"));
    }
    let about = match path.symlink_metadata() {
        Ok(about) => about.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Target::Plain),
        Err(error) => return Err(error),
    };
    match about {
        kind if kind.is_file() => {
            // Replacing the file by name would succeed even without the right to write to it.
            rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?;
            Ok(Target::Plain)
        }
        kind if kind.is_fifo() || kind.is_char_device() => stream(path).map(Target::Stream),
        kind if kind.is_symlink() => Err(link(path)),
        kind if kind.is_dir() => Err(Error::new(ErrorKind::IsADirectory, "it is a folder")),
        _ => Err(Error::new(ErrorKind::InvalidInput, "it is a disk or a socket")),
    }
}

/// Opens a pipe or a device. Opening a pipe blocks until it has a reader.
fn stream(path: &Path) -> Result<File> {
    let file = File::from(rustix::fs::open(
        path,
        OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY,
        Mode::empty(),
    )?);
    if file.metadata()?.is_file() {
        return Err(Error::other("it became a plain file in this moment"));
    }
    Ok(file)
}

/// Returns the error for a link: writes do not follow links.
pub fn link(path: &Path) -> Error {
    let target = path.read_link().unwrap_or_default();
    Error::new(
        ErrorKind::InvalidInput,
        format!("it is a link to `{}`; if that is meant, give its own name", target.display()),
    )
}
