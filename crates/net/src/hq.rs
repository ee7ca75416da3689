//! `hq-interop`: HTTP/0.9 over QUIC, which every QUIC stack's interoperability program speaks. So other stacks fetch
//! from us, and we from them.
//!
//! Each request is a stream of its own: `GET /path`, CR, LF, and the stream's end. The answer is the file's bytes, and
//! the end. There are no headers: neither the length nor the reason of a refusal is told. A refused stream is reset.
//!
//! Source: RFC 1945 §4.1 (Simple-Request, Simple-Response)
//!
//! Differs: `hq-interop` is a custom of those programs and was never written down as a standard. That a stream is reset,
//! instead of ending with a page of words, is what we chose: a fetcher can tell it from a file.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`request`] | the line that asks for a file |
//! | [`url`] | `https://host:port/path` |
//! | [`identity`] | certificates and keys in files, and whom to trust |
//! | [`server`] | the app that serves the files of a folder |
//! | [`client`] | the app that fetches files |

pub mod client;
pub mod identity;
pub mod request;
pub mod server;
pub mod url;

use std::time::Duration;

use airpace_cc::controller::{Controller, Sees};
use airpace_cc::scheme::{SchemeSpec, Setup};
use airpace_core::Streams;

use crate::key;
use crate::quic::{Config, HQ_INTEROP, Identity, Retry, Trust};
use crate::transport::MSS;

/// A server's connections may keep so many bytes, all together, until they are acknowledged.
///
/// Chosen: with ten connections each can fill 1 Gbit/s over 100 ms; a small machine has as much.
pub const MOST_HELD: u64 = 256 << 20;

/// What an endpoint is made from that serves files.
///
/// Chosen: as many connections as hold [`MOST_HELD`] with 256 kB each, and no more credit than requests need. Silence
/// ends a connection after 30 s: a client that waits for nothing need not be kept.
pub fn serving(identity: Identity, retry: Retry) -> Config {
    Config {
        alpns: vec![HQ_INTEROP.to_vec()],
        identity: Some(identity),
        retry,
        most_connections: 1024,
        receive_window: 64 << 10,
        idle: Duration::from_secs(30),
        keep_alive: None,
        ..Config::default()
    }
}

/// What an endpoint is made from that fetches files of `host`.
pub fn fetching(host: &str, trust: Trust) -> Config {
    Config {
        alpns: vec![HQ_INTEROP.to_vec()],
        trust,
        server_name: host.to_owned(),
        idle: Duration::from_secs(30),
        ..Config::default()
    }
}

/// The controller of a scheme, for bytes that go to a stack that is not ours.
///
/// # Errors
/// The scheme needs what such a connection does not give, in a sentence.
pub fn controller(spec: &SchemeSpec) -> Result<Box<dyn Controller>, String> {
    let rng = Streams::new(u64::from_be_bytes(key::random::<8>()?)).stream("scheme");
    let ends = spec.build(&Setup { mss: MSS, rng }).map_err(|error| error.to_string())?;
    if ends.receiver.is_some() {
        return Err(format!(
            "scheme `{}` needs its half at the receiver, and other people's stacks have none; choose another, or use \
             `airpace send` and `airpace recv`",
            spec.text()
        ));
    }
    if ends.controller.sees() == Sees::Truth {
        return Err(format!(
            "scheme `{}` uses what only a simulator knows; see `airpace list schemes`",
            spec.text()
        ));
    }
    Ok(ends.controller)
}
