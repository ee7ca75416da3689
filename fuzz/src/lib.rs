//! Properties that must hold for any input: one function for each fuzz target.
//!
//! The same functions run on random bytes in the ordinary tests, in `tests/hostile*.rs` of the crates `radio`, `diag`, `phy`,
//! `sdr`, `od`, `sim`, `emu`, `run`, `page`, `feed`, `transport` and `transfer`.

mod choices;
pub mod diag;
pub mod emu;
pub mod folder;
pub mod hq;
pub mod http;
pub mod iq;
pub mod lines;
pub mod od;
pub mod phy;
pub mod quic;
pub mod radio;
pub mod samples;
pub mod scenario;
pub mod sweep;
pub mod transfer;
pub mod transport;
