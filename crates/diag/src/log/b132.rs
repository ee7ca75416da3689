//! 0xB132: decoding of each downlink transport block.
//!
//! Source: mobileinsight-core @4330fa9; version 42: worked out from a real log (below)
//!
//! Sizes of code blocks include their checksum.

use crate::layout::{
    Code, Extent, Field, Layout, Part, Repeat, Verified, Version, VersionAt, bytes, u8, u16, u32,
};
use crate::log::names::{CARRIER, COMPANDING, DISABLED_ENABLED, FAIL_PASS, NO_YES, ORDINAL, RNTI};
use crate::packet::LogCode;

/// Decoding of each downlink transport block.
pub static B132: Code = Code {
    code: LogCode(0xB132),
    name: "LTE PDSCH decoding result",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(24)],
            verified: Verified::Read,
            root: Part::root(
                8,
                HEAD_V24,
                &[Part::counted("records", "number_of_records", 8, RECORD_V24).of(&[STREAMS_24])],
            ),
        },
        Layout {
            versions: &[Version::Single(27)],
            verified: Verified::Read,
            root: Part::root(
                8,
                HEAD_V24,
                &[Part::counted("records", "number_of_records", 8, RECORD_V24).of(&[STREAMS_27])],
            ),
        },
        // The packet of a real log is 8 + 76 · records bytes long, with one stream in each record. Subframes, HARQ
        // processes and RNTI types in this packet equal those in 0xB173. The code blocks have the lengths of the blocks
        // in 0xB173, which include the checksum too.
        Layout {
            versions: &[Version::Single(42)],
            verified: Verified::Guess,
            root: Part::root(
                8,
                HEAD_V24,
                &[Part::counted("records", "number_of_records", 12, RECORD_V44).of(&[STREAMS_44])],
            ),
        },
        Layout {
            versions: &[Version::Single(44)],
            verified: Verified::Read,
            root: Part::root(
                12,
                HEAD_V44,
                &[Part::counted("records", "number_of_records", 12, RECORD_V44).of(&[STREAMS_44])],
            ),
        },
        Layout {
            versions: &[Version::Single(105)],
            verified: Verified::Read,
            root: Part::root(
                12,
                HEAD_V105,
                &[Part::counted("records", "number_of_records", 12, RECORD_V105).of(&[STREAMS_105])],
            ),
        },
        Layout {
            versions: &[Version::Single(106)],
            verified: Verified::Read,
            root: Part::root(
                12,
                HEAD_V105,
                &[Part::counted("records", "number_of_records", 12, RECORD_V106).of(&[STREAMS_106])],
            ),
        },
        Layout {
            versions: &[Version::Single(124)],
            verified: Verified::Read,
            root: Part::root(
                16,
                HEAD_V124,
                &[Part::counted("records", "number_of_records", 12, RECORD_V124).of(&[STREAMS_124])],
            ),
        },
        Layout {
            versions: &[Version::Single(125)],
            verified: Verified::Read,
            root: Part::root(
                16,
                HEAD_V124,
                &[Part::counted("records", "number_of_records", 12, RECORD_V124).of(&[STREAMS_125])],
            ),
        },
        Layout {
            versions: &[Version::Single(126)],
            verified: Verified::Checked,
            root: Part::root(
                16,
                HEAD_V124,
                &[Part::counted("records", "number_of_records", 12, RECORD_V124).of(&[STREAMS_126])],
            ),
        },
        // Chosen: the space is that of version 126; no source gives its size.
        Layout {
            versions: &[Version::Single(143)],
            verified: Verified::Guess,
            root: Part::root(
                16,
                HEAD_V124,
                &[Part::counted("records", "number_of_records", 12, RECORD_V143).of(&[STREAMS_143])],
            ),
        },
    ],
};

const HEAD_V24: &[Field] = &[
    u8("version", 0),
    u32("serving_cell_id", 1).bits(0, 8),
    u32("starting_subframe_number", 1).bits(9, 12),
    u32("starting_system_frame_number", 1).bits(13, 22),
    u32("ue_category", 1).bits(24, 27),
    u32("num_dl_harq", 1).bits(28, 31),
    u8("tm_mode", 5).bits(4, 7),
    u8("carrier_index", 7).bits(0, 2).named(CARRIER),
    u8("number_of_records", 7).bits(3, 7),
];

const RECORD_V24: &[Field] = &[
    u16("subframe_offset", 0),
    u16("pdsch_channel_id", 2),
    u8("harq_id", 4).bits(0, 3),
    u8("rnti_type", 4).bits(4, 7).named(RNTI),
    u16("system_information_msg_number", 5).bits(0, 3),
    u16("system_information_mask", 5).bits(4, 15),
    u8("harq_log_status", 7).bits(3, 4),
    u8("codeword_swap", 7).bits(5, 5),
    u8("number_of_streams", 7).bits(6, 7),
];

