//! Record of an installation: the only files and folders that `airpace uninstall` removes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::cannot_write;

/// Path of the record below the prefix.
pub const RECORD: &str = "share/airpace/installed.json";

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
    pub fn read(prefix: &Path) -> anyhow::Result<Option<Record>> {
        let path = prefix.join(RECORD);
        let text = match airpace_files::read_to_string(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        let record = serde_json::from_str(&text).ok().and_then(|value| Record::from_json(&value));
        let Some(record) = record else {
            bail!(
                "`{}` is not a record of what was installed; install again to write it anew",
                path.display()
            );
        };
        let is_below = |file: &PathBuf| file.components().all(|part| matches!(part, Component::Normal(_)));
        let is_ours = |folder: &PathBuf| folder.starts_with(prefix) || prefix.starts_with(folder);
        if !record.files.iter().all(is_below) || !record.folders.iter().all(is_ours) {
            bail!("`{}` names files outside `{}`; nothing was removed", path.display(), prefix.display());
        }
        Ok(Some(record))
    }

    /// Writes the record, and creates its folders.
    ///
    /// # Errors
    /// The record cannot be written; the message contains its path.
    pub fn write(&self, prefix: &Path) -> anyhow::Result<()> {
        let path = prefix.join(RECORD);
        let paths = |paths: &BTreeSet<PathBuf>| paths.iter().map(|path| json!(path)).collect::<Value>();
        let value = json!({
            "version": self.version, "files": paths(&self.files), "folders": paths(&self.folders), "links": self.links,
        });
        let text = serde_json::to_string_pretty(&value).expect("plain data with text keys") + "\n";
        std::fs::create_dir_all(path.parent().unwrap_or(prefix))
            .and_then(|()| airpace_files::replace(&path, text))
            .map_err(cannot_write(&path))
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
    pub fn note_folders(&mut self, prefix: &Path, file: &Path) {
        let path = prefix.join(file);
        let missing = path.ancestors().skip(1).take_while(|folder| !folder.exists());
        self.folders.extend(missing.map(Path::to_owned));
    }

    /// Records the links among the folders above `file`: the user's own links, through which the file is installed.
    pub fn note_links(&mut self, prefix: &Path, file: &Path) {
        for folder in file.ancestors().skip(1) {
            if let Some(target) = target_of(&prefix.join(folder)) {
                self.links.insert(folder.to_owned(), target);
            }
        }
    }

    /// Fails if one of the folders above `file` has become a link since the installation: files behind such a link were
    /// not installed.
    fn check_links(&self, prefix: &Path, file: &Path) -> anyhow::Result<()> {
        for folder in file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            let path = prefix.join(folder);
            let Some(target) = target_of(&path) else { continue };
            if self.links.get(folder) != Some(&target) {
                bail!(
                    "`{}` is a link to `{}` now, and was none when airpace was installed; remove the link, or put the folder \
                     back, and start again",
                    path.display(),
                    target.display()
                );
            }
        }
        Ok(())
    }

    /// Removes an installed file that may already be gone.
    ///
    /// # Errors
    /// A folder above the file has become a link, or a system call failed.
    pub fn remove_file(&self, prefix: &Path, file: &Path) -> anyhow::Result<()> {
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
    pub fn remove(&self, prefix: &Path) -> anyhow::Result<()> {
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
                other => other.with_context(|| format!("cannot remove `{}`", folder.display()))?,
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
fn remove_file(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if is_no_matter(error.kind()) => Ok(()),
        other => other.with_context(|| format!("cannot remove `{}`; who installed it can", path.display())),
    }
}

/// Whether the error means that the path is already gone, or that the folder contains files of others.
fn is_no_matter(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::DirectoryNotEmpty)
}
