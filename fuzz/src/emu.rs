//! Parser of the packets that the emulator reads from programs.

use airpace_core::Ecn;
use airpace_emu::ip::{mark, parse};

/// Bytes from an interface: a valid packet has the same 5-tuple after it is marked, and the checksum of its IPv4 header
/// stays correct or incorrect, as it was before. The first byte of the input selects whether length fields are
/// corrected, so that more code than the first check is tested.
pub fn interface(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let mut packet = bytes.to_vec();
    let length = packet.len() as u16;
    if packet.len() >= 40 && packet.len() <= 0xffff {
        match choice % 4 {
            0 => {
                packet[0] = 0x45;
                packet[2..4].copy_from_slice(&length.to_be_bytes());
            }
            1 => {
                packet[0] = packet[0] & 0x0f | 0x40;
                packet[2..4].copy_from_slice(&length.to_be_bytes());
            }
            2 => {
                packet[0] = packet[0] & 0x0f | 0x60;
                packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
            }
            _ => {}
        }
    }
    let Ok(read) = parse(&packet) else { return };
    assert_eq!(read.ends.source.is_ipv4(), packet[0] >> 4 == 4);
    assert_eq!(read.ends.destination.is_ipv4(), read.ends.source.is_ipv4());
    let before = packet.clone();
    mark(&mut packet);
    let marked = parse(&packet).expect("a marked packet is a packet");
    assert_eq!((marked.ecn, marked.ends, marked.is_fragment), (Ecn::Ce, read.ends, read.is_fragment));
    if packet[0] >> 4 == 4 {
        let header_bytes = usize::from(packet[0] & 0x0f) * 4;
        assert_eq!(sum(&packet[..header_bytes]), sum(&before[..header_bytes]));
        assert_eq!(packet[header_bytes..], before[header_bytes..]);
    } else {
        assert_eq!(packet[2..], before[2..]);
    }
}

/// The ones' complement sum of a header, in which 0xffff and 0 are the same.
///
/// Source: RFC 1071 §1
fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = ((sum & 0xffff) + (sum >> 16)) as u16;
    if sum == 0xffff { 0 } else { sum }
}
