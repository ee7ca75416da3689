//! 0xB16B: downlink control information and acknowledgements that the modem decoded in each subframe.
//!
//! Source: mobileinsight-core @4330fa9; version 48: worked out from a real log (below)

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32};
use crate::log::names::{
    AGGREGATION, AGGREGATION_V5, FALSE_TRUE, FALSE_TRUE_V5, NACK_ACK, NO_YES, RNTI, SEARCH_SPACE,
    SEARCH_SPACE_V5,
};
use crate::packet::LogCode;

/// Downlink control information and acknowledgements that the modem decoded in each subframe.
pub static B16B: Code = Code {
    code: LogCode(0xB16B),
    name: "LTE PDCCH/PHICH indication report",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(5)],
            verified: Verified::Checked,
            root: Part::root(
                4,
                HEAD_V5,
                &[Part::counted("records", "number_of_records", 8, RECORD_V5).of(&[
                    Part::once("pdcch_info", 4, PDCCH_V5).repeated(Repeat::Room("num_pdcch_results", 7)),
                    Part::once("", 4, &[]),
                ])],
            ),
        },
        Layout {
            versions: &[Version::Single(25)],
            verified: Verified::Read,
            root: Part::root(
                4,
                HEAD_V5,
                &[Part::counted("records", "number_of_records", 4, RECORD_V25).of(&[
                    Part::once("phich", 4, PHICH_V25).repeated(Repeat::Count("num_phich_results")),
                    Part::once("pdcch_info", 8, PDCCH_V25).repeated(Repeat::Count("num_pdcch_results")),
                ])],
            ),
        },
        Layout {
            versions: &[Version::Single(33)],
            verified: Verified::Read,
            root: Part::root(
                4,
                HEAD_V5,
                &[Part::counted("records", "number_of_records", 12, RECORD_V25).of(&[
                    Part::once("phich", 4, PHICH_V25).repeated(Repeat::Count("num_phich_results")),
                    Part::once("pdcch_info", 8, PDCCH_V25).repeated(Repeat::Count("num_pdcch_results")),
                ])],
            ),
        },
        Layout {
            versions: &[Version::Single(34)],
            verified: Verified::Checked,
            root: Part::root(
                4,
                HEAD_V5,
                &[Part::counted("records", "number_of_records", 12, RECORD_V25).of(&[
                    Part::once("phich", 4, PHICH_V25).repeated(Repeat::Room("num_phich_results", 5)),
                    Part::once("pdcch_info", 8, PDCCH_V25).repeated(Repeat::Room("num_pdcch_results", 16)),
                ])],
            ),
        },
        // A packet of a real log is 4 + 176 · records bytes long: 16 bytes more than in version 34. Frame numbers rise.
        // A DCI is at the position of version 34, with the lengths of formats 0 and 2 on 20 MHz, in subframes in which
        // 0xB126 has a block, or for which 0xB139 has a block four subframes later. Acknowledgements are not at the
        // position of version 34.
        Layout {
            versions: &[Version::Single(48)],
            verified: Verified::Guess,
            root: Part::root(
                4,
                HEAD_V5,
                &[Part::counted("records", "number_of_records", 32, RECORD_V25).of(&[
                    Part::once("pdcch_info", 8, PDCCH_V25).repeated(Repeat::Room("num_pdcch_results", 16)),
                    Part::once("", 16, &[]),
                ])],
            ),
        },
        Layout {
            versions: &[Version::Single(42)],
            verified: Verified::Read,
            root: Part::root(
                4,
                HEAD_V42,
                &[Part::counted("records", "number_of_records", 4, RECORD_V25).of(&[
                    Part::once("phich", 4, PHICH_V25).repeated(Repeat::Count("num_phich_results")),
                    Part::once("pdcch_info", 8, PDCCH_V42).repeated(Repeat::Count("num_pdcch_results")),
                    Part::once("", 16, EVENTS_V42),
                ])],
            ),
        },
    ],
};

const HEAD_V5: &[Field] = &[u8("version", 0), u16("duplex_mode", 1).bits(0, 1), u8("number_of_records", 3)];

