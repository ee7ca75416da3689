//! 0xB179: the serving cell and its neighbours on the same frequency, while connected.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32, u64};
use crate::log::names::CELL;
use crate::packet::LogCode;

/// The serving cell and its neighbours on the same frequency, while connected.
pub static B179: Code = Code {
    code: LogCode(0xB179),
    name: "LTE connected-mode intra-frequency measurement",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(3)],
            verified: Verified::Read,
            root: Part::root(
                24,
                HEAD_V3,
                &[
                    Part::counted("neighbor_cells", "number_of_neighbor_cells", 12, NEIGHBOR_V3),
                    Part::counted("detected_cells", "number_of_detected_cells", 16, DETECTED_V3),
                    Part::rest(),
                ],
            ),
        },
        Layout {
            versions: &[Version::Single(4)],
            verified: Verified::Checked,
            root: Part::root(
                28,
                HEAD_V4,
                &[
                    Part::counted("neighbor_cells", "number_of_neighbor_cells", 12, NEIGHBOR_V3),
                    Part::counted("detected_cells", "number_of_detected_cells", 16, DETECTED_V4),
                    Part::rest(),
                ],
            ),
        },
    ],
};

const HEAD_V3: &[Field] = &[
    u8("version", 0),
    u8("serving_cell_index", 4).named(CELL),
    u16("e_arfcn", 8),
    u16("serving_physical_cell_id", 10),
    u16("sub_frame_number", 12),
    u16("rsrp_dbm", 14).bits(0, 11).scaled(16.0, -180.0),
    u16("rsrq_db", 18).bits(0, 9).scaled(16.0, -30.0),
    u8("number_of_neighbor_cells", 22),
    u8("number_of_detected_cells", 23),
];

const NEIGHBOR_V3: &[Field] = &[
    u16("physical_cell_id", 0),
    u16("rsrp_dbm", 2).bits(0, 11).scaled(16.0, -180.0),
    u16("rsrq_db", 6).bits(0, 9).scaled(16.0, -30.0),
];

const DETECTED_V3: &[Field] =
    &[u32("physical_cell_id", 0), u32("sss_corr_value", 4), u64("reference_time", 8)];

const HEAD_V4: &[Field] = &[
    u8("version", 0),
    u8("serving_cell_index", 4).named(CELL),
    u32("e_arfcn", 8),
    u16("serving_physical_cell_id", 12),
    u16("sub_frame_number", 14),
    u16("rsrp_dbm", 16).bits(0, 11).scaled(16.0, -180.0),
    u16("rsrq_db", 20).bits(0, 9).scaled(16.0, -30.0),
    u8("number_of_neighbor_cells", 24),
    u8("number_of_detected_cells", 25),
];

const DETECTED_V4: &[Field] =
    &[u16("physical_cell_id", 0), u32("sss_corr_value", 4), u64("reference_time", 8)];
