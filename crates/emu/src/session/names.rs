//! Host names: programs on devices use the resolvers of the machine. A forwarder on the far side queries those resolvers
//! that only the machine itself can reach.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustix::mount::mount_bind;

use super::namespaces::in_hidden_folder;
use super::relay::exchange;
use crate::address::Space;

/// File that lists the resolvers.
const LIST: &str = "/etc/resolv.conf";

/// Source: RFC 1035 §4.2
const PORT: u16 = 53;

/// Maximum response time of a resolver before the next one is queried.
///
/// Chosen: programs repeat a query after 5 s, by which time two resolvers must have been queried.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Maximum number of concurrent queries; further ones are ignored. All clients are the session's own programs.
const MAX_QUESTIONS: usize = 64;

/// Maximum size of a query or response in one packet, in bytes.
const MAX_BYTES: usize = 65_535;

/// Returns the forwarder's address for the emulator with this number among those that share a far side.
pub(super) fn address(number: u8) -> Ipv4Addr {
    let [a, b, c, _] = Space::ROOT.address_v4().octets();
    Ipv4Addr::new(a, b, c, PORT as u8 + number)
}

/// Name resolution for programs on devices, in addition to the machine's own.
#[derive(Debug)]
pub(super) struct Forwarder {
    /// Listening sockets; `None` if a program of the machine already listens at the address. That program then answers.
    sockets: Option<(UdpSocket, TcpListener)>,
    /// Resolvers, in the order in which they are queried.
    resolvers: Vec<IpAddr>,
    /// Contents of the list of resolvers that programs see.
    list: String,
}

/// Returns the resolvers of this machine and the rest of the list, if programs on devices cannot reach at least one of
/// the resolvers, or if `reaches_none`.
pub(super) fn needed(reaches_none: bool) -> Option<(Vec<IpAddr>, String)> {
    let (resolvers, rest, is_hidden) = read(&std::fs::read_to_string(LIST).ok()?);
    (is_hidden || reaches_none).then_some((resolvers, rest))
}

/// Returns the resolvers of a list, the rest of the list, and whether only the machine itself can reach one of them.
///
/// Source: man-pages resolv.conf(5)
fn read(list: &str) -> (Vec<IpAddr>, String, bool) {
    let mut resolvers = vec![];
    let mut rest = String::new();
    let mut is_hidden = false;
    for line in list.lines() {
        let Some(name) = line.strip_prefix("nameserver").filter(|it| it.starts_with([' ', '\t'])) else {
            rest += line;
            rest.push('\n');
            continue;
        };
        match name.trim().parse::<IpAddr>() {
            Ok(IpAddr::V4(address)) => {
                let is_here = address.is_loopback() || address.is_unspecified() || address.is_link_local();
                is_hidden |= is_here || Space::ROOT.contains(address.into());
                resolvers.push(address.into());
            }
            // IPv6 packets may not be forwarded, so the resolver counts as unreachable.
            Ok(address) => {
                is_hidden = true;
                resolvers.push(address);
            }
            // The address is followed by an interface name: the resolver is on that interface's link.
            Err(_) => is_hidden = true,
        }
    }
    if resolvers.is_empty() {
        // Without an entry, the default resolver is the local host.
        resolvers.push(Ipv4Addr::LOCALHOST.into());
        is_hidden = true;
    }
    (resolvers, rest, is_hidden)
}

impl Forwarder {
    /// Opens the sockets in the thread's network namespace, where an interface has the address.
    pub(super) fn open(address: Ipv4Addr, resolvers: Vec<IpAddr>, rest: &str) -> io::Result<Forwarder> {
        let sockets = UdpSocket::bind((address, PORT))
            .and_then(|datagrams| Ok((datagrams, TcpListener::bind((address, PORT))?)));
        let sockets = match sockets {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            other => Some(other?),
        };
        Ok(Forwarder { sockets, resolvers, list: format!("nameserver {address}\n{rest}") })
    }

    /// Mounts the list with the forwarder's address for programs; the process must have its own mounts. This method
    /// then forwards queries until the process ends. The outgoing queries start in the thread's network namespace.
    pub(super) fn begin(self) -> io::Result<()> {
        show(&self.list)?;
        let Some((datagrams, streams)) = self.sockets else { return Ok(()) };
        let resolvers: Resolvers = self.resolvers.into();
        let same = Arc::clone(&resolvers);
        std::thread::Builder::new()
            .name("names".to_owned())
            .spawn(move || answer_datagrams(&datagrams.into(), &resolvers))?;
        std::thread::Builder::new()
            .name("names-tcp".to_owned())
            .spawn(move || answer_streams(&streams, &same))?;
        Ok(())
    }
}

