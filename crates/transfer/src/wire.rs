//! Runs a sender or a receiver on a real socket until it has finished.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use airpace_core::Refused;
use airpace_feed::Radio;
use airpace_transport::app::App;
use airpace_transport::both::{Both, Transport};
use airpace_transport::endpoint::Endpoint;
use airpace_transport::key::Key;
use airpace_transport::quic::{self, Identity, QuicEndpoint};
use airpace_transport::socket::{BindError, Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};

/// Default UDP port.
///
/// Chosen: not registered for another service, and above the privileged ports.
pub const PORT: u16 = 47_474;

/// Host and port of `HOST[:PORT]`; `None` if the text has another form.
pub fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
        // More than one colon: an IPv6 address.
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(PORT), str::parse).ok()?;
    (!host.is_empty() && port != 0).then(|| (host.to_owned(), port))
}

/// Idle timeout of a connection. After this timeout, a sender opens a new connection, because the receiver may have
/// been restarted.
///
/// Chosen: longer than an outage of 10 s plus the pause until the next probe.
const IDLE: Duration = Duration::from_secs(20);

/// Keep-alive interval of an idle QUIC connection. The UDP prototype has its own keep-alive.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The network could not be used.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// An endpoint of QUIC cannot be created.
    #[error(transparent)]
    Quic(Refused),
    /// The system provides no random numbers.
    #[error(transparent)]
    Random(#[from] airpace_transport::key::NoRandomNumbers),
    /// The system provides no file descriptor.
    #[error("the system has no file descriptor left; close some programs")]
    Descriptor(#[source] std::io::Error),
}

/// Parameters of [`turn`].
pub struct Wire {
    /// The key that both endpoints share.
    pub key: Key,
    /// The socket, from [`listen`] or [`call`].
    pub socket: Socket,
    /// Which endpoint opens the connection.
    pub role: Role,
    /// Source of radio reports.
    pub radio: Option<Box<dyn Radio>>,
    /// Whether to request real-time priority for the thread; without the permission, it runs normally.
    pub wants_realtime: bool,
}

/// Which endpoint opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This endpoint accepts connections, over any transport.
    Listens,
    /// This endpoint opens the connection, over this transport.
    Calls(Transport),
}

/// Opens a socket that accepts connections.
///
/// # Errors
/// The socket cannot be opened; the message contains a remedy.
pub fn listen(at: SocketAddr) -> Result<Socket, BindError> {
    Socket::bind(at, Buffers::default()).or_else(|error| {
        // On a machine without IPv6, listen on IPv4.
        let every = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), at.port());
        let is_other = at.is_ipv6() && at.ip().is_unspecified();
        let of_ipv4 = is_other.then(|| Socket::bind(every, Buffers::default()).ok()).flatten();
        of_ipv4.ok_or(error)
    })
}

/// Opens a socket from which `peer` can be reached.
///
/// # Errors
/// The socket cannot be opened; the message contains a remedy.
pub fn call(peer: SocketAddr) -> Result<Socket, BindError> {
    Socket::toward(peer, Buffers::default())
}

/// Runs `app` on the network until it has finished.
///
/// # Errors
/// The system provides no random numbers or no file descriptor.
pub fn turn<A: App>(wire: Wire, app: A) -> Result<A, WireError> {
    let accepts = wire.role == Role::Listens;
    let identity =
        accepts.then(|| Identity::self_signed(&["airpace"])).transpose().map_err(WireError::Quic)?;
    let config = quic::Config {
        identity,
        idle: IDLE,
        keep_alive: Some(KEEP_ALIVE),
        // A restarted receiver derives the same reset key.
        reset_key: accepts.then(|| wire.key.derive(b"", b"airpace quic stateless reset")),
        ..quic::Config::default()
    };
    let quic = QuicEndpoint::new(config).map_err(WireError::Quic)?;
    let config = UdpConfig { accepts, idle: IDLE, ..UdpConfig::default() };
    let udp = UdpEndpoint::new(wire.key, config)?;
    match wire.role {
        Role::Calls(Transport::Quic) => on(quic, wire.socket, wire.radio, wire.wants_realtime, app),
        Role::Calls(Transport::Udp) => on(udp, wire.socket, wire.radio, wire.wants_realtime, app),
        Role::Listens => {
            let both = Both::new(quic, udp, Transport::default());
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
) -> Result<A, WireError> {
    let control = Control::new().map_err(WireError::Descriptor)?;
    let radios = radio.into_iter().collect();
    Ok(Turn { socket, endpoint, app, radios, control, wants_realtime }.run().app)
}
