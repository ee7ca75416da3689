//! Congestion controls that the TCP sockets of a session used, according to the kernel's socket diagnostics.
//!
//! Sockets are sampled, so a connection that is shorter than the sampling interval may be missed.
//!
//! Source: man-pages sock_diag(7), netlink(7); linux/inet_diag.h; linux/tcp.h (`tcp_info`)

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use crate::netlink::{self, Message, attributes, messages};

/// Sampling interval.
///
/// Chosen: the cost is small compared with the emulator's, and only requests of a few packets are shorter.
const EVERY: Duration = Duration::from_millis(100);

/// Maximum number of sockets that are counted; further sockets are ignored.
const MAX_SOCKETS: usize = 1 << 16;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Flags of a request for the whole table.
const DUMP: u16 = 0x1 | 0x300;
const TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// Bit mask of states: established, and all states in which data may still be under way, that is, fin-wait 1 and 2,
/// close-wait, last-ack, closing.
const CONNECTED: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// Byte range of `tcpi_bytes_acked` in `tcp_info`.
const BYTES_ACKED: std::ops::Range<usize> = 120..128;

/// The connections of one network that used one congestion control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Device of the sockets; `None` for the far side.
    pub device: Option<u8>,
    /// The kernel's name of the congestion control.
    pub name: String,
    /// Number of connections.
    pub connections: u64,
    /// Bytes that the peer had acknowledged at the last sample.
    pub bytes: u64,
}

/// A network whose sockets are sampled.
pub(super) struct Network {
    /// Device; `None` for the far side.
    pub device: Option<u8>,
    /// Diagnostics socket in that network.
    pub socket: OwnedFd,
}

/// Opens a diagnostics socket in the thread's network namespace.
pub(super) fn open() -> io::Result<OwnedFd> {
    let family = AddressFamily::NETLINK;
    Ok(rustix::net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?)
}

/// The sampled sockets.
pub(super) struct Controls {
    networks: Vec<Network>,
    sampled: Option<Instant>,
    sequence: u32,
    /// Congestion control and acknowledged bytes, by network and the kernel's socket identity. The map is iterated only
    /// for sums, so its order has no effect.
    seen: HashMap<(usize, u64), (String, u64)>,
}

impl Controls {
    pub(super) fn of(networks: Vec<Network>) -> Controls {
        Controls { networks, sampled: None, sequence: 0, seen: HashMap::new() }
    }

    /// Samples all networks if the last sample is at least [`EVERY`] old. `is_counted` is called with the device of a
    /// socket's network and the address of the socket's peer.
    pub(super) fn sample(&mut self, is_counted: impl Fn(Option<u8>, IpAddr) -> bool) {
        if self.sampled.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.sampled = Some(Instant::now());
        for index in 0..self.networks.len() {
            for family in [AddressFamily::INET, AddressFamily::INET6] {
                self.sequence += 1;
                let Network { device, socket } = &self.networks[index];
                // A kernel without socket diagnostics lists no sockets.
                let Ok(found) = sockets(socket, family, self.sequence) else { continue };
                for Seen { identity, remote, control, bytes } in found {
                    let key = (index, identity);
                    let is_new = !self.seen.contains_key(&key);
                    if is_counted(*device, remote) && (!is_new || self.seen.len() < MAX_SOCKETS) {
                        self.seen.insert(key, (control, bytes));
                    }
                }
            }
        }
    }

    /// Returns the congestion controls of the sampled sockets, by network, and within a network by decreasing number of
    /// bytes.
    pub(super) fn told(&self) -> Vec<Control> {
        let mut sums: BTreeMap<(usize, &str), (u64, u64)> = BTreeMap::new();
        for ((network, _), (name, bytes)) in &self.seen {
            let sum = sums.entry((*network, name)).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        let control = |((network, name), (connections, bytes)): (&(usize, &str), &(u64, u64))| Control {
            device: self.networks[*network].device,
            name: (*name).to_owned(),
            connections: *connections,
            bytes: *bytes,
        };
        let mut told: Vec<Control> = sums.iter().map(control).collect();
        told.sort_by_key(|control| (control.device, std::cmp::Reverse(control.bytes)));
        told
    }
}

/// A socket in the kernel's list.
#[derive(Debug, PartialEq)]
struct Seen {
    identity: u64,
    remote: IpAddr,
    control: String,
    bytes: u64,
}

fn sockets(socket: &OwnedFd, family: AddressFamily, sequence: u32) -> io::Result<Vec<Seen>> {
    let mut request = Message::new(SOCK_DIAG_BY_FAMILY, DUMP);
    let wanted = 1u8 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    request.bytes(&[family.as_raw() as u8, TCP, wanted, 0]).bytes(&CONNECTED.to_ne_bytes()).bytes(&[0; 48]);
    rustix::net::send(socket, &request.finish(sequence), SendFlags::empty())?;
    let mut found = vec![];
    let mut room = vec![0u8; 64 << 10];
    loop {
        let (length, _) = rustix::net::recv(socket, &mut room[..], RecvFlags::empty())?;
        for (kind, number, body) in messages(&room[..length]) {
            match kind {
                _ if number != sequence => {}
                NLMSG_DONE => return Ok(found),
                NLMSG_ERROR => return netlink::refusal(body).map_or(Ok(found), Err),
                SOCK_DIAG_BY_FAMILY => found.extend(seen(body)),
                _ => {}
            }
        }
    }
}

/// Parses an `inet_diag_msg`.
fn seen(body: &[u8]) -> Option<Seen> {
    let is_v4 = i32::from(*body.first()?) == i32::from(AddressFamily::INET.as_raw());
    let remote = body.get(24..40)?;
    let remote = match is_v4 {
        true => IpAddr::V4(Ipv4Addr::from(*remote.first_chunk::<4>()?)),
        false => Ipv6Addr::from(*remote.first_chunk::<16>()?).to_canonical(),
    };
    let identity = u64::from_ne_bytes(*body.get(44..52)?.first_chunk()?);
    let attribute =
        |wanted: u16| attributes(body.get(72..).unwrap_or_default()).find(|(kind, _)| *kind == wanted);
    let (_, name) = attribute(INET_DIAG_CONG)?;
    let control = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    let acked = attribute(INET_DIAG_INFO).and_then(|(_, info)| info.get(BYTES_ACKED)?.first_chunk().copied());
    Some(Seen { identity, remote, control, bytes: acked.map_or(0, u64::from_ne_bytes) })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_is_listed_with_its_control_and_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, from) = listener.accept().unwrap();
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        let Ok(socket) = open() else {
            return airpace_testing::skipped("no diagnostics of sockets");
        };
        let listed = sockets(&socket, AddressFamily::INET, 5);
        let Ok(listed) = listed else {
            return airpace_testing::skipped("the kernel does not list sockets of TCP");
        };
        let name = rustix::net::sockopt::tcp_congestion(&client).unwrap();
        let is_ours = |it: &&Seen| it.remote == from.ip() && it.control == name;
        assert!(listed.iter().filter(is_ours).count() >= 2, "both ends: {listed:?}");

        let mut controls = Controls::of(vec![Network { device: Some(3), socket }]);
        controls.sample(|device, remote| device == Some(3) && remote.is_loopback());
        controls.sample(|_, _| false);
        let told = controls.told();
        assert!(
            told.iter().any(|it| it.device == Some(3) && it.name == name && it.connections >= 2),
            "{told:?}"
        );
    }

    #[test]
    fn what_is_too_short_is_no_socket() {
        assert_eq!(seen(&[2; 60]), None, "it has no attributes");
        assert_eq!(seen(&[]), None);
    }
}
