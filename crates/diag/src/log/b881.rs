//! 0xB881: counters of NR uplink transport blocks: bytes of initial transmissions and retransmissions, power headroom.
//!
//! Source: mobileinsight-core @4330fa9; version 3.2: its pull request 129

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32, u64};
use crate::packet::LogCode;

/// Counters of NR uplink transport blocks: bytes of initial transmissions and retransmissions, power headroom.
pub static B881: Code = Code {
    code: LogCode(0xB881),
    name: "NR MAC UL TB stats",
    version: VersionAt::Pair,
    layouts: &[
        Layout {
            versions: &[Version::Pair(2, 0)],
            verified: Verified::Read,
            root: Part::root(20, HEAD, &[Part::counted("records", "num_records", 92, RECORD_V2_0)]),
        },
        Layout {
            versions: &[Version::Pair(2, 1)],
            verified: Verified::Read,
            root: Part::root(20, HEAD, &[Part::counted("records", "num_records", 96, RECORD)]),
        },
        // Chosen: the shorter of the two headers in that pull request; no other version uses this header.
        Layout {
            versions: &[Version::Pair(3, 2)],
            verified: Verified::Guess,
            root: Part::root(12, HEAD_V3_2, &[Part::counted("records", "num_records", 96, RECORD)]),
        },
    ],
};

/// Fields of the shorter header. It has no fields for single changes such as `beam_change`.
const HEAD_V3_2: &[Field] = &[
    u16("minor_version", 0),
    u16("major_version", 2),
    u16("log_fields_change_bmask", 4),
    u8("num_records", 7),
];

const RECORD_V2_0: &[Field] = &[
    u64("tb_new_tx_bytes", 0),
    u64("tb_retx_bytes", 8),
    u64("num_mcs", 16),
    u64("num_prb", 24),
    u64("phr", 32),
    u32("total_power", 40),
    u32("num_new_tx_tb", 44),
    u32("num_retx_tb", 48),
    u32("num_dtx", 52),
    u32("num_ri", 56),
    u32("ri", 60),
    u32("num_cqi", 64),
    u32("cqi", 68),
    u32("num_phr", 72),
    u32("tpc_accum", 76),
    u32("num_ulsch_sched", 80),
    u32("num_no_ulsch_sched", 84),
    u16("pcmax", 88),
    u16("flush_gap_count", 90),
];

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
    u64("tb_new_tx_bytes", 0),
    u64("tb_retx_bytes", 8),
    u64("num_mcs", 16),
    u64("num_prb", 24),
    u64("phr", 32),
    u64("total_power", 40),
    u32("num_new_tx_tb", 48),
    u32("num_retx_tb", 52),
    u32("num_ri", 56),
    u32("ri", 60),
    u32("num_cqi", 64),
    u32("cqi", 68),
    u32("num_phr", 72),
    u32("tpc_accum", 76),
    u32("num_ulsch_sched", 80),
    u32("num_no_ulsch_sched", 84),
    u16("num_pcmax_dbm10", 88),
    u16("flush_gap_count", 90),
];
