//! Tests of the log reader with public logs and with logs of our own. They are one program, because each program takes its
//! time to build.

mod recordings_folder;
mod rlc_headers;

mod bandwidth;
mod cut;
mod derived;
mod grants;
mod kpi;
mod layouts;
mod meanings;
mod modem;
mod not_packets;
mod recordings;
