//! Reads recorded files of reference values for the radio tests, if the files are available.

/// The rows of numbers in a file of the cell model's data, without the header row; `None` if the file is missing.
pub(in crate::cell) fn rows(name: &str) -> Option<Vec<Vec<f64>>> {
    let file = airpace_testing::recordings(&format!("../docs/cell-model-data/{name}"))?;
    let text = std::fs::read_to_string(file).expect("rows of numbers");
    let numbers = |line: &str| line.split(',').map(|field| field.parse().expect("a number")).collect();
    Some(text.lines().skip(1).map(numbers).collect())
}
