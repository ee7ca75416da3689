//! 0xB198: DRX sleep and wake-up events while connected.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u32};
use crate::log::names::CDRX_EVENT;
use crate::packet::LogCode;

/// DRX sleep and wake-up events while connected.
pub static B198: Code = Code {
    code: LogCode(0xB198),
    name: "LTE CDRX events",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(1)],
            verified: Verified::Read,
            root: Part::root(4, HEAD_V1, &[Part::counted("records", "num_records", 4, RECORD_V1)]),
        },
        Layout {
            versions: &[Version::Single(2)],
            verified: Verified::Checked,
            root: Part::root(4, HEAD_V1, &[Part::counted("records", "num_records", 8, RECORD_V2)]),
        },
    ],
};

const HEAD_V1: &[Field] = &[u8("version", 0), u8("num_records", 1)];

const RECORD_V1: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("cdrx_event", 0).bits(14, 19).named(CDRX_EVENT),
];

const RECORD_V2: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("cdrx_event", 0).bits(14, 19).named(CDRX_EVENT),
    u32("internal_field_mask", 4),
];
