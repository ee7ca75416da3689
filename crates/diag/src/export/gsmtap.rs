//! RRC and NAS messages as GSMTAP, which Wireshark reads: version 2 for LTE, version 3 for NR.
//!
//! Source: libosmocore gsmtap.h and gsmtapv3.h; types of bare NR messages and metadata: SCAT @5a56ecf
//!
//! Chosen: MAC blocks are left out, because log packets have their headers but not their content.

use super::pdu::{self, Exported};
use crate::layout::{Record, Unreadable, Value};
use crate::log;
use crate::packet::{LogCode, LogPacket};

/// A message in its GSMTAP form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// GSMTAP header in network byte order; empty if GSMTAP has no number for this kind of message.
    pub header: Vec<u8>,
    /// The message as transmitted over the air.
    pub message: &'a [u8],
    /// The message as an exported PDU, for messages of NR.
    pub exported: Option<Exported>,
    /// Whether the phone sent the message.
    pub is_uplink: bool,
    /// Other fields of the log packet as human-readable text.
    pub comment: String,
}

/// Whether packets of this code carry messages that can be exported as GSMTAP.
pub fn is_message(code: LogCode) -> bool {
    matches!(code.0, 0xB0C0 | 0xB821 | 0xB0E0..=0xB0E3 | 0xB0EA..=0xB0ED)
}

/// Converts a packet to GSMTAP; returns `None` if its code cannot be converted, or if its kind of message has no
/// number.
///
/// # Errors
/// If the packet cannot be read.
pub fn message<'a>(packet: &LogPacket<'a>) -> Result<Option<Message<'a>>, Unreadable> {
    if !is_message(packet.code) {
        return Ok(None);
    }
    let fields = log::read(packet)?.fields;
    Ok(match packet.code.0 {
        0xB0C0 => lte_rrc(packet, &fields),
        0xB821 => nr_rrc(packet, &fields),
        _ => lte_nas(packet, &fields),
    })
}

/// Packet types `GSMTAP_TYPE_LTE_RRC` and `GSMTAP_TYPE_LTE_NAS`.
const V2_LTE_RRC: u8 = 13;
const V2_LTE_NAS: u8 = 18;
/// Maximum channel number. Higher bits of the field contain the uplink flag.
const V2_HIGHEST_CHANNEL: u32 = 0x3FFF;
const V2_UPLINK: u16 = 0x4000;
const V3_NR_RRC: u16 = 0x0503;

fn lte_rrc<'a>(packet: &LogPacket<'_>, fields: &Record<'a>) -> Option<Message<'a>> {
    let channel = name(fields, "channel")?;
    let kind = match channel {
        "DL-CCCH" => 0,
        "DL-DCCH" => 1,
        "UL-CCCH" => 2,
        "UL-DCCH" => 3,
        "BCCH-BCH" => 4,
        "BCCH-DL-SCH" => 5,
        "PCCH" => 6,
        "MCCH" => 7,
        "DL-CCCH-NB" => 14,
        "DL-DCCH-NB" => 15,
        "UL-CCCH-NB" => 16,
        "UL-DCCH-NB" => 17,
        "BCCH-BCH-NB" => 18,
        "BCCH-DL-SCH-NB" => 20,
        "PCCH-NB" => 21,
        _ => return None,
    };
    let (earfcn, pci) = (number(fields, "freq")?, number(fields, "physical_cell_id")?);
    // Uplink messages have no frame number.
    let frame = number(fields, "system_frame_number");
    let when = match (frame, number(fields, "subframe_number")) {
        (Some(frame), Some(subframe)) => format!(", frame {frame}, subframe {subframe}"),
        _ => String::new(),
    };
    let is_uplink = channel.starts_with("UL");
    let segment = number(fields, "segment").filter(|segment| *segment > 0);
    let segment = segment.map(|segment| format!(", segment {segment}")).unwrap_or_default();
    Some(Message {
        header: version_2(V2_LTE_RRC, kind, earfcn, frame.unwrap_or(0), is_uplink),
        message: bytes(fields, "msg")?,
        exported: None,
        is_uplink,
        comment: format!("{}, {channel}, EARFCN {earfcn}, PCI {pci}{when}{segment}", packet.code),
    })
}

