//! libOD: distribution of a modem's key performance indicators (KPIs) to programs through shared memory.
//!
//! ```text
//!            daemon                                             any number of programs
//! ┌───────────────────────────┐  control socket: names, leases  ┌──────────────────┐
//! │ control thread   Board    │◀───────────────────────────────▶│ Od, Kpi          │
//! │ data thread      Publisher│══ board: sealed shared memory ═▶│ latest(), wait() │
//! └───────────────────────────┘        (read only there)        └──────────────────┘
//! ```
//!
//! A program connects to the daemon's control socket and subscribes to KPIs by name. It then reads the latest
//! [`Reading`] of each KPI from memory that it shares with the daemon: without a system call, without a lock, and
//! without work for the daemon. No reader can delay the daemon. Readers detect a dead daemon by its missing heartbeat.
//!
//! | module | content |
//! | --- | --- |
//! | [`slot`] | lock-free triple buffer: one writer, any number of readers, none of them waits |
//! | [`layout`] | memory layout of the shared-memory region (the *board*) |
//! | [`board`] | daemon side: adds KPIs, publishes readings, writes the heartbeat |
//! | [`reader`] | program side, in Rust |
//! | [`c`] | program side, in C, as declared in `include/od.h` |
//! | [`control`] | control protocol: server and client for the region, the list of KPIs and leases |
//! | [`clock`] | the clock of all timestamps in the region |
//!
//! libOD supports only 64-bit Linux and Android, because it needs sealed memory, futexes and the kernel's vDSO clock.
//!
//! Source: BISCAY §3.2.3; BISCAY §4

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[cfg(not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64")))]
compile_error!("libOD needs Linux or Android of 64 bits: sealed memory, futexes, the kernel's clock page");

pub mod board;
pub mod c;
pub mod clock;
pub mod control;
mod error;
pub mod layout;
mod map;
mod peer;
pub mod reader;
pub mod slot;

pub use board::{Board, Entry, Publisher, SlotId};
pub use control::{KpiInfo, default_dir};
pub use error::Error;
pub use reader::{Kpi, Od, Reading};

/// Compiles the code examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
