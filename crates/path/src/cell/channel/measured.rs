//! Files that the tests of the radio compare with, where they are.

use std::path::PathBuf;

/// Rows of numbers of a file of the cell model's data, header left out; `None`, with the reason printed, if absent.
pub(in crate::cell) fn rows(name: &str) -> Option<Vec<Vec<f64>>> {
    let data = std::env::var_os("AIRPACE_DATA")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let file = data.join("../docs/cell-model-data").join(name);
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!(
            "skipped: {} is not there; set AIRPACE_DATA to the folder with the shared data",
            file.display()
        );
        return None;
    };
    let numbers = |line: &str| line.split(',').map(|field| field.parse().expect("a number")).collect();
    Some(text.lines().skip(1).map(numbers).collect())
}
