//! Means with intervals.

use airpace_run::statistics::Estimate;
use pyo3::prelude::*;

/// A mean, and the ends of its interval.
type Mean = (f64, Option<(f64, f64)>);

/// Geometric mean of ratios, with the ends of its 95 % interval, which are `None` if there is none. `None` without ratios, or if
/// one is not positive.
#[pyfunction]
pub fn geometric_mean(ratios: Vec<f64>) -> Option<Mean> {
    Estimate::geometric(&ratios).map(|Estimate { value, interval }| (value, interval))
}
