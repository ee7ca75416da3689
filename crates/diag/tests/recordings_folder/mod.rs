//! Where recorded logs are.

use std::path::{Path, PathBuf};

/// The folder of recordings, if it is there.
pub fn recordings() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("AIRPACE_DATA").map_or(default, PathBuf::from).join("diag");
    if !folder.is_dir() {
        println!("skipped: no recorded logs; set AIRPACE_DATA to the folder that has diag/");
        return None;
    }
    Some(folder)
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
