//! Interfaces, addresses and routes of the thread's network namespace, set through the kernel's rtnetlink socket.
//!
//! Source: man-pages rtnetlink(7), netlink(7)

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// An rtnetlink socket.
pub(crate) struct Routes {
    socket: OwnedFd,
    sequence: u32,
}

/// Message types.
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLMSG_ERROR: u16 = 2;
const RTM_GETLINK: u16 = 18;

/// Flags of a request: a request with acknowledgement, and one that creates a new object.
pub(crate) const REQUEST: u16 = 0x1 | 0x4;
pub(crate) const CREATE: u16 = 0x400 | 0x200;

/// Attribute types.
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_IFALIAS: u16 = 20;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;

const IFF_UP: u32 = 1;
/// Flag: use the address at once, without duplicate address detection.
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

    /// Returns the index of an interface.
    pub(crate) fn index(&self, name: &str) -> io::Result<u32> {
        Ok(rustix::net::netdevice::name_to_index(&self.socket, name)?)
    }

    /// Enables an interface and optionally sets `sizes`: its MTU in bytes and its queue length in packets.
    pub(crate) fn set_up(&mut self, index: u32, sizes: Option<(u32, u32)>) -> io::Result<()> {
        let mut message = Message::new(RTM_NEWLINK, REQUEST);
        message.bytes(&[0, 0, 0, 0]).word(index).word(IFF_UP).word(IFF_UP);
        if let Some((mtu, queue)) = sizes {
            message.attribute(IFLA_MTU, &mtu.to_ne_bytes());
            message.attribute(IFLA_TXQLEN, &queue.to_ne_bytes());
        }
        self.ask(message)
    }

    /// Sets the alias of an interface, which the kernel removes with the interface; an empty text removes the alias.
    pub(crate) fn set_note(&mut self, index: u32, note: &str) -> io::Result<()> {
        let mut message = Message::new(RTM_NEWLINK, REQUEST);
        message.bytes(&[0, 0, 0, 0]).word(index).word(0).word(0);
        message.attribute(IFLA_IFALIAS, note.as_bytes());
        self.ask(message)
    }

    /// Returns the alias of an interface; empty if it has none.
    pub(crate) fn note(&mut self, index: u32) -> io::Result<String> {
        let mut message = Message::new(RTM_GETLINK, REQUEST);
        message.bytes(&[0, 0, 0, 0]).word(index).word(0).word(0);
        self.sequence += 1;
        let request = message.finish(self.sequence);
        rustix::net::send(&self.socket, &request, SendFlags::empty())?;
        let mut found = String::new();
        let mut room = [0u8; 16 << 10];
        // The message with the interface's attributes arrives before the kernel's acknowledgement.
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut room[..], RecvFlags::empty())?;
            for (kind, sequence, body) in messages(&room[..length]) {
                if sequence != self.sequence {
                    continue;
                }
                match kind {
                    NLMSG_ERROR => return refusal(body).map_or(Ok(found), Err),
                    RTM_NEWLINK => {
                        let text = attributes(body.get(16..).unwrap_or_default())
                            .find(|(kind, _)| *kind == IFLA_IFALIAS)
                            .map(|(_, value)| String::from_utf8_lossy(value).into_owned());
                        found = text.unwrap_or_default().trim_end_matches('\0').to_owned();
                    }
                    _ => {}
                }
            }
        }
    }

    /// Adds an address to an interface, without a route.
    pub(crate) fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = Message::new(RTM_NEWADDR, REQUEST | CREATE);
        message.bytes(&[family(address), full_length(address), IFA_F_NODAD, 0]).word(index);
        message.attribute(IFA_LOCAL, &octets(address));
        message.attribute(IFA_ADDRESS, &octets(address));
        self.ask(message)
    }

    /// Routes a network to an interface; a prefix length of 0 is the default route. `source` is the source address of
    /// programs that do not choose one.
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

    /// Sends a request and waits for the kernel's acknowledgement.
    fn ask(&mut self, message: Message) -> io::Result<()> {
        self.sequence += 1;
        let request = message.finish(self.sequence);
        rustix::net::send(&self.socket, &request, SendFlags::empty())?;
        word_about(&self.socket, self.sequence..=self.sequence)?.1
    }
}

/// Waits for the acknowledgement of a request with one of these numbers. Returns the request's number and result.
pub(crate) fn word_about(
    socket: &OwnedFd,
    numbers: std::ops::RangeInclusive<u32>,
) -> io::Result<(u32, io::Result<()>)> {
    let mut room = [0u8; 8192];
    loop {
        let (length, _) = rustix::net::recv(socket, &mut room[..], RecvFlags::empty())?;
        // Each acknowledgement is a separate message.
        for (kind, number, body) in messages(&room[..length]) {
            if numbers.contains(&number) && kind == NLMSG_ERROR {
                return Ok((number, refusal(body).map_or(Ok(()), Err)));
            }
        }
    }
}

/// Iterates over the messages of a reply: type, number of the request, and the body after the header.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.get(..16)?;
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let length = word(0) as usize;
        let body = bytes.get(16..length)?;
        let (kind, sequence) = (u16::from_ne_bytes([header[4], header[5]]), word(8));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, sequence, body))
    })
}

/// Iterates over the attributes of a message: type and value.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header = bytes.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = bytes.get(4..length)?;
        let kind = u16::from_ne_bytes([header[2], header[3]]);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Returns the error in the body of an acknowledgement; `None` if the request succeeded.
pub(crate) fn refusal(body: &[u8]) -> Option<io::Error> {
    match body.first_chunk().map(|&word| i32::from_ne_bytes(word)) {
        Some(0) => None,
        Some(error) => Some(io::Error::from_raw_os_error(-error)),
        None => Some(io::Error::new(io::ErrorKind::InvalidData, "an answer of the kernel is too short")),
    }
}

/// A request under construction.
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn new(kind: u16, flags: u16) -> Message {
        let mut bytes = vec![0; 16];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Message { bytes }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Message {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn word(&mut self, word: u32) -> &mut Message {
        self.bytes(&word.to_ne_bytes())
    }

    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) {
        add_attribute(&mut self.bytes, kind, value);
    }

    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// Appends an attribute, padded to a multiple of four bytes.
pub(crate) fn add_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = value.len() as u16 + 4;
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    family.as_raw() as u8
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns the bytes of an address.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
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
    fn an_interface_without_a_note_has_an_empty_one() {
        let mut routes = Routes::open().unwrap();
        let lo = routes.index("lo").unwrap();
        assert_eq!(routes.note(lo).unwrap(), "");
        assert!(routes.note(u32::MAX).is_err());
        assert!(routes.set_note(u32::MAX, "note").is_err());
    }

    #[test]
    fn answers_are_read_and_broken_ones_end_early() {
        let mut answer = Message::new(7, 0);
        answer.attribute(20, b"note\0");
        let bytes = answer.finish(5);
        let (kind, sequence, body) = messages(&bytes).next().unwrap();
        assert_eq!((kind, sequence), (7, 5));
        assert_eq!(attributes(body).collect::<Vec<_>>(), [(20, &b"note\0"[..])]);
        assert_eq!(messages(&bytes[..bytes.len() - 9]).count(), 0);
        assert_eq!(attributes(&[2, 0, 1, 0]).count(), 0, "shorter than its own header");
        assert!(refusal(&[0, 0]).is_some());
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
