//! TCP-splitting proxy: terminates the server's TCP connection and relays its data to the client over a second TCP
//! connection with another congestion control. Neither endpoint has to change.
//!
//! ```text
//! server ── server's leg ──▶ proxy ── client's leg: MORC, in the kernel ──▶ phone
//! ```
//!
//! Clients request connections by SOCKS5 or HTTP CONNECT, or a router redirects their connections to the proxy, which keeps
//! the addresses of both endpoints (transparent mode).
//!
//! Source: MORC §3.2; Linux Documentation/networking/tproxy.rst

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod ask;
mod eyeballs;
mod legs;
mod places;
mod relay;
mod resources;
pub mod rules;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use airpace_core::{Refused, Remedy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use ask::{Asking, Language, Next, Refusal, Target};
use places::{Lack, Places};
pub use resources::{TooFewFiles, connections_for, has_ipv6};

/// Maximum time for a client to send its request, and for a server to accept the connection.
///
/// Chosen: covers two lost handshake packets and a phone whose radio must leave idle first.
const PATIENCE: Duration = Duration::from_secs(20);

/// Interval between checks of the stop flag. This is also the pause after a failed `accept`, and the last wait after
/// connections are cut.
const LOOK: Duration = Duration::from_millis(50);

/// Maximum time that connections may continue after the proxy was asked to stop.
///
/// Chosen: enough to load a web page. A second Ctrl-C stops without this wait.
const DRAIN: Duration = Duration::from_secs(10);

/// Maximum number of concurrent name lookups; further ones wait. Each lookup occupies a thread.
///
/// Chosen: with a name server that answers within 50 ms, this is a thousand lookups per second.
const MAX_LOOKUPS: usize = 50;

/// How the proxy receives connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Clients request a target by SOCKS5 or HTTP CONNECT.
    Asked,
    /// Firewall rules of a router redirect connections to the proxy; both endpoints keep their addresses.
    Transparent,
}

/// Function that sets the congestion control of a socket to one of the kernel's.
pub type Choose = fn(BorrowedFd<'_>, &str) -> io::Result<()>;

/// Configuration of a proxy.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// How the proxy receives connections.
    pub door: Door,
    /// Kernel congestion control of the connection to the client; `None`: the kernel's default.
    pub client_leg: Option<String>,
    /// Kernel congestion control of the connection to the server; `None`: the kernel's default.
    pub server_leg: Option<String>,
    /// Client addresses that may use the proxy.
    pub allow: Vec<Range>,
    /// Maximum number of concurrent connections; more are refused. Once half of the connections are taken, no client
    /// gets more than its share.
    pub most: usize,
    /// Maximum time without data in either direction, after which a connection is closed.
    pub idle: Duration,
    /// Maximum number of bytes from a server that the kernel buffers while the client accepts none; `None`: no limit.
    pub server_queue: Option<u32>,
    /// Sets the congestion control of a socket.
    pub choose: Choose,
}

/// A range of IP addresses, such as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    address: IpAddr,
    bits: u8,
}

impl Range {
    /// The loopback addresses.
    pub const LOOPBACK: [Range; 2] = [
        Range { address: IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
        Range { address: IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), bits: 128 },
    ];

    /// Parses `ADDRESS/BITS` or `ADDRESS`.
    ///
    /// # Errors
    /// A sentence that shows the expected form, if the text is not such a range.
    pub fn parse(text: &str) -> Result<Range, Refused> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let wrong =
            || format!("`{text}` is no range of addresses; give one such as 192.0.2.0/24 or 2001:db8::/32");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most { Err(wrong().into()) } else { Ok(Range { address, bits }) }
    }

    /// Whether the range contains an address. An IPv4-mapped IPv6 address is treated as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, other, width) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits().into(), other.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        let (own, other): (u128, u128) = (own, other);
        let shift = width - u32::from(self.bits);
        own.checked_shr(shift) == other.checked_shr(shift)
    }
}

/// An event of the proxy.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A connection has ended.
    Closed(Closed),
    /// A client's connection was refused.
    Refused {
        /// Address of the client.
        client: SocketAddr,
        /// Requested target; `None` if the request was not read that far.
        target: Option<Target>,
        /// Reason of the refusal.
        why: Refused,
    },
    /// `accept` failed, for example because the process has no free file descriptors. The text is the error.
    Stuck(String),
}

/// An event of the proxy with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Wall-clock time of the event.
    pub at: SystemTime,
    /// The event.
    pub news: News,
}

