//! The wall clock: transfers over QUIC and UDP in which the very controllers of the simulator decide.
//!
//! ```text
//!            ┌──────────────── turn: one thread ────────────────┐
//!  socket ──▶│ Endpoint (QUIC or UDP): connections ◀──▶ an App  │──▶ files
//!  socket ◀──│    controller + pacer · receiver half            │
//!            └───────────────────▲──────────────────────────────┘
//!                                │ radio reports
//! ```
//!
//! Endpoints and what runs over them are machines without sockets and clocks: datagrams and instants in, datagrams
//! out, next deadline. So tests turn two of them in virtual time, with any loss, and bytes of strangers can be fuzzed.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`transport`] | the contract of both transports |
//! | [`udp`] | the papers' prototype on UDP |
//! | [`quic`] | the transport over QUIC |
//! | [`both`] | both transports on one port |
//! | [`app`] | the contract of what runs over them |
//! | [`transfer`] | files and streams between two machines |
//! | [`hq`] | files over `hq-interop`, with other people's stacks |
//! | [`bulk`] | measured flows |
//! | [`proxy`] | a proxy that splits TCP |
//! | [`key`] | the secret that both ends share |
//! | [`qlog`] | logs of QUIC connections for viewers |
//! | [`turn`] | the turning thread: socket, endpoint, app, deadlines |
//! | [`radio`] | where radio reports of a live flow come from |
//! | [`socket`] | a UDP socket: groups of datagrams, when they came, marks and addresses |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod app;
pub mod both;
pub mod bulk;
pub mod hq;
pub mod key;
pub mod proxy;
pub mod qlog;
pub mod quic;
pub mod radio;
pub mod socket;
mod sys;
pub mod transfer;
pub mod transport;
pub mod turn;
pub mod udp;
