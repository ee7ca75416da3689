//! The daemon's folder: owned by the daemon's user, and not writable by other users. All access goes through the
//! folder's descriptor, so that neither a symbolic link nor a renamed parent folder can redirect it.

use std::fs::DirBuilder;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::{MAX_PROGRAMS, SOCKET_NAME};
use crate::error::Error;

/// Name of the lock file. The daemon that serves the folder holds its lock.
const LOCK_NAME: &str = "lock";
/// Name of the socket until its permissions allow everyone to connect.
const NEW_SOCKET_NAME: &str = "control.new";
/// Permission bits that allow writing by the group or by everyone.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Sticky bit: all users may create files in the folder, and only the owner may remove them, as in a folder for
/// temporary files.
const STICKY: u32 = 0o1000;

/// A folder that only this daemon serves.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    dir: OwnedFd,
    /// Lock, held as long as the daemon lives. The kernel releases it even if the daemon is killed.
    _lock: OwnedFd,
}

impl Folder {
    /// Creates the folder if it does not exist, and takes its lock.
    ///
    /// # Errors
    /// [`Error::Folder`] if other users may change its content, [`Error::InUse`] if a daemon runs there,
    /// [`Error::Path`] if a system call fails.
    pub fn claim(path: &Path) -> Result<Folder, Error> {
        // Remove a trailing `/`: with this `/`, `open` would follow a symbolic link in spite of `NOFOLLOW`.
        let path = path.components().as_path().to_owned();
        let refused = |what| Error::Folder { dir: path.clone(), what };
        let failed = |doing| failed(doing, &path);
        DirBuilder::new().recursive(true).mode(0o755).create(&path).map_err(|error| {
            failed("create the daemon's folder")(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(refused("is a link")),
            opened => opened.map_err(failed("open the daemon's folder"))?,
        };
        let about = rustix::fs::fstat(&dir).map_err(failed("inspect the daemon's folder"))?;
        if !is_ours(&about) {
            return Err(refused("belongs to another user"));
        }
        let is_for_others = about.st_mode & WRITTEN_BY_OTHERS != 0;
        if is_for_others && about.st_mode & STICKY != 0 {
            return Err(refused("is a folder that all users share"));
        }
        if is_for_others {
            return Err(refused("can be written by others than its owner, which `chmod go-w` mends"));
        }
        let lock = open_lock(dir.as_fd()).map_err(|error| match error {
            Problem::Strange => refused("has a `lock` that is no file of this user's alone"),
            Problem::Of(errno) => {
                Error::Path { doing: "open the daemon's lock file", path: path.join(LOCK_NAME), errno }
            }
        })?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Err(Error::InUse { dir: path }),
            Err(errno) => return Err(failed("lock the daemon's folder")(errno)),
        }
        if holds_data(&dir, SOCKET_NAME) || holds_data(&dir, NEW_SOCKET_NAME) {
            return Err(refused("has a file or folder `control` or `control.new` that no daemon made"));
        }
        Ok(Folder { path, dir, _lock: lock })
    }

    /// Creates the control socket in the folder. Replaces the socket of a killed daemon atomically. Everyone who can
    /// access the folder may connect.
    ///
    /// # Errors
    /// [`Error::Path`] if a system call fails.
    pub fn listen(&self) -> Result<OwnedFd, Error> {
        // This daemon holds the lock, so such a file can only be left over from a daemon that died while it created the
        // socket.
        let _ = rustix::fs::unlinkat(&self.dir, NEW_SOCKET_NAME, AtFlags::empty());
        let new = self.path.join(NEW_SOCKET_NAME);
        let socket = listen_at(&new).map_err(failed("listen on the control socket", &new))?;
        // Use the folder's descriptor: if the path refers to another folder by now, the calls fail because this folder
        // contains no such socket. No other user can have created a file here since the ownership check.
        rustix::fs::chmodat(&self.dir, NEW_SOCKET_NAME, Mode::from_raw_mode(0o666), AtFlags::empty())
            .and_then(|()| rustix::fs::renameat(&self.dir, NEW_SOCKET_NAME, &self.dir, SOCKET_NAME))
            .map_err(failed("rename the control socket", &new))?;
        Ok(socket)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The lock is still held, so this is the socket of this daemon.
        let _ = rustix::fs::unlinkat(&self.dir, SOCKET_NAME, AtFlags::empty());
    }
}

/// Reason why a file cannot be used.
enum Problem {
    /// The file is not a file that a daemon creates.
    Strange,
    /// A system call failed.
    Of(Errno),
}

/// For `map_err`: the error of a system call on the folder or on a file in it.
fn failed(doing: &'static str, path: &Path) -> impl FnOnce(Errno) -> Error + use<> {
    let path = path.to_owned();
    move |errno| Error::Path { doing, path, errno }
}

/// Opens the lock file. No other user can open it, so no other user can hold the lock. Its content is not changed.
fn open_lock(dir: impl AsFd) -> Result<OwnedFd, Problem> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let lock = match rustix::fs::openat(dir, LOCK_NAME, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(Problem::Strange),
        opened => opened.map_err(Problem::Of)?,
    };
    let about = rustix::fs::fstat(&lock).map_err(Problem::Of)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile
        || !is_ours(&about)
        || about.st_nlink != 1
    {
        return Err(Problem::Strange);
    }
    rustix::fs::fchmod(&lock, Mode::RUSR | Mode::WUSR).map_err(Problem::Of)?;
    Ok(lock)
}

/// Whether a regular file or a folder has the name that the daemon needs for its socket. The daemon would replace it.
fn holds_data(dir: impl AsFd, name: &str) -> bool {
    let about = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let kind = about.map(|about| FileType::from_raw_mode(about.st_mode));
    matches!(kind, Ok(FileType::RegularFile | FileType::Directory))
}

fn is_ours(about: &Stat) -> bool {
    about.st_uid == rustix::process::geteuid().as_raw()
}

fn listen_at(path: &Path) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, MAX_PROGRAMS as i32)?;
    Ok(socket)
}
