//! 0xB082 and 0xB092: RLC of LTE in acknowledged mode, with the headers of its PDUs.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{
    Code, Coded, Extent, Field, Inner, Kind, Layout, Names, Part, Verified, Version, VersionAt, u8, u16, u32,
};
use crate::log::names::{RLC_DOWN_PACKETS, RLC_UP_PACKETS};
use crate::packet::LogCode;

/// PDUs from the network.
pub static B082: Code = rlc(0xB082, "LTE RLC DL AM all PDU", &[layout(DL)]);
/// PDUs to the network.
pub static B092: Code = rlc(0xB092, "LTE RLC UL AM all PDU", &[layout(UL)]);

const fn rlc(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Byte, layouts }
}

const fn layout(subpackets: &'static [Part]) -> Layout {
    Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(4, HEAD, subpackets),
    }
}

const HEAD: &[Field] = &[u8("version", 0), u8("number_of_subpackets", 1)];

const SUBPACKET_HEAD: &[Field] =
    &[u8("subpacket_id", 0), u8("subpacket_version", 1), u16("subpacket_size", 2)];

const fn subpackets(kinds: &'static [Kind]) -> Part {
    Part {
        extent: Extent::Says("subpacket_size"),
        inner: Inner::Choice(["subpacket_id", "subpacket_version"], kinds),
        ..Part::counted("subpackets", "number_of_subpackets", 4, SUBPACKET_HEAD)
    }
}

const DL: &[Part] = &[subpackets(&[Kind {
    id: 65,
    versions: &[3],
    verified: Verified::Checked,
    parts: &[Part::once("", 16, BEARER_DL).of(&[PDUS_DL])],
}])];

const UL: &[Part] = &[subpackets(&[Kind {
    id: 70,
    versions: &[3],
    verified: Verified::Checked,
    parts: &[Part::once("", 20, BEARER_UL).of(&[PDUS_UL])],
}])];

const BEARER_DL: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("rb_mode", 1).named(MODE),
    u8("sn_length", 2),
    u16("enabled_pdu_log_packets", 4).flags(RLC_DOWN_PACKETS),
    u16("vr_r", 6),
    u16("vr_x", 8),
    u16("vr_ms", 10),
    u16("vr_h", 12),
    u16("number_of_pdus", 14),
];

const BEARER_UL: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("rb_mode", 1).named(MODE),
    u8("sn_length", 2),
    u16("enabled_pdu_log_packets", 4).flags(RLC_UP_PACKETS),
    u16("vt_a", 6),
    u16("vt_s", 8),
    u16("pdu_without_poll", 10),
    u32("byte_without_poll", 12),
    u16("poll_sn", 16),
    u16("number_of_pdus", 18),
];

const PDUS_DL: Part = Part::counted("pdus", "number_of_pdus", 7, PDU_DL).of(&[HEADER]);

const PDUS_UL: Part = Part::counted("pdus", "number_of_pdus", 7, PDU_UL).of(&[HEADER]);

const HEADER: Part = Part::message("header", "logged_bytes").coded(Coded::RlcAm("sn_length"));

const PDU_DL: &[Field] = &[
    u16("sub_fn", 0).bits(0, 3),
    u16("sys_fn", 0).bits(4, 15),
    u16("pdu_bytes", 2),
    u16("logged_bytes", 4),
    u8("status", 6).named(&[(0, "PDU DATA"), (1, "PDU CTRL"), (3, "PDU DATA")]),
];

const PDU_UL: &[Field] =
    &[u16("sub_fn", 0).bits(0, 3), u16("sys_fn", 0).bits(4, 15), u16("pdu_bytes", 2), u16("logged_bytes", 4)];

const MODE: Names = &[(1, "AM")];
