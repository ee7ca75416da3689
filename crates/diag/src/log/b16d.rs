//! 0xB16D: transmissions of the modem in each uplink subframe, with their channel.
//!
//! Worked out from a real log: packets are 4 + 24 · records bytes long. Each record's subframe also occurs in 0xB139
//! (the shared channel) or in 0xB13C (the control channel) version 43; a bit of the record distinguishes the two. If
//! the shared channel was used, its first PRB and number of PRBs are those of 0xB139.

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32};
use crate::packet::LogCode;

/// Transmissions of the modem in each uplink subframe, with their channel.
pub static B16D: Code = Code {
    code: LogCode(0xB16D),
    name: "LTE GM TX report",
    version: VersionAt::Byte,
    layouts: &[Layout {
        versions: &[Version::Single(8)],
        verified: Verified::Guess,
        root: Part::root(4, HEAD, &[Part::counted("records", "num_records", 13, RECORD).of(CHANNELS)]),
    }],
};

const HEAD: &[Field] = &[u8("version", 0), u8("num_records", 3)];

const RECORD: &[Field] = &[
    u16("channel", 0).bits(0, 0).named(&[(0, "PUCCH"), (1, "PUSCH")]),
    u16("sfn", 0).bits(1, 10),
    u16("sub_fn", 0).bits(11, 14),
];

/// These bytes are present for both channels, but their meaning was verified only for the shared channel.
const CHANNELS: &[Part] = &[
    Part::once("", 11, &[]).repeated(Repeat::If("channel", 0)),
    Part::once("pusch", 11, &[u32("start_rb", 0).bits(3, 9), u32("num_rbs", 0).bits(14, 20)])
        .repeated(Repeat::If("channel", 1)),
];
