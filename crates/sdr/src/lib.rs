//! Sampled radio: samples from files and radios, and the threads that decode them.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`iq`] | radio samples in files |
//! | [`radio`] | radio samples from radios, through SoapySDR |
//! | [`decode`] | from samples to the grants of all users: one decoder and thread per carrier, all events in one order |
//! | [`synth`] | synthetic recordings of a cell's grants |
//! | [`reports`] | live radio reports from samples |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod decode;
pub mod iq;
pub mod radio;
pub mod reports;
pub mod synth;
