//! The daemon's folder: it belongs to the daemon's user, and no other user can write in it. Its content is reached
//! through its descriptor, so that no link and no renamed folder above leads elsewhere.

use std::fs::DirBuilder;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::{MOST_PROGRAMS, SOCKET_NAME};
use crate::error::Error;

/// The daemon that serves the folder holds this lock.
const LOCK_NAME: &str = "lock";
/// Name of the socket before everyone may connect to it.
const NEW_SOCKET_NAME: &str = "control.new";
/// Bits for others who may write a file or folder: its group, and everyone.
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Everybody may put files there, and nobody may take away those of others: a folder for temporary files.
const STICKY: u32 = 0o1000;

/// A folder that this daemon serves, and no other daemon.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    dir: OwnedFd,
    /// Held as long as the daemon lives. The system releases it however the daemon ends.
    _lock: OwnedFd,
}

impl Folder {
    /// Makes the folder if it does not exist, and takes its lock.
    ///
    /// # Errors
    /// [`Error::Folder`] if others may change its content, [`Error::InUse`] if a daemon runs there, [`Error::System`]
    /// for errors of the system.
    pub fn claim(path: &Path) -> Result<Folder, Error> {
        // Without a `/` at its end, because a link would be followed before it.
        let path = path.components().as_path().to_owned();
        let refused = |what| Error::Folder { dir: path.clone(), what };
        DirBuilder::new().recursive(true).mode(0o755).create(&path).map_err(|error| Error::System {
            doing: "making the daemon's folder",
            errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(refused("is a link")),
            opened => opened.map_err(Error::system("opening the daemon's folder"))?,
        };
        let about = rustix::fs::fstat(&dir).map_err(Error::system("looking at the daemon's folder"))?;
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
            Problem::Of(errno) => Error::System { doing: "opening the daemon's lock file", errno },
        })?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Err(Error::InUse { dir: path }),
            Err(errno) => return Err(Error::System { doing: "locking the daemon's folder", errno }),
        }
        if holds_data(&dir, SOCKET_NAME) || holds_data(&dir, NEW_SOCKET_NAME) {
            return Err(refused("has a file or folder `control` or `control.new` that no daemon made"));
        }
        Ok(Folder { path, dir, _lock: lock })
    }

    /// Puts the control socket into the folder. The socket of a killed daemon is replaced in one step. Everyone who can
    /// reach the folder may connect.
    ///
    /// # Errors
    /// [`Error::System`] for errors of the system.
    pub fn listen(&self) -> Result<OwnedFd, Error> {
        // With the lock held, this can only be the rest of a daemon that died right here.
        let _ = rustix::fs::unlinkat(&self.dir, NEW_SOCKET_NAME, AtFlags::empty());
        let socket = listen_at(&self.path.join(NEW_SOCKET_NAME))
            .map_err(Error::system("listening on the control socket"))?;
        // By the folder's descriptor: if the path leads elsewhere by now, the folder has nothing of that name. No other
        // user can have put anything there since the folder was found to be ours.
        rustix::fs::chmodat(&self.dir, NEW_SOCKET_NAME, Mode::from_raw_mode(0o666), AtFlags::empty())
            .and_then(|()| rustix::fs::renameat(&self.dir, NEW_SOCKET_NAME, &self.dir, SOCKET_NAME))
            .map_err(Error::system("putting the control socket in its place"))?;
        Ok(socket)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // While the lock is still held: so it is this daemon's socket that is removed.
        let _ = rustix::fs::unlinkat(&self.dir, SOCKET_NAME, AtFlags::empty());
    }
}

/// Why a file cannot be used.
enum Problem {
    /// No daemon leaves such a file there.
    Strange,
    /// An error of the system.
    Of(Errno),
}

/// The lock. No other user can open it, so no other user can hold it. Its content is not touched.
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

/// Whether a file or a folder has this name, where a daemon has a socket: it would be replaced.
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
    rustix::net::listen(&socket, MOST_PROGRAMS as i32)?;
    Ok(socket)
}
