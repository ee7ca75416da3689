//! 0xB246: reception in each NB-IoT downlink subframe.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u32};
use crate::log::names::{FAIL_PASS, FALSE_TRUE, NB_PDSCH_RNTI};
use crate::packet::LogCode;

/// Reception in each NB-IoT downlink subframe.
pub static B246: Code = Code {
    code: LogCode(0xB246),
    name: "NB-IoT ML1 PDSCH stat indication",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(2)],
        verified: Verified::Checked,
        root: Part::root(4, HEAD_V2, &[Part::counted("records", "num_of_records", 8, RECORD_V2)]),
    }],
};

const HEAD_V2: &[Field] = &[u8("version", 0), u8("num_of_records", 3)];

const RECORD_V2: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("rnti_type", 0).bits(14, 16).named(NB_PDSCH_RNTI),
    u32("crc", 0).bits(17, 17).named(FAIL_PASS),
    u32("tb_size", 0).bits(18, 31),
    u32("hyper_sfn_data", 4).bits(0, 9),
    u32("mcs", 4).bits(10, 13),
    u32("isf", 4).bits(14, 16),
    u32("auto_ack", 4).bits(17, 17).named(FALSE_TRUE),
    u32("ndi", 4).bits(18, 31),
];
