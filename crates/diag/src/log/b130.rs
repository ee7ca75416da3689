//! 0xB130: DCIs found by the modem's blind decoding: each hypothesis with the raw DCI.
//!
//! Source: mobileinsight-core @4330fa9; version 163: worked out from a real log (below)
//!
//! `payload` is the DCI as a little-endian number of 64 bits, with its first bit highest. `payload_size` includes the
//! 16 bits of the checksum, which are not in `payload`. Real logs verify this interpretation: see `crate::grant::dci`.

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, bytes, u8, u16, u32};
use crate::log::names::{
    AGGREGATION, BANDWIDTH_MHZ, CARRIER, CYCLIC_PREFIX, DCI_FORMAT, ENB_ANTENNAS, ENB_ANTENNAS_V141,
    FALSE_TRUE, FRAME_STRUCTURE, MATCH, PRUNE, RNTI, SEARCH_SPACE,
};
use crate::packet::LogCode;

/// DCIs found by the modem's blind decoding: each hypothesis with the raw DCI.
pub static B130: Code = Code {
    code: LogCode(0xB130),
    name: "LTE PDCCH decoding result",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(21)],
            verified: Verified::Read,
            root: Part::root(
                8,
                HEAD_V21,
                &[Part::counted("hypotheses", "number_of_hypothesis", 24, HYPOTHESIS_V21)],
            ),
        },
        Layout {
            versions: &[Version::Single(24)],
            verified: Verified::Read,
            root: Part::root(
                8,
                HEAD_V21,
                &[Part::counted("hypotheses", "number_of_hypothesis", 24, HYPOTHESIS_V24)],
            ),
        },
        Layout {
            versions: &[Version::Single(42)],
            verified: Verified::Read,
            root: Part::root(
                8,
                HEAD_V42,
                &[Part::counted("hypotheses", "number_of_hypothesis", 28, HYPOTHESIS_V42)],
            ),
        },
        Layout {
            versions: &[Version::Single(43)],
            verified: Verified::Checked,
            root: Part::root(
                8,
                HEAD_V43,
                &[Part::counted("records", "num_records", 4, RECORD_V43).of(&[Part::once(
                    "hypotheses",
                    28,
                    HYPOTHESIS_V42,
                )
                .repeated(Repeat::Room("number_of_hypothesis", 11))])],
            ),
        },
        Layout {
            versions: &[Version::Single(101)],
            verified: Verified::Checked,
            root: Part::root(
                8,
                HEAD_V42,
                &[Part::counted("hypotheses", "number_of_hypothesis", 28, HYPOTHESIS_V42)],
            ),
        },
        Layout {
            versions: &[Version::Single(121)],
            verified: Verified::Checked,
            root: Part::root(
                8,
                HEAD_V121,
                &[
                    Part::counted("hypotheses", "number_of_hypothesis", 28, HYPOTHESIS_V121),
                    Part::once("", 4, &[]),
                ],
            ),
        },
        Layout {
            versions: &[Version::Single(123)],
            verified: Verified::Read,
            root: Part::root(
                8,
                HEAD_V121,
                &[Part::counted("hypotheses", "number_of_hypothesis", 28, HYPOTHESIS_V121)],
            ),
        },
        Layout {
            versions: &[Version::Single(141)],
            verified: Verified::Read,
            root: Part::root(
                4,
                HEAD_V141,
                &[Part::counted("hypotheses", "number_of_records", 32, HYPOTHESIS_V141)],
            ),
        },
        // Packets of a real log are 4 + 32 · hypotheses bytes long. Subframe, format, RNTI, length, raw DCI and verdict
        // of each hypothesis match the resulting blocks in 0xB139, 0xB173 and 0xB126.
        Layout {
            versions: &[Version::Single(163)],
            verified: Verified::Guess,
            root: Part::root(
                4,
                HEAD_V141,
                &[Part::counted("hypotheses", "number_of_records", 32, HYPOTHESIS_V163)],
            ),
        },
    ],
};

const HEAD_V21: &[Field] = &[
    u8("version", 0),
    u16("subframe_number", 1).bits(0, 3),
    u16("system_frame_number", 1).bits(4, 13),
    u8("demback_mode_select", 6).bits(0, 3),
    u8("carrier_index", 6).bits(4, 7).named(CARRIER),
    u8("number_of_hypothesis", 7),
];

const HYPOTHESIS_V21: &[Field] = &[
    bytes("payload", 0, 8),
    u32("aggregation_level", 8).bits(0, 1).named(AGGREGATION),
    u32("candidate", 8).bits(2, 4),
    u32("search_space_type", 8).bits(5, 5).named(SEARCH_SPACE),
    u32("dci_format", 8).bits(6, 9).named(DCI_FORMAT),
    u32("decode_status", 8).bits(10, 13).named(RNTI),
    u32("start_cce", 8).bits(14, 20),
    u32("payload_size", 8).bits(21, 28),
    u32("tail_match", 8).bits(29, 29).named(MATCH),
    u16("prune_status", 12).named(PRUNE),
    u32("norm_energy_metric", 16).scaled(65535.0, 0.0),
    u32("symbol_error_rate", 20).scaled(2147483648.0, 0.0),
];

