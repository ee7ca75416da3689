//! What a packet crosses, as pure machines that chain: [`wire`], [`queue`], [`trace`] and [`cell`]; and all of them together
//! as one [`network`], with a route for each flow and direction.
//!
//! Every one is a [`Link`]: packets are pushed, time passes, packets exit. Simulator and emulator chain the same
//! objects, so they can disagree about the clock, never about the network.

pub mod cell;
pub mod config_error;
pub mod link;
pub mod network;
pub mod queue;
pub mod trace;
pub mod wire;

pub use config_error::ConfigError;
pub use link::{Exit, Link};
pub use network::{Network, NetworkPlan};
