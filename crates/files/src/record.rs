//! Installation of files below a prefix, and its record: the only files and folders that its removal removes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::Whole;

/// Path of the record below the prefix.
pub const RECORD: &str = "share/airpace/installed.json";

/// Error of a record, or of an installed file.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The record cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Path of the record.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is no record.
    #[error("`{}` is not a record of what was installed; install again to rewrite it", path.display())]
    NoRecord {
        /// Path of the file.
        path: PathBuf,
    },
    /// The record names files outside of the prefix.
    #[error("`{}` names files outside `{}`; nothing was removed", path.display(), prefix.display())]
    Outside {
        /// Path of the record.
        path: PathBuf,
        /// The prefix.
        prefix: PathBuf,
    },
    /// A folder has become a link since the installation.
    #[error(
        "`{}` is a link to `{}` now, and was none when airpace was installed; remove the link, or put the folder back, and start \
         again",
        path.display(), target.display()
    )]
    Linked {
        /// Path of the link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// A folder cannot be removed.
    #[error("cannot remove `{}`", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file cannot be removed.
    #[error("cannot remove `{}`; who installed it can", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Reason why files cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The earlier installation cannot be read or replaced.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Files of another origin would be overwritten.
    #[error("`{}` is there and was not installed before", paths[0].display())]
    Strangers {
        /// Paths of these files; at least one.
        paths: Vec<PathBuf>,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// One file of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Path of the file below the prefix.
    pub place: PathBuf,
    /// Contents of the file.
    pub contents: Vec<u8>,
    /// Whether the file is executable.
    pub is_program: bool,
}

impl Item {
    /// Writes the file below `root` atomically. Replaces an existing file, even a running program.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), InstallError> {
        let path = root.join(&self.place);
        let folder = path.parent().unwrap_or(root);
        let written = || -> io::Result<()> {
            std::fs::create_dir_all(folder)?;
            let mut file = Whole::replace(&path)?;
            file.write_all(&self.contents)?;
            file.set_rights(if self.is_program { 0o755 } else { 0o644 })?;
            file.finish()
        };
        written().map_err(|source| InstallError::Write { path: path.clone(), source })
    }
}

/// Writes the items below `prefix`, and a record of them with this version. Files of the earlier installation that are not
/// among the items are removed. Returns the version that was installed before.
///
/// # Errors
/// Files of another origin are in the way, or a file cannot be written or removed.
pub fn install(prefix: &Path, version: &str, items: &[Item]) -> Result<Option<String>, InstallError> {
    let old = Record::read(prefix)?;
    let known = old.clone().unwrap_or_default();
    refuse_strangers(prefix, items, &known)?;
    let mut record = Record { version: version.to_owned(), ..known.clone() };
    for place in items.iter().map(|item| item.place.as_path()).chain([Path::new(RECORD)]) {
        record.note_folders(prefix, place);
        record.note_links(prefix, place);
    }
    // The record of old and new files is written first, so that an interrupted installation can still be removed.
    record.files.extend(items.iter().map(|item| item.place.clone()));
    let written = record.write(prefix).and_then(|()| items.iter().try_for_each(|item| item.write(prefix)));
    if let Err(error) = written {
        if old.is_none() {
            // The user must see the first error, not one of the removal.
            let _ = record.remove(prefix);
        }
        return Err(error);
    }
    record.files = items.iter().map(|item| item.place.clone()).collect();
    for gone in known.files.difference(&record.files) {
        known.remove_file(prefix, gone)?;
    }
    record.write(prefix)?;
    Ok(old.map(|record| record.version))
}

/// Returns an error if existing files of another origin would be overwritten.
fn refuse_strangers(prefix: &Path, items: &[Item], known: &Record) -> Result<(), InstallError> {
    let strange = items.iter().filter(|item| !known.files.contains(&item.place)).filter(|item| {
        let path = prefix.join(&item.place);
        let there = || {
            let file = crate::open(&path)?;
            crate::read_at_most(file, item.contents.len() as u64)
        };
        path.symlink_metadata().is_ok() && there().ok().as_ref() != Some(&item.contents)
    });
    let paths: Vec<PathBuf> = strange.map(|item| prefix.join(&item.place)).collect();
    if paths.is_empty() { Ok(()) } else { Err(InstallError::Strangers { paths }) }
}

/// Files and folders that an installation created below a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Version of the installed airpace.
    pub version: String,
    /// Installed files, as paths below the prefix.
    pub files: BTreeSet<PathBuf>,
    /// Full paths of folders that the installation created. The prefix and its parent folders may be among them.
    pub folders: BTreeSet<PathBuf>,
    /// Links to folders below the prefix through which files were installed, and the targets of these links.
    pub links: BTreeMap<PathBuf, PathBuf>,
}

/// Maximum length of a record in bytes.
///
/// Chosen: the names of about fifty files take 3 kB.
const MAX_BYTES: u64 = 1 << 20;

impl Record {
    /// Reads the record of `prefix`; `None` if nothing was installed.
    ///
    /// # Errors
    /// The file cannot be read, is not a record, or contains a path outside the prefix.
    pub fn read(prefix: &Path) -> Result<Option<Record>, RecordError> {
        let path = prefix.join(RECORD);
        let text = match crate::read_to_string(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(source) => return Err(RecordError::Read { path, source }),
        };
        let record = serde_json::from_str(&text).ok().and_then(|value| Record::from_json(&value));
        let Some(record) = record else { return Err(RecordError::NoRecord { path }) };
        let is_below = |file: &PathBuf| file.components().all(|part| matches!(part, Component::Normal(_)));
        let is_ours = |folder: &PathBuf| folder.starts_with(prefix) || prefix.starts_with(folder);
        if !record.files.iter().all(is_below) || !record.folders.iter().all(is_ours) {
            return Err(RecordError::Outside { path, prefix: prefix.to_owned() });
        }
        Ok(Some(record))
    }

