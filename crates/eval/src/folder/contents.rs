//! What lies in a run folder: what its run wrote (the manifest tells) and what others put there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

use airpace_files::unfinished;

use super::Manifest;
use crate::tables::{TABLES, percent_encoded};

/// Files that lie directly in a run folder.
const FILES: [&str; 6] =
    ["manifest.json", "summary.json", "report.html", "agreement.json", "agreement.parquet", "schedule.csv"];
/// The folder of its scenarios.
const SCENARIOS: &str = "scenarios";
/// The folder of its qlogs, partitioned as tables are.
const QLOG: &str = "qlog";

/// What lies in a run folder.
#[derive(Default)]
pub(super) struct Contents {
    /// Files that the run wrote, or was writing when it was killed.
    files: Vec<PathBuf>,
    /// Folders that the run made. A folder comes before the folders inside it.
    folders: Vec<PathBuf>,
    /// Anything else within these folders: readers would take it for a part of the run. Other things at the top of the
    /// run folder are left alone.
    pub(super) strangers: Vec<PathBuf>,
}

impl Contents {
    /// Looks through `root`; links are not followed.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub(super) fn of(root: &Path, manifest: &Manifest) -> Result<Contents> {
        let names = Names::of(manifest);
        let mut contents = Contents::default();
        contents.look(root, &mut Vec::new(), &names)?;
        Ok(contents)
    }

    fn look(&mut self, folder: &Path, parents: &mut Vec<String>, names: &Names) -> Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, path) = (entry.file_name(), entry.path());
            let kind = entry.file_type()?;
            match kind {
                _ if kind.is_dir() && names.own_folder(parents, &name) => {
                    self.folders.push(path.clone());
                    parents.push(name.to_string_lossy().into_owned());
                    self.look(&path, parents, names)?;
                    parents.pop();
                }
                _ if names.own_file(parents, &name, kind) => self.files.push(path),
                _ if parents.is_empty() && !is_of_a_run(&name) => {}
                _ => self.strangers.push(path),
            }
        }
        Ok(())
    }

    /// Removes what the run wrote, and its folders if nothing else is in them. The file `last` is removed last.
    ///
    /// # Errors
    /// What the operating system refuses, and for which file or folder.
    pub(super) fn remove(&self, last: &Path) -> std::result::Result<(), (PathBuf, std::io::Error)> {
        let (end, rest): (Vec<_>, Vec<_>) = self.files.iter().partition(|file| **file == last);
        for file in &rest {
            gone(fs::remove_file(file), &[]).map_err(|error| ((*file).clone(), error))?;
        }
        for folder in self.folders.iter().rev() {
            gone(fs::remove_dir(folder), &[ErrorKind::DirectoryNotEmpty])
                .map_err(|error| (folder.clone(), error))?;
        }
        end.into_iter()
            .try_for_each(|file| gone(fs::remove_file(file), &[]).map_err(|error| (file.clone(), error)))
    }
}

/// Something that is gone already is no error. Neither are the kinds of error in `also`.
fn gone(result: Result<()>, also: &[ErrorKind]) -> Result<()> {
    result.or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        kind if also.contains(&kind) => Ok(()),
        _ => Err(error),
    })
}

/// The names that the files and folders of a run have.
struct Names {
    /// Files of the folder `scenarios`.
    texts: BTreeSet<String>,
    /// Folders of partitions, level by level.
    partitions: [BTreeSet<String>; 3],
}

impl Names {
    fn of(manifest: &Manifest) -> Names {
        let text = |file: &str| Some(file.strip_prefix(SCENARIOS)?.strip_prefix('/')?.to_owned());
        let named = |key: &str, name: &str| format!("{key}={}", percent_encoded(name));
        let scenarios = manifest.scenarios.iter();
        let schemes = manifest.schemes.iter().chain(manifest.choices.iter().map(|choice| &choice.text));
        Names {
            texts: scenarios.clone().filter_map(|scenario| text(&scenario.file)).collect(),
            partitions: [
                scenarios.map(|scenario| named("scenario", &scenario.name)).collect(),
                schemes.map(|scheme| named("scheme", scheme)).collect(),
                manifest.seeds.iter().map(|seed| format!("seed={seed}")).collect(),
            ],
        }
    }

    /// Whether a run makes a folder of this name there.
    fn own_folder(&self, parents: &[String], name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        match parents {
            [] => is_partitioned(name) || name == SCENARIOS,
            [table, levels @ ..] if is_partitioned(table) => {
                self.partitions.get(levels.len()).is_some_and(|names| names.contains(name))
            }
            _ => false,
        }
    }

    /// Whether a run makes a file of this name there, or a file that is to get this name.
    fn own_file(&self, parents: &[String], name: &OsStr, kind: FileType) -> bool {
        let Some(name) = unfinished(name).or(name.to_str()) else { return false };
        let is_named = match parents {
            [] => FILES.contains(&name),
            [folder] if folder == SCENARIOS => self.texts.contains(name),
            [folder, _, _, _] if folder == QLOG => is_flow(name),
            [_, _, _, _] => name == "part.parquet",
            _ => false,
        };
        // Somebody may have put a link in the place of the run's file. The link may be removed, because it is not
        // followed.
        is_named && (kind.is_file() || kind.is_symlink())
    }
}

/// Whether a run makes a file or folder of this name at the top of its folder.
fn is_of_a_run(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| is_partitioned(name) || name == SCENARIOS || FILES.contains(&name))
}

fn is_partitioned(name: &str) -> bool {
    TABLES.contains(&name) || name == QLOG
}

/// `flow-0.sqlog`.
fn is_flow(name: &str) -> bool {
    let number = name.strip_prefix("flow-").and_then(|name| name.strip_suffix(".sqlog"));
    number.is_some_and(|number| number.parse::<u16>().is_ok())
}
