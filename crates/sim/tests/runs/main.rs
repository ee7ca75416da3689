//! Tests of whole runs. They are one program, because each program takes its time to build.

mod common;
mod line;
mod watched;

mod ack_trace;
mod allegro;
mod any_cell;
mod biscay;
mod bound;
mod carriers;
mod cellular;
mod determinism;
mod extremes;
mod misreport;
mod modem_log;
mod morc;
mod oracle;
mod pbe_on_links_that_fade;
mod pbe_on_the_cell;
mod programs;
mod proxies;
mod ran;
mod recorded;
mod ring;
mod stories;
mod telemetry;
mod transfers;
mod two_traces;
mod uplink;
mod video;
mod vivace;
