//! The process at the other end of a socket.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// A process at the other end of a Unix socket, as the system knew it when it connected.
///
/// Its number is 0 if the process is outside the daemon's namespace, for example in another container. All such
/// processes of one user count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pid: libc::pid_t,
    uid: libc::uid_t,
    is_trusted: bool,
}

impl Peer {
    /// A process of a user, from the point of view of a daemon of the user `ours`.
    pub(crate) fn new(pid: libc::pid_t, uid: libc::uid_t, ours: libc::uid_t) -> Peer {
        Peer { pid, uid, is_trusted: uid == 0 || uid == ours }
    }

    /// The user's number.
    pub(crate) fn user(self) -> libc::uid_t {
        self.uid
    }

    /// Whether this is root or the daemon's own user, who could stop the daemon anyway.
    pub(crate) fn is_trusted(self) -> bool {
        self.is_trusted
    }

    /// The process that connected.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Peer, Errno> {
        // Not by rustix, in which process numbers are never 0.
        let mut who = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut bytes = size_of_val(&who) as libc::socklen_t;
        // SAFETY: the system writes at most `bytes` bytes to `who`, for which all bits are valid numbers.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut who).cast(),
                &raw mut bytes,
            )
        };
        if result == 0 {
            Ok(Peer::new(who.pid, who.uid, rustix::process::geteuid().as_raw()))
        } else {
            Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
        }
    }
}
