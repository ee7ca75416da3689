//! Files that receive their name only when they are complete.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, BufWriter, Result, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use tempfile::TempPath;

use crate::special::{self, Target};

/// Suffix of the name of an incomplete file. This name starts with a dot and the file's final name.
const UNFINISHED: &str = ".part";

/// A file that is written under a temporary name in the same folder. An unfinished file is removed.
///
/// If the path is a pipe or a device, bytes are written directly.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    /// Path of the incomplete file; `None` for pipes and devices.
    unfinished: Option<TempPath>,
    out: BufWriter<File>,
}

impl Whole {
    /// Starts the file. It inherits the mode bits of the file that it replaces.
    ///
    /// # Errors
    /// The path is a link, a folder or a protected file, or nothing can be created in its folder.
    pub fn create(path: &Path) -> Result<Whole> {
        match special::look(path)? {
            Target::Stream(stream) => {
                Ok(Whole { path: path.to_owned(), unfinished: None, out: BufWriter::new(stream) })
            }
            Target::Plain => {
                let file = Whole::replace(path)?;
                if let Ok(before) = path.symlink_metadata() {
                    file.set_rights(before.permissions().mode() & 0o777)?;
                }
                Ok(file)
            }
        }
    }

    /// Starts a file in a trusted folder. When the file is complete, it replaces any object with its name; a link is
    /// itself replaced.
    ///
    /// # Errors
    /// Nothing can be created in its folder.
    pub fn replace(path: &Path) -> Result<Whole> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut prefix = OsString::from(".");
        prefix.push(path.file_name().unwrap_or_default());
        prefix.push(".");
        let mut refusal = None;
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(UNFINISHED)
            .make_in(folder, |path| {
                let file = File::options().read(true).write(true).create_new(true).open(path);
                file.inspect_err(|error| refusal = error.raw_os_error())
            })
            // `tempfile` adds the temporary name to the error; the user knows only the final name.
            .map_err(|error| refusal.map_or(error, io::Error::from_raw_os_error))?;
        let (file, unfinished) = file.into_parts();
        // The lock marks a file whose writer is alive. Some network file systems have no locks; incomplete files remain
        // there.
        let is_locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_locked {
            remove_abandoned(folder, path.file_name().unwrap_or_default(), MIN_AGE);
        }
        Ok(Whole { path: path.to_owned(), unfinished: Some(unfinished), out: BufWriter::new(file) })
    }

    /// Sets the file's mode bits, like `chmod`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_rights(&self, mode: u32) -> Result<()> {
        match self.unfinished {
            Some(_) => self.out.get_ref().set_permissions(Permissions::from_mode(mode)),
            None => Ok(()),
        }
    }

    /// Returns the file's final path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn filled_with(mut self, contents: &[u8]) -> Result<()> {
        self.write_all(contents)?;
        self.finish()
    }

    /// Renames the file to its final name, and replaces an existing file with that name.
    ///
    /// # Errors
    /// The remaining bytes cannot be written, or the file cannot be renamed.
    pub fn finish(mut self) -> Result<()> {
        self.out.flush()?;
        match self.unfinished.take() {
            Some(unfinished) => unfinished.persist(&self.path).map_err(|refused| refused.error),
            None => Ok(()),
        }
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }
}

/// Writes a file completely or not at all.
///
/// # Errors
/// The errors of [`Whole::create`] and [`Whole::finish`].
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    Whole::create(path)?.filled_with(contents.as_ref())
}

/// Writes a file in a trusted folder, completely or not at all.
///
/// # Errors
/// The errors of [`Whole::replace`] and [`Whole::finish`].
pub fn replace(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    Whole::replace(path)?.filled_with(contents.as_ref())
}

/// Minimum age of an incomplete file that is removed: the writer of a younger file may not have locked it yet.
const MIN_AGE: Duration = Duration::from_secs(60);

/// Maximum number of names that are checked for incomplete files, which limits the time in a large folder.
const MAX_CHECKED: usize = 4_096;

/// Removes incomplete files for this name whose writers were killed: files of this user that no process has locked.
fn remove_abandoned(folder: &Path, name: &OsStr, min_age: Duration) {
    let Ok(entries) = folder.read_dir() else { return };
    for entry in entries.take(MAX_CHECKED).flatten() {
        if unfinished(&entry.file_name()).map(OsStr::new) != Some(name) {
            continue;
        }
        let path = entry.path();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::open(&path, flags, Mode::empty()).map(File::from) else { continue };
        let is_ours = |about: &Metadata| {
            let age = about.modified().ok().and_then(|modified| modified.elapsed().ok());
            about.is_file()
                && about.nlink() == 1
                && about.uid() == rustix::process::geteuid().as_raw()
                && age.is_some_and(|age| age >= min_age)
        };
        let is_abandoned = file.metadata().is_ok_and(|about| is_ours(&about))
            && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_abandoned {
            let _ = std::fs::remove_file(&path);
        }
    }
}

/// Returns the final name of a file, if `name` is its temporary name from [`Whole`]. A killed process leaves such a file.
pub fn unfinished(name: &OsStr) -> Option<&str> {
    let (name, random) = name.to_str()?.strip_prefix('.')?.strip_suffix(UNFINISHED)?.rsplit_once('.')?;
    let is_random = random.len() == 6 && random.chars().all(|c| c.is_ascii_alphanumeric());
    (is_random && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_no_temporary_name() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            Whole::replace(&folder.path().join("missing/table")).expect_err("there is no such folder");
        assert_eq!(error.to_string(), io::Error::from_raw_os_error(2).to_string());
    }

    #[test]
    fn only_incomplete_files_of_killed_writers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in [".a.csv.Ab12Cd.part", ".b.csv.Ab12Cd.part", ".a.csv.part", "a.csv"] {
            std::fs::write(path(name), "left").unwrap();
        }
        std::os::unix::fs::symlink(path("a.csv"), path(".a.csv.Ab12Ce.part")).unwrap();
        let living = Whole::create(&path("a.csv")).unwrap();
        assert!(path(".a.csv.Ab12Cd.part").exists(), "it may be a moment old");
        remove_abandoned(folder.path(), OsStr::new("a.csv"), Duration::ZERO);
        assert!(!path(".a.csv.Ab12Cd.part").exists(), "its writer is gone");
        for name in [".b.csv.Ab12Cd.part", ".a.csv.part", ".a.csv.Ab12Ce.part"] {
            assert!(path(name).symlink_metadata().is_ok(), "{name} is none of its files");
        }
        living.filled_with(b"whole").expect("that of a living writer stays");
        assert_eq!(std::fs::read(path("a.csv")).unwrap(), b"whole");
    }
}
