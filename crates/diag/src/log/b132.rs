//! 0xB132: how each transport block of the downlink was decoded.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Extent, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32};
use crate::log::names::{CARRIER, COMPANDING, FAIL_PASS, ORDINAL, RNTI};
use crate::packet::LogCode;

/// How each transport block of the downlink was decoded.
pub static B132: Code = Code {
    code: LogCode(0xB132),
    name: "LTE PDSCH decoding result",
    version: VersionAt::Byte,
    layouts: &[
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
    ],
};

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
