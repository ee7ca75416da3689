//! 0xB18A: radio link monitoring.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16};
use crate::packet::LogCode;

/// Radio link monitoring.
pub static B18A: Code = Code {
    code: LogCode(0xB18A),
    name: "LTE RLM report",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(4, HEAD_V1, &[Part::counted("records", "number_of_records", 12, RECORD_V1)]),
    }],
};

const HEAD_V1: &[Field] = &[u8("version", 0), u8("number_of_records", 3)];

const RECORD_V1: &[Field] = &[
    u16("system_frame_number", 0).bits(0, 9),
    u16("sub_frame_number", 0).bits(10, 13),
    u16("out_of_sync_bler_pct", 2).scaled(32768.0 / 100.0, 0.0),
    u16("in_sync_bler_pct", 4).scaled(32768.0 / 100.0, 0.0),
    u16("out_of_sync_count", 6).bits(0, 4),
    u16("in_sync_count", 6).bits(5, 9),
    u8("t310_timer_status", 8),
];
