//! Connections: protocol and endpoints of a packet, in one direction.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A connection in one direction: protocol, source and destination of a packet. The packets in the opposite direction
/// belong to another connection ([`Connection::reversed`]).
///
/// As text it is `tcp 100.68.0.1:40312 → 100.64.0.1:5201`, `udp [fd00::1]:443 → [fd00::2]:53` or
/// `icmp 100.68.0.1 → 100.64.0.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection {
    /// Protocol of the packets.
    pub protocol: Protocol,
    /// Endpoint that sends the packets.
    pub source: End,
    /// Endpoint that receives the packets.
    pub destination: End,
}

/// An endpoint of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// IP address of the endpoint.
    pub address: IpAddr,
    /// Port of the endpoint. `None` if the protocol has no ports, or the packet is a fragment without a port.
    pub port: Option<u16>,
}

/// Protocol in an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP of IPv4.
    Icmp,
    /// ICMP of IPv6.
    Icmpv6,
    /// Another protocol, with its IP protocol number.
    Other(u8),
}

impl Connection {
    /// The connection in the opposite direction.
    pub fn reversed(self) -> Connection {
        Connection { protocol: self.protocol, source: self.destination, destination: self.source }
    }
}

impl End {
    /// An endpoint with a port.
    pub fn new(address: IpAddr, port: u16) -> End {
        End { address, port: Some(port) }
    }

    /// An endpoint without a port.
    pub fn portless(address: IpAddr) -> End {
        End { address, port: None }
    }
}

impl Protocol {
    /// The protocol with this IP protocol number.
    ///
    /// Source: RFC 790, Assigned Internet Protocol Numbers (1, 6, 17); RFC 4443 §1 (58)
    pub const fn of_number(number: u8) -> Protocol {
        match number {
            1 => Protocol::Icmp,
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            58 => Protocol::Icmpv6,
            _ => Protocol::Other(number),
        }
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} → {}", self.protocol, self.source, self.destination)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.address, port).fmt(f),
            None => self.address.fmt(f),
        }
    }
}

/// `tcp`, `udp`, `icmp`, `icmpv6`, or the IP protocol number.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protocol::Tcp => f.write_str("tcp"),
            Protocol::Udp => f.write_str("udp"),
            Protocol::Icmp => f.write_str("icmp"),
            Protocol::Icmpv6 => f.write_str("icmpv6"),
            Protocol::Other(number) => number.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(address: &str, port: Option<u16>) -> End {
        End { address: address.parse().unwrap(), port }
    }

    #[test]
    fn a_connection_is_named_as_people_write_it() {
        let name = |protocol, source, destination| {
            Connection { protocol: Protocol::of_number(protocol), source, destination }.to_string()
        };
        let (phone, server) = (end("100.68.0.1", Some(40_312)), end("100.64.0.1", Some(5_201)));
        assert_eq!(name(6, phone, server), "tcp 100.68.0.1:40312 → 100.64.0.1:5201");
        let (phone, server) = (end("fd00::68:1", Some(443)), end("fd00::64:1", Some(53)));
        assert_eq!(name(17, phone, server), "udp [fd00::68:1]:443 → [fd00::64:1]:53");
        let (phone, server) = (end("fd00::68:1", None), end("fd00::64:1", None));
        assert_eq!(name(58, phone, server), "icmpv6 fd00::68:1 → fd00::64:1");
        assert_eq!(name(132, phone, server), "132 fd00::68:1 → fd00::64:1");
    }

    #[test]
    fn answers_go_the_other_way() {
        let there = Connection {
            protocol: Protocol::Tcp,
            source: end("100.68.0.1", Some(40_312)),
            destination: end("100.64.0.1", Some(80)),
        };
        assert_eq!(there.reversed().to_string(), "tcp 100.64.0.1:80 → 100.68.0.1:40312");
        assert_eq!(there.reversed().reversed(), there);
    }
}
