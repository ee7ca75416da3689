//! Files and folders of the command itself, which an untrusted peer must neither read nor replace.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode of a file or folder.
pub(crate) type Identity = (u64, u64);

/// Files and folders, identified by their paths and by device and inode.
///
/// A file keeps its device and inode under any name: through a link, as a hard link, after a rename. Paths are resolved
/// again for each check, because programs that renew certificates replace files.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    entries: Vec<(PathBuf, Option<Identity>)>,
}

impl Withheld {
    pub(crate) fn add(&mut self, path: &Path) {
        // A relative path must keep its meaning if the working directory changes.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let identity = identity(&path);
        self.entries.push((path, identity));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn holds(&self, found: Identity) -> bool {
        let is_it = |(path, first): &(PathBuf, Option<Identity>)| {
            *first == Some(found) || identity(path) == Some(found)
        };
        self.entries.iter().any(is_it)
    }

    /// Fails if the found object is one of these files or folders.
    pub(crate) fn check(&self, found: impl FnOnce() -> Result<Identity>) -> Result<()> {
        if self.is_empty() || !self.holds(found()?) {
            return Ok(());
        }
        let reason = "it is one of the files that this command itself uses (a key, a certificate or its logs), which \
                      are neither handed out nor replaced";
        Err(Error::new(ErrorKind::PermissionDenied, reason))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    path.metadata().ok().map(|about| (about.dev(), about.ino()))
}
