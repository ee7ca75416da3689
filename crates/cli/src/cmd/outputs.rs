//! Output files of a command. No output replaces an input, no two outputs are the same file, and no output is written
//! through a link.

use std::io::{Error, Result, Write};
use std::path::{Path, PathBuf};

use airpace_core::Refused;
use airpace_files::{Growing, Place, Whole, remedy};
use anyhow::bail;

/// A file, and its name for the user: the option that names it, or the recording to which it belongs.
#[derive(Clone)]
pub struct Named {
    what: String,
    place: Option<Place>,
}

impl Named {
    /// A file that may not exist yet.
    pub fn new(what: impl Into<String>, path: &Path) -> Named {
        Named { what: what.into(), place: Place::of(path) }
    }

    /// A file that an option names.
    pub fn by(option: &str, path: &Path) -> Named {
        Named::new(format!("{option} {}", path.display()), path)
    }

    /// Input files. `-` is standard input; if it is redirected from a file, this file counts as an input.
    pub fn inputs(paths: &[PathBuf]) -> Vec<Named> {
        let named = paths.iter().map(|path| match path.as_os_str() == "-" {
            true => Named::new("standard input", Path::new("/dev/stdin")),
            false => Named::new(path.display().to_string(), path),
        });
        named.collect()
    }
}

/// Checks `outputs` before any of them is created.
///
/// # Errors
/// An output would replace an input or another output.
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

/// Creates the file that an option names. The file gets its name when it is complete.
///
/// # Errors
/// The file cannot be created; the message contains the file and the option.
pub fn whole(option: &str, path: &Path) -> anyhow::Result<Whole> {
    Whole::create(path).map_err(refused(option, path))
}

/// Opens the file that an option names. Other programs may read it while it grows.
///
/// # Errors
/// The file cannot be opened; the message contains the file and the option.
pub fn growing(option: &str, path: &Path) -> anyhow::Result<Growing> {
    Growing::open(path).map_err(refused(option, path))
}

/// Writes the file that an option names, atomically.
///
/// # Errors
/// The file cannot be written; the message contains the file and the option.
pub fn write(option: &str, path: &Path, contents: impl AsRef<[u8]>) -> anyhow::Result<()> {
    airpace_files::write(path, contents).map_err(refused(option, path))
}

/// Creates the folder that an option names, and its parent folders.
///
/// # Errors
/// A folder cannot be created; the message contains the folder and the option.
pub fn folder(option: &str, path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).map_err(|error| cannot("make the folder", path, option, error).into())
}

/// The error if the file that an option names cannot be written.
pub fn refused(option: &str, path: &Path) -> impl Fn(Error) -> anyhow::Error {
    move |error| cannot("write", path, option, error).into()
}

/// The error of the system, with the file and the remedy to choose another by `option`.
pub fn cannot(what: &str, path: &Path, option: &str, error: Error) -> Refused {
    let remedy = remedy(&error, option.trim_start_matches("--")).caused_by(error);
    Refused::new(format!("cannot {what} `{}`", path.display())).but(remedy)
}

/// An output file of either kind.
pub enum OutFile {
    /// A file that gets its name when it is complete.
    Whole(Whole),
    /// A file that other programs read while it grows.
    Growing(Growing),
}

impl OutFile {
    /// Creates the file that an option names. With `is_followed`, other programs can read the file while it grows;
    /// otherwise it gets its name when it is complete.
    ///
    /// # Errors
    /// The file cannot be created; the message contains the file and the option.
    pub fn create(option: &str, path: &Path, is_followed: bool) -> anyhow::Result<OutFile> {
        Ok(match is_followed {
            true => OutFile::Growing(growing(option, path)?),
            false => OutFile::Whole(whole(option, path)?),
        })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        match self {
            OutFile::Whole(file) => file.path(),
            OutFile::Growing(file) => file.path(),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<()> {
        match self {
            OutFile::Whole(file) => file.finish(),
            OutFile::Growing(mut file) => file.begin().and_then(|()| file.flush()),
        }
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            OutFile::Whole(file) => file.write(bytes),
            OutFile::Growing(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            OutFile::Whole(file) => file.flush(),
            OutFile::Growing(file) => file.flush(),
        }
    }
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
    }
}
