//! Files and streams between two machines that know one key: `airpace recv` and `airpace send`.
//!
//! Both sides prove that they know the key before anything else is said. Every file is compared by its SHA-256, gets its
//! name when the disk has it, and is resumed after any break. Names never lead out of the receiver's folder.
//!
//! ```text
//!  Client ─ Link ─ Sending ◀── Sources          Server ─ Link ─ Receiving ──▶ Store
//!             └─ Channel: frames ═══ connection ═══ Channel ─┘
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`message`] | the protocol: frames and messages |
//! | [`client`], [`server`] | the two sides, as [`crate::app::App`]s |
//! | [`source`], [`store`] | what is sent, and where it goes |
//! | [`name`] | which names are taken from the other side |
//! | [`code`], [`keys`] | a key as text, and in files |
//! | [`progress`] | how far a transfer is |
//!
//! A transfer that was resumed ten times has the same hash as one that was not: the sender hashes the whole file, and
//! compares the receiver's beginning with its own before it goes on.

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
