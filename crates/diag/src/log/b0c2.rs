//! 0xB0C2: the serving cell.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// The serving cell.
pub static B0C2: Code = Code {
    code: LogCode(0xB0C2),
    name: "LTE RRC serving cell info",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(2)],
            verified: Verified::Checked,
            root: Part::root(25, FIELDS_V2, &[]),
        },
        Layout {
            versions: &[Version::Single(3)],
            verified: Verified::Checked,
            root: Part::root(29, FIELDS_V3, &[]),
        },
    ],
};

const FIELDS_V2: &[Field] = &[
    u8("version", 0),
    u16("cell_id", 1),
    u16("downlink_frequency", 3),
    u16("uplink_frequency", 5),
    u8("downlink_bandwidth", 7).scaled(5.0, 0.0),
    u8("uplink_bandwidth", 8).scaled(5.0, 0.0),
    u32("cell_identity", 9),
    u16("tac", 13),
    u32("band_indicator", 15),
    u16("mcc", 19),
    u8("mnc_digit", 21),
    u16("mnc", 22),
    u8("allowed_access", 24),
];

const FIELDS_V3: &[Field] = &[
    u8("version", 0),
    u16("cell_id", 1),
    u32("downlink_frequency", 3),
    u32("uplink_frequency", 7),
    u8("downlink_bandwidth", 11).scaled(5.0, 0.0),
    u8("uplink_bandwidth", 12).scaled(5.0, 0.0),
    u32("cell_identity", 13),
    u16("tac", 17),
    u32("band_indicator", 19),
    u16("mcc", 23),
    u8("mnc_digit", 25),
    u16("mnc", 26),
    u8("allowed_access", 28),
];
