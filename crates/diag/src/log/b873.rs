//! 0xB873: buffer status reports of NR's layer 2.
//!
//! Source: mobileinsight-core @4330fa9
//!
//! Differs: mobileinsight-core skips 4 bytes for one logical channel group in the mask, 8 for two, and 4 for any other
//! number. This layout has 4 bytes for each group.

use crate::layout::{Code, Field, Layout, Names, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// Buffer status reports of NR's layer 2.
pub static B873: Code = Code {
    code: LogCode(0xB873),
    name: "NR L2 UL BSR",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(0, 2)],
        verified: Verified::Read,
        root: Part::root(
            8,
            HEAD,
            &[Part::counted("ttis", "num_tti", 12, TTI).of(&[
                Part::counted("qos_lcids", "num_lcids", 1, &[u8("qos_lcid", 0)]),
                Part::once("groups", 4, &[u32("group", 0).mask()]).repeated(Repeat::Ones("lcg_bitmask")),
            ])],
        ),
    }],
};

const HEAD: &[Field] =
    &[u32("version", 0), u32("num_tti", 4).bits(0, 3), u32("lcid_prio_bitmask", 4).bits(4, 19).flags(&[])];

const TTI: &[Field] = &[
    u8("slot_number", 0),
    u16("fn", 2).bits(0, 9),
    u8("harq_id", 4).bits(0, 3),
    u8("carrier", 4).bits(4, 7),
    u32("bsr_trigger_reason", 5).bits(0, 2).named(TRIGGER),
    u32("bsr_type", 5).bits(3, 4).named(&[(1, "SHORT_BSR"), (2, "LONG_BSR")]),
    u32("bsr_length", 5).bits(6, 9),
    u32("lcg_bitmask", 5).bits(10, 17).flags(&[]),
    u32("num_lcids", 5).bits(18, 21),
];

const TRIGGER: Names =
    &[(1, "T_PERIODIC_EXPIRY_BSR"), (4, "HIGH_DATA_ARRIVAL"), (5, "T_PERIODIC_EXPIRY_BSR:HIGH_DATA_ARRIVAL")];
