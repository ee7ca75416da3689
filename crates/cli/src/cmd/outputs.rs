//! Files that a command is to write: none in place of one that it reads, and no two in one place.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::bail;

/// A file, and what it is to the user: the option that names it, or the recording that it is part of.
pub struct Named {
    what: String,
    place: Option<Place>,
}

impl Named {
    /// A file that may not be there yet.
    pub fn new(what: impl Into<String>, path: &Path) -> Named {
        Named { what: what.into(), place: Place::of(path) }
    }

    /// A file that is written as `PATH.part` until it is whole: both.
    pub fn in_parts(what: &str, path: &Path) -> [Named; 2] {
        let mut part = OsString::from(path);
        part.push(".part");
        [Named::new(format!("{what} {}", path.display()), path), Named::new(what, Path::new(&part))]
    }
}

/// Where a file lies, whatever its name. Pipes and devices have no place: many may write to one.
#[derive(PartialEq, Eq)]
enum Place {
    /// Device and number of a file that is there.
    There(u64, u64),
    /// A file that will be made: the folder's own name and the file's.
    New(PathBuf),
}

impl Place {
    fn of(path: &Path) -> Option<Place> {
        if let Ok(about) = path.metadata() {
            return about.is_file().then(|| Place::There(about.dev(), about.ino()));
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(Place::New(folder.join(path.file_name()?)))
    }
}

/// Looks at `outputs` before any of them is made.
///
/// # Errors
/// If one would be written in place of an input or of another output.
pub fn check(inputs: &[Named], outputs: &[Named]) -> anyhow::Result<()> {
    for (at, output) in outputs.iter().enumerate() {
        let is_there = |other: &&Named| other.place.is_some() && other.place == output.place;
        if let Some(input) = inputs.iter().find(is_there) {
            bail!(
                "{} would be written over {}, which is to be read: give it another name",
                output.what,
                input.what
            );
        }
        if let Some(other) = outputs[..at].iter().find(is_there) {
            bail!("{} and {} are one file: give each its own", other.what, output.what);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("there"), "").unwrap();
        std::fs::hard_link(path("there"), path("linked")).unwrap();
        std::os::unix::fs::symlink(path("there"), path("called")).unwrap();
        let input = |name: &str| Named::new(name, &path(name));
        let output = |name: &str| Named::new(format!("--out {name}"), &path(name));
        for name in ["there", "linked", "called", "../there"] {
            let name = name.replace("..", &format!("../{}", folder.path().file_name().unwrap().display()));
            let said = check(&[input("there")], &[output(&name)]).unwrap_err().to_string();
            assert!(said.contains(&format!("--out {name} would be written over there")), "{said}");
        }
        let said = check(&[], &[output("new"), output("./new")]).unwrap_err().to_string();
        assert_eq!(said, "--out new and --out ./new are one file: give each its own");
        check(&[input("there")], &[output("new"), output("other")]).unwrap();
        let null = || Named::new("--out", Path::new("/dev/null"));
        check(&[null()], &[null(), null()]).expect("a device takes what many write");
        let parts = Named::in_parts("--out", &path("a"));
        let said = check(&[input("there"), input("a.part")], &parts).unwrap_err().to_string();
        assert!(said.contains("over a.part"), "{said}");
    }
}
