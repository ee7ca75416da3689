//! 0xB16C: uplink grants that the modem uses, with the detected DCIs.
//!
//! Worked out from a real log: a packet is 4 + 20 · records bytes long. Each record's subframe has a DCI in 0xB130
//! version 43. If that DCI has format 0, the allocation (as encoded in the DCI: TS 36.213 §8.1.1), MCS and new-data
//! indicator are the same. Downlink assignments are in other bytes of the record, whose meaning could not be verified.

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u32};
use crate::packet::LogCode;

/// Uplink grants that the modem uses, with the detected DCIs.
pub static B16C: Code = Code {
    code: LogCode(0xB16C),
    name: "LTE DCI information report",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(7)],
        verified: Verified::Guess,
        root: Part::root(4, HEAD, &[Part::counted("records", "num_records", 20, RECORD)]),
    }],
};

const HEAD: &[Field] = &[u8("version", 0), u8("num_records", 3)];

const RECORD: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("ul_grant_present", 0).bits(14, 14),
    u32("riv", 0).bits(19, 29),
    u32("mcs", 4).bits(1, 5),
    u32("ndi", 4).bits(6, 6),
];
