//! 0xB0A5 and 0xB0B5: integrity-protected PDCP PDUs of LTE's signalling bearers. The layout skips the keys that the
//! modem writes before the PDUs.
//!
//! Source: mobileinsight-core @4330fa9; fields beside the message: worked out from a real log (below)

use crate::layout::{
    Code, Extent, Field, Inner, Kind, Layout, Part, Verified, Version, VersionAt, u8, u16, u32,
};
use crate::packet::LogCode;

/// PDUs from the network.
pub static B0A5: Code = pdcp(0xB0A5, "LTE PDCP DL SRB integrity data PDU", &[layout(DOWN)]);
/// PDUs to the network.
pub static B0B5: Code = pdcp(0xB0B5, "LTE PDCP UL SRB integrity data PDU", &[layout(UP)]);

const fn pdcp(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Byte, layouts }
}

const fn layout(subpackets: &'static [Part]) -> Layout {
    Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(4, PACKET, subpackets),
    }
}

const PACKET: &[Field] = &[u8("version", 0), u8("num_subpkt", 1)];

const SUBPACKET_HEAD: &[Field] =
    &[u8("subpacket_id", 0), u8("subpacket_version", 1), u16("subpacket_size", 2)];

const fn subpackets(kinds: &'static [Kind]) -> Part {
    Part {
        extent: Extent::Says("subpacket_size"),
        inner: Inner::Choice(["subpacket_id", "subpacket_version"], kinds),
        ..Part::counted("subpackets", "num_subpkt", 4, SUBPACKET_HEAD)
    }
}

const DOWN: &[Part] = &[subpackets(&[Kind {
    id: 198,
    versions: &[1],
    verified: Verified::Checked,
    parts: &[Part::once("", 36, HEAD).of(&[Part::counted("pdus", "num_pdus", 20, PDU_DOWN).of(MESSAGE)])],
}])];

const UP: &[Part] = &[subpackets(&[Kind {
    id: 199,
    versions: &[1],
    verified: Verified::Checked,
    parts: &[Part::once("", 36, HEAD).of(&[Part::counted("pdus", "num_pdus", 16, PDU_UP).of(MESSAGE)])],
}])];

/// Header, as in 0xB0A3: the keys, two algorithms, the number of PDUs.
const HEAD: &[Field] =
    &[u8("srb_cipher_algorithm", 32), u8("srb_integrity_algorithm", 33), u16("num_pdus", 34)];

/// Fields of an uplink PDU. In real logs, the count equals that of the message's own header, and the integrity checksum
/// (MAC-I) computed by the phone equals the message's last four bytes.
const PDU_UP: &[Field] = &[
    u16("cfg_idx", 0).bits(0, 5),
    u16("pdu_size", 2),
    u16("logged_bytes", 4),
    u16("sub_fn", 6).bits(0, 3),
    u16("sys_fn", 6).bits(4, 13),
    u32("count", 8),
    u32("mac_i", 12).mask(),
];

/// Fields of a downlink PDU, with the received and the expected integrity checksum (MAC-I).
const PDU_DOWN: &[Field] = &[
    u16("cfg_idx", 0).bits(0, 5),
    u16("pdu_size", 2),
    u16("logged_bytes", 4),
    u16("sub_fn", 6).bits(0, 3),
    u16("sys_fn", 6).bits(4, 13),
    u32("count", 8),
    u32("mac_i", 12).mask(),
    u32("expected_mac_i", 16).mask(),
];

const MESSAGE: &[Part] = &[Part::message("msg", "logged_bytes")];
