//! 0xB121: frequency tracking of the serving cell.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, bytes, u8, u16, u32};
use crate::log::names::{CARRIER_OF_TWO, DISABLED_ENABLED};
use crate::packet::LogCode;

/// Frequency tracking of the serving cell.
pub static B121: Code = Code {
    code: LogCode(0xB121),
    name: "LTE serving cell COM loop",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(22)],
            verified: Verified::Read,
            root: Part::root(4, HEAD_V22, &[Part::counted("records", "number_of_records", 52, RECORD)]),
        },
        Layout {
            versions: &[Version::Single(41)],
            verified: Verified::Read,
            root: Part::root(4, HEAD_V41, &[Part::counted("records", "number_of_records", 52, RECORD)]),
        },
    ],
};

const HEAD_V22: &[Field] = &[
    u8("version", 0),
    u16("carrier_index", 1).bits(0, 3).named(CARRIER_OF_TWO),
    u16("number_of_records", 1).bits(4, 8),
];

const RECORD: &[Field] = &[
    u16("system_frame_number", 0).bits(0, 9),
    u16("subframe_number", 0).bits(10, 13),
    u16("enabled", 0).bits(14, 14).named(DISABLED_ENABLED),
    u16("com_iir_alpha", 2).scaled(32765.0, 0.0),
    u32("com_adjustment_0", 4),
    u32("com_adjustment_1", 8),
    u32("com_unwrap_base_0", 12).scaled(64.0, 0.0),
    u32("com_unwrap_base_1", 16).scaled(64.0, 0.0),
    bytes("com_acc_stat_0", 20, 8),
    bytes("com_acc_stat_1", 28, 8),
];

const HEAD_V41: &[Field] = &[
    u8("version", 0),
    u16("carrier_index", 1).bits(0, 3).named(CARRIER_OF_TWO),
    u16("cell_id", 1).bits(4, 12),
    u8("number_of_records", 3).bits(1, 5),
];
