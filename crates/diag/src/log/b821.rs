//! 0xB821: RRC messages of NR as transmitted over the air.
//!
//! Source: SCAT @5a56ecf; names of fields: mobileinsight-core @4330fa9

use crate::layout::{
    Code, Coded, Field, Layout, Names, Part, Verified, Version, VersionAt, u8, u16, u24, u32, u64,
};
use crate::packet::LogCode;

/// RRC messages of NR as transmitted over the air.
pub static B821: Code = Code {
    code: LogCode(0xB821),
    name: "NR RRC OTA",
    version: VersionAt::Pair,
    layouts: &[
        layout(&[v(8)], Verified::Checked, Part::root(24, &first(V8), &[message(V8)])),
        layout(&[v(7), v(9)], Verified::Read, Part::root(24, &first(V8), &[message(V8)])),
        layout(&[v(12)], Verified::Read, Part::root(23, &short_frame(V8), &[message(V8)])),
        layout(&[v(14)], Verified::Read, Part::root(23, &short_frame(V14), &[message(V14)])),
        layout(&[v(17)], Verified::Read, Part::root(31, &with_cell(V17), &[message(V17)])),
        layout(&[v(19), v(25)], Verified::Read, Part::root(32, &with_cell(V17), &[message(V17)])),
        layout(&[v(20)], Verified::Read, Part::root(32, &with_cell(V20), &[message(V20)])),
        layout(&[v(23), v(24)], Verified::Read, Part::root(31, &with_cell(V20), &[SEGMENT, message(V20)])),
        layout(&[v(26)], Verified::Read, Part::root(31, &with_cell(V26), &[SEGMENT, message(V26)])),
        // The list of channels of this version is unknown.
        layout(&[v(28)], Verified::Read, Part::root(31, &with_cell(&[]), &[SEGMENT, message(&[])])),
    ],
};

const fn v(number: u16) -> Version {
    Version::Pair(0, number)
}

const fn layout(versions: &'static [Version], verified: Verified, root: Part) -> Layout {
    Layout { versions, verified, root }
}

const fn message(channels: Names) -> Part {
    Part::message("msg", "msg_length").coded(Coded::NrRrc(channels))
}

/// Segment number. A long message is split into segments: 0 means a complete message, 1 to 6 a segment, 7 the last
/// segment.
const SEGMENT: Part = Part::once("", 4, &[u8("segment", 3)]);

/// A message over an LTE cell has zeros as its NR channel, and a message without a frame number has zeros as its frame:
/// both count as absent. The meaning of the mask's bits is not public.
///
/// In real logs, the frame and the subframe agree with the time between packets; the bits between the two fields are 0.
const fn first(channels: Names) -> [Field; 13] {
    [
        u32("pkt_version", 0),
        u8("rrc_release_number", 4),
        u8("rrc_version_number", 5),
        u8("radio_bearer_id", 6),
        u16("physical_cell_id", 7).unset_where(u32("", 9), 0),
        u32("freq", 9).unset_where(u32("", 9), 0),
        u32("sysframenum_subframenum", 13).unset_where(u32("", 13), 0),
        u32("subframe_number", 13).bits(3, 6).unset_where(u32("", 13), 0),
        u32("system_frame_number", 13).bits(16, 25).unset_where(u32("", 13), 0),
        u8("pdu_number", 17),
        u8("channel", 17).named(channels),
        u32("sib_mask_in_si", 18).flags(&[]),
        u16("msg_length", 22),
    ]
}

/// Later layouts, in which frame and slot have 24 bits.
const fn short_frame(channels: Names) -> [Field; 11] {
    [
        u32("pkt_version", 0),
        u8("rrc_release_number", 4),
        u8("rrc_version_number", 5),
        u8("radio_bearer_id", 6),
        u16("physical_cell_id", 7).unset_where(u32("", 9), 0),
        u32("freq", 9).unset_where(u32("", 9), 0),
        u24("sysframenum_subframenum", 13).unset_where(u24("", 13), 0),
        u8("pdu_number", 16),
        u8("channel", 16).named(channels),
        u32("sib_mask_in_si", 17).flags(&[]),
        u16("msg_length", 21),
    ]
}

/// Later layouts, with the cell's global identity.
const fn with_cell(channels: Names) -> [Field; 12] {
    [
        u32("pkt_version", 0),
        u8("rrc_release_number", 4),
        u8("rrc_version_number", 5),
        u8("radio_bearer_id", 6),
        u16("physical_cell_id", 7).unset_where(u32("", 17), 0),
        u64("nr_cgi", 9).mask(),
        u32("freq", 17).unset_where(u32("", 17), 0),
        u24("sysframenum_subframenum", 21).unset_where(u24("", 21), 0),
        u8("pdu_number", 24),
        u8("channel", 24).named(channels),
        u32("sib_mask_in_si", 25).flags(&[]),
        u16("msg_length", 29),
    ]
}

const V8: Names = &[
    (1, "BCCH-BCH"),
    (2, "BCCH-DL-SCH"),
    (3, "DL-CCCH"),
    (4, "DL-DCCH"),
    (5, "PCCH"),
    (6, "UL-CCCH"),
    (7, "UL-CCCH1"),
    (8, "UL-DCCH"),
    (9, "RRCReconfiguration"),
    (10, "RRCReconfigurationComplete"),
    (25, "RadioBearerConfig"),
    (26, "RadioBearerConfig"),
    (28, "UE-MRDC-Capability"),
    (29, "UE-NR-Capability"),
];

const V14: Names = &[
    (1, "BCCH-BCH"),
    (2, "BCCH-DL-SCH"),
    (3, "DL-CCCH"),
    (4, "DL-DCCH"),
    (5, "PCCH"),
    (6, "UL-CCCH"),
    (7, "UL-CCCH1"),
    (8, "UL-DCCH"),
    (9, "RRCReconfiguration"),
    (10, "RRCReconfigurationComplete"),
    (28, "RadioBearerConfig"),
    (31, "UE-MRDC-Capability"),
    (32, "UE-NR-Capability"),
    (33, "UE-NR-Capability"),
];

const V17: Names = &[
    (1, "BCCH-BCH"),
    (2, "BCCH-DL-SCH"),
    (3, "DL-CCCH"),
    (4, "DL-DCCH"),
    (5, "PCCH"),
    (6, "UL-CCCH"),
    (7, "UL-CCCH1"),
    (8, "UL-DCCH"),
    (9, "RRCReconfiguration"),
    (10, "RRCReconfigurationComplete"),
    (29, "RadioBearerConfig"),
];

const V20: Names = &[
    (1, "BCCH-BCH"),
    (2, "BCCH-DL-SCH"),
    (3, "DL-CCCH"),
    (4, "DL-DCCH"),
    (5, "MCCH"),
    (6, "PCCH"),
    (7, "UL-CCCH"),
    (8, "UL-CCCH1"),
    (9, "UL-DCCH"),
    (10, "RRCReconfiguration"),
    (11, "RRCReconfigurationComplete"),
    (36, "RadioBearerConfig"),
];

const V26: Names = &[
    (1, "BCCH-BCH"),
    (2, "BCCH-DL-SCH"),
    (3, "DL-CCCH"),
    (4, "DL-DCCH"),
    (5, "MCCH"),
    (6, "PCCH"),
    (7, "UL-CCCH"),
    (8, "UL-CCCH1"),
    (9, "UL-DCCH"),
    (11, "RRCReconfiguration"),
    (12, "RRCReconfigurationComplete"),
    (36, "RadioBearerConfig"),
];