const HYPOTHESIS_V24: &[Field] = &[
    bytes("payload", 0, 8),
    u32("aggregation_level", 8).bits(0, 2).named(AGGREGATION),
    u32("candidate", 8).bits(3, 5),
    u32("search_space_type", 8).bits(6, 7).named(SEARCH_SPACE),
    u32("dci_format", 8).bits(8, 11).named(DCI_FORMAT),
    u32("decode_status", 8).bits(12, 15).named(RNTI),
    u32("start_cce", 8).bits(16, 22),
    u32("payload_size", 8).bits(23, 30),
    u32("tail_match", 8).bits(31, 31).named(MATCH),
    u8("prune_status", 12).named(PRUNE),
    u8("rmax", 13).bits(0, 3),
    u8("hypothesis_repetition", 13).bits(4, 7),
    u8("decoded_repetition", 14).bits(0, 3),
    u8("mpdcch_group", 14).bits(4, 7),
    u8("nb", 15).bits(0, 3),
    u32("norm_energy_metric", 16).scaled(65535.0, 0.0),
    u32("symbol_error_rate", 20).scaled(2147483648.0, 0.0),
];

const HEAD_V42: &[Field] = &[
    u8("version", 0),
    u32("subframe_number", 1).bits(0, 3),
    u32("system_frame_number", 1).bits(4, 13),
    u32("band_width_mhz", 1).bits(14, 16).meant(BANDWIDTH_MHZ),
    u32("cif_configured", 1).bits(17, 17).named(FALSE_TRUE),
    u32("two_bits_csi_configured", 1).bits(18, 18).named(FALSE_TRUE),
    u32("aperiodic_srs_configured", 1).bits(19, 19).named(FALSE_TRUE),
    u32("frame_structure", 1).bits(20, 21).named(FRAME_STRUCTURE),
    u32("num_enb_antennas", 1).bits(22, 23).named(ENB_ANTENNAS),
    u32("dl_cp", 1).bits(24, 25).named(CYCLIC_PREFIX),
    u32("ssc", 1).bits(26, 27),
    u32("ca_fdd_tdd", 1).bits(28, 29),
    u8("demback_mode_select", 6).bits(0, 3),
    u8("carrier_index", 6).bits(4, 7).named(CARRIER),
    u8("number_of_hypothesis", 7),
];

const HYPOTHESIS_V42: &[Field] = &[
    bytes("payload", 0, 8),
    u32("aggregation_level", 8).bits(0, 1).named(AGGREGATION),
    u32("candidate", 8).bits(2, 4),
    u32("search_space_type", 8).bits(5, 5).named(SEARCH_SPACE),
    u32("dci_format", 8).bits(6, 9).named(DCI_FORMAT),
    u32("decode_states", 8).bits(10, 13).named(RNTI),
    u32("payload_size", 8).bits(14, 21),
    u32("tail_match", 8).bits(22, 22).named(MATCH),
    u32("non_zero_symbol_mismatch_count", 8).bits(23, 31),
    u32("start_cce", 12).bits(1, 7),
    u32("non_zero_llr_count", 12).bits(8, 16),
    u32("normal", 12).bits(17, 31),
    u32("prune_status", 16).bits(0, 10).named(PRUNE),
    u32("energy_metric", 16).bits(11, 31),
    u32("norm_energy_metric", 20).scaled(65535.0, 0.0),
    u32("symbol_error_rate", 24).scaled(2147483648.0, 0.0),
];

const HEAD_V43: &[Field] = &[
    u8("version", 0),
    u32("num_records", 1).bits(0, 3),
    u32("subframe_number", 1).bits(4, 7),
    u32("system_frame_number", 1).bits(8, 17),
    u32("band_width_mhz", 1).bits(18, 21).meant(BANDWIDTH_MHZ),
    u32("frame_structure", 1).bits(22, 23).named(FRAME_STRUCTURE),
    u32("num_enb_antennas", 1).bits(24, 26).named(ENB_ANTENNAS),
    u8("demback_mode_select", 7).bits(0, 3),
    u8("carrier_index", 7).bits(4, 7).named(CARRIER),
];

const RECORD_V43: &[Field] = &[
    u16("subframe_offset", 0),
    u16("cif_configured", 2).bits(0, 0).named(FALSE_TRUE),
    u16("two_bits_csi_configured", 2).bits(1, 1).named(FALSE_TRUE),
    u16("aperiodic_srs_configured", 2).bits(2, 2).named(FALSE_TRUE),
    u16("number_of_hypothesis", 2).bits(3, 10),
];

