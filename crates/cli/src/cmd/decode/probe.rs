//! Hint about a recording in which no cell was detected.

use std::path::Path;

use airpace_sdr::decode::probe::{self, OtherReading};
use airpace_sdr::iq::Format;

use super::stats::describe;
use crate::terminal::thousands;

/// Tries other formats and other rates for a file in which no cell is detected with `rate_hz` and `format`. Returns a hint
/// for the user; `None` if no other format or rate helps, or if the input is not a regular file.
pub fn other_reading(path: &Path, rate_hz: Option<f64>, format: Option<Format>) -> Option<String> {
    let OtherReading { cell, rate_hz, format, is_described } = probe::other_reading(path, rate_hz, format)?;
    let without =
        if is_described { ", or neither of them: its description contains these values" } else { "" };
    Some(format!(
        "{}: read as {format} at {} samples per second it has {}: give --rate {rate_hz} --format {format}{without}",
        path.display(),
        thousands(rate_hz as u64),
        describe(&cell),
    ))
}
