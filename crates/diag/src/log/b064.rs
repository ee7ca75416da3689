//! 0xB064: uplink transport blocks at the MAC layer: grants in bytes, padding, buffer status reports.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{
    Code, Coded, Extent, Field, Inner, Kind, Layout, Part, Verified, Version, VersionAt, u8, u16,
};
use crate::log::names::{BSR_EVENT, BSR_TRIGGER, RNTI, SUBPACKET};
use crate::mac::Direction;
use crate::packet::LogCode;

/// Uplink transport blocks at the MAC layer: grants in bytes, padding, buffer status reports.
pub static B064: Code = Code {
    code: LogCode(0xB064),
    name: "LTE MAC UL transport block",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(
            4,
            HEAD,
            &[Part {
                extent: Extent::Says("subpacket_size"),
                inner: Inner::Choice(["subpacket_id", "version"], KINDS),
                ..Part::counted("subpackets", "num_subpkt", 5, SUBPACKET_HEAD)
            }],
        ),
    }],
};

const KINDS: &[Kind] = &[
    Kind {
        id: 8,
        versions: &[1],
        verified: Verified::Checked,
        parts: &[Part::counted("samples", "num_samples", 12, SAMPLE_V1).of(&[HEADER])],
    },
    Kind {
        id: 8,
        versions: &[2],
        verified: Verified::Checked,
        parts: &[Part::counted("samples", "num_samples", 14, SAMPLE_V2).of(&[HEADER])],
    },
];

const HEADER: Part = Part::message("mac_hdr_ce", "hdr_len").coded(Coded::Mac(Direction::Up));

const HEAD: &[Field] = &[u8("version", 0), u8("num_subpkt", 1)];

const SUBPACKET_HEAD: &[Field] = &[
    u8("subpacket_id", 0).named(SUBPACKET),
    u8("version", 1),
    u16("subpacket_size", 2),
    u8("num_samples", 4),
];

const SAMPLE_V1: &[Field] = &[
    u8("harq_id", 0),
    u8("rnti_type", 1).named(RNTI),
    u16("sub_fn", 2).bits(0, 3),
    u16("sfn", 2).bits(4, 15),
    u16("grant_bytes", 4),
    u8("rlc_pdus", 6),
    u16("padding_bytes", 7),
    u8("bsr_event", 9).named(BSR_EVENT),
    u8("bsr_trig", 10).named(BSR_TRIGGER),
    u8("hdr_len", 11),
];

const SAMPLE_V2: &[Field] = &[
    u8("sub_id", 0),
    u8("cell_id", 1),
    u8("harq_id", 2),
    u8("rnti_type", 3).named(RNTI),
    u16("sub_fn", 4).bits(0, 3),
    u16("sfn", 4).bits(4, 15),
    u16("grant_bytes", 6),
    u8("rlc_pdus", 8),
    u16("padding_bytes", 9),
    u8("bsr_event", 11).named(BSR_EVENT),
    u8("bsr_trig", 12).named(BSR_TRIGGER),
    u8("hdr_len", 13),
];
