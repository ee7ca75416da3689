//! What can go wrong, and the POSIX number of each.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why the daemon could not give something, or why there can be no daemon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No daemon answers on the control socket.
    #[error("no daemon at {path}: {errno}; start one with `airpace diag serve`")]
    NoDaemon {
        /// The control socket.
        path: PathBuf,
        /// The error of the system.
        errno: Errno,
    },
    /// The place of the daemon's folder cannot be determined.
    #[error("set OD_DIR to the daemon's folder: XDG_RUNTIME_DIR, in which it would be, is not set")]
    NoFolder,
    /// Another daemon serves this folder.
    #[error("another daemon serves {dir}; stop it, or give this one another folder by --dir or OD_DIR")]
    InUse {
        /// The folder.
        dir: PathBuf,
    },
    /// Others could change the daemon's files in this folder.
    #[error(
        "{dir} {what}; give the daemon a folder of its own user's, which nobody else can write, by --dir or OD_DIR"
    )]
    Folder {
        /// The folder.
        dir: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The daemon handed out something that is not a board that can be read safely.
    #[error("the daemon's board cannot be used: {what}")]
    NotABoard {
        /// What is wrong with it.
        what: String,
    },
    /// The board is of another version.
    #[error(
        "the daemon's board has layout {found}, this library reads {known}; install both from one version"
    )]
    Version {
        /// The board's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The daemon refuses.
    #[error("{text}")]
    Refused {
        /// Its reason as a POSIX number.
        errno: Errno,
        /// Its reason in words.
        text: String,
    },
    /// The daemon breaks the protocol.
    #[error("the daemon answered {line:?}, which is not of its protocol")]
    Protocol {
        /// The daemon's line.
        line: String,
    },
    /// Nothing came in time.
    #[error("nothing came in time")]
    TimedOut,
    /// The daemon is stopped, dead or stuck. Open again once it is back.
    #[error("the daemon has stopped or shows no sign of life; open anew once it runs")]
    Stale,
    /// A signal came while waiting.
    #[error("interrupted by a signal")]
    Interrupted,
    /// The system refused something.
    #[error("{doing}: {errno}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// The error of the system.
        errno: Errno,
    },
}

impl Error {
    /// The POSIX number that a C program finds in `errno`.
    pub fn errno(&self) -> Errno {
        match self {
            Error::NoDaemon { errno, .. } | Error::System { errno, .. } | Error::Refused { errno, .. } => {
                *errno
            }
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