const STREAM_V24: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("code_block_size_plus", 0).bits(2, 14),
    u32("num_code_block_plus", 0).bits(15, 18),
    u32("max_tdec_iter", 0).bits(19, 22),
    u32("retransmission_number", 0).bits(23, 25).named(ORDINAL),
    u32("rvid", 0).bits(26, 27),
    u32("companding_stats", 0).bits(28, 29).named(COMPANDING),
    u32("harq_combining", 0).bits(30, 30).named(DISABLED_ENABLED),
    u32("decob_tb_crc", 0).bits(31, 31),
    u32("num_re", 4).bits(10, 25),
    u32("codeword_index", 4).bits(27, 30),
];

const STREAM_V27: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("code_block_size_plus", 0).bits(2, 14),
    u32("num_code_block_plus", 0).bits(15, 18),
    u32("max_tdec_iter", 0).bits(19, 22),
    u32("rvid", 0).bits(26, 27),
    u32("companding_stats", 0).bits(28, 29).named(COMPANDING),
    u32("harq_combining", 0).bits(30, 30).named(DISABLED_ENABLED),
    u32("decob_tb_crc", 0).bits(31, 31),
    u32("num_re", 4).bits(10, 25),
    u32("codeword_index", 4).bits(27, 27),
    u32("retransmission_number", 8).bits(0, 11).named(ORDINAL),
];

/// One value for each code block, with space for 13.
const ENERGY: Part = Part::once(
    "energy_metrics",
    4,
    &[
        u32("energy_metric", 0).bits(0, 20),
        u32("iteration_number", 0).bits(21, 24),
        u32("code_block_crc_pass", 0).bits(25, 25).named(FAIL_PASS),
        u32("early_termination", 0).bits(26, 26).named(NO_YES),
        u32("harq_combine_enable", 0).bits(27, 27).named(DISABLED_ENABLED),
        u32("deint_decode_bypass", 0).bits(28, 28),
    ],
);

const STREAMS_24: Part = Part::counted("streams", "number_of_streams", 8, STREAM_V24)
    .of(&[ENERGY.repeated(Repeat::Room("num_code_block_plus", 13))]);

const STREAMS_27: Part = Part::counted("streams", "number_of_streams", 12, STREAM_V27)
    .of(&[ENERGY.repeated(Repeat::Room("num_code_block_plus", 13))]);

const HEAD_V44: &[Field] = &[
    u8("version", 0),
    u32("serving_cell_id", 1).bits(0, 8),
    u32("starting_subframe_number", 1).bits(9, 12),
    u32("starting_system_frame_number", 1).bits(13, 22),
    u32("ue_category", 1).bits(24, 27),
    u32("num_dl_harq", 1).bits(28, 31),
    u8("tm_mode", 5).bits(4, 7),
    u16("carrier_index", 10).bits(7, 10).named(CARRIER),
    u16("number_of_records", 10).bits(11, 15),
];

const RECORD_V44: &[Field] = &[
    u16("subframe_offset", 0),
    u16("pdsch_channel_id", 2),
    u8("harq_id", 4).bits(0, 3),
    u8("rnti_type", 4).bits(4, 7).named(RNTI),
    u16("system_information_msg_number", 5).bits(0, 3),
    u16("system_information_mask", 5).bits(4, 15),
    u8("harq_log_status", 7).bits(3, 4),
    u8("codeword_swap", 7).bits(5, 5),
    u8("number_of_streams", 7).bits(6, 7),
    bytes("demap_sic_status", 8, 2),
];

const STREAM_V44: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("code_block_size_plus", 0).bits(2, 14),
    u32("num_code_block_plus", 0).bits(15, 18),
    u32("max_tdec_iter", 0).bits(19, 22),
    u32("retransmission_number", 0).bits(23, 25).named(ORDINAL),
    u32("rvid", 0).bits(26, 27),
    u32("companding_stats", 0).bits(28, 29).named(COMPANDING),
    u32("harq_combining", 0).bits(30, 30).named(DISABLED_ENABLED),
    u32("decob_tb_crc", 0).bits(31, 31),
    u32("num_re", 4).bits(10, 25),
    u32("codeword_index", 4).bits(27, 30),
    u8("llr_scale", 8).bits(0, 3),
];

const STREAMS_44: Part = Part::counted("streams", "number_of_streams", 12, STREAM_V44)
    .of(&[ENERGY.repeated(Repeat::Room("num_code_block_plus", 13))]);

