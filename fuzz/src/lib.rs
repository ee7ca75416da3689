//! What must hold for any input: one function for each fuzz target.
//!
//! The same functions run on drawn bytes in the ordinary tests: `tests/hostile.rs` of the crates `diag`, `phy` and `live`.

mod choices;
pub mod diag;
pub mod iq;
pub mod phy;
pub mod samples;
