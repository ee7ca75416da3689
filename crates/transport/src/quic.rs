//! The transport over QUIC: TLS 1.3, migration and ACK frequency by noq; when data leaves is ours to say.
//!
//! ```text
//!  datagrams ──▶ noq ── notes ──▶ Ledger ──▶ Controller
//!  datagrams ◀── noq ◀── gate ─── Ledger ◀── Control
//!                 └ DATAGRAM frames: stamps with the data, feedback against it
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | `adapter` | all that knows of noq's congestion trait |
//! | [`datagram`] | the bytes of stamps and feedback |
//! | `config` | certificates, trust, limits |
//! | `blocks` | memory of datagrams that arrive |
//! | `receiving` | the receiving half |
//! | `inflow` | streams put in order |
//! | `logged` | packets that tell a log of themselves |
//! | `closing` | why a connection is over, in words of ours |
//! | `connection`, `streams`, `endpoint` | the machine |
//!
//! # Loss and rate samples
//!
//! noq says which packet was acknowledged and which is lost. RTT, delivery rate and all else of [`Ack`], [`Loss`] and
//! [`RateSample`] come from our own estimators: a test of `airpace_cc` compares the [`Ledger`] with the simulator's
//! sender, call by call. Three things differ from that sender. noq forgets lost packets, and tells of late ACKs only if
//! all of its lost packets were acknowledged: a spurious loss beside a true one is not seen as delivered. Packets without data have numbers of their own. Of marks by queues noq tells that there were some,
//! and not how many.
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
mod streams;
#[cfg(test)]
mod tests;

pub use config::{ALPN, Config, HQ_INTEROP, Identity, Retry, Trust, fingerprint_of};
pub use connection::QuicConnection;
pub use endpoint::QuicEndpoint;
pub use streams::StreamNews;
