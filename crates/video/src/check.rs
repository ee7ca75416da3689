//! Checks of configured values. Every error names the key and the remedy.

use airpace_core::{Refused, Remedy};

/// Maximum width and height of a picture in pixels.
///
/// Chosen: the maximum of 16K, which no phone plays.
const MAX_PIXELS: u32 = 15_360;

/// Rejects a value outside of `range`, or that is not a number. `unit` follows the range in the remedy.
pub(crate) fn check(key: &str, value: f64, range: (f64, f64), unit: &str) -> Result<(), Refused> {
    let (least, most) = range;
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let remedy = Remedy::new(format!("give {least} to {most} {unit}"));
    Err(Refused::new(format!("`{key}` is {value}")).but(remedy))
}

/// Rejects a width or height that no picture has.
pub(crate) fn pixels(key: &str, pixels: u32) -> Result<(), Refused> {
    if (1..=MAX_PIXELS).contains(&pixels) {
        return Ok(());
    }
    let remedy = format!("give 1 to {MAX_PIXELS} pixels (3840 and 2160 are 4K)");
    Err(Refused::new(format!("`{key}` is {pixels}")).but(Remedy::new(remedy)))
}
