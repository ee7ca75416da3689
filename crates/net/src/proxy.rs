//! A proxy that splits TCP: what a server sends ends here, and a second connection carries it on to the client by another
//! congestion control. Neither end has to change.
//!
//! ```text
//! server ── server's leg ──▶ proxy ── client's leg: MORC, in the kernel ──▶ phone
//! ```
//!
//! Clients ask for it (SOCKS5, HTTP CONNECT), or a router hands their connections over and both ends keep their addresses
//! (transparent).
//!
//! Source: MORC §3.2; Linux Documentation/networking/tproxy.rst

pub mod ask;
mod eyeballs;
mod legs;
mod places;
mod relay;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use ask::{Asking, Language, Next, Refusal, Target};
use places::{Lack, Places};

/// How long a client may take to ask, and a server to answer.
///
/// Chosen: two lost packets of a handshake, and a phone that has to wake up its radio.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether the proxy should end.
const LOOK: Duration = Duration::from_millis(50);

/// How long connections may go on when the proxy has been asked to end.
///
/// Chosen: what a page takes. Ctrl-C a second time waits no longer.
const DRAIN: Duration = Duration::from_secs(10);

/// Maximum number of names that are looked up at once; more wait. Each takes a thread of its own.
///
/// Chosen: a name server that answers within 50 ms gives a thousand names per second.
const MAX_LOOKUPS: usize = 50;

/// How connections come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Clients ask, by SOCKS5 or HTTP CONNECT.
    Asked,
    /// A router's rules hand connections over; both ends keep their addresses.
    Transparent,
}

/// Makes a socket use a congestion control of the kernel's.
pub type Choose = fn(BorrowedFd<'_>, &str) -> io::Result<()>;

/// A proxy.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// How connections come.
    pub door: Door,
    /// The kernel's congestion control of what goes to clients; `None`: the default.
    pub client_leg: Option<String>,
    /// The kernel's congestion control of what goes to servers; `None`: the default.
    pub server_leg: Option<String>,
    /// Who may use it.
    pub allow: Vec<Range>,
    /// Connections at once; more are refused. When half of them are taken, no client gets more than its share.
    pub most: usize,
    /// How long a connection may carry nothing either way.
    pub idle: Duration,
    /// Bytes that the kernel may hold of a server's while the client takes none; `None`: as many as it wants.
    pub server_queue: Option<u32>,
    /// Sets a congestion control.
    pub choose: Choose,
}

/// A range of addresses, as `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    address: IpAddr,
    bits: u8,
}

impl Range {
    /// The addresses of this machine alone.
    pub const LOOPBACK: [Range; 2] = [
        Range { address: IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
        Range { address: IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), bits: 128 },
    ];

    /// Reads `ADDRESS/BITS` or `ADDRESS`.
    ///
    /// # Errors
    /// A sentence about what it is not.
    pub fn parse(text: &str) -> Result<Range, String> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
        let wrong =
            || format!("`{text}` is no range of addresses; give one such as 192.0.2.0/24 or 2001:db8::/32");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most { Err(wrong()) } else { Ok(Range { address, bits }) }
    }

    /// Whether an address is in it. An IPv4 address counts as such, also where it comes as one of IPv6.
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

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A connection is over.
    Closed(Closed),
    /// A client did not get its connection.
    Refused {
        /// Who it was.
        client: SocketAddr,
        /// Where it wanted to go, if it could say so.
        target: Option<Target>,
        /// Why.
        why: String,
    },
    /// A connection could not be taken: the machine has no more files, for one.
    Stuck(String),
}

/// What happened, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// When, by the clock of the day.
    pub at: SystemTime,
    /// What.
    pub news: News,
}

impl Told {
    /// It happened now.
    fn now(news: News) -> Told {
        Told { at: SystemTime::now(), news }
    }
}

/// A connection that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// The client.
    pub client: SocketAddr,
    /// Where it went.
    pub target: Target,
    /// Bytes from the client to the server.
    pub up: u64,
    /// Bytes from the server to the client.
    pub down: u64,
    /// How long it lasted.
    pub lasted: Duration,
    /// Why it ended early, if it did.
    pub problem: Option<String>,
}

/// Numbers of the whole proxy, while it runs.
#[derive(Debug, Default)]
pub struct Totals {
    /// Connections that were made.
    pub connections: AtomicU64,
    /// Clients that did not get one.
    pub refused: AtomicU64,
    /// Connections at the moment.
    pub active: AtomicUsize,
    /// Bytes from clients to servers.
    pub up: AtomicU64,
    /// Bytes from servers to clients.
    pub down: AtomicU64,
}

/// A proxy that listens.
pub struct Proxy {
    config: Arc<Config>,
    listener: std::net::TcpListener,
    local: SocketAddr,
}

