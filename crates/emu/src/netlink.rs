//! Interfaces, addresses and routes of the thread's network namespace, set through the kernel's route socket.
//!
//! Source: man-pages rtnetlink(7), netlink(7)

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// A socket to the kernel's tables of interfaces and routes.
pub(crate) struct Routes {
    socket: OwnedFd,
    sequence: u32,
}

/// Types of messages.
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLMSG_ERROR: u16 = 2;

/// Flags of a request: it is one, it is to be answered, it creates something new.
const REQUEST: u16 = 0x1 | 0x4;
const CREATE: u16 = 0x400 | 0x200;

/// Attributes.
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;

const IFF_UP: u32 = 1;
/// The address is used at once, without asking whether others have it.
const IFA_F_NODAD: u8 = 2;
const TABLE_MAIN: u8 = 254;
const SET_BY_ADMINISTRATOR: u8 = 4;
const SCOPE_LINK: u8 = 253;
const UNICAST: u8 = 1;

impl Routes {
    /// Opens the socket in the thread's namespace.
    pub(crate) fn open() -> io::Result<Routes> {
        let family = AddressFamily::NETLINK;
        let socket = rustix::net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Routes { socket, sequence: 0 })
    }

    /// The number of an interface.
    pub(crate) fn index(&self, name: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.socket, name)?)
    }

    /// Turns an interface on; `mtu` bytes and `queue` packets may be given.
    pub(crate) fn set_up(&mut self, index: u32, sizes: Option<(u32, u32)>) -> io::Result<()> {
        let mut message = Message::new(RTM_NEWLINK, REQUEST);
        message.bytes(&[0, 0, 0, 0]).word(index).word(IFF_UP).word(IFF_UP);
        if let Some((mtu, queue)) = sizes {
            message.attribute(IFLA_MTU, &mtu.to_ne_bytes());
            message.attribute(IFLA_TXQLEN, &queue.to_ne_bytes());
        }
        self.ask(message)
    }

    /// Gives an interface an address of its own, without a route.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = Message::new(RTM_NEWADDR, REQUEST | CREATE);
        message.bytes(&[family(address), full_length(address), IFA_F_NODAD, 0]).word(index);
        message.attribute(IFA_LOCAL, &octets(address));
        message.attribute(IFA_ADDRESS, &octets(address));
        self.ask(message)
    }

    /// Sends a network's packets to an interface; a length of 0 is everything. `source` is the address that programs
    /// send from if they choose none.
    pub(crate) fn add_route(
        &mut self,
        (network, length): (IpAddr, u8),
        index: u32,
        source: Option<IpAddr>,
    ) -> io::Result<()> {
        let scope = if network.is_ipv4() { SCOPE_LINK } else { 0 };
        let mut message = Message::new(RTM_NEWROUTE, REQUEST | CREATE);
        message.bytes(&[family(network), length, 0, 0, TABLE_MAIN, SET_BY_ADMINISTRATOR, scope, UNICAST]);
        message.word(0);
        if length > 0 {
            message.attribute(RTA_DST, &octets(network));
        }
        message.attribute(RTA_OIF, &index.to_ne_bytes());
        if let Some(source) = source {
            message.attribute(RTA_PREFSRC, &octets(source));
        }
        self.ask(message)
    }

    /// Sends a request and waits for the kernel's word.
    fn ask(&mut self, message: Message) -> io::Result<()> {
        self.sequence += 1;
        let request = message.finish(self.sequence);
        rustix::net::send(&self.socket, &request, SendFlags::empty())?;
        let mut room = [0u8; 8192];
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut room[..], RecvFlags::empty())?;
            let answer = &room[..length];
            let [_, _, _, _, low, high, _, _, s0, s1, s2, s3, _, _, _, _, e0, e1, e2, e3, ..] = *answer
            else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "an answer of the kernel is too short",
                ));
            };
            let is_ours = u32::from_ne_bytes([s0, s1, s2, s3]) == self.sequence;
            if is_ours && u16::from_ne_bytes([low, high]) == NLMSG_ERROR {
                return match i32::from_ne_bytes([e0, e1, e2, e3]) {
                    0 => Ok(()),
                    error => Err(io::Error::from_raw_os_error(-error)),
                };
            }
        }
    }
}

/// A request under construction.
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: u16) -> Message {
        let mut bytes = vec![0; 16];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Message { bytes }
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Message {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn word(&mut self, word: u32) -> &mut Message {
        self.bytes(&word.to_ne_bytes())
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = value.len() as u16 + 4;
        self.bytes(&length.to_ne_bytes()).bytes(&kind.to_ne_bytes()).bytes(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    family.as_raw() as u8
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_and_its_refusals_are_told() {
        let mut routes = Routes::open().unwrap();
        assert!(routes.index("lo").unwrap() > 0);
        assert!(routes.index("no-such-one").is_err());
        let refused = routes.add_address(u32::MAX, "10.9.8.7".parse().unwrap()).unwrap_err();
        assert_ne!(refused.raw_os_error(), None, "{refused}");
    }

    #[test]
    fn attributes_begin_at_multiples_of_four_bytes() {
        let mut message = Message::new(RTM_NEWLINK, REQUEST);
        message.attribute(3, b"airpace");
        message.attribute(4, &[1]);
        let bytes = message.finish(7);
        assert_eq!(bytes.len(), 16 + 12 + 8);
        assert_eq!(bytes[..4], 36u32.to_ne_bytes());
        assert_eq!(bytes[16..20], [11, 0, 3, 0].map(|it: u8| it));
        assert_eq!(bytes[28..30], 5u16.to_ne_bytes());
    }
}
