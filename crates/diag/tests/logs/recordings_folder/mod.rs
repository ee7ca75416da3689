//! Location of the recorded logs.

use std::path::{Path, PathBuf};

/// The folder of the recorded logs, if available.
pub fn recordings() -> Option<PathBuf> {
    airpace_testing::recordings("diag")
}

/// The recorded logs in the folder, sorted by name.
pub fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut logs: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "qmdl" || ending == "mi2log"));
    logs.sort();
    assert!(logs.len() >= 10, "the recordings are there");
    logs
}
