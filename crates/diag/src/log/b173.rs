//! 0xB173: reception in each downlink subframe: transport blocks, their sizes and CRC results.
//!
//! Source: mobileinsight-core @4330fa9; version 48: worked out from a real log (below)
//!
//! Sizes of blocks include the checksum of 24 bits in versions 16 and 36, but not in version 48. `crate::grant`
//! determines whether a size includes the checksum, from blocks whose size is in TS 36.213.

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16};
use crate::log::names::{
    CELL, DISABLED_ENABLED, DISCARDED_RETX, FAIL_PASS, MODULATION_BITS, NACK_ACK, NO_YES, NONE_PRESENT, RNTI,
};
use crate::packet::LogCode;

/// Reception in each downlink subframe: transport blocks, their sizes and CRC results.
pub static B173: Code = Code {
    code: LogCode(0xB173),
    name: "LTE PDSCH stat indication",
    version: VersionAt::Byte,
    layouts: &[
        layout(&[v(5)], Verified::Read, &[record(6, RECORD_V5, &[slots(6, BLOCK_V5), mbms(2)])]),
        layout(&[v(16)], Verified::Checked, &[record(6, RECORD_V16, &[slots(6, BLOCK_V5), mbms(2)])]),
        layout(&[v(24)], Verified::Checked, &[record(6, RECORD_V16, &[slots(8, BLOCK_V24), mbms(2)])]),
        layout(&[v(32)], Verified::Read, &[record(6, RECORD_V16, &[slots(8, BLOCK_V24), mbms(2)])]),
        layout(&[v(34)], Verified::Read, &[record(6, RECORD_V5, &[slots(8, BLOCK_V34), mbms(2)])]),
        layout(&[v(36)], Verified::Checked, &[record(12, RECORD_V16, &[slots(12, BLOCK_V36), mbms(4)])]),
        layout(&[v(37)], Verified::Read, &[record(12, RECORD_V37, &[slots(12, BLOCK_V37), mbms(4)])]),
        layout(&[v(40)], Verified::Read, &[record(12, RECORD_V5, &[slots(12, BLOCK_V40), mbms(4)])]),
        layout(&[v(48)], Verified::Guess, &[record(12, RECORD_V48, &[slots(12, BLOCK_V48), mbms(4)])]),
    ],
};

const fn v(number: u8) -> Version {
    Version::Single(number)
}

const fn layout(versions: &'static [Version], verified: Verified, records: &'static [Part]) -> Layout {
    Layout { versions, verified, root: Part::root(4, HEAD, records) }
}

/// Reception in one subframe on one carrier.
const fn record(size: usize, fields: &'static [Field], inner: &'static [Part]) -> Part {
    Part::counted("records", "num_records", size, fields).of(inner)
}

/// Each record has space for two blocks, used or not.
const fn slots(size: usize, fields: &'static [Field]) -> Part {
    Part::once("transport_blocks", size, fields).repeated(Repeat::Room("num_transport_blocks_present", 2))
}

const fn mbms(size: usize) -> Part {
    Part::once("", size, MBMS)
}

const HEAD: &[Field] = &[u8("version", 0), u8("num_records", 1)];

const RECORD_V5: &[Field] = &[
    u16("subframe_num", 0).bits(0, 3),
    u16("frame_num", 0).bits(4, 15),
    u8("num_rbs", 2),
    u8("num_layers", 3),
    u8("num_transport_blocks_present", 4),
    u8("serving_cell_index", 5).bits(0, 2).named(CELL),
];

const RECORD_V16: &[Field] = &[
    u16("subframe_num", 0).bits(0, 3),
    u16("frame_num", 0).bits(4, 15),
    u8("num_rbs", 2),
    u8("num_layers", 3),
    u8("num_transport_blocks_present", 4),
    u8("serving_cell_index", 5).bits(0, 2).named(CELL),
    u8("hsic_enabled", 5).bits(3, 6).named(DISABLED_ENABLED),
];

const RECORD_V37: &[Field] = &[
    u16("subframe_num", 0).bits(0, 3),
    u16("frame_num", 0).bits(4, 15),
    u8("num_rbs", 2),
    u8("num_layers", 3),
    u8("num_transport_blocks_present", 4),
    u8("serving_cell_index", 5).bits(0, 2).named(CELL),
    u8("alt_tbs_enabled", 7),
];

const BLOCK_V5: &[Field] = &[
    u8("harq_id", 0).bits(0, 3),
    u8("rv", 0).bits(4, 5),
    u8("ndi", 0).bits(6, 6),
    u8("ack_nack_decision", 0).bits(7, 7).named(NACK_ACK),
    u8("crc_result", 0).bits(7, 7).named(FAIL_PASS),
    u8("rnti_type", 1).bits(0, 3).named(RNTI),
    u8("tb_index", 1).bits(4, 4),
    u8("discarded_retx_present", 1).bits(5, 5).named(NONE_PRESENT),
    u8("did_recombining", 1).bits(6, 6).named(NO_YES),
    u16("tb_size", 2),
    u8("mcs", 4),
    u8("num_rbs", 5),
];

const BLOCK_V24: &[Field] = &[
    u8("harq_id", 0).bits(0, 3),
    u8("rv", 0).bits(4, 5),
    u8("ndi", 0).bits(6, 6),
    u8("ack_nack_decision", 0).bits(7, 7).named(NACK_ACK),
    u8("crc_result", 0).bits(7, 7).named(FAIL_PASS),
    u8("rnti_type", 1).bits(0, 3).named(RNTI),
    u8("tb_index", 1).bits(4, 4),
    u8("discarded_retx_present", 1).bits(5, 5).named(NONE_PRESENT),
    u8("did_recombining", 1).bits(6, 6).named(NO_YES),
    u16("tb_size", 2),
    u8("mcs", 4),
    u8("num_rbs", 5),
    u8("modulation_type", 6).named(MODULATION_BITS),
];

