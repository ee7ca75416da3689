//! IP header parsing: addresses, ports and protocol, and the ECN field.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airpace_core::Ecn;

/// The 5-tuple of a packet, which identifies its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// Number of the transport protocol.
    pub protocol: u8,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source port; 0 for protocols without ports and for all but the first fragment of a packet.
    pub source_port: u16,
    /// Destination port; 0 in the same cases as the source port.
    pub destination_port: u16,
}

/// The header fields that the emulator uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Addresses, ports and protocol.
    pub ends: FiveTuple,
    /// ECN field.
    pub ecn: Ecn,
    /// Whether the packet is a fragment.
    pub is_fragment: bool,
}

/// Reason why bytes are not accepted as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The bytes are not one complete IP packet.
    Garbage,
    /// The destination is a broadcast or multicast address, which includes neighbour discovery.
    ToMany,
}

/// Protocols with ports in the first four bytes after the IP header: TCP, UDP, DCCP, SCTP, UDP-Lite.
///
/// Source: RFC 9293 §3.1, RFC 768, RFC 4340 §5.1, RFC 9260 §3.1, RFC 3828 §3.1
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// IPv6 extension headers with a length in their second byte: hop-by-hop, routing, destination options.
///
/// Source: RFC 8200 §4
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;

/// Maximum number of extension headers that are parsed; what follows counts as an unknown protocol.
///
/// Chosen: more than any sender uses; the limit bounds the work per packet.
const MAX_EXTENSIONS: usize = 8;

/// Parses the headers of a packet.
///
/// # Errors
/// Bytes that are not a complete packet with a unicast destination.
///
/// Source: RFC 791 §3.1, RFC 8200 §3
pub fn parse(packet: &[u8]) -> Result<Parsed, Foreign> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => parse_v4(packet),
        Some(6) => parse_v6(packet),
        _ => Err(Foreign::Garbage),
    }
}

fn parse_v4(packet: &[u8]) -> Result<Parsed, Foreign> {
    let header: &[u8; 20] = packet.first_chunk().ok_or(Foreign::Garbage)?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let total_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_bytes < 20 || total_bytes < header_bytes || total_bytes != packet.len() {
        return Err(Foreign::Garbage);
    }
    let v4 = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let (source, destination) = (v4(12), v4(16));
    if destination.is_broadcast() || destination.is_multicast() {
        return Err(Foreign::ToMany);
    }
    let place = u16::from_be_bytes([header[6], header[7]]);
    let (offset, more) = (place & 0x1fff, place & 0x2000 != 0);
    let ports = if offset == 0 { ports(header[9], &packet[header_bytes..]) } else { (0, 0) };
    Ok(Parsed {
        ends: FiveTuple {
            protocol: header[9],
            source: IpAddr::V4(source),
            destination: IpAddr::V4(destination),
            source_port: ports.0,
            destination_port: ports.1,
        },
        ecn: ecn_of(header[1]),
        is_fragment: more || offset > 0,
    })
}

fn parse_v6(packet: &[u8]) -> Result<Parsed, Foreign> {
    let header: &[u8; 40] = packet.first_chunk().ok_or(Foreign::Garbage)?;
    let payload_bytes = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if payload_bytes + 40 != packet.len() {
        return Err(Foreign::Garbage);
    }
    let v6 = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes");
        Ipv6Addr::from(octets)
    };
    let (source, destination) = (v6(8), v6(24));
    if destination.is_multicast() {
        return Err(Foreign::ToMany);
    }
    let (mut protocol, mut rest) = (header[6], &packet[40..]);
    let (mut is_fragment, mut is_first) = (false, true);
    for _ in 0..MAX_EXTENSIONS {
        let &[next, length, high, low, ..] = rest else { break };
        let bytes = match protocol {
            FRAGMENT => {
                is_fragment = true;
                is_first = u16::from_be_bytes([high, low]) & 0xfff8 == 0;
                8
            }
            other if EXTENSIONS.contains(&other) => (usize::from(length) + 1) * 8,
            _ => break,
        };
        protocol = next;
        rest = rest.get(bytes..).unwrap_or_default();
        if !is_first {
            break;
        }
    }
    let ports = if is_first { ports(protocol, rest) } else { (0, 0) };
    Ok(Parsed {
        ends: FiveTuple {
            protocol,
            source: IpAddr::V6(source),
            destination: IpAddr::V6(destination),
            source_port: ports.0,
            destination_port: ports.1,
        },
        ecn: ecn_of(header[0] << 4 | header[1] >> 4),
        is_fragment,
    })
}

