//! Experiments: programs on an emulated network, and comparisons of this code with real time, with real transports and with
//! Linux's kernel.
//!
//! | module | contents |
//! | --- | --- |
//! | [`emulated`], [`programs`] | a run of unmodified programs behind the network of a scenario |
//! | [`telemetry`] | radio reports of the devices for these programs |
//! | [`stage`] | the network in real time, and parts of an experiment in it |
//! | [`part`] | description of a part: this program itself, started again |
//! | [`inside`], [`play`] | the work of a part |
//! | [`finish`] | the results of a run |
//! | [`emu_agree`], [`schedule`] | one schedule of packets in real and in virtual time |
//! | [`over`], [`agree`] | transports; schemes over real transports and in the simulator |
//! | [`kernel_truth`] | Linux's congestion controls and Airpace's schemes over the same links |
//! | [`granularity`] | the interval between KPIs, their latency and their cost |
//! | [`shells`] | networks with one element, named like mahimahi's shells |
//! | [`simulated`] | the log of a simulated device's modem |
//! | [`machine`] | this machine: what it can run, and what is missing |
//! | [`selftest`] | throughput tests of the emulator on this machine |
//!
//! An experiment starts parts of itself inside of the emulated network. The front end therefore names its own command line
//! ([`part::Executable`]).
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod agree;
pub mod emu_agree;
pub mod emulated;
pub mod error;
pub mod finish;
pub mod granularity;
pub mod inside;
pub mod kernel_truth;
pub mod machine;
pub mod over;
pub mod part;
pub mod play;
pub mod programs;
pub mod schedule;
pub mod selftest;
pub mod shells;
pub mod simulated;
pub mod stage;
pub mod telemetry;

pub use error::LabError;
pub use part::Executable;
