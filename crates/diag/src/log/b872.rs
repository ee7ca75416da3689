//! 0xB872: transport blocks that NR's layer 2 built for its uplink grants.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Names, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// Transport blocks that NR's layer 2 built for its uplink grants.
pub static B872: Code = Code {
    code: LogCode(0xB872),
    name: "NR L2 UL TB",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(0, 4)],
        verified: Verified::Read,
        root: Part::root(
            8,
            &[u32("version", 0), u8("num_tti", 4).bits(0, 3)],
            &[Part::counted("ttis", "num_tti", 8, TTI)
                .of(&[Part::counted("tbs", "num_tb", 20, BLOCK).of(&[Part::message("mce", "mce_length")])])],
        ),
    }],
};

const TTI: &[Field] =
    &[u8("sys_time_slot_number", 0), u16("sys_time_fn", 2).bits(0, 9), u8("num_tb", 4).bits(0, 3)];

const BLOCK: &[Field] = &[
    u16("numerology", 0).bits(0, 2),
    u16("harq_id", 0).bits(3, 6),
    u16("carrier_id", 0).bits(7, 8),
    u16("tb_type", 0).bits(9, 12).named(&[(0, "CONNECTED"), (4, "RNTI"), (8, "IRACH")]),
    u16("rnti_type", 0).bits(13, 15).named(&[(0, "C_RNTI")]),
    u16("start_pdu_seg", 2).bits(0, 0),
    u16("num_complete_pdu", 2).bits(1, 10),
    u16("end_pdu_seg", 2).bits(11, 11),
    u32("grant_size", 4),
    u32("bytes_build", 8),
    u8("mce_req_bitmask", 12).named(ELEMENTS),
    u8("mce_build_bitmask", 13).named(ELEMENTS),
    u16("phr_reason", 14).bits(0, 5),
    u16("bsr_reason", 14).bits(6, 8),
    u16("bsr_type", 14).bits(9, 12).named(BSR),
    u8("mce_length", 16).bits(0, 5),
];

const ELEMENTS: Names = &[(0, "0"), (1, "PHR"), (2, "BSR"), (3, "PHR|BSR")];

const BSR: Names = &[(0, "NO_BSR"), (1, "SHORT_BSR"), (2, "LONG_BSR"), (5, "CANCELLED_BSR")];