impl Told {
    /// An event at the current time.
    fn now(news: News) -> Told {
        Told { at: SystemTime::now(), news }
    }
}

/// Report of a connection that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Address of the client.
    pub client: SocketAddr,
    /// Target of the connection.
    pub target: Target,
    /// Bytes from the client to the server.
    pub up: u64,
    /// Bytes from the server to the client.
    pub down: u64,
    /// Duration of the connection.
    pub lasted: Duration,
    /// Reason why the connection ended early; `None` after a regular end.
    pub problem: Option<String>,
}

/// Counters of the whole proxy, updated while it runs.
#[derive(Debug, Default)]
pub struct Totals {
    /// Connections that were established to a server.
    pub connections: AtomicU64,
    /// Clients that were refused.
    pub refused: AtomicU64,
    /// Clients that are being served now.
    pub active: AtomicUsize,
    /// Bytes from clients to servers.
    pub up: AtomicU64,
    /// Bytes from servers to clients.
    pub down: AtomicU64,
}

/// A proxy with its listening socket.
pub struct Proxy {
    config: Arc<Config>,
    listener: std::net::TcpListener,
    local: SocketAddr,
}

/// State that all connections share.
struct Shared {
    config: Arc<Config>,
    local: SocketAddr,
    totals: Arc<Totals>,
    /// Slots for name lookups; each client has its share of them.
    lookups: Arc<Places>,
    tell: Box<dyn Fn(Told) + Send + Sync>,
    /// Becomes true when all remaining connections must be cut.
    cut: watch::Receiver<bool>,
}

impl Proxy {
    /// Opens the listening socket.
    ///
    /// # Errors
    /// A sentence that states the reason: the address is in use, the kernel lacks the congestion control, or a permission
    /// is missing.
    pub fn listen(config: Config) -> Result<Proxy, Refused> {
        for leg in [&config.server_leg, &config.client_leg].into_iter().flatten() {
            legs::check(config.choose, leg)?;
        }
        let listener = legs::listen(&config)?;
        let local = listener.local_addr().map_err(|error| error.to_string())?;
        Ok(Proxy { config: Arc::new(config), listener, local })
    }

    /// Address and port of the listening socket.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Serves connections until `stop` is set, then lets the remaining ones continue for 10 s and cuts them after that.
    /// Reports each event to `tell`.
    ///
    /// # Errors
    /// The machine cannot create the runtime's threads.
    pub fn run(
        self,
        stop: &AtomicBool,
        totals: Arc<Totals>,
        tell: impl Fn(Told) + Send + Sync + 'static,
    ) -> Result<(), Refused> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .max_blocking_threads(MAX_LOOKUPS)
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| format!("no threads for connections: {error}"))?;
        let places = Places::new(self.config.most);
        let (cut, cuts) = watch::channel(false);
        let shared = Arc::new(Shared {
            config: Arc::clone(&self.config),
            local: self.local,
            totals: Arc::clone(&totals),
            lookups: Places::new(MAX_LOOKUPS),
            tell: Box::new(tell),
            cut: cuts,
        });
        runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener).map_err(|error| error.to_string())?;
            while !stop.load(Ordering::Relaxed) {
                match tokio::time::timeout(LOOK, listener.accept()).await {
                    Err(_) => {}
                    Ok(Ok((stream, client))) => {
                        let client = canonical(client);
                        let shared = Arc::clone(&shared);
                        let place = match places.take(client.ip()) {
                            Ok(place) => place,
                            Err(lack) => {
                                legs::reset_when_closed(&stream);
                                shared.refuse(client, None, no_place(lack, shared.config.most));
                                continue;
                            }
                        };
                        tokio::spawn(async move {
                            shared.totals.active.fetch_add(1, Ordering::Relaxed);
                            serve(&shared, stream, client).await;
                            shared.totals.active.fetch_sub(1, Ordering::Relaxed);
                            drop(place);
                        });
                    }
                    Ok(Err(error)) => {
                        let why = format!("a connection could not be accepted: {error}");
                        (shared.tell)(Told::now(News::Stuck(why)));
                        // File descriptors become free when other connections end.
                        tokio::time::sleep(LOOK).await;
                    }
                }
            }
            drop(listener);
            if tokio::time::timeout(DRAIN, places.all_free()).await.is_err() {
                let _ = cut.send(true);
                // Connections that still wait for a name lookup or a server end with the process.
                let _ = tokio::time::timeout(LOOK, places.all_free()).await;
            }
            Ok(())
        })
    }
}

