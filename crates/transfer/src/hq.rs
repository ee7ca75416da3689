//! `hq-interop`: HTTP/0.9 over QUIC, which the interoperability program of every QUIC implementation supports. This
//! protocol lets other implementations fetch files from Airpace and Airpace from them. The example `hq` is the command
//! line of both applications.
//!
//! Each request uses its own stream: `GET /path`, CR, LF, and the end of the stream. The response is the file's content and
//! the end of the stream. There are no headers, so neither the length nor the reason of a refusal is transmitted. The
//! server resets the stream of a refused request.
//!
//! Source: RFC 1945 §4.1 (Simple-Request, Simple-Response)
//!
//! Differs: `hq-interop` is a convention of those programs and not a written standard. Resetting a stream instead of
//! sending an error page is a choice of this implementation: the client can then distinguish a refusal from a file.
//!
//! | module | content |
//! | --- | --- |
//! | [`request`] | the request line |
//! | [`url`] | `https://host:port/path` |
//! | [`identity`] | certificate and key files, and trust in servers |
//! | [`server`] | application that serves the files of a folder |
//! | [`client`] | application that fetches files |

pub mod client;
pub mod identity;
pub mod request;
pub mod server;
pub mod url;

use std::time::Duration;

use airpace_cc::controller::{Controller, Sees};
use airpace_cc::scheme::Setup;
use airpace_cc::schemes::SchemeSpec;
use airpace_core::remedy::{Remedy, UserTask};
use airpace_core::{Refused, Streams};

use airpace_transport::endpoint::MSS;
use airpace_transport::key;
use airpace_transport::quic::{Config, HQ_INTEROP, Identity, Retry, Trust};

/// Maximum number of unacknowledged bytes of all connections of a server together.
///
/// Chosen: with ten connections, each can fill 1 Gbit/s at an RTT of 100 ms; a small machine has this much memory.
pub const MAX_HELD: u64 = 256 << 20;

/// Configuration of an endpoint that serves files.
///
/// Chosen: the number of connections at which each has 256 kB of [`MAX_HELD`], and only as much flow-control credit as
/// requests need. A connection ends after 30 s of silence: an idle client need not be kept.
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

/// Configuration of an endpoint that fetches files from `host`.
pub fn fetching(host: &str, trust: Trust) -> Config {
    Config {
        alpns: vec![HQ_INTEROP.to_vec()],
        trust,
        server_name: host.to_owned(),
        idle: Duration::from_secs(30),
        ..Config::default()
    }
}

/// Builds the controller of a scheme for sending to another QUIC implementation.
///
/// # Errors
/// A sentence: the scheme needs a receiver part or information that such a connection lacks.
pub fn controller(spec: &SchemeSpec) -> Result<Box<dyn Controller>, Refused> {
    let rng = Streams::new(u64::from_be_bytes(key::random::<8>().map_err(|error| error.to_string())?))
        .stream("scheme");
    let ends = spec.build(&Setup::new(MSS, rng)).map_err(|error| error.to_string())?;
    if ends.receiver.is_some() {
        let refused = Refused::new(format!(
            "scheme `{}` needs a program of its own at the receiver, which other QUIC stacks do not have",
            spec.text()
        ));
        return Err(refused.but(Remedy::new("choose another scheme, or use").task(UserTask::Send)));
    }
    if ends.controller.sees() == Sees::Truth {
        let refused =
            Refused::new(format!("scheme `{}` uses information that only a simulator has", spec.text()));
        return Err(refused.but(Remedy::new("choose another from").task(UserTask::ListSchemes)));
    }
    Ok(ends.controller)
}
