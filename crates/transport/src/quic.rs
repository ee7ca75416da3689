//! The transport over QUIC. noq implements TLS 1.3, migration and ACK frequency; this module decides when data are
//! sent.
//!
//! ```text
//!  datagrams ──▶ noq ── notes ──▶ Ledger ──▶ Controller
//!  datagrams ◀── noq ◀── gate ─── Ledger ◀── Control
//!                 └ DATAGRAM frames: stamps with the data, feedback in the opposite direction
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | `adapter` | adapter to noq's congestion control interface |
//! | [`datagram`] | format of stamps and feedback |
//! | `config` | certificates, trust, limits |
//! | `blocks` | memory of received datagrams |
//! | `receiving` | receiver of data packets |
//! | `inflow` | reordering of stream data |
//! | `logged` | packet protection that reports packets to a log |
//! | `closing` | reasons of closed connections |
//! | `connection`, `endpoint` | the state machine |
//!
//! # Loss and rate samples
//!
//! noq reports which packets were acknowledged and which were lost. RTT, delivery rate and all other values of
//! [`Ack`], [`Loss`] and [`RateSample`] come from this project's estimators: a test of `airpace_cc` compares the
//! [`Ledger`] with the simulator's sender, call by call. There are three differences from that sender:
//!
//! - noq forgets lost packets, and reports late ACKs only if all of its lost packets were acknowledged. A spurious
//!   loss is therefore not counted as delivered while there is a true loss as well.
//! - Packets without data have packet numbers as well.
//! - noq reports that queues marked packets, but not how many.
//!
//! [`Ack`]: airpace_cc::controller::Ack
//! [`Loss`]: airpace_cc::controller::Loss
//! [`RateSample`]: airpace_cc::controller::RateSample
//! [`Ledger`]: airpace_cc::endpoint::Ledger

mod adapter;
mod blocks;
mod closing;
mod config;
mod connection;
pub mod datagram;
mod endpoint;
mod inflow;
mod logged;
mod receiving;
#[cfg(test)]
mod tests;

pub use config::{ALPN, Config, HQ_INTEROP, Identity, Retry, Trust, fingerprint_of};
pub use connection::{QuicConnection, StreamNews};
pub use endpoint::QuicEndpoint;