const RECORD_V5: &[Field] = &[
    u32("num_pdcch_results", 0).bits(0, 2),
    u32("pdcch_timing_sfn", 0).bits(3, 12),
    u32("pdcch_timing_sub_fn", 0).bits(13, 16),
    u32("phich_included", 0).bits(17, 17).named(NO_YES),
    u32("phich_1_included", 0).bits(18, 18).named(NO_YES),
    u32("phich_timing_sfn", 0).bits(19, 28),
    u32("phich_timing_sub_fn", 4).bits(0, 3),
    u32("phich_value", 4).bits(4, 4).named(NACK_ACK),
    u32("phich_1_value", 4).bits(5, 5).named(NACK_ACK),
];

const PDCCH_V5: &[Field] = &[
    u16("serv_cell_idx", 0).bits(0, 2),
    u16("rnti_type", 0).bits(3, 6).named(RNTI),
    u16("payload_size", 0).bits(7, 13),
    u16("aggregation_level", 0).bits(14, 15).named(AGGREGATION_V5),
    u16("search_space", 2).bits(0, 0).named(SEARCH_SPACE_V5),
    u16("new_dl_tx", 2).bits(4, 4).named(FALSE_TRUE_V5),
    u16("num_dl_trblks", 2).bits(5, 6),
];

const RECORD_V25: &[Field] = &[
    u32("num_pdcch_results", 0).bits(0, 2),
    u32("num_phich_results", 0).bits(3, 5),
    u32("pdcch_timing_sfn", 0).bits(6, 15),
    u32("pdcch_timing_sub_fn", 0).bits(16, 19),
];

const PDCCH_V25: &[Field] = &[
    u16("serv_cell_idx", 0).bits(0, 2),
    u16("rnti_type", 0).bits(3, 6).named(RNTI),
    u16("payload_size", 0).bits(7, 13),
    u16("aggregation_level", 0).bits(14, 15).named(AGGREGATION),
    u16("search_space", 2).bits(0, 0).named(SEARCH_SPACE),
    u16("new_dl_tx", 2).bits(4, 4).named(FALSE_TRUE),
    u16("num_dl_trblks", 2).bits(5, 6),
];

const PHICH_V25: &[Field] = &[
    u32("cell_index", 0).bits(0, 2),
    u32("phich_included", 0).bits(3, 3).named(NO_YES),
    u32("phich_1_included", 0).bits(4, 4).named(NO_YES),
    u32("phich_value", 0).bits(5, 5).named(NACK_ACK),
    u32("phich_1_value", 0).bits(6, 6).named(NACK_ACK),
];

const HEAD_V42: &[Field] = &[
    u8("version", 0),
    u16("duplex_mode", 1).bits(0, 1),
    u16("ul_dl_config", 1).bits(2, 5),
    u8("number_of_records", 3),
];

const PDCCH_V42: &[Field] = &[
    u16("serv_cell_idx", 0).bits(0, 2),
    u16("rnti_type", 0).bits(3, 6).named(RNTI),
    u16("payload_size", 0).bits(7, 13),
    u16("aggregation_level", 0).bits(14, 15).named(AGGREGATION),
    u16("search_space", 2).bits(0, 0).named(SEARCH_SPACE),
    u16("new_dl_tx", 2).bits(4, 4).named(FALSE_TRUE),
    u16("num_dl_trblks", 2).bits(5, 6),
    u32("s0_index", 4).bits(0, 4),
    u32("s1_index", 4).bits(5, 9),
    u32("s2_index", 4).bits(10, 14),
    u32("s3_index", 4).bits(15, 19),
    u32("msleep", 4).bits(20, 20),
    u32("usleep", 4).bits(21, 21),
    u32("usleep_duration", 4).bits(22, 26),
    u32("fake_pdcch_sf", 4).bits(27, 27),
    u32("is_ul_dropped", 4).bits(28, 28),
    u32("interf_active", 4).bits(29, 29),
];

const EVENTS_V42: &[Field] = &[
    u32("full_mode_events_mask", 0),
    u32("dl_subframe_count", 4),
    u32("force_send_pdcch_ind", 8).bits(0, 0),
];
