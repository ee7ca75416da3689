//! The two connections of a client: how they are opened, and which socket options they get.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Refused, Remedy};
use airpace_rt::sockopt::{be_transparent, limit_received, limit_unsent};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen as begin, socket_with, sockopt};
use tokio::net::{TcpSocket, TcpStream};

use super::ask::{Refusal, Target};
use super::places::Places;
use super::{Choose, Config, Door, eyeballs};

/// Length of the accept queue: maximum number of established connections that wait for `accept`.
///
/// Source: Linux Documentation/networking/ip-sysctl.rst (somaxconn)
const WAITING: i32 = 4_096;

/// Maximum number of unsent bytes in the kernel's send buffer (TCP_NOTSENT_LOWAT). Beyond it the proxy stops reading, its
/// receive window closes, and further data stays at the server.
///
/// Chosen: 10 ms of data at 100 Mbit/s.
const UNSENT: u32 = 128 << 10;

/// TCP keepalive: idle time before the first probe, interval between probes, and number of unanswered probes that end the
/// connection. A dead peer is detected after 135 s.
///
/// Chosen: longer than a phone has no radio link in a tunnel, and shorter than most routers keep state of idle connections.
const ASKS_AFTER: Duration = Duration::from_secs(60);
const ASKS_EVERY: Duration = Duration::from_secs(15);
const MAX_ASKS: u32 = 5;

/// Whether the kernel has this congestion control and this user may select it.
pub(super) fn check(choose: Choose, name: &str) -> Result<(), Refused> {
    let any = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let any = any.map_err(|error| format!("no sockets: {error}"))?;
    choose(any.as_fd(), name).map_err(|error| Refused::of(&error))
}

/// Opens the listening socket for clients. Accepted connections inherit its socket options.
pub(super) fn listen(config: &Config) -> Result<std::net::TcpListener, Refused> {
    let make = || -> io::Result<OwnedFd> {
        let family = if config.listen.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if let IpAddr::V6(ip) = config.listen.ip() {
            sockopt::set_ipv6_v6only(&socket, ip != Ipv6Addr::UNSPECIFIED)?;
        }
        if config.door == Door::Transparent {
            be_transparent(socket.as_fd(), config.listen.is_ipv6())?;
            share_port(&socket)?;
        }
        if let Some(name) = &config.client_leg {
            (config.choose)(socket.as_fd(), name)?;
        }
        prepare(&socket)?;
        bind(&socket, &config.listen)?;
        begin(&socket, WAITING)?;
        Ok(socket)
    };
    let listener = make().map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Refused::new(format!("{} is taken", config.listen))
            .but(Remedy::new("give another with").parameter("listen")),
        io::ErrorKind::AddrNotAvailable => {
            Refused::new(format!("{} is no address of this machine", config.listen))
                .but(Remedy::new("give one with").parameter("listen"))
        }
        io::ErrorKind::PermissionDenied if config.door == Door::Transparent => {
            Refused::new("only root may take over others' connections")
                .but(Remedy::new("start it as root, or let clients ask for it"))
        }
        io::ErrorKind::PermissionDenied => Refused::new(format!("only root may listen at {}", config.listen))
            .but(Remedy::new("give a port above 1023 with").parameter("listen")),
        _ => Refused::new(format!("cannot listen at {}: {error}", config.listen)),
    })?;
    Ok(listener.into())
}

/// Sets the socket options that both connections use.
fn prepare(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, ASKS_AFTER)?;
    sockopt::set_tcp_keepintvl(&socket, ASKS_EVERY)?;
    sockopt::set_tcp_keepcnt(&socket, MAX_ASKS)?;
    limit_unsent(socket.as_fd(), UNSENT)
}

/// Sets SO_REUSEPORT. A connection to a server, which is bound to the client's address, then works also if the client's port
/// equals the port on which the proxy listens.
fn share_port(socket: impl AsFd) -> io::Result<()> {
    sockopt::set_socket_reuseport(socket, true).map_err(io::Error::from)
}

/// Connects to the target that a client requested.
pub(super) async fn reach(
    config: &Arc<Config>,
    lookups: &Arc<Places>,
    target: &Target,
    client: SocketAddr,
    local: SocketAddr,
) -> Result<TcpStream, (Refusal, String)> {
    let addresses: Vec<SocketAddr> = match target {
        Target::Address(address) => vec![*address],
        Target::Name(name, port) => {
            let place = Arc::clone(lookups).wait(client.ip()).await;
            let (asked, port) = (name.clone(), *port);
            let look_up = move || {
                let found = (asked.as_str(), port).to_socket_addrs().map(Vec::from_iter);
                // The lookup continues after the client gives up, so the thread holds its slot.
                drop(place);
                found
            };
            let found = tokio::task::spawn_blocking(look_up).await;
            let found = found.unwrap_or_else(|error| Err(io::Error::other(error)));
            found.map_err(|error| (Refusal::Unreachable, format!("{name} is not found: {error}")))?
        }
    };
    let connect = |address| {
        let config = Arc::clone(config);
        async move {
            may_go(config.door, address, client, local)
                .map_err(|why| (Refusal::NotAllowed, why.to_owned()))?;
            let connected = connect(&config, address, client).await;
            connected.map_err(|error| (Refusal::of(&error), error.to_string()))
        }
    };
    let nowhere = || Err((Refusal::Unreachable, "the name has no address".to_owned()));
    eyeballs::first(&addresses, connect).await.unwrap_or_else(nowhere)
}

/// Whether an address belongs to this machine.
fn is_here(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// Checks whether a client may connect to an address. Remote clients must not reach this machine's loopback and link-local
/// addresses, and no connection may lead to the proxy itself.
fn may_go(door: Door, to: SocketAddr, client: SocketAddr, local: SocketAddr) -> Result<(), &'static str> {
    let ip = to.ip().to_canonical();
    let is_own = ip.is_loopback() || ip.is_unspecified();
    if to.port() == local.port() && (is_own || is_here(ip)) {
        return Err("it leads to the proxy itself");
    }
    let is_near = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if door == Door::Asked && (is_own || is_near) && !client.ip().to_canonical().is_loopback() {
        return Err("it is an address of this machine alone; only clients on it may go there");
    }
    Ok(())
}

async fn connect(config: &Config, to: SocketAddr, client: SocketAddr) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    prepare(&socket)?;
    if let Some(bytes) = config.server_queue {
        limit_received(socket.as_fd(), bytes)?;
    }
    if let Some(name) = &config.server_leg {
        (config.choose)(socket.as_fd(), name)?;
    }
    if config.door == Door::Transparent {
        be_transparent(socket.as_fd(), to.is_ipv6())?;
        socket.set_reuseaddr(true)?;
        share_port(&socket)?;
        socket.bind(client)?;
    }
    let stream = socket.connect(to).await?;
    // TCP's simultaneous open lets a connection to an unused local port connect to itself.
    if stream.local_addr().ok() == stream.peer_addr().ok() {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(stream)
}

/// Makes closing the socket discard unsent data and send a reset to the peer (SO_LINGER of 0 s).
pub(super) fn reset_when_closed(stream: &TcpStream) {
    // If the option cannot be set, the peer sees a regular end in place of a reset.
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}
