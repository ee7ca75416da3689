//! The error type of libOD, and the POSIX error number of each variant.

use std::path::PathBuf;

use rustix::io::Errno;

/// An error of a request, of a reading, or of starting a daemon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No daemon answers on the control socket.
    #[error("no daemon at {path}: {errno}")]
    NoDaemon {
        /// The control socket.
        path: PathBuf,
        /// The error number of the system call.
        errno: Errno,
    },
    /// The path of the daemon's folder cannot be determined.
    #[error("set OD_DIR to the daemon's folder: XDG_RUNTIME_DIR, in which it would be, is not set")]
    NoFolder,
    /// Another daemon serves this folder.
    #[error("another daemon serves {dir}; stop it, or give this one another folder")]
    InUse {
        /// The folder.
        dir: PathBuf,
    },
    /// Other users could change the daemon's files in this folder.
    #[error(
        "{dir} {what}; give the daemon a folder that belongs to its own user, and that no other user can write"
    )]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// Description of the defect.
        what: &'static str,
    },
    /// The daemon's folder, or a file in it, cannot be created or opened.
    #[error("cannot {doing} {path}: {errno}")]
    Path {
        /// The operation that failed, and the kind of file.
        doing: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The error number of the system call.
        errno: Errno,
    },
    /// The descriptor that the daemon sent is not a valid or safely readable shared-memory region.
    #[error("the daemon's shared memory cannot be used: {what}")]
    NotABoard {
        /// Description of the defect.
        what: String,
    },
    /// The shared-memory region has another layout version.
    #[error(
        "the daemon's shared memory has layout {found}, this library reads {known}; install both from one version"
    )]
    Version {
        /// Layout version of the region.
        found: u32,
        /// Layout version of this library.
        known: u32,
    },
    /// The daemon refused the request.
    #[error("{text}")]
    Refused {
        /// The reason as a POSIX error number.
        errno: Errno,
        /// The reason as text.
        text: String,
    },
    /// The daemon's answer violates the protocol.
    #[error("the daemon answered {line:?}, which is not of its protocol")]
    Protocol {
        /// The line that the daemon sent.
        line: String,
    },
    /// No reading or answer arrived before the timeout.
    #[error("nothing came in time")]
    TimedOut,
    /// The daemon has stopped, has died or hangs. Open the connection again once the daemon runs.
    #[error("the daemon has stopped or sends no heartbeat; open it again once it runs")]
    Stale,
    /// A signal interrupted the wait.
    #[error("interrupted by a signal")]
    Interrupted,
    /// A system call failed.
    #[error("{doing}: {errno}")]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The error number of the system call.
        errno: Errno,
    },
}

impl Error {
    /// The POSIX error number that a C program finds in `errno`.
    pub fn errno(&self) -> Errno {
        match self {
            Error::NoDaemon { errno, .. }
            | Error::Path { errno, .. }
            | Error::System { errno, .. }
            | Error::Refused { errno, .. } => *errno,
            Error::NoFolder => Errno::NOENT,
            Error::InUse { .. } => Errno::ADDRINUSE,
            Error::Folder { .. } => Errno::PERM,
            Error::NotABoard { .. } | Error::Protocol { .. } => Errno::PROTO,
            Error::Version { .. } => Errno::PROTONOSUPPORT,
            Error::TimedOut => Errno::TIMEDOUT,
            Error::Stale => Errno::STALE,
            Error::Interrupted => Errno::INTR,
        }
    }

    pub(crate) fn system(doing: &'static str) -> impl FnOnce(Errno) -> Error {
        move |errno| Error::System { doing, errno }
    }
}
