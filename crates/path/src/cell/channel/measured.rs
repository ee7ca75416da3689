//! Reader for the recorded files with which the radio tests compare, if the files are available.

/// Rows of numbers of a file of the cell model's data, without the header.
pub(in crate::cell) fn rows(name: &str) -> Option<Vec<Vec<f64>>> {
    let file = airpace_testing::recordings(&format!("../docs/cell-model-data/{name}"))?;
    let text = std::fs::read_to_string(file).expect("rows of numbers");
    let numbers = |line: &str| line.split(',').map(|field| field.parse().expect("a number")).collect();
    Some(text.lines().skip(1).map(numbers).collect())
}
