//! Identity of a file, independent of its name.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The identity of a file: two names of one file are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Device and inode of an existing file.
    There(u64, u64),
    /// A file that does not exist yet: the canonical path of its folder, and its own name.
    New(PathBuf),
}

impl Place {
    /// Returns the identity of the file at a path, also through links. Pipes and devices have no identity, because
    /// several programs may write to a pipe or device.
    pub fn of(path: &Path) -> Option<Place> {
        if let Ok(about) = path.metadata() {
            return about.is_file().then(|| Place(Kind::There(about.dev(), about.ino())));
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(Place(Kind::New(folder.join(path.file_name()?))))
    }
}
