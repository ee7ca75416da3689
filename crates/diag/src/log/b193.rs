//! 0xB193: reception of the serving cell at each antenna: power, quality, signal to noise.
//!
//! Source: mobileinsight-core @4330fa9; subpacket version 36, and the SNR of 48: SCAT @5a56ecf
//!
//! Differs: mobileinsight-core uses the first antenna's RSRQ as the RSRQ of all antennas in subpacket version 36.
//!
//! Differs: SCAT has only the cell's identity and time of subpacket version 48. The other fields are derived from
//! packets: an antenna's RSRQ equals, to the last bit, its RSRP minus its RSSI, times the number of resource blocks of
//! the carrier. The values for all antennas are those of the best antenna.
//!
//! Chosen: a cell of the later versions ends with projected SIR, RSRQ after interference cancellation and the CINR of
//! each antenna. This layout also holds for version 36: the RSRQ after interference cancellation equals the RSRQ in
//! every recorded packet.

use crate::layout::{
    Code, Extent, Field, Inner, Kind, Layout, Part, Repeat, Verified, Version, VersionAt, i32, u8, u16, u32,
};
use crate::log::names::{CELL, VALID_RX};
use crate::packet::LogCode;

/// Reception of the serving cell at each antenna: power, quality, signal to noise.
pub static B193: Code = Code {
    code: LogCode(0xB193),
    name: "LTE ML1 serving cell measurement",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(
            4,
            HEAD,
            &[Part {
                extent: Extent::Says("subpacket_size"),
                inner: Inner::Choice(["subpacket_id", "subpacket_version"], KINDS),
                ..Part::counted("subpackets", "number_of_subpackets", 4, SUBPACKET_HEAD)
            }],
        ),
    }],
};

const KINDS: &[Kind] = &[
    Kind {
        id: 25,
        versions: &[4],
        verified: Verified::Read,
        parts: &[Part::once("", 76, CELL_V4), Part::rest()],
    },
    Kind {
        id: 25,
        versions: &[7],
        verified: Verified::Read,
        parts: &[Part::once("", 80, CELL_V7), Part::rest()],
    },
    Kind {
        id: 25,
        versions: &[18],
        verified: Verified::Checked,
        parts: &[Part::once("", 92, CELL_V18), Part::rest()],
    },
    Kind {
        id: 25,
        versions: &[19],
        verified: Verified::Checked,
        parts: &[Part::once("", 8, HEAD_V19)
            .of(&[Part::once("cells", 88, CELL_V19).repeated(Repeat::Room("num_of_cells", 4))])],
    },
    Kind {
        id: 25,
        versions: &[22],
        verified: Verified::Checked,
        parts: &[Part::once("", 8, HEAD_V19)
            .of(&[Part::once("cells", 112, CELL_V22).repeated(Repeat::Count("num_of_cells")), Part::rest()])],
    },
    Kind {
        id: 25,
        versions: &[24],
        verified: Verified::Read,
        parts: &[Part::once("", 8, HEAD_V19)
            .of(&[Part::once("cells", 92, CELL_V24).repeated(Repeat::Count("num_of_cells")), Part::rest()])],
    },
    Kind {
        id: 25,
        versions: &[35],
        verified: Verified::Read,
        parts: &[Part::once("", 8, HEAD_V19)
            .of(&[Part::once("cells", 124, CELL_V35).repeated(Repeat::Count("num_of_cells")), Part::rest()])],
    },
    Kind {
        id: 25,
        versions: &[40],
        verified: Verified::Read,
        parts: &[Part::once("", 8, HEAD_V40)
            .of(&[Part::once("cells", 132, CELL_V40).repeated(Repeat::Count("num_of_cells")), Part::rest()])],
    },
    Kind {
        id: 25,
        versions: &[36],
        verified: Verified::Checked,
        parts: &[Part::once("", 8, HEAD_V40)
            .of(&[Part::once("cells", 128, CELL_V36).repeated(Repeat::Room("num_of_cells", 4))])],
    },
    Kind {
        id: 25,
        versions: &[48],
        verified: Verified::Guess,
        parts: &[Part::once("", 12, HEAD_V40)
            .of(&[Part::once("cells", 140, CELL_V48).repeated(Repeat::Count("num_of_cells"))])],
    },
];

const HEAD: &[Field] = &[u8("version", 0), u8("number_of_subpackets", 1)];

