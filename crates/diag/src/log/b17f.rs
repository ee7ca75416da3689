//! 0xB17F: the serving cell in the evaluation for cell reselection.
//!
//! Source: SCAT @5a56ecf

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// The serving cell in the evaluation for cell reselection.
pub static B17F: Code = Code {
    code: LogCode(0xB17F),
    name: "LTE ML1 serving cell measurement and evaluation",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(4)],
            verified: Verified::Read,
            root: Part::root(8, HEAD_V4, JUDGED),
        },
        Layout {
            versions: &[Version::Single(5)],
            verified: Verified::Checked,
            root: Part::root(12, HEAD_V5, JUDGED),
        },
    ],
};

const HEAD_V4: &[Field] = &[
    u8("version", 0),
    u8("standards_release", 1),
    u16("e_arfcn", 4),
    u16("physical_cell_id", 6).bits(0, 8),
    u16("priority", 6).bits(9, 15),
];

const HEAD_V5: &[Field] = &[
    u8("version", 0),
    u8("standards_release", 1),
    u32("e_arfcn", 4),
    u16("physical_cell_id", 8).bits(0, 8),
    u16("priority", 8).bits(9, 15),
];

const JUDGED: &[Part] = &[
    Part::once("", 24, MEASURED),
    Part::once("", 4, RELEASE_9).repeated(Repeat::If("standards_release", 1)),
];

const MEASURED: &[Field] = &[
    u32("rsrp", 0).bits(0, 11).scaled(16.0, -180.0),
    u32("average_rsrp", 4).bits(0, 11).scaled(16.0, -180.0),
    u32("rsrq", 8).bits(0, 9).scaled(16.0, -30.0),
    u32("average_rsrq", 8).bits(20, 29).scaled(16.0, -30.0),
    u32("rssi", 12).bits(10, 20).scaled(16.0, -110.0),
    u32("q_rxlevmin", 16).bits(0, 5),
    u32("p_max", 16).bits(6, 12),
    u32("max_ue_tx_power", 16).bits(13, 18),
    u32("s_rxlev", 16).bits(19, 25),
    u32("num_drx_s_fail", 16).bits(26, 31),
    u32("search_thresholds", 20).mask(),
];

const RELEASE_9: &[Field] = &[u32("q_qualmin", 0).bits(0, 6), u32("s_qual", 0).bits(7, 13)];
