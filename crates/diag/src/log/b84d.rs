//! 0xB84D: reception counters of NR RLC by bearer.
//!
//! Source: mobileinsight-core @4330fa9; version 3.5: its pull request 129

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u32};
use crate::packet::LogCode;

/// Reception counters of NR RLC by bearer.
pub static B84D: Code = Code {
    code: LogCode(0xB84D),
    name: "NR RLC DL stats",
    version: VersionAt::Pair,
    layouts: &[
        Layout {
            versions: &[Version::Pair(0, 4)],
            verified: Verified::Read,
            root: Part::root(84, HEAD, &[Part::counted("bearers", "num_rb", 100, BEARER)]),
        },
        Layout {
            versions: &[Version::Pair(3, 5)],
            verified: Verified::Guess,
            root: Part::root(84, HEAD, &[Part::counted("bearers", "num_rb", 100, BEARER)]),
        },
    ],
};

const HEAD: &[Field] = &[
    u32("version", 0),
    u8("num_rb", 4),
    u8("reason", 5),
    u32("num_fc_down_commands", 6),
    u32("num_fc_up_commands", 10),
    u32("num_shutdown_issued", 14),
    u32("num_rlf_issued", 18),
    u32("num_level1_down_commands", 22),
    u32("num_level1_up_commands", 26),
    u32("num_scell_ta_start", 30),
    u32("num_scell_ta_stop", 34),
    u32("num_scell_fc_start", 38),
    u32("num_scell_fc_stop", 42),
    u32("num_rf_available", 46),
    u32("num_fc_rx_win", 50),
    u32("last_rlf", 54),
    u32("num_fc_level1_inc_segs_dropped_0", 58),
    u32("num_fc_level1_inc_segs_dropped_1", 62),
    u32("num_fc_level1_inc_segs_dropped_2", 66),
    u32("num_fc_level1_inc_segs_dropped_3", 70),
    u32("num_fc_level1_history_index", 74),
    u32("num_fc_shutdown_inc_segs_dropped", 78),
];

const BEARER: &[Field] = &[
    u8("rb_mode", 1),
    u32("num_data_pdu", 6),
    u32("num_stats_rxed", 10),
    u32("num_invalid_pdus", 14),
    u32("num_retx_pdu", 18),
    u32("num_duplicate_pdu", 22),
    u32("num_dropped_pdu", 26),
    u32("num_segment_join", 30),
    u32("num_segment_collapse", 34),
    u32("num_status_trigger", 38),
    u32("num_status_update", 42),
    u32("num_status_ota", 46),
    u32("num_status_pdu_drop", 50),
    u32("num_reassembly_expired", 54),
    u32("num_reassembly_start", 58),
    u32("num_missed_um_pdu", 62),
    u32("num_status_trigger_ack_sn_only", 70),
    u32("num_status_trigger_nack_list", 74),
    u32("num_status_update_ack_sn_only", 78),
    u32("num_status_update_nack_list", 82),
    u32("num_status_ackd", 86),
    u32("num_status_nack_lists", 90),
    u32("rlc_data_bytes", 94),
];