fn lte_nas<'a>(packet: &LogPacket<'_>, fields: &Record<'a>) -> Option<Message<'a>> {
    let is_uplink = packet.code.0 & 1 == 1;
    let is_protected = matches!(packet.code.0, 0xB0E0 | 0xB0E1 | 0xB0EA | 0xB0EB);
    Some(Message {
        header: version_2(V2_LTE_NAS, u8::from(is_protected), 0, 0, is_uplink),
        message: bytes(fields, "msg")?,
        exported: None,
        is_uplink,
        comment: format!("{}, {}", packet.code, log::code(packet.code)?.name),
    })
}

fn nr_rrc<'a>(packet: &LogPacket<'_>, fields: &Record<'a>) -> Option<Message<'a>> {
    let channel = name(fields, "channel")?;
    let kind: u16 = match channel {
        "BCCH-BCH" => 1,
        "BCCH-DL-SCH" => 2,
        "DL-CCCH" => 3,
        "DL-DCCH" => 4,
        "MCCH" => 5,
        "PCCH" => 6,
        "UL-CCCH" => 7,
        "UL-CCCH1" => 8,
        "UL-DCCH" => 9,
        "RRCReconfiguration" => 0x0201,
        "RRCReconfigurationComplete" => 0x0202,
        "UE-MRDC-Capability" => 0x0203,
        "UE-NR-Capability" => 0x0204,
        // Other channels have no GSMTAP number.
        _ => 0,
    };
    // Messages received over LTE belong to no NR cell.
    let (arfcn, pci) = (number(fields, "freq"), number(fields, "physical_cell_id"));
    let is_uplink = channel.starts_with("UL") || channel.ends_with("Complete") || channel.starts_with("UE");
    let segment = number(fields, "segment").filter(|segment| *segment > 0);
    let segment = segment.map(|segment| format!(", segment {segment}")).unwrap_or_default();
    let message = bytes(fields, "msg")?;
    // A segment of a message cannot be decoded as a complete message.
    let exported = if segment.is_empty() { pdu::nr_rrc(channel, message) } else { None };
    if kind == 0 && exported.is_none() {
        return None;
    }
    Some(Message {
        header: if kind > 0 {
            version_3(V3_NR_RRC, kind, packet, arfcn.unwrap_or(0), pci.unwrap_or(0))
        } else {
            vec![]
        },
        message,
        exported,
        is_uplink,
        comment: match (arfcn, pci) {
            (Some(arfcn), Some(pci)) => {
                format!("{}, {channel}, NR-ARFCN {arfcn}, PCI {pci}{segment}", packet.code)
            }
            _ => format!("{}, {channel}, over LTE{segment}", packet.code),
        },
    })
}

/// A header of 16 bytes. A channel number that does not fit is written as 0.
fn version_2(kind: u8, subtype: u8, channel: u32, frame: u32, is_uplink: bool) -> Vec<u8> {
    let channel = if channel <= V2_HIGHEST_CHANNEL { channel as u16 } else { 0 };
    let channel = channel | if is_uplink { V2_UPLINK } else { 0 };
    let mut header = vec![2, 4, kind, 0];
    header.extend(channel.to_be_bytes());
    header.extend([0, 0]);
    header.extend(frame.to_be_bytes());
    header.extend([subtype, 0, 0, 0]);
    header
}

/// Writes a version 3 header: the fixed part, then the known values as tag, length and value.
///
/// Differs: SCAT's metadata ends with a tag without a length, two bytes before the end given in its header.
fn version_3(kind: u16, subtype: u16, packet: &LogPacket<'_>, channel: u32, pci: u32) -> Vec<u8> {
    const TIME: u16 = 0;
    const CHANNEL: u16 = 2;
    const PCI: u16 = 5;
    const END: u16 = 0xFFFE;
    let unix_nanos = packet.stamp.unix_nanos();
    let mut header = vec![3, 0, 0, 0];
    header.extend(kind.to_be_bytes());
    header.extend(subtype.to_be_bytes());
    let mut tag = |tag: u16, value: &[u8]| {
        header.extend(tag.to_be_bytes());
        header.extend((value.len() as u16).to_be_bytes());
        header.extend_from_slice(value);
    };
    let nanos = (unix_nanos % 1_000_000_000) as u32;
    tag(TIME, &[&(unix_nanos / 1_000_000_000).to_be_bytes()[..], &nanos.to_be_bytes()].concat());
    tag(CHANNEL, &channel.to_be_bytes());
    tag(PCI, &(pci as u16).to_be_bytes());
    tag(END, &[]);
    header.resize(header.len().next_multiple_of(4), 0);
    let words = (header.len() / 4) as u16;
    header[2..4].copy_from_slice(&words.to_be_bytes());
    header
}

