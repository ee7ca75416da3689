//! Network namespaces, and the default congestion control of new sockets in each.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Folder of the namespaces with names, as `ip netns` lists them.
const NAMED: &str = "/run/netns";

/// File of a namespace's default congestion control, below `/proc/sys`.
const DEFAULT: &str = "net/ipv4/tcp_congestion_control";

/// Error of a network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// The text cannot be the name of a network namespace.
    #[error("{0} is no name of a network namespace")]
    NoName(Place),
    /// The namespace does not exist, or this user may not see it.
    #[error("no network namespace {place} ({}: {error}); `ip netns` lists them", place.path().display())]
    Missing {
        /// The namespace.
        place: Place,
        /// The system's error.
        error: io::Error,
    },
    /// The system refuses to enter the namespace.
    #[error("cannot enter the network namespace {place}; do it as root")]
    Enter {
        /// The namespace.
        place: Place,
        /// The system's error.
        source: io::Error,
    },
    /// The system cannot start a thread.
    #[error("cannot start a thread; end other programs")]
    Thread(#[source] io::Error),
    /// The kernel refuses the scheme as default.
    #[error("/proc/sys/{DEFAULT} does not take `{scheme}`; do it as root")]
    Default {
        /// Name of the scheme.
        scheme: String,
        /// The system's error.
        source: io::Error,
    },
}

/// A network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The namespace of this program.
    Here,
    /// A namespace with a name.
    Named(String),
    /// A namespace without a name, identified by a process in it, for example that of a container.
    Of(u32),
}

impl Place {
    /// Name of the namespace; `pid:` and a process ID if it has no name; `None` for the namespace of this program.
    pub fn name(&self) -> Option<String> {
        match self {
            Place::Here => None,
            Place::Named(name) => Some(name.clone()),
            Place::Of(process) => Some(format!("pid:{process}")),
        }
    }

    fn path(&self) -> PathBuf {
        match self {
            Place::Here => PathBuf::from("/proc/self/ns/net"),
            Place::Named(name) => Path::new(NAMED).join(name),
            Place::Of(process) => PathBuf::from(format!("/proc/{process}/ns/net")),
        }
    }

    /// Opens the namespace.
    fn open(&self) -> Result<File, NetnsError> {
        if matches!(self, Place::Named(name) if name.contains('/') || name.is_empty()) {
            return Err(NetnsError::NoName(self.clone()));
        }
        File::open(self.path()).map_err(|error| NetnsError::Missing { place: self.clone(), error })
    }

    /// Runs `act` inside the namespace, and returns its result.
    fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, NetnsError> {
        if *self == Place::Here {
            return Ok(act());
        }
        let namespace = self.open()?;
        // A separate thread enters the namespace and ends there.
        std::thread::scope(|scope| {
            let enter = || {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|error| NetnsError::Enter { place: self.clone(), source: error.into() })?;
                Ok(act())
            };
            let entered = std::thread::Builder::new().spawn_scoped(scope, enter);
            entered
                .map_err(NetnsError::Thread)?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Checks that the namespace exists.
    ///
    /// # Errors
    /// [`NetnsError::NoName`] or [`NetnsError::Missing`].
    pub fn check(&self) -> Result<(), NetnsError> {
        self.open().map(drop)
    }

    /// Makes this scheme the default of new TCP sockets in the namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered, or the kernel refuses the scheme.
    pub fn set_default(&self, scheme: &str) -> Result<(), NetnsError> {
        let set = self.within(|| airpace_files::set_kernel(DEFAULT, scheme))?;
        set.map_err(|source| NetnsError::Default { scheme: scheme.to_owned(), source })
    }

    /// Whether the namespace exists and is not in `seen`; adds it to `seen`.
    fn is_first_of_its_kind(&self, seen: &mut Vec<(u64, u64)>) -> bool {
        let Ok(found) = fs::metadata(self.path()) else { return false };
        let identity = (found.dev(), found.ino());
        let is_new = !seen.contains(&identity);
        seen.extend(is_new.then_some(identity));
        is_new
    }

    fn has_default(&self, scheme: &str) -> bool {
        let default = self.within(|| fs::read_to_string(Path::new("/proc/sys").join(DEFAULT)));
        matches!(default, Ok(Ok(text)) if text.trim() == scheme)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Here => f.write_str("this network namespace"),
            Place::Named(name) => write!(f, "`{name}`"),
            Place::Of(process) => write!(f, "that of process {process}"),
        }
    }
}

/// Namespaces that this user may enter and in which the scheme is the default of new sockets: this namespace,
/// namespaces with names, and namespaces of processes.
pub fn defaults(scheme: &str) -> Vec<Place> {
    let entries = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    };
    let mut names: Vec<String> = entries(NAMED).collect();
    let mut processes: Vec<u32> = entries("/proc").filter_map(|name| name.parse().ok()).collect();
    names.sort();
    processes.sort_unstable();
    let mut seen = vec![];
    let places = std::iter::once(Place::Here)
        .chain(names.into_iter().map(Place::Named))
        .chain(processes.into_iter().map(Place::Of));
    places.filter(|place| place.is_first_of_its_kind(&mut seen) && place.has_default(scheme)).collect()
}

/// The names of the namespaces, for a sentence.
pub fn words(places: &[Place]) -> String {
    places.iter().map(Place::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "a/b", "../1"] {
            let error = Place::Named(name.to_owned()).check().unwrap_err().to_string();
            assert!(error.contains("is no name of a network namespace"), "{error}");
        }
        let error = Place::Named("no-such-namespace".to_owned()).check().unwrap_err().to_string();
        assert!(error.contains("`ip netns` lists them"), "{error}");
        assert!(Place::Here.check().is_ok());
    }
}