    /// Writes the record, and creates its folders.
    ///
    /// # Errors
    /// The record cannot be written.
    fn write(&self, prefix: &Path) -> Result<(), InstallError> {
        let path = prefix.join(RECORD);
        let paths = |paths: &BTreeSet<PathBuf>| paths.iter().map(|path| json!(path)).collect::<Value>();
        let value = json!({
            "version": self.version, "files": paths(&self.files), "folders": paths(&self.folders), "links": self.links,
        });
        let text = serde_json::to_string_pretty(&value).expect("plain data with text keys") + "\n";
        std::fs::create_dir_all(path.parent().unwrap_or(prefix))
            .and_then(|()| crate::replace(&path, text))
            .map_err(|source| InstallError::Write { path, source })
    }

    fn from_json(value: &Value) -> Option<Record> {
        let paths = |key: &str| {
            let words = value[key].as_array()?.iter();
            words.map(|word| Some(PathBuf::from(word.as_str()?))).collect::<Option<BTreeSet<_>>>()
        };
        Some(Record {
            version: value["version"].as_str()?.to_owned(),
            files: paths("files")?,
            folders: paths("folders")?,
            // Records of older versions contain no links.
            links: serde_json::from_value(value.get("links").cloned().unwrap_or_else(|| json!({}))).ok()?,
        })
    }

    /// Records the folders above `file` that do not exist yet: the installation will create them.
    fn note_folders(&mut self, prefix: &Path, file: &Path) {
        let path = prefix.join(file);
        let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
        self.folders.extend(missing.map(Path::to_owned));
    }

    /// Records the links among the folders above `file`: the user's own links, through which the file is installed.
    fn note_links(&mut self, prefix: &Path, file: &Path) {
        for folder in file.ancestors().skip(1) {
            if let Some(target) = target_of(&prefix.join(folder)) {
                self.links.insert(folder.to_owned(), target);
            }
        }
    }

    /// Fails if one of the folders above `file` has become a link since the installation: files behind such a link were
    /// not installed.
    fn check_links(&self, prefix: &Path, file: &Path) -> Result<(), RecordError> {
        for folder in file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            let path = prefix.join(folder);
            let Some(target) = target_of(&path) else { continue };
            if self.links.get(folder) != Some(&target) {
                return Err(RecordError::Linked { path, target });
            }
        }
        Ok(())
    }

    /// Removes an installed file that may already be gone.
    ///
    /// # Errors
    /// A folder above the file has become a link, or a system call failed.
    fn remove_file(&self, prefix: &Path, file: &Path) -> Result<(), RecordError> {
        self.check_links(prefix, file)?;
        remove_file(&prefix.join(file))
    }

    /// The innermost folders that the installation created and that still exist. After a removal, these folders contain
    /// files of others.
    pub fn folders_left(&self) -> Vec<&Path> {
        let there: Vec<&Path> =
            self.folders.iter().map(PathBuf::as_path).filter(|folder| folder.exists()).collect();
        let holds_another =
            |folder: &Path| there.iter().any(|other| *other != folder && other.starts_with(folder));
        there.iter().copied().filter(|folder| !holds_another(folder)).collect()
    }

    /// Removes the files, then the folders that were created for them and contain nothing else. The record is removed
    /// last, so that an interrupted removal can be repeated. A missing file is not an error.
    ///
    /// # Errors
    /// A file or folder cannot be removed, with its path in the message; or a folder has become a link.
    pub fn remove(&self, prefix: &Path) -> Result<(), RecordError> {
        let files = || self.files.iter().map(PathBuf::as_path).chain([Path::new(RECORD)]);
        files().try_for_each(|file| self.check_links(prefix, file))?;
        for file in files() {
            self.remove_file(prefix, file)?;
        }
        // The longest paths come first, so that inner folders are removed before outer folders.
        for folder in self.folders.iter().rev() {
            if let Ok(below) = folder.strip_prefix(prefix) {
                self.check_links(prefix, below)?;
            }
            match std::fs::remove_dir(folder) {
                Err(error) if is_no_matter(error.kind()) => {}
                other => other.map_err(|source| RecordError::Folder { path: folder.clone(), source })?,
            }
        }
        Ok(())
    }
}

/// Target of a link; `None` if the path is not a link or the target does not exist.
fn target_of(path: &Path) -> Option<PathBuf> {
    let is_link = path.symlink_metadata().is_ok_and(|about| about.is_symlink());
    is_link.then(|| path.canonicalize().ok()).flatten()
}

/// Removes a file that may already be gone.
fn remove_file(path: &Path) -> Result<(), RecordError> {
    match std::fs::remove_file(path) {
        Err(error) if is_no_matter(error.kind()) => Ok(()),
        other => other.map_err(|source| RecordError::File { path: path.to_owned(), source }),
    }
}

/// Whether the error means that the path is already gone, or that the folder contains files of others.
fn is_no_matter(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::DirectoryNotEmpty)
}
