//! The native half of the Python package `airpace`.
use pyo3::prelude::*;

#[pymodule]
mod _airpace {}