const HEAD_V121: &[Field] = &[
    u8("version", 0),
    u32("subframe_number", 1).bits(0, 3),
    u32("system_frame_number", 1).bits(4, 13),
    u32("band_width_mhz", 1).bits(14, 16).meant(BANDWIDTH_MHZ),
    u32("cif_configured", 1).bits(17, 17).named(FALSE_TRUE),
    u32("two_bits_csi_configured", 1).bits(18, 18).named(FALSE_TRUE),
    u32("aperiodic_srs_configured", 1).bits(19, 19).named(FALSE_TRUE),
    u32("frame_structure", 1).bits(20, 21).named(FRAME_STRUCTURE),
    u32("num_enb_antennas", 1).bits(22, 23).named(ENB_ANTENNAS),
    u32("dl_cp", 1).bits(24, 25).named(CYCLIC_PREFIX),
    u32("ssc", 1).bits(26, 27),
    u32("ca_fdd_tdd", 1).bits(28, 29),
    u8("pad", 5),
    u8("demback_mode_select", 6).bits(0, 3),
    u8("carrier_index", 6).bits(4, 7).named(CARRIER),
    u8("number_of_hypothesis", 7),
];

const HYPOTHESIS_V121: &[Field] = &[
    bytes("payload", 0, 8),
    u32("aggregation_level", 8).bits(0, 1).named(AGGREGATION),
    u32("candidate", 8).bits(2, 4),
    u32("search_space_type", 8).bits(5, 5).named(SEARCH_SPACE),
    u32("dci_format", 8).bits(6, 9).named(DCI_FORMAT),
    u32("decode_states", 8).bits(10, 13).named(RNTI),
    u32("payload_size", 8).bits(14, 21),
    u32("tail_match", 8).bits(22, 22).named(MATCH),
    u32("non_zero_symbol_mismatch_count", 8).bits(23, 31),
    u32("alt_tbs_enabled", 12).bits(0, 0),
    u32("start_cce", 12).bits(1, 7),
    u32("non_zero_llr_count", 12).bits(8, 16),
    u32("normal", 12).bits(17, 31),
    u32("prune_status", 16).bits(0, 10).named(PRUNE),
    u32("energy_metric", 16).bits(11, 31),
    u32("norm_energy_metric", 20).scaled(65535.0, 0.0),
    u32("symbol_error_rate", 24).scaled(2147483648.0, 0.0),
];

const HEAD_V141: &[Field] = &[
    u8("version", 0),
    u16("carrier_index", 1).bits(0, 3).named(CARRIER),
    u16("number_of_records", 1).bits(4, 12),
];

const HYPOTHESIS_V141: &[Field] = &[
    u32("subframe_number", 0).bits(0, 3),
    u32("system_frame_number", 0).bits(4, 13),
    u32("band_width_mhz", 0).bits(14, 16).meant(BANDWIDTH_MHZ),
    u32("cif_configured", 0).bits(17, 17).named(FALSE_TRUE),
    u32("two_bits_csi_configured", 0).bits(18, 18).named(FALSE_TRUE),
    u32("aperiodic_srs_configured", 0).bits(19, 19).named(FALSE_TRUE),
    u32("frame_structure", 0).bits(20, 22).named(FRAME_STRUCTURE),
    u32("num_enb_antennas", 0).bits(23, 23).named(ENB_ANTENNAS_V141),
    u32("dl_cp", 0).bits(24, 24).named(CYCLIC_PREFIX),
    u32("ssc", 0).bits(25, 28),
    u32("ca_fdd_tdd", 0).bits(29, 29),
    bytes("payload", 4, 8),
    u32("aggregation_level", 12).bits(0, 1).named(AGGREGATION),
    u32("candidate", 12).bits(2, 4),
    u32("search_space_type", 12).bits(5, 5).named(SEARCH_SPACE),
    u32("dci_format", 12).bits(6, 9).named(DCI_FORMAT),
    u32("decode_states", 12).bits(10, 13).named(RNTI),
    u32("payload_size", 12).bits(14, 21),
    u32("tail_match", 12).bits(22, 22).named(MATCH),
    u32("non_zero_symbol_mismatch_count", 12).bits(23, 31),
    u32("alt_tbs_enabled", 16).bits(0, 0),
    u32("start_cce", 16).bits(1, 7),
    u32("non_zero_llr_count", 16).bits(8, 16),
    u32("normal", 16).bits(17, 31),
    u32("prune_status", 20).bits(0, 7).named(PRUNE),
    u32("energy_metric", 20).bits(8, 28),
    u32("norm_energy_metric", 24).scaled(65535.0, 0.0),
    u32("symbol_error_rate", 28).scaled(2147483648.0, 0.0),
];

const HYPOTHESIS_V163: &[Field] = &[
    u32("subframe_number", 0).bits(0, 3),
    u32("system_frame_number", 0).bits(4, 13),
    u32("band_width_mhz", 0).bits(14, 16).meant(BANDWIDTH_MHZ),
    bytes("payload", 4, 8),
    u32("aggregation_level", 12).bits(0, 1).named(AGGREGATION),
    u32("search_space_type", 12).bits(5, 5).named(SEARCH_SPACE),
    u32("dci_format", 12).bits(6, 9).named(DCI_FORMAT),
    u32("decode_states", 12).bits(10, 13).named(RNTI),
    u32("payload_size", 12).bits(14, 21),
    u32("tail_match", 12).bits(22, 22).named(MATCH),
    u32("prune_status", 20).bits(0, 7).named(PRUNE),
];
