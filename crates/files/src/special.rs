//! Writing at a name that does not belong to a plain file.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Whether a path names a file that this process has already open: such names are links, but the system's own.
fn is_own(path: &Path) -> bool {
    let numbered = ["/dev/fd/", "/proc/self/fd/"];
    let text = path.to_str().unwrap_or_default();
    let number = numbered.iter().find_map(|folder| text.strip_prefix(folder));
    ["/dev/stdout", "/dev/stderr"].contains(&text)
        || number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The target of a write to a path.
pub enum Target {
    /// A pipe, a terminal or another device, open for writing: bytes go there at once.
    Stream(File),
    /// A plain file, which may exist already.
    Plain,
}

/// Looks at what the path names.
///
/// # Errors
/// If it is a link, a folder, a disk or a path without a name, or if the system refuses.
pub fn look(path: &Path) -> Result<Target> {
    if is_own(path) {
        // If it leads to a plain file, that file has been written to already.
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
            // Replacing the file by name would work even where writing to it is not allowed.
            rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?;
            Ok(Target::Plain)
        }
        kind if kind.is_fifo() || kind.is_char_device() => stream(path).map(Target::Stream),
        kind if kind.is_symlink() => Err(link(path)),
        kind if kind.is_dir() => Err(Error::new(ErrorKind::IsADirectory, "it is a folder")),
        _ => Err(Error::new(ErrorKind::InvalidInput, "it is a disk or a socket")),
    }
}

/// Opening a pipe waits for its reader.
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

/// The error for a link: nothing is written through it.
pub fn link(path: &Path) -> Error {
    let target = path.read_link().unwrap_or_default();
    Error::new(
        ErrorKind::InvalidInput,
        format!("it is a link to `{}`; if that is meant, give its own name", target.display()),
    )
}