const SUBPACKET_HEAD: &[Field] =
    &[u8("subpacket_id", 0), u8("subpacket_version", 1), u16("subpacket_size", 2)];

const CELL_V4: &[Field] = &[
    u16("e_arfcn", 0),
    u16("physical_cell_id", 2).bits(0, 8),
    u16("serving_cell_index", 2).bits(9, 11).named(CELL),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 12).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 16).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 24).bits(12, 21).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 28).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq", 28).bits(20, 29).scaled(16.0, -30.0),
    u32("rssi_rx_0", 32).bits(10, 20).scaled(16.0, -110.0),
    u32("rssi_rx_1", 32).bits(21, 31).scaled(16.0, -110.0),
    u32("rssi", 36).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 60).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 60).bits(9, 17).scaled(10.0, -20.0),
];

const CELL_V7: &[Field] = &[
    u32("e_arfcn", 0),
    u16("physical_cell_id", 4).bits(0, 8),
    u16("serving_cell_index", 4).bits(9, 11).named(CELL),
    u16("current_sfn", 8).bits(0, 9),
    u16("current_subframe_number", 8).bits(10, 13),
    u32("rsrp_rx_0", 16).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp", 24).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 28).bits(12, 21).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 32).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq", 32).bits(20, 29).scaled(16.0, -30.0),
    u32("rssi_rx_0", 36).bits(10, 20).scaled(16.0, -110.0),
    u32("rssi_rx_1", 36).bits(21, 31).scaled(16.0, -110.0),
    u32("rssi", 40).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 64).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 64).bits(9, 17).scaled(10.0, -20.0),
];

const CELL_V18: &[Field] = &[
    u32("e_arfcn", 0),
    u16("physical_cell_id", 4).bits(0, 8),
    u16("serving_cell_index", 4).bits(9, 11).named(CELL),
    u16("current_sfn", 8).bits(0, 9),
    u16("current_subframe_number", 8).bits(10, 13),
    u32("rsrp_rx_0", 21).bits(2, 12).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 25).bits(4, 14).scaled(16.0, -180.0),
    u32("rsrp", 29).bits(4, 14).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 33).bits(4, 12).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 37).bits(2, 11).scaled(16.0, -30.0),
    u32("rsrq", 37).bits(12, 21).scaled(16.0, -30.0),
    u32("rssi_rx_0", 41).bits(2, 12).scaled(16.0, -110.0),
    u32("rssi", 41).bits(13, 23).scaled(16.0, -110.0),
    u32("rssi_rx_1", 41).bits(13, 23).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 68).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 68).bits(9, 17).scaled(10.0, -20.0),
];

const HEAD_V19: &[Field] = &[u32("e_arfcn", 0), u16("num_of_cells", 4)];

const CELL_V19: &[Field] = &[
    u16("physical_cell_id", 0).bits(0, 8),
    u16("serving_cell_index", 0).bits(9, 11).named(CELL),
    u16("is_serving_cell", 0).bits(12, 12),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 16).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp", 24).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 28).bits(12, 21).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 32).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq", 32).bits(20, 29).scaled(16.0, -30.0),
    u32("rssi_rx_0", 36).bits(10, 20).scaled(16.0, -110.0),
    u32("rssi_rx_1", 36).bits(21, 31).scaled(16.0, -110.0),
    u32("rssi", 40).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 64).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 64).bits(9, 17).scaled(10.0, -20.0),
    i32("projected_sir", 80).scaled(16.0, 0.0),
    u32("post_ic_rsrq", 84).scaled(16.0, -30.0),
];

const CELL_V22: &[Field] = &[
    u16("physical_cell_id", 0).bits(0, 8),
    u16("serving_cell_index", 0).bits(9, 11).named(CELL),
    u16("is_serving_cell", 0).bits(12, 12),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 16).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp", 28).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 32).bits(12, 21).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 36).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq", 36).bits(10, 19).scaled(16.0, -30.0),
    u32("rssi_rx_0", 44).bits(10, 20).scaled(16.0, -110.0),
    u32("rssi_rx_1", 44).bits(21, 31).scaled(16.0, -110.0),
    u32("rssi", 52).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 76).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 76).bits(9, 17).scaled(10.0, -20.0),
    i32("projected_sir", 96).scaled(16.0, 0.0),
    u32("post_ic_rsrq", 100).scaled(16.0, -30.0),
    i32("cinr_rx_0", 104),
    i32("cinr_rx_1", 108),
];

