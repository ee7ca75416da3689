//! Simulation in virtual time: input is a [`Scenario`] and a scheme, output is a sequence of events.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use airpace_event::Discard;
//! use airpace_sim::{Scenario, SchemeSpec, builtin};
//!
//! let (name, text) = builtin()[0];
//! let sets = [("duration_s".to_owned(), "0.5".to_owned())];
//! let scenario = Scenario::load(text, name, &sets)?;
//! let scheme = SchemeSpec::parse("cubic")?;
//! let stats = airpace_sim::run(&scenario, &scheme, 1, &mut Discard, &mut |_| ControlFlow::Continue(()))?;
//! assert!(stats.flows[0].delivered > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | purpose |
//! | --- | --- |
//! | `run` | runs of a [`Scenario`] |
//! | `driver` | the simulation loop: it advances from deadline to deadline, and drives endpoints and network |
//! | `agenda` | deadlines of the components |
//! | `flow`, `traffic` | a flow: its endpoints, its application |
//! | `transfers`, `connections` | transfers of a flow of limited size, and their connections |
//! | `playing` | the player of a flow with a video, whose segments are transfers |
//! | `foresight` | advance information of an Oracle about a cell |
//! | `lie` | receivers that misreport |
//! | `replacement` | replaced endpoints of a flow, for ACK traces and comparisons |
//! | `clock` | a device's clock, which may be wrong |
//! | `antenna` | a device that decodes the control channel from radio samples |
//!
//! Identical scenario, scheme and seed give identical events, bit for bit, on any machine.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod agenda;
mod antenna;
mod clock;
mod connections;
mod driver;
mod error;
mod flow;
mod foresight;
mod lie;
mod playing;
mod relay;
mod replacement;
mod run;
mod stats;
mod traffic;
mod transfers;

pub use airpace_cc::schemes::SCHEMES;
pub use airpace_cc::{Scheme, SchemeError, SchemeSpec};
pub use airpace_scenario::{self as scenario, Prepared, Scenario, ScenarioError, Variants, builtin};
pub use clock::DeviceClock;
pub use driver::Progress;
pub use error::RunError;
pub use playing::viewed;
pub use replacement::{EndpointReplacement, Replace};
pub use run::{run, run_changed, run_departures, run_prepared, run_traced};
pub use stats::{FlowStats, RunStats};
