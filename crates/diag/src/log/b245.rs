//! 0xB245: transmissions of an NB-IoT modem.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u32};
use crate::log::names::{FALSE_TRUE, NACK_ACK, NB_SUBCARRIER, NPUSCH_FORMAT, NPUSCH_TX_TYPE};
use crate::packet::LogCode;

/// Transmissions of an NB-IoT modem.
pub static B245: Code = Code {
    code: LogCode(0xB245),
    name: "NB-IoT ML1 GM TX report",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(2)],
        verified: Verified::Checked,
        root: Part::root(4, HEAD, &[Part::counted("records", "num_of_records", 16, RECORD)]),
    }],
};

const HEAD: &[Field] =
    &[u8("version", 0), u8("subcarrier_space", 2).bits(5, 7).meant(NB_SUBCARRIER), u8("num_of_records", 3)];

const RECORD: &[Field] = &[
    u32("npdcch_timing_hsfn", 0).bits(0, 9),
    u32("npdcch_timing_sfn", 0).bits(10, 19),
    u32("npdcch_timing_sub_fn", 0).bits(20, 23),
    u32("npusch_format", 0).bits(24, 24).named(NPUSCH_FORMAT),
    u32("is_msg3", 0).bits(25, 25).named(FALSE_TRUE),
    u32("itbs", 0).bits(26, 31),
    u32("repetition_number", 4).bits(0, 7),
    u32("num_ru", 4).bits(8, 11),
    u32("rv_index", 4).bits(12, 12),
    u32("num_tone", 4).bits(13, 16),
    u32("start_tone", 4).bits(17, 23),
    u32("tx_power", 4).bits(24, 31).signed(),
    u32("npusch_format_1_tx_type", 8).bits(0, 0).named(NPUSCH_TX_TYPE),
    u32("ack_nack", 8).bits(1, 1).named(NACK_ACK),
    u32("rflm", 8).bits(2, 9),
    u32("prach_collision_valid", 8).bits(10, 10),
    u32("prach_collision_7680ms", 8).bits(11, 13),
    u32("reserved", 8).bits(14, 31),
    u32("scrambling_mask", 12),
];
