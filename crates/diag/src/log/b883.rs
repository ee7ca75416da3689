//! 0xB883: uplink transmissions of NR in each slot, by the grants that the modem decoded.
//!
//! Source: mobileinsight-core @4330fa9
//!
//! Differs: mobileinsight-core truncates some fields of the shared channel: the first symbol to one bit, the first
//! resource block to eight bits, and the block size to 14 bits. In version 2.11 it shifts the size by 3 bits instead of
//! 11, and reads only four bits of the MCS.

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32, u64};
use crate::packet::LogCode;

/// Uplink transmissions of NR in each slot, by the grants that the modem decoded.
pub static B883: Code = Code {
    code: LogCode(0xB883),
    name: "NR MAC UL physical channel schedule report",
    version: VersionAt::Pair,
    layouts: &[
        Layout {
            versions: &[Version::Pair(2, 8)],
            verified: Verified::Read,
            root: Part::root(16, HEAD, &[Part::counted("records", "num_records", 8, RECORD).of(CARRIERS)]),
        },
        Layout {
            versions: &[Version::Pair(2, 11)],
            verified: Verified::Guess,
            root: Part::root(
                16,
                HEAD,
                &[Part::counted("records", "num_records", 8, RECORD).of(CARRIERS_V2_11)],
            ),
        },
    ],
};

const CARRIERS: &[Part] = &[Part::counted("carriers", "num_carrier", 4, CARRIER).of(CHANNELS)];

const CARRIERS_V2_11: &[Part] = &[Part::counted("carriers", "num_carrier", 4, CARRIER_V2_11).of(&[
    Part::once("pusch", 40, PUSCH_V2_11).repeated(Repeat::If("pusch_flag", 1)),
    // Chosen: the same length as in version 2.8; no source gives the length in this version.
    Part::once("pucch", 20, &[]).repeated(Repeat::If("pucch_flag", 1)),
])];

const CARRIER_V2_11: &[Field] = &[
    u8("carrier_id", 0).bits(0, 1),
    u8("rnti_type", 0).bits(2, 5),
    u8("pusch_flag", 1).bits(1, 1),
    u8("pucch_flag", 1).bits(2, 2),
    u8("prach_flag", 1).bits(4, 4),
];

const PUSCH_V2_11: &[Field] = &[
    u64("is_second_phychan", 0).bits(0, 0),
    u64("start_symbol", 0).bits(1, 4),
    u64("num_symbols", 0).bits(5, 8),
    u64("harq_id", 0).bits(9, 12),
    u64("mcs", 0).bits(13, 17),
    u64("mcs_table", 0).bits(18, 20),
    u64("dmrs_add_pos", 0).bits(21, 22),
    u64("rb_start", 0).bits(23, 31),
    u64("num_rbs", 0).bits(32, 40),
    u64("ra_type", 0).bits(41, 41),
    u64("mapping_type", 0).bits(42, 42),
    u64("tb_size_bytes", 0).bits(43, 60),
    u64("dmrs_type", 0).bits(61, 62),
    u64("antenna_switch", 0).bits(63, 63),
    u32("tx_mode", 8).bits(0, 1),
    u32("rv", 8).bits(2, 4),
    u32("dmrs_ptrs_link", 8).bits(5, 5),
    u32("beta_offset", 8).bits(6, 7),
    u32("tx_type", 8).bits(8, 9),
    u32("bwp", 8).bits(10, 11),
    u32("code_rate", 8).bits(12, 27),
    u32("uci_mask", 8).bits(28, 31),
    u32("csi_part_1_bits", 12).bits(0, 9),
    u32("csi_part_2_bits", 12).bits(10, 23),
    u32("harq_ack_bits", 12).bits(24, 29),
    u32("transform_precoding", 12).bits(30, 31),
    u32("k_prime", 16).bits(0, 14),
    u32("zadoff_chu", 16).bits(15, 23),
    u32("code_blocks", 16).bits(24, 31),
    u32("dmrs_symbols", 20).bits(0, 13),
    u32("srs_indicator", 20).bits(14, 15),
    u32("code_block_size", 20).bits(16, 30),
    u32("freq_hopping", 20).bits(31, 31),
    u32("slot_offset", 24).bits(0, 5),
    u32("power_control_sum_0", 24).bits(6, 13),
    u32("power_control_sum_1", 24).bits(14, 21),
    u32("tpmi", 24).bits(22, 26),
    u32("scrambling", 24).bits(27, 28),
    u32("ports", 24).bits(29, 35),
    u32("second_hop_rb", 28).bits(4, 12),
    u32("modulation", 28).bits(13, 15),
    u16("rnti", 30),
    u32("rbg_bitmap", 36).mask(),
];

const HEAD: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u8("sleep", 4),
    u8("beam_change", 5),
    u8("signal_change", 6),
    u8("dl_dynamic_cfg_change", 7),
    u8("dl_config", 8),
    u8("ul_config", 9),
    u16("log_fields_change_bmask", 12),
    u8("num_records", 15),
];

const RECORD: &[Field] =
    &[u8("slot", 0), u8("numerology", 1).bits(0, 3), u16("frame", 2).bits(0, 9), u8("num_carrier", 4)];

const CARRIER: &[Field] = &[
    u16("carrier_id", 0).bits(0, 3),
    u16("pusch_flag", 0).bits(7, 7),
    u16("pucch_flag", 0).bits(8, 8),
    u16("srs_flag", 0).bits(9, 9),
];

/// Only the channels with a transmission are present.
const CHANNELS: &[Part] = &[
    Part::once("pusch", 40, PUSCH).repeated(Repeat::If("pusch_flag", 1)),
    Part::once("pucch", 20, &[]).repeated(Repeat::If("pucch_flag", 1)),
    Part::once("srs", 20, &[]).repeated(Repeat::If("srs_flag", 1)),
];

const PUSCH: &[Field] = &[
    u64("is_second_phychan", 0).bits(0, 0),
    u64("start_symbol", 0).bits(1, 4),
    u64("num_symbols", 0).bits(5, 8),
    u64("harq_id", 0).bits(9, 12),
    u64("mcs", 0).bits(13, 17),
    u64("rb_start", 0).bits(23, 31),
    u64("num_rbs", 0).bits(32, 40),
    u64("ra_type", 0).bits(41, 41),
    u64("tb_size_bytes", 0).bits(43, 60),
    u32("rv", 8).bits(2, 4),
    u32("tx_type", 8).bits(8, 9),
    u32("code_rate", 8).bits(12, 22),
];
