//! What every QUIC stack does in these tests: it serves files over `hq-interop`, and fetches them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use airpace_core::rng::Streams;

/// The application protocol.
pub const ALPN: &[u8] = b"hq-interop";

/// The server's name, in its certificate too.
pub const NAME: &str = "localhost";

/// For an exchange that should be over in a second: only a hang takes so long.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Any free port of the loopback.
pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Files by their path, with its `/`.
pub type Files = Arc<BTreeMap<String, Vec<u8>>>;

/// 10 MB, a file of 100 kB, one of a single byte, and an empty one.
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

/// A certificate for [`NAME`], signed by itself, and its key.
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

/// What is asked of both sides, beside the transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// The server sends a Retry first.
    pub retry: bool,
    /// The server begins key updates on the way.
    pub server_updates_keys: bool,
    /// The client begins key updates on the way.
    pub client_updates_keys: bool,
    /// The client goes on from another port when it has read a megabyte, where it offers that.
    pub moves: bool,
}

/// What the stacks tell of what they did.
#[derive(Debug, Default)]
pub struct Told {
    /// Key updates that a stack tells of.
    pub key_updates: AtomicU64,
    /// Packets that were declared lost.
    pub lost: AtomicU64,
    /// Times that a server went on with a new address of the client.
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

/// One run's circumstances.
#[derive(Clone)]
pub struct Setting {
    pub identity: Arc<Identity>,
    pub files: Files,
    pub extras: Extras,
    pub told: Arc<Told>,
    /// Makes the logs of ours.
    pub qlog: Option<Arc<airpace_net::qlog::Folder>>,
}

/// A server that runs until it is dropped.
pub trait Serving {
    fn address(&self) -> SocketAddr;
}

/// A QUIC stack in either role.
pub trait Stack: Sync {
    fn name(&self) -> &'static str;

    fn serve(&self, setting: &Setting) -> Box<dyn Serving>;

    /// Fetches all of `paths` over one connection, at once; a path that the server refuses is `None`.
    fn fetch(&self, setting: &Setting, server: SocketAddr, paths: &[&str]) -> Vec<Option<Vec<u8>>>;

    /// Whether this stack as a client can go on from another port by itself.
    fn can_move(&self) -> bool;

    /// Whether this stack can begin a key update.
    fn can_update_keys(&self) -> bool;

    /// Whether this stack tells of key updates, of packets that it declared lost and of clients that moved.
    fn tells(&self) -> bool;
}

/// The path that a request of HTTP/0.9 names.
pub fn path_of(request: &[u8]) -> Option<&str> {
    std::str::from_utf8(request).ok()?.strip_prefix("GET ")?.strip_suffix("\r\n")
}