fn ports(protocol: u8, transport: &[u8]) -> (u16, u16) {
    match transport {
        &[a, b, c, d, ..] if WITH_PORTS.contains(&protocol) => {
            (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
        }
        _ => (0, 0),
    }
}

/// Source: RFC 3168 §5
fn ecn_of(traffic_class: u8) -> Ecn {
    match traffic_class & 0b11 {
        0b00 => Ecn::NotEct,
        0b11 => Ecn::Ce,
        _ => Ecn::Ect,
    }
}

/// Sets the ECN field of a packet to CE (congestion experienced). [`parse`] must have accepted the packet.
///
/// Source: RFC 3168 §5; RFC 1624 §3 Eq. 3 (the checksum after a change)
pub fn mark(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[1] |= 0b11 << 4;
        return;
    }
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let before = word(packet, 0);
    packet[1] |= 0b11;
    let sum = u32::from(!word(packet, 10)) + u32::from(!before) + u32::from(word(packet, 0));
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a UDP packet with these addresses and this many bytes of payload.
    pub(crate) fn udp(source: &str, destination: &str, payload: usize) -> Vec<u8> {
        let (source, destination): (IpAddr, IpAddr) = (source.parse().unwrap(), destination.parse().unwrap());
        let udp_bytes = (payload + 8) as u16;
        let mut packet = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut header = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0];
                header[2..4].copy_from_slice(&(udp_bytes + 20).to_be_bytes());
                header.extend(source.octets());
                header.extend(destination.octets());
                let sum = checksum(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                header
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut header = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
                header[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
                header.extend(source.octets());
                header.extend(destination.octets());
                header
            }
            _ => panic!("both ends are of one family"),
        };
        packet.extend([4000u16, 5201, udp_bytes, 0].iter().flat_map(|word| word.to_be_bytes()));
        packet.resize(packet.len() + payload, 7);
        packet
    }

    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        !((folded & 0xffff) + (folded >> 16)) as u16
    }

    #[test]
    fn both_families_are_read() {
        for (source, destination) in [("100.66.0.1", "100.64.0.1"), ("fd61::1", "fd61::2")] {
            let read = parse(&udp(source, destination, 100)).unwrap();
            assert_eq!(
                (read.ends.source.to_string(), read.ends.destination.to_string()),
                (source.to_owned(), destination.to_owned())
            );
            let ports = (read.ends.protocol, read.ends.source_port, read.ends.destination_port);
            assert_eq!((ports, read.is_fragment, read.ecn), ((17, 4000, 5201), false, Ecn::NotEct));
        }
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let mut packet = udp("10.0.0.1", "10.0.0.2", 64);
        packet[6..8].copy_from_slice(&[0x20, 0]);
        let first = parse(&packet).unwrap();
        assert_eq!((first.is_fragment, first.ends.source_port), (true, 4000));
        packet[6..8].copy_from_slice(&[0, 8]);
        let later = parse(&packet).unwrap();
        assert_eq!((later.is_fragment, later.ends.source_port), (true, 0));

        let mut packet = udp("fd61::1", "fd61::2", 64);
        let fragment = [17, 0, 0, 0x01, 0, 0, 0, 9];
        packet.splice(40..40, fragment);
        packet[6] = FRAGMENT;
        packet[5] += 8;
        let first = parse(&packet).unwrap();
        assert_eq!((first.is_fragment, first.ends.protocol, first.ends.source_port), (true, 17, 4000));
        packet[43] = 0x11;
        let later = parse(&packet).unwrap();
        assert_eq!((later.is_fragment, later.ends.protocol, later.ends.source_port), (true, 17, 0));
    }

    #[test]
    fn what_is_no_packet_to_one_place_is_told_apart() {
        let good = udp("10.0.0.1", "10.0.0.2", 10);
        assert_eq!(parse(&[]), Err(Foreign::Garbage));
        assert_eq!(parse(&good[..good.len() - 1]), Err(Foreign::Garbage), "it is cut");
        assert_eq!(parse(&[0x30; 60]), Err(Foreign::Garbage), "no such version");
        let mut short_header = good.clone();
        short_header[0] = 0x44;
        assert_eq!(parse(&short_header), Err(Foreign::Garbage));
        assert_eq!(parse(&udp("10.0.0.1", "255.255.255.255", 10)), Err(Foreign::ToMany));
        assert_eq!(parse(&udp("10.0.0.1", "224.0.0.251", 10)), Err(Foreign::ToMany));
        assert_eq!(parse(&udp("fe80::1", "ff02::2", 10)), Err(Foreign::ToMany));
    }

    #[test]
    fn a_marked_packet_has_a_right_checksum() {
        for (source, destination) in [("100.66.0.1", "100.64.0.1"), ("fd61::1", "fd61::2")] {
            let mut packet = udp(source, destination, 33);
            mark(&mut packet);
            assert_eq!(parse(&packet).unwrap().ecn, Ecn::Ce);
            if packet[0] >> 4 == 4 {
                assert_eq!(checksum(&packet[..20]), 0, "a header with its checksum sums up to zero");
            }
        }
    }
}
