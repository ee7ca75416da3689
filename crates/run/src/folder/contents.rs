//! Contents of a run folder: files of its run, according to the manifest, and files of others.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

use airpace_files::unfinished;
use airpace_tables::{TABLES, percent_encoded};

use crate::manifest::Manifest;

/// Files at the top level of a run folder.
const FILES: [&str; 6] =
    ["manifest.json", "summary.json", "report.html", "agreement.json", "agreement.parquet", "schedule.csv"];
/// Name of the folder with the scenarios.
const SCENARIOS: &str = "scenarios";
/// Name of the folder with the qlogs, which is partitioned like a table.
const QLOG: &str = "qlog";

/// Contents of a run folder.
#[derive(Default)]
pub(super) struct Contents {
    /// Files that the run wrote, including temporary files of a run that was killed.
    files: Vec<PathBuf>,
    /// Folders that the run created. Parents come before their children.
    folders: Vec<PathBuf>,
    /// All other entries within these folders. Readers would interpret them as parts of the run. Unknown entries at the
    /// top level of the run folder are ignored.
    pub(super) strangers: Vec<PathBuf>,
}

impl Contents {
    /// Lists the contents of `root` recursively. Links are not followed.
    ///
    /// # Errors
    /// A folder cannot be read.
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

    /// Removes the files of the run, and its folders if they are then empty. The file `last` is removed last.
    ///
    /// # Errors
    /// The file or folder that cannot be removed, with the operating system's error.
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

/// Ignores the error that a file or folder does not exist, and errors of the kinds in `also`.
fn gone(result: Result<()>, also: &[ErrorKind]) -> Result<()> {
    result.or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        kind if also.contains(&kind) => Ok(()),
        _ => Err(error),
    })
}

/// Names of the files and folders of a run.
struct Names {
    /// Files in the folder `scenarios`.
    texts: BTreeSet<String>,
    /// Names of the partition folders, at the three levels: by scenario, by scheme, by seed.
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

    /// Whether a run creates a folder with this name below `parents`.
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

    /// Whether a run creates a file with this name below `parents`, or a temporary file for it.
    fn own_file(&self, parents: &[String], name: &OsStr, kind: FileType) -> bool {
        let Some(name) = unfinished(name).or(name.to_str()) else { return false };
        let is_named = match parents {
            [] => FILES.contains(&name),
            [folder] if folder == SCENARIOS => self.texts.contains(name),
            [folder, _, _, _] if folder == QLOG => is_flow(name),
            [_, _, _, _] => name == "part.parquet",
            _ => false,
        };
        // The run's file may have been replaced by a link. The link may be removed, because removal does not follow it.
        is_named && (kind.is_file() || kind.is_symlink())
    }
}

/// Whether a run creates a file or folder with this name at the top level of its folder.
fn is_of_a_run(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| is_partitioned(name) || name == SCENARIOS || FILES.contains(&name))
}

fn is_partitioned(name: &str) -> bool {
    TABLES.contains(&name) || name == QLOG
}

/// Whether `name` is the name of a flow's qlog, such as `flow-0.sqlog`.
fn is_flow(name: &str) -> bool {
    let number = name.strip_prefix("flow-").and_then(|name| name.strip_suffix(".sqlog"));
    number.is_some_and(|number| number.parse::<u16>().is_ok())
}
