//! Location of the recorded logs.

use std::path::{Path, PathBuf};

/// The folder of recorded logs, if available.
pub fn recordings() -> Option<PathBuf> {
    airpace_testing::recordings("diag")
}

/// The logs in the folder, by name.
pub fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut logs: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "qmdl" || ending == "mi2log"));
    logs.sort();
    assert!(logs.len() >= 10, "the recordings are there");
    logs
}