/// Resolvers, in the order in which they are queried.
type Resolvers = Arc<[IpAddr]>;

fn answer_datagrams(socket: &Arc<UdpSocket>, resolvers: &Resolvers) {
    let mut room = vec![0; MAX_BYTES];
    loop {
        let Ok((length, asker)) = socket.recv_from(&mut room) else { continue };
        let (question, socket) = (room[..length].to_vec(), Arc::clone(socket));
        beside(resolvers, move |resolvers| {
            let answer = resolvers.iter().find_map(|&resolver| ask((resolver, PORT).into(), &question).ok());
            if let Some(answer) = answer {
                let _ = socket.send_to(&answer, asker);
            }
        });
    }
}

fn answer_streams(socket: &TcpListener, resolvers: &Resolvers) {
    for stream in socket.incoming() {
        let Ok(asker) = stream else { continue };
        beside(resolvers, move |resolvers| {
            let reach = |&resolver: &IpAddr| {
                TcpStream::connect_timeout(&(resolver, PORT).into(), ANSWERS_WITHIN).ok()
            };
            // Without a resolver, the connection is closed, which the client treats as a failure.
            if let Some(resolver) = resolvers.iter().find_map(reach) {
                exchange(&asker, &resolver);
            }
        });
    }
}

/// Runs `act` in a new thread, if fewer than [`MAX_QUESTIONS`] threads run.
fn beside(resolvers: &Resolvers, act: impl FnOnce(&[IpAddr]) + Send + 'static) {
    // Each of these threads holds one reference, and so do the two threads that listen.
    if Arc::strong_count(resolvers) < MAX_QUESTIONS + 2 {
        let resolvers = Arc::clone(resolvers);
        // If no thread can be started, the program repeats its query.
        let _ = std::thread::Builder::new().spawn(move || act(&resolvers));
    }
}

/// Sends one query to a resolver and returns its response.
fn ask(resolver: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let here: SocketAddr = match resolver {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(here)?;
    socket.connect(resolver)?;
    socket.set_read_timeout(Some(ANSWERS_WITHIN))?;
    socket.send(question)?;
    let mut room = vec![0; MAX_BYTES];
    let length = socket.recv(&mut room)?;
    room.truncate(length);
    Ok(room)
}

/// Replaces the machine's list of resolvers by this text, for all processes of the mount namespace.
fn show(text: &str) -> io::Result<()> {
    in_hidden_folder(|folder| {
        let path = folder.join("resolv.conf");
        airpace_files::new_file(&path)?.write_all(text.as_bytes())?;
        // The bind mount keeps the file visible after its folder is unmounted.
        Ok(mount_bind(&path, LIST)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_resolvers_that_devices_reach_stays_as_it_is() {
        let (_, rest, is_hidden) = read("search example.org\nnameserver 192.0.2.53\nnameserver 9.9.9.9\n");
        assert_eq!((rest.as_str(), is_hidden), ("search example.org\n", false));
    }

    #[test]
    fn resolvers_that_only_the_machine_reaches_are_asked_by_the_forwarder() {
        let (resolvers, rest, is_hidden) =
            read("# stub\nnameserver 127.0.0.53\nnameserver 192.0.2.1\noptions edns0\n");
        assert_eq!(resolvers, ["127.0.0.53", "192.0.2.1"].map(|it| it.parse::<IpAddr>().unwrap()));
        assert_eq!((rest.as_str(), is_hidden), ("# stub\noptions edns0\n", true));
        for list in ["", "nameserver ::1\n", "nameserver 100.100.100.100\n", "nameserver\t169.254.1.1\n"] {
            assert!(read(list).2, "{list}");
        }
        let (resolvers, ..) = read("nameserver fe80::1%eth0\n");
        assert_eq!(resolvers, [IpAddr::from(Ipv4Addr::LOCALHOST)], "the resolver is on a link");
    }

    #[test]
    fn each_of_the_emulators_at_one_far_side_has_a_forwarder_of_its_own() {
        assert_eq!(address(0), Ipv4Addr::new(100, 64, 0, 53));
        assert!((0..Space::MAX_DEVICES).all(|it| Space::ROOT.slot_of(address(it).into()).is_none()));
    }

    #[test]
    fn a_question_goes_to_the_resolver_and_its_answer_back() {
        let resolver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = resolver.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut room = [0; 512];
                let (length, asker) = resolver.recv_from(&mut room).unwrap();
                room[..length].reverse();
                resolver.send_to(&room[..length], asker).unwrap();
            });
            assert_eq!(ask(address, b"question").unwrap(), b"noitseuq");
        });
    }
}