fn name(fields: &Record<'_>, field: &str) -> Option<&'static str> {
    match fields.get(field)? {
        Value::Name(name) => Some(name),
        _ => None,
    }
}

fn number(fields: &Record<'_>, field: &str) -> Option<u32> {
    match fields.get(field)? {
        Value::Unsigned(number) => u32::try_from(*number).ok(),
        _ => None,
    }
}

fn bytes<'a>(fields: &Record<'a>, field: &str) -> Option<&'a [u8]> {
    match fields.get(field)? {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Radio;
    use crate::stamp::Stamp;

    fn of(code: u16, payload: &[u8]) -> Result<Option<Message<'_>>, Unreadable> {
        let stamp = Stamp::from_nanos(1_299_133_682_000_000_000);
        message(&LogPacket { radio: Radio(1), code: LogCode(code), stamp, payload })
    }

    #[test]
    fn an_lte_message_has_its_channel_cell_and_frame() {
        // Version 8: cell 67, EARFCN 1650, frame 310, subframe 5, an uplink message on a dedicated channel.
        let payload = [8, 9, 5, 1, 67, 0, 0x72, 6, 0, 0, 0x65, 0x13, 8, 0, 0, 0, 0, 2, 0, 0x48, 7];
        let message = of(0xB0C0, &payload).unwrap().unwrap();
        assert_eq!(message.header, [2, 4, 13, 0, 0x46, 0x72, 0, 0, 0, 0, 1, 0x36, 3, 0, 0, 0]);
        assert_eq!((message.message, message.is_uplink), (&[0x48, 7][..], true));
        assert_eq!(message.comment, "0xB0C0, UL-DCCH, EARFCN 1650, PCI 67, frame 310, subframe 5");
        let mut tdd = payload;
        tdd[6..8].copy_from_slice(&39148u16.to_le_bytes());
        let message = of(0xB0C0, &tdd).unwrap().unwrap();
        assert_eq!(message.header[4..6], [0x40, 0], "a channel number without room is left out");
        assert!(message.comment.contains("EARFCN 39148"), "and said in the comment");
    }

    #[test]
    fn nas_messages_say_whether_they_are_protected_and_whose_they_are() {
        let kind = |code| {
            let message = of(code, &[1, 9, 5, 0, 7, 0x41]).unwrap().unwrap();
            (message.header[2], message.header[12], message.is_uplink)
        };
        assert_eq!(
            [0xB0E0, 0xB0EB, 0xB0EC, 0xB0ED].map(kind),
            [(18, 1, false), (18, 1, true), (18, 0, false), (18, 0, true)]
        );
    }

    #[test]
    fn an_nr_message_has_whole_words_of_metadata() {
        let mut payload = vec![8, 0, 0, 0, 15, 0x30, 1, 67, 0];
        payload.extend(627_264u32.to_le_bytes());
        payload.extend([0, 0, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0xAA]);
        let message = of(0xB821, &payload).unwrap().unwrap();
        let (fixed, metadata) = message.header.split_at(8);
        assert_eq!(fixed, [3, 0, 0, 11, 5, 3, 0, 4]);
        assert_eq!(metadata.len(), 4 * 11 - 8);
        assert_eq!(metadata[..4], [0, 0, 0, 12]);
        assert_eq!(metadata[4..16], [&1_615_098_482u64.to_be_bytes()[..], &[0; 4]].concat());
        assert_eq!(metadata[16..24], [0, 2, 0, 4, 0, 9, 0x92, 0x40]);
        assert_eq!(metadata[24..], [0, 5, 0, 2, 0, 67, 0xFF, 0xFE, 0, 0, 0, 0]);
        payload[17] = 25;
        let bearer = of(0xB821, &payload).unwrap().unwrap();
        assert!(bearer.header.is_empty(), "a bearer's configuration has no number");
        assert_eq!(bearer.exported.unwrap().dissector, "nr-rrc.radiobearerconfig");
        payload[17] = 99;
        assert_eq!(of(0xB821, &payload), Ok(None));
    }

    #[test]
    fn other_codes_have_no_form_and_unknown_versions_are_errors() {
        assert_eq!(of(0xB173, &[36]), Ok(None));
        assert!(matches!(of(0xB0C0, &[99]), Err(Unreadable::Version(..))));
    }
}
