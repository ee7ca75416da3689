//! 0xB195: cells that a connected phone was configured to measure, and the results of the measurement.
//!
//! Source: mobileinsight-core @4330fa9; requests, and version 40 of both: worked out from real logs (below)

use crate::layout::{
    Code, Extent, Field, Inner, Kind, Layout, Part, Verified, Version, VersionAt, u8, u16, u32,
};
use crate::log::names::{CELL, FRAME_STRUCTURE};
use crate::packet::LogCode;

/// Cells that a connected phone was configured to measure, and the results of the measurement.
pub static B195: Code = Code {
    code: LogCode(0xB195),
    name: "LTE connected-mode neighbour measurement",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(
            4,
            &[u8("version", 0), u8("number_of_subpackets", 1)],
            &[Part {
                extent: Extent::Says("subpacket_size"),
                inner: Inner::Choice(["subpacket_id", "version"], KINDS),
                ..Part::counted("subpackets", "number_of_subpackets", 4, SUBPACKET_HEAD)
            }],
        ),
    }],
};

const SUBPACKET_HEAD: &[Field] = &[u8("subpacket_id", 0), u8("version", 1), u16("subpacket_size", 2)];

const KINDS: &[Kind] = &[
    // In every packet of the real logs, a request has the length that follows from its number of cells. Its channel,
    // carrier and cells are those of the answer in the same packet.
    Kind { id: 30, versions: &[3, 32, 40], verified: Verified::Guess, parts: REQUEST },
    Kind { id: 31, versions: &[4], verified: Verified::Checked, parts: ANSWER },
    // In the real logs, the length matches, the cells are those of the request, and their powers are near those in
    // 0xB179. The bits next to the number of cells do not have the meaning that they have in version 4.
    Kind { id: 31, versions: &[40], verified: Verified::Guess, parts: ANSWER_V40 },
];

const REQUEST: &[Part] = &[Part::once("", 12, REQUESTED).of(&[Part::counted(
    "wanted_cells",
    "num_cells",
    16,
    &[u32("physical_cell_id", 0).bits(0, 8)],
)])];

const REQUESTED: &[Field] =
    &[u32("e_arfcn", 0), u16("num_cells", 4).bits(0, 4), u16("serving_cell_index", 4).bits(6, 9).named(CELL)];

const ANSWER: &[Part] =
    &[Part::once("", 8, MEASURED).of(&[Part::counted("neighbor_cells", "num_cells", 52, NEIGHBOR)])];

const ANSWER_V40: &[Part] = &[Part::once("", 8, &[u32("e_arfcn", 0), u16("num_cells", 4).bits(0, 5)])
    .of(&[Part::counted("neighbor_cells", "num_cells", 52, NEIGHBOR)])];

const MEASURED: &[Field] = &[
    u32("e_arfcn", 0),
    u16("num_cells", 4).bits(0, 5),
    u16("duplex_mode", 4).bits(7, 8).named(FRAME_STRUCTURE),
    u16("serving_cell_index", 4).bits(9, 12).named(CELL),
];

const NEIGHBOR: &[Field] = &[
    u32("physical_cell_id", 0).bits(0, 9),
    u32("ftl_cumulative_freq_offset", 0).bits(10, 25),
    u16("inst_measured_rsrp", 12).bits(0, 11).scaled(16.0, -180.0),
    u32("inst_measured_rsrq", 20).bits(10, 19).scaled(16.0, -30.0),
    u32("inst_measured_rssi", 28).bits(11, 21).scaled(16.0, -110.0),
];
