//! Properties that must hold for any input: one function for each fuzz target.
//!
//! The same functions run on random bytes in the ordinary tests: `tests/hostile.rs` of the crates `radio`, `diag`,
//! `phy`, `live`, `od`, `sim`, `emu` and `eval`, and `tests/hostile_transfer.rs` and
//! `tests/hostile_hq.rs` of `net`.
//! `phy`, `live`, `od`, `sim`, `emu`, `eval` and `net`, and `tests/hostile_transfer.rs` of `net`.

mod choices;
pub mod diag;
pub mod emu;
pub mod folder;
pub mod hq;
pub mod iq;
pub mod net;
pub mod od;
pub mod phy;
pub mod quic;
pub mod radio;
pub mod samples;
pub mod scenario;
pub mod sweep;
pub mod transfer;
