//! Where a file lies, whatever it is called.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The place of a file, whatever its name: two names of one file have the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Device and number of an existing file.
    There(u64, u64),
    /// A file that does not exist yet: the real name of its folder, and its own name.
    New(PathBuf),
}

impl Place {
    /// Where a path leads, through links too. Pipes and devices have no place: several programs may write to one.
    pub fn of(path: &Path) -> Option<Place> {
        if let Ok(about) = path.metadata() {
            return about.is_file().then(|| Place(Kind::There(about.dev(), about.ino())));
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(Place(Kind::New(folder.join(path.file_name()?))))
    }
}
