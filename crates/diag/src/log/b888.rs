//! 0xB888: counters of NR downlink transport blocks by carrier: bytes and CRC results.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32, u64};
use crate::packet::LogCode;

/// Counters of NR downlink transport blocks by carrier: bytes and CRC results.
pub static B888: Code = Code {
    code: LogCode(0xB888),
    name: "NR MAC PDSCH stats",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[Version::Pair(2, 2)],
        verified: Verified::Read,
        root: Part::root(28, HEAD, &[Part::counted("records", "num_records", 72, RECORD)]),
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

const RECORD: &[Field] = &[
    u32("carrier_id", 0),
    u32("num_slots_elapsed", 4),
    u32("num_pdsch_decode", 8),
    u32("num_crc_pass_tb", 12),
    u32("num_crc_fail_tb", 16),
    u32("num_retx", 20),
    u32("ack_as_nack", 24),
    u32("harq_failure", 28),
    u64("crc_pass_tb_bytes", 32),
    u64("crc_fail_tb_bytes", 40),
    u64("tb_bytes", 48),
    u64("padding_bytes", 56),
    u64("retx_bytes", 64),
];