const BLOCK_V34: &[Field] = &[
    u8("harq_id", 0).bits(0, 3),
    u8("rv", 0).bits(4, 5),
    u8("ndi", 0).bits(6, 6),
    u8("ack_nack_decision", 0).bits(7, 7).named(NACK_ACK),
    u8("crc_result", 0).bits(7, 7).named(FAIL_PASS),
    u8("rnti_type", 1).bits(0, 3).named(RNTI),
    u8("tb_index", 1).bits(4, 4),
    u8("discarded_retx", 1).bits(5, 5).named(DISCARDED_RETX),
    u8("did_recombining", 1).bits(6, 6).named(NO_YES),
    u16("tb_size", 2),
    u8("mcs", 4),
    u8("num_rbs", 5),
    u8("modulation_type", 6).named(MODULATION_BITS),
    u8("qed2_interim_status", 7).bits(0, 1),
    u8("qed_iteration", 7).bits(2, 6),
];

const BLOCK_V36: &[Field] = &[
    u8("harq_id", 0).bits(0, 3),
    u8("rv", 0).bits(4, 5),
    u8("ndi", 0).bits(6, 6),
    u8("ack_nack_decision", 0).bits(7, 7).named(NACK_ACK),
    u8("crc_result", 0).bits(7, 7).named(FAIL_PASS),
    u8("rnti_type", 1).bits(0, 3).named(RNTI),
    u8("tb_index", 1).bits(4, 4),
    u8("discarded_retx_present", 1).bits(5, 5).named(NONE_PRESENT),
    u8("did_recombining", 1).bits(6, 6).named(NO_YES),
    u16("tb_size", 4),
    u8("mcs", 6),
    u8("num_rbs", 7),
    u8("modulation_type", 8).named(MODULATION_BITS),
    u8("qed2_interim_status", 9).bits(0, 1),
    u8("qed_iteration", 9).bits(2, 7),
];

const BLOCK_V37: &[Field] = &[
    u8("harq_id", 0).bits(0, 3),
    u8("rv", 0).bits(4, 5),
    u8("ndi", 0).bits(6, 6),
    u8("ack_nack_decision", 0).bits(7, 7).named(NACK_ACK),
    u8("crc_result", 0).bits(7, 7).named(FAIL_PASS),
    u8("rnti_type", 1).bits(0, 3).named(RNTI),
    u8("tb_index", 1).bits(4, 4),
    u8("discarded_retx_present", 1).bits(5, 5).named(NONE_PRESENT),
    u8("discarded_retx", 1).bits(6, 7).named(DISCARDED_RETX),
    u8("did_recombining", 2).bits(0, 0).named(NO_YES),
    u16("tb_size", 4),
    u8("mcs", 6),
    u8("num_rbs", 7),
    u8("modulation_type", 8).named(MODULATION_BITS),
    u8("qed2_interim_status", 9).bits(0, 1),
    u8("qed_iteration", 9).bits(2, 6),
];

const BLOCK_V40: &[Field] = &[
    u8("harq_id", 0).bits(0, 3),
    u8("rv", 0).bits(4, 5),
    u8("ndi", 0).bits(6, 6),
    u8("ack_nack_decision", 0).bits(7, 7).named(NACK_ACK),
    u8("crc_result", 0).bits(7, 7).named(FAIL_PASS),
    u16("rnti_type", 1).bits(0, 3).named(RNTI),
    u16("tb_index", 1).bits(4, 4),
    u16("discarded_retx_present", 1).bits(5, 5).named(NONE_PRESENT),
    u16("discarded_retx", 1).bits(6, 9),
    u16("did_recombining", 1).bits(10, 10).named(NO_YES),
    u16("tb_size", 4),
    u8("mcs", 6),
    u8("num_rbs", 7),
    u8("modulation_type", 8).named(MODULATION_BITS),
    u8("qed2_interim_status", 9).bits(0, 1),
    u8("qed_iteration", 9).bits(2, 6),
];

/// Packets of a real log are 4 + 40 · records bytes long. Frames advance by 16 from packet to packet, as in 0xB126
/// version 144. PRBs, sizes and modulation of each record are those of 0xB126 for its subframe. Size, HARQ process and
/// new-data indicator of one record are also in the raw DCI of 0xB130 and in 0xB063. In the recorded packets, no record
/// contains two blocks.
const RECORD_V48: &[Field] = &[
    u16("subframe_num", 0).bits(0, 3),
    u16("frame_num", 0).bits(4, 15),
    u8("num_rbs", 2),
    u8("num_layers", 3),
    u8("num_transport_blocks_present", 4),
];

/// Fields of a block. As evidence of their positions: MCS 1 on 4 PRBs has 22 bytes by the table of 256QAM and 18 bytes
/// in fallback (format 1A): TS 36.213 §7.1.7.
const BLOCK_V48: &[Field] = &[
    u8("harq_id", 0).bits(0, 3),
    u8("rv", 0).bits(4, 5),
    u8("ndi", 0).bits(6, 6),
    u8("crc_result", 0).bits(7, 7).named(FAIL_PASS),
    u16("tb_size", 4),
    u8("mcs", 6),
    u8("num_rbs", 7),
    u8("modulation_type", 8).named(MODULATION_BITS),
];

const MBMS: &[Field] = &[u8("pmch_id", 0), u8("area_id", 1)];
