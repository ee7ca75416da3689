//! Everything that runs by the wall clock: ports of modems, the daemon that publishes KPIs, samples of radios, and the
//! threads that decode them.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`daemon`] | from the port to shared memory, on two threads |
//! | [`metrics`] | what the daemon counts, and Prometheus' page of it |
//! | [`guard`] | the process that gives the modem back if the daemon dies |
//! | [`modem`] | a modem to test against, behind a pseudo-terminal or a TCP port |
//! | [`source`] | ports: serial, `/dev/diag`, TCP |
//! | [`log`] | logs of modems in files, compressed or not |
//! | [`iq`] | radio samples in files |
//! | [`radio`] | radio samples from radios, through SoapySDR |
//! | [`decode`] | samples to everyone's grants: a decoder and a thread for each carrier, and what all of them say |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod daemon;
pub mod decode;
pub mod guard;
pub mod iq;
pub mod log;
pub mod metrics;
pub mod modem;
pub mod radio;
pub mod source;
mod sys;
