//! Adaptive video over HTTP/1.1 and the kernel's TCP: a server that generates segments (`airpace video serve`), and a client
//! that plays them (`airpace video play`).
//!
//! ```text
//!  Player ─ client ─ connection ──GET /3/17──▶ server ─ VideoDescription: sizes of segments
//!                          ▲────── bytes ◀──────┘
//! ```
//!
//! The player is the one of the simulator, and so are the sizes of the segments: a video of a scenario and a seed is the same in
//! the simulator and over real sockets. The congestion control is that of the server's kernel.
//!
//! | module | content |
//! | --- | --- |
//! | [`description`] | the description of a video, and the paths of its segments |
//! | [`http`] | heads of HTTP/1.1 messages, without sockets |
//! | [`server`] | the server, with a thread for each connection |
//! | [`client`] | the client, in the caller's thread |

pub mod client;
mod connection;
pub mod description;
pub mod http;
pub mod server;
mod slots;

pub use description::VideoDescription;
