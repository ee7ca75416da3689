//! Names of hosts: programs on devices ask the resolvers that the machine asks. Resolvers that only the machine itself can
//! reach are asked by a forwarder on the far side.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustix::mount::mount_bind;

use super::namespaces::in_hidden_folder;
use super::relay::exchange;
use crate::address::Space;

/// Where the resolvers are listed.
const LIST: &str = "/etc/resolv.conf";

/// Source: RFC 1035 §4.2
const PORT: u16 = 53;

/// How long a resolver may take before the next one is asked.
///
/// Chosen: programs ask again after 5 s, and two resolvers are to have been asked by then.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Questions that are under way at once; more are not heard. All that ask are the session's own programs.
const MOST_QUESTIONS: usize = 64;

/// Bytes of the longest question or answer in one packet.
const MOST_BYTES: usize = 65_535;

/// The address of the forwarder of the emulator with this number among those that share a far side.
pub(super) fn address(number: u8) -> Ipv4Addr {
    let [a, b, c, _] = Space::ROOT.address_v4().octets();
    Ipv4Addr::new(a, b, c, PORT as u8 + number)
}

/// What programs on devices need to resolve names, beside what the machine has.
#[derive(Debug)]
pub(super) struct Forwarder {
    /// `None` if a program of the machine listens there already: then that one answers.
    sockets: Option<(UdpSocket, TcpListener)>,
    /// Whom it asks, in this order.
    resolvers: Vec<IpAddr>,
    /// The list that programs see.
    list: String,
}

/// The resolvers of this machine, and the rest of the list, if programs on devices cannot reach one of them, or none.
pub(super) fn needed(reaches_none: bool) -> Option<(Vec<IpAddr>, String)> {
    let (resolvers, rest, is_hidden) = read(&std::fs::read_to_string(LIST).ok()?);
    (is_hidden || reaches_none).then_some((resolvers, rest))
}

/// The resolvers of a list, the rest of it, and whether there is a resolver that only the machine itself reaches.
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
            // Whether packets of IPv6 are passed on is another question.
            Ok(address) => {
                is_hidden = true;
                resolvers.push(address);
            }
            // With the name of an interface behind it: it is on that one's link.
            Err(_) => is_hidden = true,
        }
    }
    if resolvers.is_empty() {
        // The default.
        resolvers.push(Ipv4Addr::LOCALHOST.into());
        is_hidden = true;
    }
    (resolvers, rest, is_hidden)
}

impl Forwarder {
    /// Opens its sockets in the thread's network namespace, where an interface has the address.
    pub(super) fn open(address: Ipv4Addr, resolvers: Vec<IpAddr>, rest: &str) -> io::Result<Forwarder> {
        let sockets = UdpSocket::bind((address, PORT))
            .and_then(|datagrams| Ok((datagrams, TcpListener::bind((address, PORT))?)));
        let sockets = match sockets {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            other => Some(other?),
        };
        Ok(Forwarder { sockets, resolvers, list: format!("nameserver {address}\n{rest}") })
    }

    /// Shows programs the list with the forwarder's address; the process has mounts of its own. Then answers, until the
    /// process ends; it asks from the thread's network namespace.
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

/// Whom to ask, in this order.
type Resolvers = Arc<[IpAddr]>;

fn answer_datagrams(socket: &Arc<UdpSocket>, resolvers: &Resolvers) {
    let mut room = vec![0; MOST_BYTES];
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
            // Without a resolver the connection is closed, which says the same.
            if let Some(resolver) = resolvers.iter().find_map(reach) {
                exchange(&asker, &resolver);
            }
        });
    }
}

/// Does something in a thread of its own, if there are not too many.
fn beside(resolvers: &Resolvers, act: impl FnOnce(&[IpAddr]) + Send + 'static) {
    // Each thread holds them, as do the two that listen.
    if Arc::strong_count(resolvers) < MOST_QUESTIONS + 2 {
        let resolvers = Arc::clone(resolvers);
        // If there can be no thread, the program asks again.
        let _ = std::thread::Builder::new().spawn(move || act(&resolvers));
    }
}

/// Asks a resolver one question.
fn ask(resolver: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let here: SocketAddr = match resolver {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(here)?;
    socket.connect(resolver)?;
    socket.set_read_timeout(Some(ANSWERS_WITHIN))?;
    socket.send(question)?;
    let mut room = vec![0; MOST_BYTES];
    let length = socket.recv(&mut room)?;
    room.truncate(length);
    Ok(room)
}

/// Shows this text instead of the machine's list to all processes of the namespace of mounts.
fn show(text: &str) -> io::Result<()> {
    in_hidden_folder(|folder| {
        let path = folder.join("resolv.conf");
        airpace_files::new_file(&path)?.write_all(text.as_bytes())?;
        // The file is seen there as long as there are these mounts.
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
        assert!((0..Space::MOST_DEVICES).all(|it| Space::ROOT.slot_of(address(it).into()).is_none()));
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
