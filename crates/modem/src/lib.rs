//! Access to modems in real time: their diagnostic ports and logs, and the daemon that publishes KPIs.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`daemon`] | from the port to shared memory, on two threads |
//! | [`metrics`] | the daemon's counters, and their page for Prometheus |
//! | [`guard`] | the process that restores the modem if the daemon dies |
//! | [`modem`] | an emulated modem for tests, at a pseudo-terminal or a TCP port |
//! | [`source`] | ports: serial, `/dev/diag`, TCP |
//! | [`reports`] | radio reports of a modem's own grants, live |
//! | [`watch`] | samples of KPIs, live |
//! | [`log`] | log files of modems, compressed or not |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod daemon;
pub mod guard;
pub mod log;
pub mod metrics;
pub mod modem;
pub mod reports;
pub mod source;
mod sys;
pub mod watch;