impl Shared {
    /// Counts and reports a refused client.
    fn refuse(&self, client: SocketAddr, target: Option<Target>, why: Refused) {
        self.totals.refused.fetch_add(1, Ordering::Relaxed);
        (self.tell)(Told::now(News::Refused { client, target, why }));
    }
}

/// Reason for refusing a client that got no slot.
fn no_place(lack: Lack, most: usize) -> Refused {
    let what = match lack {
        Lack::Full => format!("all {most} connections are in use"),
        Lack::Share => format!("it uses its whole share of the {most} connections"),
    };
    Refused::new(what).but(Remedy::new("allow more with").parameter("connections"))
}

/// Converts an IPv4-mapped IPv6 address into its IPv4 address; leaves others unchanged.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Serves one client from its request to the end of the connection.
async fn serve(shared: &Shared, mut client: TcpStream, from: SocketAddr) {
    let refuse = |target, why| shared.refuse(from, target, why);
    if !shared.config.allow.iter().any(|range| range.contains(from.ip())) {
        let remedy = Remedy::new("allow it with").parameter("allow");
        return refuse(None, Refused::new("its address is not allowed").but(remedy));
    }
    let asked = match shared.config.door {
        Door::Transparent => match client.local_addr() {
            Ok(target) => Ok((None, Target::Address(canonical(target)), vec![])),
            Err(error) => Err(error.to_string().into()),
        },
        Door::Asked => match tokio::time::timeout(PATIENCE, hear(&mut client)).await {
            Ok(Ok((language, target, rest))) => Ok((Some(language), target, rest)),
            Ok(Err(why)) => Err(why),
            Err(_) => Err("it sent no request in time".into()),
        },
    };
    let (language, target, first) = match asked {
        Ok(asked) => asked,
        Err(why) => return refuse(None, why),
    };
    let reached = tokio::time::timeout(
        PATIENCE,
        legs::reach(&shared.config, &shared.lookups, &target, from, shared.local),
    )
    .await;
    let reached =
        reached.unwrap_or_else(|_| Err((Refusal::TimedOut, "the server did not answer".to_owned())));
    let server = match reached {
        Ok(server) => server,
        Err((why, sentence)) => {
            match language {
                Some(language) => {
                    let _ = relay::say(&mut client, &ask::answer(language, Err(why))).await;
                }
                // The client sees a reset, as from a server that refuses the connection.
                None => legs::reset_when_closed(&client),
            }
            return refuse(Some(target), sentence.into());
        }
    };
    shared.totals.connections.fetch_add(1, Ordering::Relaxed);
    let began = std::time::Instant::now();
    let (up, down) = (AtomicU64::new(0), AtomicU64::new(0));
    let greeting = language.map(|language| ask::answer(language, Ok(()))).unwrap_or_default();
    let counts = relay::Counts { up: &up, down: &down, all: &shared.totals };
    let mut cuts = shared.cut.clone();
    let cut = async move {
        if cuts.wait_for(|is_cut| *is_cut).await.is_err() {
            std::future::pending().await
        }
    };
    let idle = shared.config.idle;
    let problem = relay::relay(client, server, &greeting, &first, counts, idle, cut).await.err();
    (shared.tell)(Told::now(News::Closed(Closed {
        client: from,
        target,
        up: up.into_inner(),
        down: down.into_inner(),
        lasted: began.elapsed(),
        problem: problem.map(|error| error.to_string()),
    })));
}

/// Reads a client's request and returns the protocol, the target and the bytes received after the request. A failed request
/// gets an error reply in the client's protocol.
async fn hear(client: &mut TcpStream) -> Result<(Language, Target, Vec<u8>), Refused> {
    let mut asking = Asking::default();
    loop {
        match asking.step() {
            Ok(Next::More) => {
                let read = relay::read(client, |bytes| asking.push(bytes)).await;
                if read.map_err(|error| error.to_string())? == 0 {
                    return Err("it closed the connection without a request".into());
                }
            }
            Ok(Next::Say(said)) => relay::say(client, &said).await.map_err(|error| error.to_string())?,
            Ok(Next::Wants(language, target)) => return Ok((language, target, asking.rest())),
            Err((said, why)) => {
                let _ = relay::say(client, &said).await;
                return Err(match why {
                    Refusal::NoSuchThing => "it requested something other than a connection",
                    Refusal::NotAllowed => "it requires a password",
                    _ => "its request is neither SOCKS5 nor CONNECT",
                }
                .into());
            }
        }
    }
}

#[cfg(test)]
mod tests;
