//! 0xB822: the master information block of NR.
//!
//! Source: SCAT @5a56ecf

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u16, u32};
use crate::log::names::Meanings;
use crate::packet::LogCode;

/// The master information block of NR.
pub static B822: Code = Code {
    code: LogCode(0xB822),
    name: "NR RRC MIB",
    version: VersionAt::Pair,
    layouts: &[
        Layout {
            versions: &[Version::Pair(0, 3)],
            verified: Verified::Read,
            root: Part::root(14, V0_3, &[Part::rest()]),
        },
        Layout {
            versions: &[Version::Pair(2, 0)],
            verified: Verified::Read,
            root: Part::root(15, V2_0, &[Part::rest()]),
        },
    ],
};

const V0_3: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u16("physical_cell_id", 4),
    u32("nr_arfcn", 6),
    u32("sfn", 10).bits(0, 9),
    u32("subcarrier_spacing", 10).bits(30, 31).meant(SPACING),
];

const V2_0: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u16("physical_cell_id", 4),
    u32("nr_arfcn", 6),
    u32("sfn", 10).bits(0, 9),
    u32("subcarrier_spacing", 10).bits(31, 32).meant(SPACING),
];

/// Subcarrier spacing in kHz.
const SPACING: Meanings = &[(0, Some(15.0)), (1, Some(30.0)), (2, Some(60.0)), (3, Some(120.0))];
