//! libOD: a modem's key performance indicators (KPIs), read from shared memory as they come.
//!
//! ```text
//!            daemon                                             any number of programs
//! ┌───────────────────────────┐  control socket: names, leases  ┌──────────────────┐
//! │ control thread   Board    │◀───────────────────────────────▶│ Od, Kpi          │
//! │ data thread      Publisher│══ board: sealed shared memory ═▶│ latest(), wait() │
//! └───────────────────────────┘        (read only there)        └──────────────────┘
//! ```
//!
//! A program opens the daemon by its socket, subscribes to KPIs by name, and reads the latest [`Reading`] of each from
//! memory that it shares with the daemon: without a system call, without a lock, and unnoticed by the daemon. No reader
//! can delay the daemon. Readers notice a dead daemon by its missing heartbeat.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`slot`] | the algorithm: three buffers, one writer, any number of readers that never wait |
//! | [`layout`] | what lies where on the board |
//! | [`board`] | the daemon's side: adds KPIs, publishes, gives signs of life |
//! | [`reader`] | the programs' side, in Rust |
//! | [`c`] | the same in C, as `include/od.h` declares it |
//! | [`control`] | the socket on which board, names and leases are asked for, both ends |
//! | [`clock`] | the clock of all times on the board |
//!
//! Only for Linux and Android of 64 bits: libOD needs sealed memory, futexes and the kernel's clock page.
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

/// Compiles the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
