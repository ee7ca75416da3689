//! What must hold for any bytes: one function for each fuzz target.
//!
//! The same functions run on drawn bytes in the ordinary tests: `crates/diag/tests/hostile.rs`.

pub mod diag;
