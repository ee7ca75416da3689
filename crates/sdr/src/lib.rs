//! Sampled radio: samples from files and radios, and the threads that decode them.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`iq`] | radio samples in files |
//! | [`radio`] | radio samples from radios, through SoapySDR |
//! | [`decode`] | from samples to the grants of all users: a decoder and a thread per carrier, events in one order |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod decode;
pub mod iq;
pub mod radio;
