//! Interface of the QUIC implementations in these tests: each serves and fetches files over `hq-interop`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airpace_core::rng::Streams;

/// ALPN of the application protocol.
pub const ALPN: &[u8] = b"hq-interop";

/// Host name of the server, also in its certificate.
pub const NAME: &str = "localhost";

/// Timeout of an exchange that normally takes less than a second.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Any free port on the loopback interface.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Contents of the served files, by path with a leading `/`.
pub type Files = Arc<BTreeMap<String, Vec<u8>>>;

/// Four files with random content: 10 MB, 100 kB, one byte, and empty.
pub fn files() -> Files {
    let sizes = [("/ten-megabytes", 10_000_000), ("/folder/small", 100_000), ("/byte", 1), ("/nothing", 0)];
    let file = |(name, size): (&str, usize)| {
        let mut random = Streams::new(16).stream(name);
        let bytes: Vec<u8> =
            std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(size).collect();
        (name.to_owned(), bytes)
    };
    Arc::new(sizes.map(file).into())
}

/// A self-signed certificate for [`NAME`] and its key.
pub struct Identity {
    pub certificate: rcgen::Certificate,
    pub key: rcgen::KeyPair,
}

impl Identity {
    pub fn new() -> Arc<Identity> {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        Arc::new(Identity { certificate: made.cert, key: made.signing_key })
    }
}

/// Features used in an exchange besides the transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// The server answers the first connection attempt with a Retry.
    pub retry: bool,
    /// The server initiates key updates during the transfer.
    pub server_updates_keys: bool,
    /// The client initiates key updates during the transfer.
    pub client_updates_keys: bool,
    /// The client changes its port after reading a megabyte, if the implementation supports it.
    pub moves: bool,
}

/// Counters of events that the implementations report.
#[derive(Debug, Default)]
pub struct Told {
    /// Key updates.
    pub key_updates: AtomicU64,
    /// Packets declared lost.
    pub lost: AtomicU64,
    /// Migrations of a connection to a new client address, counted by the server.
    pub moves: AtomicU64,
}

impl Told {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// Configuration of one exchange.
#[derive(Clone)]
pub struct Setting {
    pub identity: Arc<Identity>,
    pub files: Files,
    pub extras: Extras,
    pub told: Arc<Told>,
    /// Folder for Airpace's qlog files.
    pub qlog: Option<Arc<airpace_net::qlog::Folder>>,
}

/// A running server, which stops on drop.
pub trait Serving {
    fn address(&self) -> SocketAddr;
}

/// A QUIC implementation, as server and as client.
pub trait Stack: Sync {
    fn name(&self) -> &'static str;

    fn serve(&self, setting: &Setting) -> Box<dyn Serving>;

    /// Fetches all of `paths` concurrently over one connection. The result is `None` for each path that the server refuses.
    fn fetch(&self, setting: &Setting, server: SocketAddr, paths: &[&str]) -> Vec<Option<Vec<u8>>>;

    /// Whether the client of this implementation can change its port.
    fn can_move(&self) -> bool;

    /// Whether this implementation can initiate a key update.
    fn can_update_keys(&self) -> bool;

    /// Whether this implementation reports key updates, lost packets and migrated clients.
    fn tells(&self) -> bool;
}

/// Path of an HTTP/0.9 request.
pub fn path_of(request: &[u8]) -> Option<&str> {
    std::str::from_utf8(request).ok()?.strip_prefix("GET ")?.strip_suffix("\r\n")
}
