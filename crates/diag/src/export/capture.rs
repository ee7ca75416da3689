//! Writer for capture files of messages: pcapng, with one interface per radio and link type. Messages of LTE are UDP
//! packets to GSMTAP's port. Messages of NR are exported PDUs, unless all messages must be GSMTAP.
//!
//! Source: draft-ietf-opsawg-pcapng; the port: IANA, 4729; link types: the tcpdump group's list
//!
//! Chosen: a separate link type would save the IP and UDP headers. But captures of other tools contain these headers,
//! so Wireshark's filters for those captures work here too.

use super::gsmtap::Message;
use super::pdu::Exported;
use crate::packet::Radio;
use crate::stamp::Stamp;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Magic number by which readers detect the byte order.
const MAGIC: u32 = 0x1A2B_3C4D;
/// Link type `LINKTYPE_IPV4`.
const LINK_IPV4: u16 = 228;
/// Link type `LINKTYPE_WIRESHARK_UPPER_PDU`.
const LINK_EXPORTED: u16 = 252;
const GSMTAP_PORT: u16 = 4729;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// Option codes of blocks.
const END: u16 = 0;
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const FLAGS: u16 = 2;
const RESOLUTION: u16 = 9;
const APPLICATION: u16 = 4;
/// Time resolution: 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// Writer of a capture.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// Radios and link types in the order of their interfaces.
    interfaces: Vec<(Radio, u16)>,
    is_gsmtap_only: bool,
    /// The block being written.
    block: Vec<u8>,
    has_begun: bool,
    packets: u16,
}

impl Capture {
    /// Creates a capture in which all messages are GSMTAP packets; messages of NR use version 3.
    pub fn gsmtap_only() -> Capture {
        Capture { is_gsmtap_only: true, ..Capture::default() }
    }

