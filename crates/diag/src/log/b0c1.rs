//! 0xB0C1: the master information block.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::log::names::{NB_OPERATION, RASTER_OFFSET};
use crate::packet::LogCode;

/// The master information block.
pub static B0C1: Code = Code {
    code: LogCode(0xB0C1),
    name: "LTE RRC MIB",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(1)],
            verified: Verified::Checked,
            root: Part::root(9, FIELDS_V1, &[]),
        },
        Layout {
            versions: &[Version::Single(2)],
            verified: Verified::Checked,
            root: Part::root(11, FIELDS_V2, &[]),
        },
        Layout {
            versions: &[Version::Single(3)],
            verified: Verified::Read,
            root: Part::root(12, FIELDS_V3, &[]),
        },
        Layout {
            versions: &[Version::Single(17)],
            verified: Verified::Read,
            root: Part::root(18, FIELDS_V17, &[]),
        },
    ],
};

const FIELDS_V1: &[Field] = &[
    u8("version", 0),
    u16("physical_cell_id", 1),
    u16("freq", 3),
    u16("sfn", 5),
    u8("number_of_antenna", 7),
    u8("dl_bw", 8).scaled(5.0, 0.0),
];

const FIELDS_V2: &[Field] = &[
    u8("version", 0),
    u16("physical_cell_id", 1),
    u32("freq", 3),
    u16("sfn", 7),
    u8("number_of_antenna", 9),
    u8("dl_bw", 10).scaled(5.0, 0.0),
];

const FIELDS_V3: &[Field] = &[
    u8("version", 0),
    u16("physical_cell_id", 1),
    u32("freq", 3),
    u16("sfn", 7),
    u8("number_of_antenna", 9),
    u8("dl_bw", 10).scaled(5.0, 0.0),
    u8("sib1_br_sch_info", 11),
];

const FIELDS_V17: &[Field] = &[
    u8("version", 0),
    u16("physical_cell_id", 1),
    u32("freq", 3),
    u16("sfn", 7),
    u8("sfn_msb4", 9),
    u8("hsfn_lsb2", 10),
    u8("sib1_sch_info", 11),
    u8("sys_info_value_tag", 12),
    u8("access_barring_enabled", 13),
    u8("op_mode_type", 14).named(NB_OPERATION),
    u16("raster_offset", 15).named(RASTER_OFFSET),
    u8("number_of_antenna", 17),
];
