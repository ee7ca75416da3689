//! 0xB889: reason of a random access in NR.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16};
use crate::log::names::{RACH_CONTENTION, RACH_REASON};
use crate::packet::LogCode;

/// Reason of a random access in NR.
pub static B889: Code = Code {
    code: LogCode(0xB889),
    name: "NR MAC RACH trigger",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(2, 1)],
        verified: Verified::Read,
        root: Part::root(24, HEAD, &[Part::message("msg3", "msg3_size")]),
    }],
};

const HEAD: &[Field] = &[
    u16("mac_version_minor", 0),
    u16("mac_version_major", 2),
    u8("sleep", 4),
    u8("dl_dynamic_cfg_change", 7),
    u8("dl_config", 8),
    u8("ul_config", 9).bits(0, 3),
    u8("ml1_state_change", 9).bits(4, 7),
    u16("log_fields_change_bmask", 12),
    u8("sub_id", 14),
    u8("num_records", 15),
    u16("crnti", 16),
    u8("rach_reason", 18).named(RACH_REASON),
    u8("carrier_id", 19),
    u8("first_active_ul_bwp", 20),
    u8("rach_contention", 21).named(RACH_CONTENTION),
    u8("ra_id", 22),
    u8("msg3_size", 23),
];
