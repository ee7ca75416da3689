//! The virtual clock: a [`Scenario`] and a scheme in, events out.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`scenario`] | one experiment as one TOML file |
//!
//! Same scenario, scheme and seed give the same events, bit for bit, on any machine.

pub mod scenario;

pub use airpace_cc::scheme::SCHEMES;
pub use airpace_cc::{Scheme, SchemeError, SchemeSpec};
pub use scenario::{Scenario, ScenarioError, builtin};
