//! Keys in files that only their owner can read.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::code;
use airpace_core::{Refused, Remedy};
use airpace_transport::key::Key;

/// Maximum size of a key file (bytes).
const MAX_BYTES: u64 = 1024;

/// Default path of a receiver's key: below `$XDG_STATE_HOME`, or else below `~/.local/state`. `None` without a home
/// directory.
///
/// Source: W. Bastian and others 2021, XDG Base Directory Specification 0.8
pub fn usual_place(state_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    // A relative path in the variable is ignored.
    let state = state_home.filter(|path| path.is_absolute()).map(Path::to_owned);
    let state =
        state.or_else(|| home.filter(|path| path.is_absolute()).map(|home| home.join(".local/state")))?;
    Some(state.join("airpace/recv.key"))
}

/// Reads a key from the first line of the file that is neither empty nor a comment.
///
/// # Errors
/// There is no key, or other users could read or change the file. The sentence states the remedy.
pub fn read(path: &Path) -> Result<Key, Refused> {
    let text = airpace_files::read_secret(path, MAX_BYTES)
        .map_err(|error| Refused::new(format!("the key `{}` cannot be read: {error}", path.display())))?;
    let line =
        text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    code::parse(line).map_err(|error| format!("`{}`: {error}", path.display()).into())
}

/// Reads a key. If the file does not exist, creates a key and writes it.
///
/// # Errors
/// The errors of [`read`]; or the file cannot be written.
pub fn read_or_make(path: &Path) -> Result<Key, Refused> {
    if path.symlink_metadata().is_ok() {
        return read(path);
    }
    let refuse = |error: std::io::Error| {
        let remedy = Remedy::new("choose a place with").parameter("key");
        Refused::new(format!("the key `{}` cannot be written: {error}", path.display())).but(remedy)
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refuse)?;
    }
    let key = Key::random().map_err(|error| error.to_string())?;
    let text =
        format!("# The key of `airpace recv`. Who knows it can send files here.\n{}\n", code::print(&key));
    match airpace_files::new_secret(path, text.as_bytes()) {
        Ok(()) => Ok(key),
        // Another receiver created the file first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(refuse(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/airpace/recv.key");
        let made = read_or_make(&path).unwrap();
        assert_eq!(read_or_make(&path).unwrap().bytes(), made.bytes());
        assert_eq!(read(&path).unwrap().bytes(), made.bytes());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_ne!(read_or_make(&folder.path().join("other")).unwrap().bytes(), made.bytes());
    }

    #[test]
    fn a_key_that_others_could_know_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        read_or_make(&path).unwrap();
        for mode in [0o644, 0o640, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = read_or_make(&path).unwrap_err();
            assert!(refused.to_string().contains(&format!("chmod 600 '{}'", path.display())), "{refused}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(read(&path).is_ok());
        symlink(&path, folder.path().join("link")).unwrap();
        assert!(read(&folder.path().join("link")).is_err());
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("cannot be read"));
        let spoiled = folder.path().join("spoiled");
        airpace_files::new_secret(&spoiled, b"# no key\nABCD\n").unwrap();
        assert!(read_or_make(&spoiled).unwrap_err().to_string().contains("28 letters"));
    }

    #[test]
    fn the_usual_place_is_that_of_the_desktop() {
        let place =
            |state: Option<&str>, home: Option<&str>| usual_place(state.map(Path::new), home.map(Path::new));
        assert_eq!(place(Some("/s"), Some("/h")), Some("/s/airpace/recv.key".into()));
        assert_eq!(place(None, Some("/h")), Some("/h/.local/state/airpace/recv.key".into()));
        assert_eq!(place(Some("s"), Some("/h")), Some("/h/.local/state/airpace/recv.key".into()));
        assert_eq!(place(None, None), None);
    }
}
