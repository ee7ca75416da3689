//! 0xB97F: reception of NR cells and their beams.
//!
//! Source: SCAT @5a56ecf; version 2.6: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32, u64};
use crate::packet::LogCode;

/// Reception of NR cells and their beams.
pub static B97F: Code = Code {
    code: LogCode(0xB97F),
    name: "NR ML1 searcher measurement database update",
    version: VersionAt::Pair,
    layouts: &[
        layout(&[Version::Pair(2, 6)], Part::root(8, HEAD_V2_6, &[carriers(32, CARRIER_V2, CELLS_44)])),
        layout(&[Version::Pair(2, 7)], Part::root(16, HEAD_V2_7, &[carriers(32, CARRIER_V2, CELLS_44)])),
        layout(&[Version::Pair(2, 9)], Part::root(20, HEAD_V2_9, &[carriers(32, CARRIER_V2, CELLS_44)])),
        layout(&[Version::Pair(2, 10)], Part::root(20, HEAD_V2_9, &[carriers(32, CARRIER_V2, CELLS_84)])),
        layout(&[Version::Pair(3, 0)], Part::root(20, HEAD_V2_9, &[carriers(40, CARRIER_V3, CELLS_84)])),
    ],
};

const fn layout(versions: &'static [Version], root: Part) -> Layout {
    Layout { versions, verified: Verified::Read, root }
}

const fn carriers(size: usize, fields: &'static [Field], cells: &'static [Part]) -> Part {
    Part::counted("carriers", "num_layers", size, fields).of(cells)
}

/// Number of cells. Some modems write it to the byte of the serving cell's index.
const CELL_COUNT: Repeat = Repeat::Either("num_cells", "serving_cell_index");

const CELLS_44: &[Part] = &[Part::once("cells", 16, CELL).repeated(CELL_COUNT).of(&[Part::counted(
    "beams",
    "num_beams",
    44,
    BEAM_44,
)])];

const CELLS_84: &[Part] = &[Part::once("cells", 16, CELL).repeated(CELL_COUNT).of(&[Part::counted(
    "beams",
    "num_beams",
    84,
    BEAM_84,
)])];

const HEAD_V2_6: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u8("num_layers", 4),
    u8("ssb_periodicity_serv_cell", 5),
];

const HEAD_V2_7: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u8("num_layers", 4),
    u8("ssb_periodicity_serv_cell", 5),
    u32("frequency_offset", 8),
    u32("timing_offset", 12),
];

const HEAD_V2_9: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u8("num_layers", 8),
    u8("ssb_periodicity_serv_cell", 9),
    u32("frequency_offset", 12),
    u32("timing_offset", 16),
];

const CARRIER_V2: &[Field] = &[
    u32("raster_arfcn", 0),
    u8("num_cells", 4),
    u8("serving_cell_index", 5),
    u16("serving_cell_pci", 6),
    u8("serving_ssb", 8).bits(0, 3),
    u32("serving_rsrp_rx_0", 12).power(),
    u32("serving_rsrp_rx_1", 16).power(),
    u16("serving_rx_beam_0", 20),
    u16("serving_rx_beam_1", 22),
    u16("serving_rfic_id", 24),
    u16("serving_subarray_id_0", 28),
    u16("serving_subarray_id_1", 30),
];

const CARRIER_V3: &[Field] = &[
    u32("raster_arfcn", 0),
    u8("cc_id", 4),
    u8("num_cells", 5),
    u16("serving_cell_pci", 6),
    u8("serving_cell_index", 8),
    u8("serving_ssb", 9).bits(0, 3),
    u32("serving_rsrp_rx_0", 12).power(),
    u32("serving_rsrp_rx_1", 16).power(),
    u32("serving_rsrp_rx_2", 20).power(),
    u32("serving_rsrp_rx_3", 24).power(),
    u16("serving_rx_beam_0", 28),
    u16("serving_rx_beam_1", 30),
    u16("serving_rfic_id", 32),
    u16("serving_subarray_id_0", 36),
    u16("serving_subarray_id_1", 38),
];

const CELL: &[Field] = &[
    u16("pci", 0),
    u16("pbch_sfn", 2),
    u8("num_beams", 4),
    u32("cell_quality_rsrp", 8).power(),
    u32("cell_quality_rsrq", 12).power(),
];

const BEAM_44: &[Field] = &[
    u16("ssb_index", 0),
    u16("rx_beam_id_0", 4),
    u16("rx_beam_id_1", 6),
    u64("ssb_ref_timing", 12),
    u32("rsrp_0", 20).power(),
    u32("rsrp_1", 24).power(),
    u32("nr2nr_filtered_beam_rsrp_l3", 28).power(),
    u32("nr2nr_filtered_beam_rsrq_l3", 32).power(),
    u32("l2nr_filtered_tx_beam_rsrp_l3", 36).power(),
    u32("l2nr_filtered_tx_beam_rsrq_l3", 40).power(),
];

const BEAM_84: &[Field] = &[
    u16("ssb_index", 0),
    u16("rx_beam_id_0", 4),
    u16("rx_beam_id_1", 6),
    u64("ssb_ref_timing", 12),
    u32("rsrp_0", 20).power(),
    u32("rsrp_1", 24).power(),
    u32("rsrq_0", 28).power(),
    u32("rsrq_1", 32).power(),
    u32("nr2nr_filtered_beam_rsrp_l3", 68).power(),
    u32("nr2nr_filtered_beam_rsrq_l3", 72).power(),
    u32("l2nr_filtered_tx_beam_rsrp_l3", 76).power(),
    u32("l2nr_filtered_tx_beam_rsrq_l3", 80).power(),
];
