//! Files inside a folder, for names that were chosen by an untrusted peer.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps, fstat, fsync,
    futimens,
};
use rustix::io::Errno;

use crate::handed_out::HandedOut;
use crate::withheld::{Identity, Withheld};

/// A folder that confines names: each part of a name is opened separately, and links are not followed.
///
/// A name consists of parts separated by `/`. The folder stays the same, even if it is renamed.
#[derive(Debug)]
pub struct Inside {
    path: PathBuf,
    folder: OwnedFd,
    withheld: Withheld,
}

/// The kind of object that has a name in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lies {
    /// No object has the name.
    Nothing,
    /// A plain file.
    File {
        /// Length in bytes.
        bytes: u64,
        /// Time of the last modification, in nanoseconds since 1970.
        modified: i128,
    },
    /// A folder, a link, a pipe, a device or a socket.
    Other,
}

impl Inside {
    /// Opens the folder. A link to a folder is followed here, because the user chose the folder's name.
    ///
    /// # Errors
    /// The path is not a folder, or the system refuses.
    pub fn open(path: &Path) -> Result<Inside> {
        let folder =
            rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Inside { path: path.to_owned(), folder, withheld: Withheld::default() })
    }

    /// Excludes files and folders of the command itself: keys, certificates, logs. Names never lead to these files or
    /// into these folders. Excluded objects are identified by their paths and by device and inode, so that links and
    /// other names of them are refused too.
    ///
    /// # Errors
    /// The folder itself is excluded, or is inside an excluded folder.
    pub fn withholding<'a>(mut self, paths: impl IntoIterator<Item = &'a Path>) -> Result<Inside> {
        paths.into_iter().for_each(|path| self.withheld.add(path));
        let own = std::fs::canonicalize(&self.path)?;
        for folder in own.ancestors() {
            let about = std::fs::metadata(folder)?;
            self.withheld.check(|| Ok((about.dev(), about.ino()))).map_err(|error| {
                Error::new(error.kind(), format!("`{}`: {error}; give another folder", folder.display()))
            })?;
        }
        Ok(self)
    }

    /// Returns the folder's path at the time of opening.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the kind of object with the name.
    ///
    /// # Errors
    /// The name leads out of the folder or through a link, or the system refuses.
    pub fn look(&self, name: &str) -> Result<Lies> {
        let (folders, last) = parts(name)?;
        let folder = match self.descend(&folders, false) {
            Ok(folder) => folder,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Lies::Nothing),
            Err(error) => return Err(error),
        };
        let found = rustix::fs::statat(folder.as_fd(self), last, AtFlags::SYMLINK_NOFOLLOW);
        if let Ok(about) = &found {
            self.withheld.check(|| Ok(identity(about)))?;
        }
        match found {
            Ok(about) if FileType::from_raw_mode(about.st_mode) == FileType::RegularFile => Ok(Lies::File {
                bytes: u64::try_from(about.st_size).unwrap_or_default(),
                modified: i128::from(about.st_mtime) * 1_000_000_000 + i128::from(about.st_mtime_nsec),
            }),
            Ok(_) => Ok(Lies::Other),
            Err(Errno::NOENT) => Ok(Lies::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a plain file for reading. This never blocks.
    ///
    /// # Errors
    /// The name leads out of the folder, through a link, or to something other than a plain file; or the system refuses.
    pub fn read(&self, name: &str) -> Result<File> {
        let (folders, last) = parts(name)?;
        let folder = self.descend(&folders, false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder.as_fd(self), last, flags, Mode::empty());
        self.own(plain(File::from(opened.map_err(through)?))?)
    }

    /// Opens a plain file for an untrusted peer, like [`Inside::read`], but without files that a user keeps private:
    /// hidden names and private keys. The start of the file is examined for a key at once, and the rest before it is
    /// read.
    ///
    /// # Errors
    /// The errors of [`Inside::read`], and [`ErrorKind::PermissionDenied`] for a private file.
    pub fn hand_out(&self, name: &str) -> Result<HandedOut> {
        self.hand_out_again(name, 0)
    }

    /// Opens a file that was handed out and closed before. `examined` is the number of bytes that were examined then
    /// ([`HandedOut::examined`]). The caller must ensure that the file is the same.
    ///
    /// # Errors
    /// The same errors as [`Inside::hand_out`].
    pub fn hand_out_again(&self, name: &str, examined: u64) -> Result<HandedOut> {
        if name.split('/').any(|part| part.starts_with('.')) {
            let reason = "a hidden file is never handed out";
            return Err(Error::new(ErrorKind::PermissionDenied, reason));
        }
        HandedOut::new(self.read(name)?, examined)
    }

    /// Returns the file, unless it is one of the withheld files.
    fn own(&self, file: File) -> Result<File> {
        self.withheld.check(|| Ok(identity(&fstat(&file)?)))?;
        Ok(file)
    }

    /// Opens a plain file for reading and writing, with its contents; creates it, and the folders above it, if it does
    /// not exist. No other process can open it in this way until it is dropped.
    ///
    /// # Errors
    /// The errors of [`Inside::read`]; an error if the file has a second name (a hard link); [`ErrorKind::WouldBlock`] if
    /// it is already open in this way.
    pub fn change(&self, name: &str) -> Result<File> {
        let (folders, last) = parts(name)?;
        let folder = self.descend(&folders, true)?;
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(folder.as_fd(self), last, flags, Mode::from_raw_mode(0o666));
        let file = self.own(plain(File::from(opened.map_err(through)?))?)?;
        if file.metadata()?.nlink() > 1 {
            let reason =
                "it has another name too (a hard link), under which it would be overwritten; remove it";
            return Err(Error::new(ErrorKind::InvalidInput, reason));
        }
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => {
                Err(Error::new(ErrorKind::WouldBlock, "another transfer is writing it"))
            }
            // Some network file systems do not support locks.
            Err(Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS) => Ok(file),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a file to its final name, durably; `replaces` is whether an existing file with that name is replaced. An
    /// existing link with that name is itself replaced.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if an object has the name and must not be replaced; an error if a name leads out of
    /// the folder or through a link, or if the system refuses.
    pub fn rename(&self, from: &str, to: &str, replaces: bool) -> Result<()> {
        let ((from_folders, from_last), (to_folders, to_last)) = (parts(from)?, parts(to)?);
        let (from, to) = (self.descend(&from_folders, false)?, self.descend(&to_folders, false)?);
        let (from, to) = (from.as_fd(self), to.as_fd(self));
        if replaces {
            self.check_named(to, to_last)?;
            rustix::fs::renameat(from, from_last, to, to_last)?;
        } else {
            match rustix::fs::renameat_with(from, from_last, to, to_last, RenameFlags::NOREPLACE) {
                // Some file systems do not support this call. A hard link never replaces an existing file either.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    rustix::fs::linkat(from, from_last, to, to_last, AtFlags::empty())?;
                    rustix::fs::unlinkat(from, from_last, AtFlags::empty())?;
                }
                renamed => renamed?,
            }
        }
        // Some file systems cannot sync a folder; the file's own bytes are already on disk.
        let _ = fsync(to);
        Ok(())
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// The name leads out of the folder or through a link, or the system refuses.
    pub fn remove(&self, name: &str) -> Result<()> {
        let (folders, last) = parts(name)?;
        let folder = match self.descend(&folders, false) {
            Ok(folder) => folder,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        self.check_named(folder.as_fd(self), last)?;
        match rustix::fs::unlinkat(folder.as_fd(self), last, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Fails if an excluded object has this name.
    fn check_named(&self, folder: BorrowedFd<'_>, last: &str) -> Result<()> {
        match rustix::fs::statat(folder, last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => self.withheld.check(|| Ok(identity(&about))),
            Err(_) => Ok(()),
        }
    }

    /// Opens the folder of a name's last part.
    fn descend(&self, folders: &[&str], makes: bool) -> Result<Depth> {
        let mut depth = Depth::Top;
        for part in folders {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let open = |folder: BorrowedFd<'_>| rustix::fs::openat(folder, *part, flags, Mode::empty());
            let mut opened = open(depth.as_fd(self));
            if makes && opened.as_ref().is_err_and(|error| *error == Errno::NOENT) {
                match rustix::fs::mkdirat(depth.as_fd(self), *part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => opened = open(depth.as_fd(self)),
                    Err(error) => return Err(error.into()),
                }
            }
            let opened = opened.map_err(through)?;
            self.withheld.check(|| Ok(identity(&fstat(&opened)?)))?;
            depth = Depth::Below(opened);
        }
        Ok(depth)
    }
}

fn identity(about: &rustix::fs::Stat) -> Identity {
    (about.st_dev, about.st_ino)
}

/// The folder of a name's last part.
enum Depth {
    Top,
    Below(OwnedFd),
}

impl Depth {
    fn as_fd<'a>(&'a self, inside: &'a Inside) -> BorrowedFd<'a> {
        match self {
            Depth::Top => inside.folder.as_fd(),
            Depth::Below(folder) => folder.as_fd(),
        }
    }
}

/// Sets the time of the file's last modification, in nanoseconds since 1970, and whether it is executable.
///
/// # Errors
/// The system refuses.
pub fn set_about(file: &File, modified: Option<i128>, is_program: bool) -> Result<()> {
    if is_program {
        let mode = fstat(file)?.st_mode;
        // Users who may read the file may execute it.
        rustix::fs::fchmod(file, Mode::from_raw_mode((mode & 0o777) | ((mode & 0o444) >> 2)))?;
    }
    let Some(modified) = modified else { return Ok(()) };
    let (secs, nanos) = (modified.div_euclid(1_000_000_000), modified.rem_euclid(1_000_000_000));
    let Ok(secs) = i64::try_from(secs) else { return Ok(()) };
    let modified = Timespec { tv_sec: secs, tv_nsec: nanos as _ };
    let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    Ok(futimens(file, &Timestamps { last_access: now, last_modification: modified })?)
}

/// Splits a name into its folders and its last part.
fn parts(name: &str) -> Result<(Vec<&str>, &str)> {
    let mut parts: Vec<&str> = name.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..") || part.contains('\0')) {
        return Err(Error::new(ErrorKind::InvalidInput, "the name leads out of the folder"));
    }
    let last = parts.pop().unwrap_or_default();
    Ok((parts, last))
}

/// Converts the errors of names that lead through a link.
fn through(error: Errno) -> Error {
    match error {
        Errno::LOOP => {
            Error::new(ErrorKind::InvalidInput, "a link lies there, and names are not followed through links")
        }
        Errno::NOTDIR => {
            Error::new(ErrorKind::NotADirectory, "a part of the name is no folder, or a link to one")
        }
        Errno::NXIO => Error::new(ErrorKind::InvalidInput, "it is no plain file"),
        other => other.into(),
    }
}

fn plain(file: File) -> Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is no plain file")),
    }
}