/// What all connections share.
struct Shared {
    config: Arc<Config>,
    local: SocketAddr,
    totals: Arc<Totals>,
    /// Places for lookups of names, of which each client has its share.
    lookups: Arc<Places>,
    tell: Box<dyn Fn(Told) + Send + Sync>,
    /// Becomes true when all connections are to be cut.
    cut: watch::Receiver<bool>,
}

impl Proxy {
    /// Starts to listen.
    ///
    /// # Errors
    /// One sentence: an address that is taken, a congestion control that the kernel does not have, a right that is lacking.
    pub fn listen(config: Config) -> Result<Proxy, String> {
        for leg in [&config.server_leg, &config.client_leg].into_iter().flatten() {
            legs::check(config.choose, leg)?;
        }
        let listener = legs::listen(&config)?;
        let local = listener.local_addr().map_err(|error| error.to_string())?;
        Ok(Proxy { config: Arc::new(config), listener, local })
    }

    /// Makes this process ignore SIGHUP, so that the end of a terminal or of a login does not end the proxy. Call it after
    /// handlers of signals were installed, as they may include SIGHUP.
    pub fn ignore_hangups() {
        crate::sys::ignore_hangups();
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Carries connections until `stop` is set, and then those that are left for 10 s; after that, it cuts them.
    ///
    /// # Errors
    /// A machine that gives no threads.
    pub fn run(
        self,
        stop: &AtomicBool,
        totals: Arc<Totals>,
        tell: impl Fn(Told) + Send + Sync + 'static,
    ) -> Result<(), String> {
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
                        let why = format!("a connection could not be taken: {error}");
                        (shared.tell)(Told::now(News::Stuck(why)));
                        // Files come back when other connections end.
                        tokio::time::sleep(LOOK).await;
                    }
                }
            }
            drop(listener);
            if tokio::time::timeout(DRAIN, places.all_free()).await.is_err() {
                let _ = cut.send(true);
                // What waits for a name or a server ends with the program.
                let _ = tokio::time::timeout(LOOK, places.all_free()).await;
            }
            Ok(())
        })
    }
}

impl Shared {
    /// Counts and reports a client that does not get its connection.
    fn refuse(&self, client: SocketAddr, target: Option<Target>, why: String) {
        self.totals.refused.fetch_add(1, Ordering::Relaxed);
        (self.tell)(Told::now(News::Refused { client, target, why }));
    }
}

/// Why a client gets no place.
fn no_place(lack: Lack, most: usize) -> String {
    match lack {
        Lack::Full => format!("all {most} connections are taken; --connections allows more"),
        Lack::Share => format!("it has its share of the {most} connections; --connections allows more"),
    }
}

/// The same address; one of IPv4 as such.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// One client, to its end.
async fn serve(shared: &Shared, mut client: TcpStream, from: SocketAddr) {
    let refuse = |target, why| shared.refuse(from, target, why);
    if !shared.config.allow.iter().any(|range| range.contains(from.ip())) {
        return refuse(None, "its address is not of those that --allow names".to_owned());
    }
    let asked = match shared.config.door {
        Door::Transparent => match client.local_addr() {
            Ok(target) => Ok((None, Target::Address(canonical(target)), vec![])),
            Err(error) => Err(error.to_string()),
        },
        Door::Asked => match tokio::time::timeout(PATIENCE, hear(&mut client)).await {
            Ok(Ok((language, target, rest))) => Ok((Some(language), target, rest)),
            Ok(Err(why)) => Err(why),
            Err(_) => Err("it asked for nothing".to_owned()),
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
                // As the server itself would have done.
                None => legs::reset_when_closed(&client),
            }
            return refuse(Some(target), sentence);
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

/// Hears what a client wants, and what came behind that. Tells it why it does not get it.
async fn hear(client: &mut TcpStream) -> Result<(Language, Target, Vec<u8>), String> {
    let mut asking = Asking::default();
    loop {
        match asking.step() {
            Ok(Next::More) => {
                let read = relay::read(client, |bytes| asking.push(bytes)).await;
                if read.map_err(|error| error.to_string())? == 0 {
                    return Err("it left without a question".to_owned());
                }
            }
            Ok(Next::Say(said)) => relay::say(client, &said).await.map_err(|error| error.to_string())?,
            Ok(Next::Wants(language, target)) => return Ok((language, target, asking.rest())),
            Err((said, why)) => {
                let _ = relay::say(client, &said).await;
                return Err(match why {
                    Refusal::NoSuchThing => "it asked for something else than a connection",
                    Refusal::NotAllowed => "it insists on a password",
                    _ => "what it asked is neither SOCKS5 nor CONNECT",
                }
                .to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests;
