//! 0xB887: transport blocks of NR's downlink, slot by slot.
//!
//! The layout of this code is not public. The positions of a slot's time and of its number of blocks were derived from
//! the lengths of published packets of version 2.5, and from the first fields of other codes of NR's MAC layer. The 20
//! bytes of a block's status are passed on unchanged.

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, bytes, u8, u16};
use crate::packet::LogCode;

/// Transport blocks of NR's downlink, slot by slot.
pub static B887: Code = Code {
    code: LogCode(0xB887),
    name: "NR MAC PDSCH status",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(2, 5)],
        verified: Verified::Guess,
        root: Part::root(
            20,
            HEAD,
            &[Part::counted("records", "num_records", 8, RECORD).of(&[Part::counted(
                "statuses",
                "num_pdsch_status",
                20,
                &[bytes("status", 0, 20)],
            )])],
        ),
    }],
};

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
    &[u8("slot", 0), u8("numerology", 1).bits(0, 3), u16("frame", 2).bits(0, 9), u8("num_pdsch_status", 4)];
