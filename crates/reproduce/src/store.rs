//! Finished runs on the disk. A run is known by the hash of all that it depends on: the version of the program, the scenario
//! with every key, the files that it names, the scheme with every option, the seed.

use std::path::{Path, PathBuf};

use airpace_run::RunError;
use airpace_run::metrics::{Course, RadioTrace};
use airpace_run::summary::RunSummary;
use airpace_run::sweep::Key;
use airpace_tables::FileError;
use serde::{Deserialize, Serialize};

use crate::measure::Measured;

/// A run as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// All metrics.
    pub summary: RunSummary,
    /// The courses of its flows.
    pub courses: Vec<Course>,
}

/// Maximum size of a stored run (bytes).
///
/// Chosen: a hundred times the size of the largest run of any experiment.
const MAX_BYTES: u64 = 64 << 20;

/// The folder of finished runs.
#[derive(Clone, Debug)]
pub struct Store {
    /// `None` if nothing is stored.
    root: Option<PathBuf>,
    /// The build of the program, such as its commit: part of every key, because another build may give other numbers.
    build: String,
}

impl Store {
    /// The store in the folder `root`, which is created with the first run, for runs of this build of the program.
    pub fn new(root: &Path, build: &str) -> Store {
        Store { root: Some(root.to_owned()), build: build.to_owned() }
    }

    /// A store that has no runs, for a process that sends its runs to another.
    pub fn nowhere() -> Store {
        Store { root: None, build: String::new() }
    }

    /// The run with this key; `None` if it was not made, or if its file is damaged, so that it is made again.
    pub fn get(&self, key: Key) -> Option<Stored> {
        let text = airpace_files::read_to_string(&self.path(key)?, MAX_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Stores a run. A store without a folder drops it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, key: Key, run: &Stored) -> Result<(), RunError> {
        match self.path(key) {
            Some(path) => write(&path, run),
            None => Ok(()),
        }
    }

    /// The details of a run's radio in a span of milliseconds; `None` if they were not kept, or if the file is damaged.
    pub fn trace(&self, key: Key, span_ms: (u64, u64)) -> Option<RadioTrace> {
        let text = airpace_files::read_to_string(&self.path_of_trace(key, span_ms)?, MAX_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Stores the details of a run's radio. A store without a folder drops them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put_trace(&self, key: Key, span_ms: (u64, u64), trace: &RadioTrace) -> Result<(), RunError> {
        match self.path_of_trace(key, span_ms) {
            Some(path) => write(&path, trace),
            None => Ok(()),
        }
    }

    /// The result of the measurement with this name; `None` if it was not made, or if the file is damaged.
    pub fn measured(&self, name: &str) -> Option<Measured> {
        let text = airpace_files::read_to_string(&self.path_of_measured(name)?, MAX_BYTES).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Stores the result of a measurement. A store without a folder drops it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put_measured(&self, name: &str, measured: &Measured) -> Result<(), RunError> {
        match self.path_of_measured(name) {
            Some(path) => write(&path, measured),
            None => Ok(()),
        }
    }

    /// The folder of this build; `None` if nothing is stored.
    pub fn folder(&self) -> Option<PathBuf> {
        let build: String =
            self.build.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Some(self.root.as_ref()?.join(build))
    }

    fn path_of_measured(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder()?.join("measured").join(format!("{name}.json")))
    }

    fn path_of_trace(&self, key: Key, (from_ms, until_ms): (u64, u64)) -> Option<PathBuf> {
        Some(self.path(key)?.with_extension(format!("radio-{from_ms}-{until_ms}.json")))
    }

    fn path(&self, key: Key) -> Option<PathBuf> {
        let name = key.to_string();
        Some(self.folder()?.join(&name[..2]).join(format!("{name}.json")))
    }
}

fn write(path: &Path, content: &impl Serialize) -> Result<(), RunError> {
    let folder = path.parent().expect("a run is in a folder");
    std::fs::create_dir_all(folder).map_err(FileError::write("make the folder", folder))?;
    let text = serde_json::to_string(content).expect("plain data with text keys");
    airpace_files::replace(path, text).map_err(FileError::write("write", path))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_again_by_its_key_and_build_only() {
        let folder = tempfile::tempdir().unwrap();
        let summary = serde_json::json!({
            "scenario": "story", "scheme": "pbe", "seed": 1, "duration_s": 1.0, "flows": [], "jain": [], "jain_prbs": [],
            "carriers": [],
        });
        let run =
            Stored { summary: serde_json::from_value(summary).unwrap(), courses: vec![Course::default()] };
        let store = Store::new(folder.path(), "0.1.0 abc");
        assert_eq!(store.get(Key([7; 16])), None);
        store.put(Key([7; 16]), &run).unwrap();
        assert_eq!(store.get(Key([7; 16])), Some(run));
        assert_eq!(store.get(Key([8; 16])), None);
        assert_eq!(Store::new(folder.path(), "0.1.0 def").get(Key([7; 16])), None);
        let trace = RadioTrace { span_s: (1.0, 2.0), ..RadioTrace::default() };
        store.put_trace(Key([7; 16]), (1000, 2000), &trace).unwrap();
        assert_eq!(store.trace(Key([7; 16]), (1000, 2000)), Some(trace));
        assert_eq!(store.trace(Key([7; 16]), (1000, 3000)), None, "another span");
        std::fs::write(store.path(Key([7; 16])).unwrap(), "{").unwrap();
        assert_eq!(store.get(Key([7; 16])), None, "a damaged run is made again");
    }
}
