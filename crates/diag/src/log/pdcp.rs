//! 0xB0A3 and 0xB0B3: PDCP of LTE, with the first bytes of its ciphered PDUs. The layout skips the keys that the modem
//! writes before the PDUs.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{
    Code, Extent, Field, Inner, Kind, Layout, Names, Part, Verified, Version, VersionAt, u8, u16, u32,
};
use crate::log::names::{Meanings, NO_YES};
use crate::packet::LogCode;

/// PDUs from the network.
pub static B0A3: Code = pdcp(0xB0A3, "LTE PDCP DL cipher data PDU", &[layout(DL)]);
/// PDUs to the network.
pub static B0B3: Code = pdcp(0xB0B3, "LTE PDCP UL cipher data PDU", &[layout(UL)]);

const fn pdcp(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Byte, layouts }
}

const fn layout(subpackets: &'static [Part]) -> Layout {
    Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(4, HEAD, subpackets),
    }
}

const HEAD: &[Field] = &[u8("version", 0), u8("num_subpkts", 1)];

const SUBPACKET_HEAD: &[Field] =
    &[u8("subpacket_id", 0), u8("subpacket_version", 1), u16("subpacket_size", 2)];

const fn subpackets(kinds: &'static [Kind]) -> Part {
    Part {
        extent: Extent::Says("subpacket_size"),
        inner: Inner::Choice(["subpacket_id", "subpacket_version"], kinds),
        ..Part::counted("subpackets", "num_subpkts", 4, SUBPACKET_HEAD)
    }
}

const DL: &[Part] = &[subpackets(&[
    kind(&[1], Verified::Checked, V1),
    kind(&[24], Verified::Checked, V3),
    kind(&[3], Verified::Read, V3),
])];

const UL: &[Part] = &[subpackets(&[
    kind(&[1], Verified::Checked, V1),
    kind(&[26], Verified::Checked, V3),
    kind(&[3], Verified::Read, V3),
])];

const fn kind(versions: &'static [u64], verified: Verified, parts: &'static [Part]) -> Kind {
    Kind { id: 195, versions, verified, parts }
}

const V1: &[Part] = &[Part::once("", 36, CIPHERS).of(&[pdus(12)])];

/// Later layouts, with one more byte per PDU for its compression and kind.
const V3: &[Part] = &[Part::once("", 36, CIPHERS).of(&[pdus(13)])];

const fn pdus(size: usize) -> Part {
    Part::counted("pdus", "num_pdus", size, PDU).of(LOGGED)
}

const LOGGED: &[Part] = &[Part::message("logged", "logged_bytes")];

const CIPHERS: &[Field] = &[
    u8("srb_cipher_algorithm", 32).named(ALGORITHM),
    u8("drb_cipher_algorithm", 33).named(ALGORITHM),
    u16("num_pdus", 34),
];

const PDU: &[Field] = &[
    u16("cfg_idx", 0).bits(0, 5),
    u16("mode", 0).bits(6, 6).named(&[(0, "AM")]),
    u16("sn_length", 0).bits(7, 8).meant(SN_BITS),
    u16("bearer_id", 0).bits(9, 13),
    u16("valid_pdu", 0).bits(14, 14).named(NO_YES),
    u16("pdu_size", 2),
    u16("logged_bytes", 4),
    u16("sub_fn", 6).bits(0, 3),
    u16("sys_fn", 6).bits(4, 13),
    u32("sn", 8).bits(0, 11),
];

/// Number of bits of a sequence number.
const SN_BITS: Meanings = &[(0, Some(5.0)), (1, Some(7.0)), (2, Some(12.0)), (3, None)];

const ALGORITHM: Names = &[(3, "LTE AES"), (7, "None")];
