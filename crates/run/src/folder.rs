//! Run folder: the files that a run writes. The report is made from these files alone.
//!
//! ```text
//! RUN/
//! ├── manifest.json    scenarios, schemes, seeds, version and host of the run, and whether the run is complete
//! ├── scenarios/       the scenarios as they were run, after --set
//! ├── summary.json     all metrics of all runs, and the verdicts on expectations
//! ├── packets/ acks/ losses/ controller/ prbs/ capacity/     Parquet, see [`airpace_tables`]
//! ├── departures/      Parquet; only emulated runs, which have this table, `prbs/` and `capacity/`
//! ├── qlog/            qlogs, if requested
//! ├── agreement.json, agreement.parquet, schedule.csv     only for emulated runs that were compared with virtual time
//! └── report.html      the report page
//! ```
//!
//! The same scenarios, schemes and seeds give the same bytes, except for the manifest's `host` part. An emulated run is
//! not reproducible in this sense: see [`crate::emulation`]. If the program was called from a checkout, the commands in
//! manifest and page contain `./airpace` instead of `airpace`, so that they can be pasted into a shell. The manifest is
//! written first with `"complete": false`, and again at the end, after the page. An interrupted run can thus be
//! distinguished from a complete one.

mod contents;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpace_tables::agreement::{self as table, Compared};
use airpace_tables::read::read_table;
use airpace_tables::{Batches, FileError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::agreement::Agreement;
use crate::error::{RunError, another_folder};
use crate::manifest::Manifest;
use crate::summary::Summary;
use contents::Contents;

/// A folder that holds a run or is prepared for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    root: PathBuf,
}

impl RunFolder {
    /// Prepares `root` for a new run: creates the folder, or removes the files of an earlier run from it.
    ///
    /// # Errors
    /// The folder cannot be written, or holds anything that the earlier run did not write. In the latter case nothing is
    /// removed.
    pub fn create(root: &Path) -> Result<RunFolder, RunError> {
        let folder = RunFolder { root: root.to_owned() };
        fs::create_dir_all(root).map_err(FileError::write("make the folder", root))?;
        let mut entries = fs::read_dir(root).map_err(FileError::write("look into", root))?;
        if entries.next().is_some() {
            let Ok(manifest) = folder.manifest() else {
                return Err(RunError::Occupied {
                    path: root.to_owned(),
                    remedy: another_folder().text(", or empty this one"),
                });
            };
            let contents = folder.contents(&manifest)?;
            if let [first, rest @ ..] = &contents.strangers[..] {
                return Err(RunError::strangers(first, rest.len()));
            }
            folder.clear(&contents)?;
        }
        Ok(folder)
    }

    /// Opens the folder of an earlier run.
    ///
    /// # Errors
    /// The folder has no readable manifest.
    pub fn open(root: &Path) -> Result<RunFolder, RunError> {
        let folder = RunFolder { root: root.to_owned() };
        folder.manifest()?;
        Ok(folder)
    }

    /// Path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// The manifest is missing or malformed.
    pub fn manifest(&self) -> Result<Manifest, FileError> {
        self.read_json("manifest.json")
    }

    /// Reads the summary: all numbers of all completed runs.
    ///
    /// # Errors
    /// The summary is missing, malformed, or contains numbers that no run can have.
    pub fn summary(&self) -> Result<Summary, FileError> {
        let summary: Summary = self.read_json("summary.json")?;
        summary
            .check()
            .map_err(|reason| FileError::Malformed { path: self.root.join("summary.json"), reason })?;
        Ok(summary)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), FileError> {
        self.write_json("manifest.json", manifest)
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), FileError> {
        self.write_json("summary.json", summary)
    }

    /// Reads the comparison of an emulated run with virtual time; `None` if the folder has none.
    ///
    /// # Errors
    /// The file is malformed or cannot be read.
    pub fn agreement(&self) -> Result<Option<Agreement>, FileError> {
        match self.read_json("agreement.json") {
            Err(error) if error.is_missing_file() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Writes the comparison of an emulated run with virtual time: `agreement.json`, and `agreement.parquet` with the
    /// packets.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_agreement(&self, agreement: &Agreement, packets: &[Compared]) -> Result<(), FileError> {
        self.write_json("agreement.json", agreement)?;
        table::write(&self.root.join("agreement.parquet"), packets)
    }

    /// Reads a table of this folder into memory: the rows of all runs, one run after the other.
    ///
    /// # Errors
    /// No table has this name, or the summary or a file of the table cannot be read.
    pub fn table(&self, table: &str) -> Result<Batches, FileError> {
        read_table(&self.root, table, &self.summary()?.keys())
    }

    /// Writes a file of this folder atomically: either the whole file or nothing.
    ///
    /// # Errors
    /// The file or its folder cannot be written.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, FileError> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(FileError::write("make the folder", folder))?;
        airpace_files::replace(&path, contents).map_err(FileError::write("write", &path))?;
        Ok(path)
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), FileError> {
        let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys");
        text.push('\n');
        self.write(name, text.as_bytes()).map(drop)
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, FileError> {
        let path = self.root.join(name);
        let text = airpace_files::read_to_string(&path, MAX_JSON_BYTES).map_err(FileError::read(&path))?;
        serde_json::from_str(&text).map_err(|error| FileError::Malformed { path, reason: error.to_string() })
    }

    /// Removes the files of the run, and the folder if it is empty then. Returns whether the folder was removed. Links
    /// are not followed.
    ///
    /// # Errors
    /// A file cannot be removed, or the manifest cannot be read.
    pub fn remove(self) -> Result<bool, FileError> {
        self.clear(&self.contents(&self.manifest()?)?)?;
        match fs::remove_dir(&self.root) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(error) => Err(FileError::write("remove", &self.root)(error)),
        }
    }

    fn contents(&self, manifest: &Manifest) -> Result<Contents, FileError> {
        Contents::of(&self.root, manifest).map_err(FileError::write("look into", &self.root))
    }

    /// Removes only the files that the run wrote. The manifest is removed last, because it marks the folder as a run
    /// folder.
    fn clear(&self, contents: &Contents) -> Result<(), FileError> {
        contents
            .remove(&self.root.join("manifest.json"))
            .map_err(|(path, error)| FileError::write("remove", &path)(error))
    }
}

/// Maximum size of a manifest or summary (bytes).
///
/// Chosen: enough for hundreds of thousands of flows.
const MAX_JSON_BYTES: u64 = 1 << 28;