    /// Appends the header of the capture, unless it was already written.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        self.block.extend(MAGIC.to_le_bytes());
        self.block.extend([1, 0, 0, 0]);
        // The length of the section is unknown.
        self.block.extend([0xFF; 8]);
        self.option(APPLICATION, concat!("airpace ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.option(END, &[]);
        self.end_block(SECTION, out);
    }

    /// Appends a message of a radio; returns `false` if the message is too long for a UDP packet, or cannot be
    /// expressed in this capture.
    pub fn message(&mut self, radio: Radio, stamp: Stamp, message: &Message<'_>, out: &mut Vec<u8>) -> bool {
        let exported = message.exported.as_ref().filter(|_| !self.is_gsmtap_only);
        if exported.is_none() && message.header.is_empty() {
            return false;
        }
        let length = exported
            .map_or(IP_HEADER + UDP_HEADER + message.header.len() + message.message.len(), Exported::length);
        let Ok(ip_length) = u16::try_from(length) else { return false };
        self.begin(out);
        let link = if exported.is_some() { LINK_EXPORTED } else { LINK_IPV4 };
        let interface = self.interface(radio, link, out);
        let nanos = stamp.unix_nanos();
        self.block.extend(interface.to_le_bytes());
        self.block.extend(((nanos >> 32) as u32).to_le_bytes());
        self.block.extend((nanos as u32).to_le_bytes());
        self.block.extend(u32::from(ip_length).to_le_bytes());
        self.block.extend(u32::from(ip_length).to_le_bytes());
        match exported {
            Some(exported) => exported.write(&mut self.block),
            None => self.datagram(radio, ip_length, message),
        }
        self.pad();
        self.option(COMMENT, message.comment.as_bytes());
        let direction: u32 = if message.is_uplink { 2 } else { 1 };
        self.option(FLAGS, &direction.to_le_bytes());
        self.option(END, &[]);
        self.end_block(PACKET, out);
        true
    }

    /// Returns the interface of a radio and link type. At the first use of an interface, its description is written.
    fn interface(&mut self, radio: Radio, link: u16, out: &mut Vec<u8>) -> u32 {
        if let Some(at) = self.interfaces.iter().position(|known| *known == (radio, link)) {
            return at as u32;
        }
        self.interfaces.push((radio, link));
        self.block.extend(link.to_le_bytes());
        // Two reserved bytes, and no limit on the length of packets.
        self.block.extend([0; 6]);
        self.option(NAME, format!("radio{}", radio.0).as_bytes());
        self.option(DESCRIPTION, format!("diagnostic port, radio {}", radio.0).as_bytes());
        self.option(RESOLUTION, &[NANOSECONDS]);
        self.option(END, &[]);
        self.end_block(INTERFACE, out);
        self.interfaces.len() as u32 - 1
    }

    /// An IPv4 packet from the local host to itself. The radio's number is the last byte of the destination address.
    fn datagram(&mut self, radio: Radio, ip_length: u16, message: &Message<'_>) {
        let begin = self.block.len();
        self.block.extend([0x45, 0]);
        self.block.extend(ip_length.to_be_bytes());
        self.block.extend(self.packets.to_be_bytes());
        // The header's fields: do not fragment, time to live 64, UDP, and two bytes for the checksum, which is set
        // below.
        self.block.extend([0x40, 0, 64, 17, 0, 0]);
        self.block.extend([127, 0, 0, 1, 127, 0, 0, radio.0]);
        let checksum = internet_checksum(&self.block[begin..]);
        self.block[begin + 10..begin + 12].copy_from_slice(&checksum.to_be_bytes());
        self.block.extend(GSMTAP_PORT.to_be_bytes());
        self.block.extend(GSMTAP_PORT.to_be_bytes());
        self.block.extend((ip_length - IP_HEADER as u16).to_be_bytes());
        // The UDP checksum is 0: not used.
        self.block.extend([0, 0]);
        self.block.extend_from_slice(&message.header);
        self.block.extend_from_slice(message.message);
        self.packets = self.packets.wrapping_add(1);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // Comments and names are short, so their length fits 16 bits.
        let length = u16::try_from(value.len()).expect("the length field of an option has 16 bits");
        self.block.extend(code.to_le_bytes());
        self.block.extend(length.to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Appends the block with its type, and with its length at both ends.
    fn end_block(&mut self, kind: u32, out: &mut Vec<u8>) {
        let length = (self.block.len() + 12) as u32;
        out.extend(kind.to_le_bytes());
        out.extend(length.to_le_bytes());
        out.append(&mut self.block);
        out.extend(length.to_le_bytes());
    }
}

/// Source: RFC 1071
fn internet_checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_their_length_at_both_ends_and_radios_have_their_own_interface() {
        let message = Message {
            header: vec![2; 16],
            message: &[1, 2, 3],
            exported: None,
            is_uplink: true,
            comment: "why".to_owned(),
        };
        let (mut capture, mut out) = (Capture::default(), vec![]);
        for radio in [2, 1, 2] {
            assert!(capture.message(Radio(radio), Stamp(1 << 40), &message, &mut out));
        }
        let mut kinds = vec![];
        let mut rest = &out[..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let length = word(4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(length - 4) as usize, length);
            kinds.push((word(0), word(8)));
            rest = &rest[length..];
        }
        let interface = (INTERFACE, u32::from(LINK_IPV4));
        assert_eq!(kinds, [(SECTION, MAGIC), interface, (PACKET, 0), interface, (PACKET, 1), (PACKET, 0)]);
    }

    #[test]
    fn a_message_beyond_a_udp_packet_is_refused() {
        let long = [0; 65_500];
        let message = Message {
            header: vec![0; 16],
            message: &long,
            exported: None,
            is_uplink: false,
            comment: String::new(),
        };
        let mut out = vec![];
        assert!(!Capture::default().message(Radio(1), Stamp(0), &message, &mut out));
        assert!(out.is_empty(), "nothing is written");
    }

    #[test]
    fn the_checksum_of_a_header_with_it_is_zero() {
        let mut header = [
            0x45, 0, 0, 0x3C, 0x1C, 0x46, 0x40, 0, 0x40, 6, 0, 0, 0xAC, 0x10, 0xA, 0x63, 0xAC, 0x10, 0xA, 0xC,
        ];
        assert_eq!(internet_checksum(&header), 0xB1E6);
        header[10..12].copy_from_slice(&[0xB1, 0xE6]);
        assert_eq!(internet_checksum(&header), 0);
    }
}