const CELL_V24: &[Field] = &[
    u16("physical_cell_id", 0).bits(0, 8),
    u16("serving_cell_index", 0).bits(9, 11).named(CELL),
    u16("is_serving_cell", 0).bits(12, 12),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 17).bits(3, 14).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 21).bits(4, 15).scaled(16.0, -180.0),
    u32("rsrp", 25).bits(4, 15).scaled(16.0, -180.0),
    u16("rsrq_rx_0", 29).bits(4, 13).scaled(16.0, -30.0),
    u16("rsrq_rx_1", 32).bits(0, 9).scaled(16.0, -30.0),
    u16("rsrq", 34).bits(4, 13).scaled(16.0, -30.0),
    u32("rssi_rx_0", 36).bits(10, 20).scaled(16.0, -110.0),
    u32("rssi_rx_1", 36).bits(21, 31).scaled(16.0, -110.0),
    u32("rssi", 40).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 64).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 64).bits(9, 17).scaled(10.0, -20.0),
];

const CELL_V35: &[Field] = &[
    u16("physical_cell_id", 0).bits(0, 8),
    u16("serving_cell_index", 0).bits(9, 11).named(CELL),
    u16("is_serving_cell", 0).bits(12, 12),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 16).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp_rx_2", 24).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp_rx_3", 28).bits(0, 11).scaled(16.0, -180.0),
    u32("rsrp", 28).bits(12, 23).scaled(16.0, -140.0),
    u32("filtered_rsrp", 32).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 36).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 36).bits(20, 29).scaled(16.0, -30.0),
    u32("rsrq_rx_2", 40).bits(10, 19).scaled(16.0, -30.0),
    u32("rsrq_rx_3", 40).bits(20, 29).scaled(16.0, -30.0),
    u32("rsrq", 44).bits(0, 9).scaled(16.0, -30.0),
    u32("filtered_rsrq", 44).bits(20, 31).scaled(16.0, -30.0),
    u32("rssi_rx_0", 48).bits(0, 10).scaled(16.0, -110.0),
    u32("rssi_rx_1", 48).bits(11, 21).scaled(16.0, -110.0),
    u32("rssi_rx_2", 52).bits(0, 10).scaled(16.0, -110.0),
    u32("rssi_rx_3", 52).bits(11, 21).scaled(16.0, -110.0),
    u32("rssi", 56).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 80).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 80).bits(9, 17).scaled(10.0, -20.0),
    u32("ftl_snr_rx_2", 84).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_3", 84).bits(9, 17).scaled(10.0, -20.0),
    i32("projected_sir", 100).scaled(16.0, 0.0),
    u32("post_ic_rsrq", 104).scaled(16.0, -30.0),
    i32("cinr_rx_0", 108),
    i32("cinr_rx_1", 112),
    i32("cinr_rx_2", 116),
    i32("cinr_rx_3", 120),
];

const HEAD_V40: &[Field] = &[u32("e_arfcn", 0), u16("num_of_cells", 4), u16("valid_rx", 6).named(VALID_RX)];

const CELL_V40: &[Field] = &[
    u16("physical_cell_id", 0).bits(0, 8),
    u16("serving_cell_index", 0).bits(9, 11).named(CELL),
    u16("is_serving_cell", 0).bits(12, 12),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 16).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp_rx_2", 24).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp_rx_3", 32).bits(0, 11).scaled(16.0, -180.0),
    u32("rsrp", 32).bits(12, 23).scaled(16.0, -140.0),
    u32("filtered_rsrp", 36).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 40).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 40).bits(20, 29).scaled(16.0, -30.0),
    u32("rsrq_rx_2", 44).bits(10, 19).scaled(16.0, -30.0),
    u32("rsrq_rx_3", 44).bits(20, 29).scaled(16.0, -30.0),
    u32("rsrq", 48).bits(0, 9).scaled(16.0, -30.0),
    u32("filtered_rsrq", 48).bits(20, 31).scaled(16.0, -30.0),
    u32("rssi_rx_0", 52).bits(0, 10).scaled(16.0, -110.0),
    u32("rssi_rx_1", 52).bits(11, 21).scaled(16.0, -110.0),
    u32("rssi_rx_2", 56).bits(0, 10).scaled(16.0, -110.0),
    u32("rssi_rx_3", 56).bits(11, 21).scaled(16.0, -110.0),
    u32("rssi", 60).bits(0, 10).scaled(16.0, -110.0),
    u16("residual_frequency_error", 74),
    u32("ftl_snr_rx_0", 84).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 84).bits(9, 17).scaled(10.0, -20.0),
    u32("ftl_snr_rx_2", 88).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_3", 88).bits(9, 17).scaled(10.0, -20.0),
    i32("projected_sir", 108).scaled(16.0, 0.0),
    u32("post_ic_rsrq", 112).scaled(16.0, -30.0),
    i32("cinr_rx_0", 116),
    i32("cinr_rx_1", 120),
    i32("cinr_rx_2", 124),
    i32("cinr_rx_3", 128),
];

