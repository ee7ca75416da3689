//! 0xB883: what NR's uplink sends in each slot, by the grants that the modem found.
//!
//! Source: mobileinsight-core @4330fa9
//!
//! Differs: mobileinsight-core cuts some fields of the shared channel short: the first symbol to one bit, the first
//! resource block to eight, the block size to 14.

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32, u64};
use crate::packet::LogCode;

/// What NR's uplink sends in each slot, by the grants that the modem found.
pub static B883: Code = Code {
    code: LogCode(0xB883),
    name: "NR MAC UL physical channel schedule report",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(2, 8)],
        verified: Verified::Read,
        root: Part::root(
            16,
            HEAD,
            &[Part::counted("records", "num_records", 8, RECORD).of(&[Part::counted(
                "carriers",
                "num_carrier",
                4,
                CARRIER,
            )
            .of(CHANNELS)])],
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
    &[u8("slot", 0), u8("numerology", 1).bits(0, 3), u16("frame", 2).bits(0, 9), u8("num_carrier", 4)];

const CARRIER: &[Field] = &[
    u16("carrier_id", 0).bits(0, 3),
    u16("pusch_flag", 0).bits(7, 7),
    u16("pucch_flag", 0).bits(8, 8),
    u16("srs_flag", 0).bits(9, 9),
];

/// Those that are sent, and only those.
const CHANNELS: &[Part] = &[
    Part::once("pusch", 40, PUSCH).repeated(Repeat::If("pusch_flag", 1)),
    Part::once("pucch", 20, &[]).repeated(Repeat::If("pucch_flag", 1)),
    Part::once("srs", 20, &[]).repeated(Repeat::If("srs_flag", 1)),
];

const PUSCH: &[Field] = &[
    u64("is_second_phychan", 0).bits(0, 0),
    u64("start_symbol", 0).bits(1, 4),
    u64("num_symbols", 0).bits(5, 8),
    u64("harq_id", 0).bits(9, 12),
    u64("mcs", 0).bits(13, 17),
    u64("rb_start", 0).bits(23, 31),
    u64("num_rbs", 0).bits(32, 40),
    u64("ra_type", 0).bits(41, 41),
    u64("tb_size_bytes", 0).bits(43, 60),
    u32("rv", 8).bits(2, 4),
    u32("tx_type", 8).bits(8, 9),
    u32("code_rate", 8).bits(12, 22),
];
