//! 0xB8DD: frequency tracking of the serving NR cell.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// Frequency tracking of the serving NR cell.
pub static B8DD: Code = Code {
    code: LogCode(0xB8DD),
    name: "NR LL1 FW serving FTL",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(0, 7)],
        verified: Verified::Read,
        root: Part::root(
            76,
            HEAD,
            &[Part::once("ftl_snr", 4, &[u32("ftl_snr_raw", 0)]).repeated(Repeat::Times(4))],
        ),
    }],
};

const HEAD: &[Field] = &[
    u32("version", 0),
    u16("cell_id", 5).bits(6, 15),
    u8("ssb_or_trs", 7).bits(0, 0).named(&[(0, "SSB"), (1, "TRS")]),
    u8("carrier_index", 8),
    u8("hst_mode", 11),
];