const HEAD_V105: &[Field] = &[
    u8("version", 0),
    u32("serving_cell_id", 1).bits(0, 8),
    u32("starting_subframe_number", 1).bits(9, 12),
    u32("starting_system_frame_number", 1).bits(13, 22),
    u32("ue_category", 1).bits(24, 27),
    u32("num_dl_harq", 1).bits(28, 31),
    u8("tm_mode", 5).bits(4, 7),
    u32("nir", 8).bits(0, 22),
    u32("carrier_index", 8).bits(23, 26).named(CARRIER),
    u32("number_of_records", 8).bits(27, 31),
];

const RECORD_V105: &[Field] = &[
    u16("subframe_offset", 0),
    u16("pdsch_channel_id", 2),
    u8("harq_id", 4).bits(0, 3),
    u8("rnti_type", 4).bits(4, 7).named(RNTI),
    u16("system_information_msg_number", 5).bits(0, 3),
    u16("system_information_mask", 5).bits(4, 15),
    u8("harq_log_status", 7).bits(3, 4),
    u8("codeword_swap", 7).bits(5, 5),
    u8("number_of_streams", 7).bits(6, 7),
    u16("demap_sic_status", 8).bits(0, 12),
];

const RECORD_V106: &[Field] = &[
    u16("subframe_offset", 0),
    u16("pdsch_channel_id", 2),
    u8("harq_id", 4).bits(0, 3),
    u8("rnti_type", 4).bits(4, 7).named(RNTI),
    u16("system_information_msg_number", 5).bits(0, 3),
    u16("system_information_mask", 5).bits(4, 15),
    u8("harq_log_status", 7).bits(3, 4),
    u8("codeword_swap", 7).bits(5, 5),
    u8("number_of_streams", 7).bits(6, 7),
    u16("demap_sic_status", 8).bits(0, 12),
    u16("mvc_status", 8).bits(13, 13),
    u16("mvc_clock_request", 8).bits(14, 15),
    u8("mvc_req_margin_data", 10),
    u8("mvc_rsp_margin", 11),
];

const STREAM_V105: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("code_block_size_plus", 0).bits(2, 14),
    u32("max_tdec_iter", 0).bits(20, 23),
    u32("retransmission_number", 0).bits(24, 29).named(ORDINAL),
    u32("rvid", 0).bits(30, 31),
    u32("companding_stats", 4).bits(0, 1).named(COMPANDING),
    u32("harq_combining", 4).bits(2, 2).named(DISABLED_ENABLED),
    u32("decob_tb_crc", 4).bits(3, 3),
    u32("num_re", 4).bits(14, 28),
    u32("codeword_index", 4).bits(30, 30),
    u8("llr_scale", 8).bits(6, 7),
];

const STREAM_V106: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("code_block_size_plus", 0).bits(2, 14),
    u32("max_tdec_iter", 0).bits(20, 23),
    u32("retransmission_number", 0).bits(24, 29).named(ORDINAL),
    u32("rvid", 0).bits(30, 31),
    u32("companding_stats", 4).bits(0, 1).named(COMPANDING),
    u32("harq_combining", 4).bits(2, 2).named(DISABLED_ENABLED),
    u32("decob_tb_crc", 4).bits(3, 3),
    u32("effective_code_rate_data", 4).bits(4, 13),
    u32("num_re", 4).bits(14, 28),
    u32("codeword_index", 4).bits(30, 30),
    u8("llr_scale", 8).bits(6, 7),
];

/// Streams of version 105, with space for 13 values. The number of meaningful values is unknown.
const STREAMS_105: Part =
    Part::counted("streams", "number_of_streams", 12, STREAM_V105).of(&[ENERGY.repeated(Repeat::Times(13))]);

const STREAMS_106: Part =
    Part::counted("streams", "number_of_streams", 12, STREAM_V106).of(&[ENERGY.repeated(Repeat::Times(13))]);

const RECORD_V143: &[Field] = &[
    u16("subframe_offset", 0),
    u8("harq_id", 2).bits(0, 3),
    u8("rnti_type", 2).bits(4, 7).named(RNTI),
    u8("codeword_swap", 3).bits(0, 0),
    u8("number_of_transport_blks", 3).bits(1, 2),
];

const STREAM_V143: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("retransmission_number", 0).bits(2, 7).named(ORDINAL),
    u32("rvid", 0).bits(8, 9),
    u32("code_block_size_plus", 0).bits(10, 22),
    u32("num_code_block_plus_data", 0).bits(23, 27),
    u32("max_half_iter_data", 4).bits(0, 3),
    u32("num_channel_bits", 4).bits(4, 22),
    u32("cw_idx", 4).bits(23, 23),
    u32("llr_buf_valid", 4).bits(24, 24),
    u32("first_decoded_cb_index", 4).bits(26, 31),
    u32("companding_format", 8).bits(18, 19).named(COMPANDING),
    u16("effective_code_rate_data", 13).bits(5, 15),
    u8("harq_combine_enable", 15).bits(1, 3),
];

