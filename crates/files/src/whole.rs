//! Files that have their name only once they are whole.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{BufWriter, Result, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::special::{self, Target};

/// How the name of a file ends that is not whole yet; it begins with a dot and the name that it will get.
const UNFINISHED: &str = ".part";

/// A file that is being written under another name beside its own. Where it is not ended, nothing of it is left.
///
/// A pipe or a device at its name is written to at once.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    /// `None` for pipes and devices.
    unfinished: Option<TempPath>,
    out: BufWriter<File>,
}

impl Whole {
    /// Begins the file. It gets the rights of the file that it takes the place of.
    ///
    /// # Errors
    /// A link, a folder or a protected file at its name; a folder in which nothing can be made.
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

    /// Begins a file of a folder that is ours: whatever has its name goes when it is whole, if that is a link the link itself.
    ///
    /// # Errors
    /// A folder in which nothing can be made.
    pub fn replace(path: &Path) -> Result<Whole> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut prefix = OsString::from(".");
        prefix.push(path.file_name().unwrap_or_default());
        prefix.push(".");
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(UNFINISHED)
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        let (file, unfinished) = file.into_parts();
        Ok(Whole { path: path.to_owned(), unfinished: Some(unfinished), out: BufWriter::new(file) })
    }

    /// Gives it these rights in place of the usual ones, as `chmod` does.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn set_rights(&self, mode: u32) -> Result<()> {
        match self.unfinished {
            Some(_) => self.out.get_ref().set_permissions(Permissions::from_mode(mode)),
            None => Ok(()),
        }
    }

    /// The name that it gets.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn filled_with(mut self, contents: &[u8]) -> Result<()> {
        self.write_all(contents)?;
        self.finish()
    }

    /// Gives it its name, in place of what had it before.
    ///
    /// # Errors
    /// If the rest cannot be written, or the name not be given.
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

/// Writes a file whole or not at all.
///
/// # Errors
/// As [`Whole::create`] and [`Whole::finish`].
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    Whole::create(path)?.filled_with(contents.as_ref())
}

/// Writes a file of a folder that is ours, whole or not at all.
///
/// # Errors
/// As [`Whole::replace`] and [`Whole::finish`].
pub fn replace(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    Whole::replace(path)?.filled_with(contents.as_ref())
}

/// The name that a file would have got, if `name` is what [`Whole`] calls it meanwhile: one that was killed leaves it.
pub fn unfinished(name: &OsStr) -> Option<&str> {
    let (name, random) = name.to_str()?.strip_prefix('.')?.strip_suffix(UNFINISHED)?.rsplit_once('.')?;
    let is_random = random.len() == 6 && random.chars().all(|c| c.is_ascii_alphanumeric());
    (is_random && !name.is_empty()).then_some(name)
}
