//! What a packet crosses, as pure machines that chain: [`wire`], [`queue`], [`trace`] and [`cell`].
//!
//! Every one is a [`Link`]: packets are pushed, time passes, packets exit. Simulator and emulator chain the same
//! objects, so they can disagree about the clock, never about the network.

pub mod cell;
pub mod config_error;
pub mod link;
pub mod queue;
pub mod trace;
pub mod wire;

pub use config_error::ConfigError;
pub use link::{Exit, Link};
