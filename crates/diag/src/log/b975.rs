//! 0xB975: the beams of the serving NR cell.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// The beams of the serving NR cell.
pub static B975: Code = Code {
    code: LogCode(0xB975),
    name: "NR ML1 serving cell beam management",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(2, 1)],
        verified: Verified::Read,
        root: Part::root(40, HEAD, &[Part::counted("beams", "num_detected_beams", 16, BEAM)]),
    }],
};

const HEAD: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u16("pci", 4),
    u8("ssb_periodicity_serv_cell_ms", 8),
    u8("serving_beam_ssb_index", 9),
    u32("rsrp_filtered", 12),
    u32("rsrq_filtered", 16),
    u32("frequency_offset", 28),
    u32("time_offset", 32),
    u8("num_detected_beams", 36),
];

const BEAM: &[Field] = &[u16("tx_beam_index", 0), u32("rsrp_filtered", 4), u32("rsrq_filtered", 8)];