const CELL_V36: &[Field] = &[
    u16("physical_cell_id", 0).bits(0, 8),
    u16("serving_cell_index", 0).bits(9, 11).named(CELL),
    u16("is_serving_cell", 0).bits(12, 12),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 16).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp_rx_2", 24).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp_rx_3", 28).bits(0, 11).scaled(16.0, -180.0),
    u32("rsrp", 28).bits(12, 23).scaled(16.0, -140.0),
    u32("filtered_rsrp", 32).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 36).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 36).bits(20, 29).scaled(16.0, -30.0),
    u32("rsrq_rx_2", 40).bits(10, 19).scaled(16.0, -30.0),
    u32("rsrq_rx_3", 40).bits(20, 29).scaled(16.0, -30.0),
    u32("rsrq", 44).bits(0, 9).scaled(16.0, -30.0),
    u32("filtered_rsrq", 44).bits(20, 29).scaled(16.0, -30.0),
    u32("rssi_rx_0", 48).bits(0, 10).scaled(16.0, -110.0),
    u32("rssi_rx_1", 48).bits(11, 21).scaled(16.0, -110.0),
    u32("rssi_rx_2", 52).bits(0, 10).scaled(16.0, -110.0),
    u32("rssi_rx_3", 52).bits(11, 21).scaled(16.0, -110.0),
    u32("rssi", 56).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 80).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 80).bits(9, 17).scaled(10.0, -20.0),
    u32("ftl_snr_rx_2", 84).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_3", 84).bits(9, 17).scaled(10.0, -20.0),
    i32("projected_sir", 104).scaled(16.0, 0.0),
    u32("post_ic_rsrq", 108).scaled(16.0, -30.0),
    i32("cinr_rx_0", 112),
    i32("cinr_rx_1", 116),
    i32("cinr_rx_2", 120),
    i32("cinr_rx_3", 124),
];

const CELL_V48: &[Field] = &[
    u16("physical_cell_id", 0).bits(0, 8),
    u16("serving_cell_index", 0).bits(9, 11).named(CELL),
    u16("is_serving_cell", 0).bits(12, 12),
    u16("current_sfn", 4).bits(0, 9),
    u16("current_subframe_number", 4).bits(10, 13),
    u32("rsrp_rx_0", 16).bits(10, 21).scaled(16.0, -180.0),
    u32("rsrp_rx_1", 20).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrp", 32).bits(12, 23).scaled(16.0, -140.0),
    u32("filtered_rsrp", 36).bits(12, 23).scaled(16.0, -180.0),
    u32("rsrq_rx_0", 40).bits(0, 9).scaled(16.0, -30.0),
    u32("rsrq_rx_1", 40).bits(20, 29).scaled(16.0, -30.0),
    u32("rsrq", 48).bits(0, 9).scaled(16.0, -30.0),
    u32("filtered_rsrq", 48).bits(20, 29).scaled(16.0, -30.0),
    u32("rssi_rx_0", 52).bits(0, 10).scaled(16.0, -110.0),
    u32("rssi_rx_1", 52).bits(11, 21).scaled(16.0, -110.0),
    u32("rssi", 60).bits(0, 10).scaled(16.0, -110.0),
    u32("ftl_snr_rx_0", 92).bits(0, 8).scaled(10.0, -20.0),
    u32("ftl_snr_rx_1", 92).bits(9, 17).scaled(10.0, -20.0),
    i32("projected_sir", 116).scaled(16.0, 0.0),
    u32("post_ic_rsrq", 120).scaled(16.0, -30.0),
];