const STREAMS_143: Part = Part::once("streams", 16, STREAM_V143)
    .repeated(Repeat::Room("number_of_transport_blks", 2))
    .ends(Extent::Fixed(136));

const HEAD_V124: &[Field] = &[
    u8("version", 0),
    u32("serving_cell_id", 1).bits(0, 8),
    u32("starting_subframe_number", 1).bits(9, 12),
    u32("starting_system_frame_number", 1).bits(13, 23),
    u32("ue_category", 1).bits(24, 27),
    u32("num_dl_harq", 1).bits(28, 31),
    u8("tm_mode", 5).bits(4, 7),
    u16("c_rnti", 6),
    u16("carrier_index", 10).bits(7, 10).named(CARRIER),
    u16("number_of_records", 10).bits(11, 15),
];

const RECORD_V124: &[Field] = &[
    u16("subframe_offset", 0),
    u8("harq_id", 2).bits(0, 3),
    u8("rnti_type", 2).bits(4, 7).named(RNTI),
    u8("codeword_swap", 3).bits(0, 0),
    u8("number_of_transport_blks", 3).bits(1, 3),
];

const STREAM_V124: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("retransmission_number", 0).bits(2, 4).named(ORDINAL),
    u32("rvid", 0).bits(8, 9),
    u32("code_block_size_plus", 0).bits(10, 23),
    u32("num_code_block_plus_data", 0).bits(23, 24),
    u32("max_half_iter_data", 0).bits(28, 31),
    u32("num_channel_bits", 4).bits(0, 9),
    u32("cw_idx", 4).bits(6, 7),
    u32("llr_buf_valid", 4).bits(9, 10),
    u32("first_decoded_cb_index", 4).bits(11, 13),
    u32("first_decoded_cb_index_qed_iter2_data", 8).bits(6, 11),
    u32("last_decoded_cb_index_qed_iter2_data", 8).bits(12, 17),
    u32("companding_format", 8).bits(18, 22).named(COMPANDING),
    u16("effective_code_rate_data", 13),
    u8("harq_combine_enable", 15).bits(1, 3),
];

const STREAM_V125: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("retransmission_number", 0).bits(2, 7).named(ORDINAL),
    u32("rvid", 0).bits(8, 9),
    u32("code_block_size_plus", 0).bits(10, 22),
    u32("num_code_block_plus_data", 0).bits(23, 27),
    u32("max_half_iter_data", 0).bits(28, 31),
    u32("num_channel_bits", 4).bits(0, 18),
    u32("cw_idx", 4).bits(19, 19),
    u32("llr_buf_valid", 4).bits(20, 20),
    u32("first_decoded_cb_index", 4).bits(21, 26),
    u32("first_decoded_cb_index_qed_iter2_data", 8).bits(6, 11),
    u32("last_decoded_cb_index_qed_iter2_data", 8).bits(12, 17),
    u32("companding_format", 8).bits(18, 22).named(COMPANDING),
    u16("effective_code_rate_data", 13),
    u8("harq_combine_enable", 15).bits(1, 3),
];

const STREAM_V126: &[Field] = &[
    u32("transport_block_crc", 0).bits(0, 0).named(FAIL_PASS),
    u32("ndi", 0).bits(1, 1),
    u32("retransmission_number", 0).bits(2, 7).named(ORDINAL),
    u32("rvid", 0).bits(8, 9),
    u32("code_block_size_plus", 0).bits(10, 22),
    u32("num_code_block_plus_data", 0).bits(23, 27),
    u32("max_half_iter_data", 0).bits(28, 31),
    u32("num_channel_bits", 4).bits(0, 18),
    u32("cw_idx", 4).bits(19, 19),
    u32("llr_buf_valid", 4).bits(20, 20),
    u32("first_decoded_cb_index", 4).bits(21, 26),
    u32("first_decoded_cb_index_qed_iter2_data", 8).bits(6, 11),
    u32("last_decoded_cb_index_qed_iter2_data", 8).bits(12, 17),
    u32("companding_format", 8).bits(18, 22).named(COMPANDING),
    u16("effective_code_rate_data", 13).bits(5, 15),
    u8("harq_combine_enable", 15).bits(1, 3),
];

const STREAMS_124: Part = Part::once("streams", 16, STREAM_V124)
    .repeated(Repeat::Room("number_of_transport_blks", 2))
    .ends(Extent::Fixed(136));

const STREAMS_125: Part = Part::once("streams", 16, STREAM_V125)
    .repeated(Repeat::Room("number_of_transport_blks", 2))
    .ends(Extent::Fixed(136));

const STREAMS_126: Part = Part::once("streams", 16, STREAM_V126)
    .repeated(Repeat::Room("number_of_transport_blks", 2))
    .ends(Extent::Fixed(136));
