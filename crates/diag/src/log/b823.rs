//! 0xB823: the serving NR cell.
//!
//! Source: SCAT @5a56ecf

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32, u64};
use crate::packet::LogCode;

/// The serving NR cell.
pub static B823: Code = Code {
    code: LogCode(0xB823),
    name: "NR RRC serving cell info",
    version: VersionAt::Pair,
    layouts: &[
        Layout {
            versions: &[Version::Pair(0, 4)],
            verified: Verified::Read,
            root: Part::root(4, VERSION, &[Part::once("", 34, V0_4), Part::rest()]),
        },
        Layout {
            versions: &[Version::Pair(3, 0)],
            verified: Verified::Read,
            root: Part::root(4, VERSION, &[Part::once("", 42, V3), Part::rest()]),
        },
        Layout {
            versions: &[Version::Pair(3, 2), Version::Pair(3, 3)],
            verified: Verified::Read,
            root: Part::root(7, VERSION, &[Part::once("", 42, V3), Part::rest()]),
        },
    ],
};

const VERSION: &[Field] = &[u16("minor_version", 0), u16("major_version", 2)];

const V0_4: &[Field] = &[
    u16("physical_cell_id", 0),
    u32("dl_nr_arfcn", 2),
    u32("ul_nr_arfcn", 6),
    u16("dl_bandwidth_mhz", 10),
    u16("ul_bandwidth_mhz", 12),
    u64("cell_id", 14),
    u16("mcc", 22),
    u8("mnc_digit", 24),
    u16("mnc", 25),
    u8("allowed_access", 27),
    u32("tac", 28),
    u16("band", 32),
];

const V3: &[Field] = &[
    u16("physical_cell_id", 0),
    u64("nr_cgi", 2).mask(),
    u32("dl_nr_arfcn", 10),
    u32("ul_nr_arfcn", 14),
    u16("dl_bandwidth_mhz", 18),
    u16("ul_bandwidth_mhz", 20),
    u64("cell_id", 22),
    u16("mcc", 30),
    u8("mnc_digit", 32),
    u16("mnc", 33),
    u8("allowed_access", 35),
    u32("tac", 36),
    u16("band", 40),
];
