//! Real-time transport: transfers over QUIC and UDP that run the same congestion controllers as the simulator.
//!
//! ```text
//!            ┌──────────────── turn: one thread ────────────────┐
//!  socket ──▶│ Endpoint (QUIC or UDP): connections ◀──▶ an App  │──▶ files
//!  socket ◀──│    controller + pacer · receiver part            │
//!            └───────────────────▲──────────────────────────────┘
//!                                │ radio reports
//! ```
//!
//! Endpoints and applications are state machines without sockets or clocks: inputs are datagrams and the current time,
//! outputs are datagrams and the next deadline. Tests therefore run two of them in virtual time with any loss pattern, and
//! fuzz tests feed them arbitrary bytes.
//!
//! | module | content |
//! | --- | --- |
//! | [`transport`] | interface of both transports |
//! | [`udp`] | the papers' prototype on UDP |
//! | [`quic`] | the transport over QUIC |
//! | [`both`] | both transports on one port |
//! | [`app`] | interface of the applications above a transport |
//! | [`transfer`] | files and streams between two machines |
//! | [`hq`] | files over `hq-interop`, compatible with other QUIC implementations |
//! | [`bulk`] | measured flows |
//! | [`proxy`] | TCP-splitting proxy |
//! | [`key`] | pre-shared key of both endpoints |
//! | [`qlog`] | qlog files of QUIC connections for viewers |
//! | [`turn`] | event loop thread: socket, endpoint, application, deadlines |
//! | [`radio`] | sources of radio reports for a live flow |
//! | [`socket`] | UDP socket: batches of datagrams, receive times, ECN marks and addresses |

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
