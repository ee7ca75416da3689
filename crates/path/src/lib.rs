//! Models of the parts of a network path, as pure state machines that can be chained: [`wire`], [`queue`], [`trace`],
//! [`cellular`] and [`cell`]. A [`network`] combines all of them, with a route for each flow and direction. A [`recording`] of
//! a cell is a trace.
//!
//! Each part is a [`Link`]: packets are pushed, time passes, packets leave. Simulator and emulator use the same objects
//! and differ only in their clocks.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod cell;
pub mod cellular;
pub mod config_error;
pub mod link;
pub mod network;
pub mod queue;
pub mod recording;
pub mod trace;
pub mod wire;

pub use config_error::ConfigError;
pub use link::{Exit, Link};
pub use network::{Network, NetworkPlan};
