//! Transfer of files and streams between two machines with a pre-shared key: `airpace recv` and `airpace send`.
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
//! | [`client`], [`server`] | the two endpoints, as [`crate::app::App`]s |
//! | [`source`], [`store`] | files to send, and storage of received files |
//! | [`name`] | validation of file names from the peer |
//! | [`code`], [`keys`] | a key as text, and key files |
//! | [`progress`] | progress of a transfer |
//!
//! The hash is the same whether a transfer was interrupted or not: the sender hashes the whole file, and it compares the
//! part that the receiver already has with its own before it continues.

mod channel;
pub mod client;
pub mod code;
mod guesses;
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
