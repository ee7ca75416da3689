//! Identity of the process at the other end of a Unix socket.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Process at the other end of a Unix socket, identified by the kernel at connection time.
///
/// The process ID is 0 if the process is outside the daemon's PID namespace, for example in another container. All such
/// processes of one user count as one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pid: libc::pid_t,
    uid: libc::uid_t,
    is_trusted: bool,
}

impl Peer {
    /// A process `pid` of user `uid`, as seen by a daemon that runs as user `ours`.
    pub(crate) fn new(pid: libc::pid_t, uid: libc::uid_t, ours: libc::uid_t) -> Peer {
        Peer { pid, uid, is_trusted: uid == 0 || uid == ours }
    }

    /// User ID.
    pub(crate) fn user(self) -> libc::uid_t {
        self.uid
    }

    /// Whether the user is root or the daemon's own user. Both could stop the daemon anyway.
    pub(crate) fn is_trusted(self) -> bool {
        self.is_trusted
    }

    /// Returns the process that connected to `socket`.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Peer, Errno> {
        // Does not use rustix, because its process IDs are never 0.
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
