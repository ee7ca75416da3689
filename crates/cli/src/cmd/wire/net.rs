//! A sender or a receiver on a real socket, until it is done.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_feed::Radio;
use airpace_transport::app::App;
use airpace_transport::both::Both;
use airpace_transport::endpoint::Endpoint;
use airpace_transport::key::Key;
use airpace_transport::quic::{self, Identity, QuicEndpoint};
use airpace_transport::socket::{BindError, Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};
use anyhow::{Context, anyhow};

use super::Transport;

/// Nothing was heard for so long: a sender begins a new connection, since its receiver may have been started again.
///
/// Chosen: an outage of 10 s passes, and so does the pause until the next probe after it.
const IDLE: Duration = Duration::from_secs(20);

/// A quiet QUIC connection sends a packet in each such time. The prototype does that by itself.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// What a command wants to have turned on the network.
pub struct Wire {
    /// The key of both ends.
    pub key: Key,
    /// The socket, from [`listen`] or [`call`].
    pub socket: Socket,
    /// Who begins.
    pub role: Role,
    /// Where radio reports come from.
    pub radio: Option<Box<dyn Radio>>,
    /// Whether its thread runs before all others, where that is allowed.
    pub wants_realtime: bool,
}

/// Who begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Others come, by any transport.
    Listens,
    /// This end calls, by this transport.
    Calls(Transport),
}

/// A socket that others come to.
///
/// # Errors
/// What the system refuses, and what to do.
pub fn listen(at: SocketAddr) -> Result<Socket, BindError> {
    Socket::bind(at, Buffers::default()).or_else(|error| {
        // A machine without IPv6.
        let every = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port());
        let is_other = at.is_ipv6() && at.ip().is_unspecified();
        let of_ipv4 = is_other.then(|| Socket::bind(every, Buffers::default()).ok()).flatten();
        of_ipv4.ok_or(error)
    })
}

/// A socket from which `peer` can be reached.
///
/// # Errors
/// What the system refuses, and what to do.
pub fn call(peer: SocketAddr) -> Result<Socket, BindError> {
    Socket::toward(peer, Buffers::default())
}

/// Runs `app` on the network until it is done.
///
/// # Errors
/// The system gives no randomness, or nothing to wake a thread with.
pub fn turn<A: App>(wire: Wire, app: A) -> anyhow::Result<A> {
    let accepts = wire.role == Role::Listens;
    let identity =
        accepts.then(|| Identity::self_signed(&["airpace"])).transpose().map_err(|why| anyhow!(why))?;
    let config = quic::Config {
        identity,
        idle: IDLE,
        keep_alive: Some(KEEP_ALIVE),
        // A receiver that was killed and started again has the same key.
        reset_key: accepts.then(|| wire.key.derive(b"", b"airpace quic stateless reset")),
        ..quic::Config::default()
    };
    let quic = QuicEndpoint::new(config).map_err(|why| anyhow!(why))?;
    let config = UdpConfig { accepts, idle: IDLE, ..UdpConfig::default() };
    let udp = UdpEndpoint::new(wire.key, config)?;
    match wire.role {
        Role::Calls(Transport::Quic) => on(quic, wire.socket, wire.radio, wire.wants_realtime, app),
        Role::Calls(Transport::Udp) => on(udp, wire.socket, wire.radio, wire.wants_realtime, app),
        Role::Listens => {
            let both = Both::new(quic, udp, airpace_transport::both::Transport::default());
            on(both, wire.socket, wire.radio, wire.wants_realtime, app)
        }
    }
}

fn on<E: Endpoint, A: App>(
    endpoint: E,
    socket: Socket,
    radio: Option<Box<dyn Radio>>,
    wants_realtime: bool,
    app: A,
) -> anyhow::Result<A> {
    let control = Control::new().context("the system has no file descriptor left; close some programs")?;
    let radios = radio.into_iter().collect();
    Ok(Turn { socket, endpoint, app, radios, control, wants_realtime }.run().app)
}
