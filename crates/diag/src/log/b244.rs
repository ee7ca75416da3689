//! 0xB244: NB-IoT grants.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u32};
use crate::log::names::{FALSE_TRUE, NB_DCI_RNTI};
use crate::packet::LogCode;

/// NB-IoT grants.
pub static B244: Code = Code {
    code: LogCode(0xB244),
    name: "NB-IoT ML1 DCI info",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(3)],
        verified: Verified::Checked,
        root: Part::root(4, HEAD_V3, &[Part::counted("records", "num_of_records", 8, RECORD_V3)]),
    }],
};

const HEAD_V3: &[Field] = &[u8("version", 0), u8("num_of_records", 3)];

const RECORD_V3: &[Field] = &[
    u32("npdcch_timing_hsfn", 0).bits(0, 9),
    u32("npdcch_timing_sfn", 0).bits(10, 19),
    u32("npdcch_timing_sub_fn", 0).bits(20, 23),
    u32("rnti_type_data", 0).bits(24, 24),
    u32("rnti_type", 0).bits(25, 26).named(NB_DCI_RNTI),
    u32("ul_grant_present", 0).bits(27, 27).named(FALSE_TRUE),
    u32("dl_grant_present", 0).bits(28, 28).named(FALSE_TRUE),
    u32("pdcch_order_present", 0).bits(29, 29).named(FALSE_TRUE),
    u32("ndi", 0).bits(30, 30),
    u32("reserved", 0).bits(31, 31),
    u32("sc_index", 4).bits(0, 4),
    u32("redundancy_version", 4).bits(5, 6),
    u32("resource_assignment", 4).bits(7, 9),
    u32("scheduling_delay", 4).bits(10, 12),
    u32("mcs", 4).bits(13, 17),
    u32("repetition_number", 4).bits(18, 20),
    u32("dci_repetition_number", 4).bits(21, 22),
    u32("harq_resource", 4).bits(23, 26),
    u32("reserved2", 4).bits(27, 31),
];
