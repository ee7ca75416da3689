//! 0xB067: bytes granted in the uplink, and number of these bytes that the phone used, every 100 ms.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{
    Code, Extent, Field, Inner, Kind, Layout, Part, Verified, Version, VersionAt, u8, u16, u32,
};
use crate::log::names::SUBPACKET;
use crate::packet::LogCode;

/// Bytes granted in the uplink, and number of these bytes that the phone used, every 100 ms.
pub static B067: Code = Code {
    code: LogCode(0xB067),
    name: "LTE MAC UL Tx statistics",
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
                ..Part::counted("subpackets", "num_subpkt", 4, SUBPACKET_HEAD)
            }],
        ),
    }],
};

const KINDS: &[Kind] = &[
    Kind {
        id: 11,
        versions: &[1],
        verified: Verified::Checked,
        parts: &[Part::once("sample", 16, STATS_V1)],
    },
    Kind {
        id: 11,
        versions: &[2],
        verified: Verified::Checked,
        parts: &[Part::once("sample", 16, STATS_V2)],
    },
];

const HEAD: &[Field] = &[u8("version", 0), u8("num_subpkt", 1)];

const SUBPACKET_HEAD: &[Field] =
    &[u8("subpacket_id", 0).named(SUBPACKET), u8("version", 1), u16("subpacket_size", 2)];

const STATS_V1: &[Field] = &[
    u8("number_of_samples", 0),
    u8("number_of_padding_bsr", 1),
    u8("number_of_regular_bsr", 2),
    u8("number_of_periodic_bsr", 3),
    u8("number_of_cancel_bsr", 4),
    u32("grant_received", 5),
    u32("grant_utilized", 9),
];

const STATS_V2: &[Field] = &[
    u8("sub_id", 0),
    u8("number_of_samples", 1),
    u8("number_of_padding_bsr", 2),
    u8("number_of_regular_bsr", 3),
    u8("number_of_periodic_bsr", 4),
    u8("number_of_cancel_bsr", 5),
    u32("grant_received", 6),
    u32("grant_utilized", 10),
];
