//! Applications of the transports: files and streams between two machines with a pre-shared key (`airpace recv` and
//! `airpace send`), measured flows, and files over `hq-interop`. Adaptive video uses the kernel's TCP.
//!
//! Both endpoints prove that they have the key before they exchange anything else. Each file is verified by its SHA-256,
//! gets its final name once it is on disk, and is resumed after any interruption. File names cannot lead out of the
//! receiver's folder.
//!
//! ```text
//!  Client ─ Link ─ Sending ◀── Sources          Server ─ Link ─ Receiving ──▶ Store
//!             └─ Channel: frames ═══ connection ═══ Channel ─┘
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`message`] | the protocol: frames and messages |
//! | [`client`], [`server`] | the two endpoints, as [`airpace_transport::app::App`]s |
//! | [`source`], [`store`] | files to send, and storage of received files |
//! | [`name`] | validation of file names from the peer |
//! | [`code`], [`keys`] | a key as text, and key files |
//! | [`progress`] | progress of a transfer |
//! | [`wire`] | a client or a server on a real socket |
//! | [`bulk`] | measured flows |
//! | [`hq`] | files over `hq-interop`, compatible with other QUIC implementations |
//! | [`video`] | adaptive video over HTTP/1.1 and the kernel's TCP |
//!
//! The hash is the same whether a transfer was interrupted or not: the sender hashes the whole file, and it compares the
//! part that the receiver already has with its own before it continues.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod bulk;
mod channel;
pub mod client;
pub mod code;
mod guesses;
pub mod hq;
pub mod keys;
mod link;
pub mod message;
pub mod name;
pub mod progress;
mod receiving;
mod sending;
pub mod server;
pub mod source;
pub mod steering;
pub mod store;
#[cfg(test)]
mod tests;
pub mod video;
pub mod watch;
pub mod wire;
