//! 0xB885: DCIs of NR that the modem's MAC layer uses.
//!
//! Source: mobileinsight-core @de14d30 (pull request 123)
//!
//! Chosen: that pull request reads every version with this layout; here the layout is used for major number 2, up to
//! the newest version of the packets that were logged together with this code.

use crate::layout::{
    Code, Field, Layout, Names, Part, Repeat, Verified, Version, VersionAt, u8, u16, u32, u64,
};
use crate::packet::LogCode;

/// DCIs of NR that the modem's MAC layer uses.
pub static B885: Code = Code {
    code: LogCode(0xB885),
    name: "NR MAC DCI info",
    version: VersionAt::Pair,
    layouts: &[Layout {
        versions: &[
            Version::Pair(2, 0),
            Version::Pair(2, 1),
            Version::Pair(2, 2),
            Version::Pair(2, 3),
            Version::Pair(2, 4),
            Version::Pair(2, 5),
        ],
        verified: Verified::Guess,
        root: Part::root(
            16,
            HEAD,
            &[Part::counted("records", "num_records", 8, RECORD).of(&[Part::counted(
                "dci_info", "num_dci", 4, INFO,
            )
            .of(&[
                Part::once("raw_dci", 12, RAW).repeated(Repeat::If("raw_dci_included", 1)),
                Part::once("uplink", 16, UPLINK).repeated(Repeat::If("dci_format", 1)),
                Part::once("downlink_1_0", 8, DOWNLINK).repeated(Repeat::If("dci_format", 2)),
                Part::once("downlink_1_1", 8, DOWNLINK).repeated(Repeat::If("dci_format", 3)),
            ])])],
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
    u8("ul_config", 9).bits(0, 3),
    u8("ml1_state_change", 9).bits(4, 7),
    u16("log_fields_change_bmask", 12),
    u8("num_records", 15),
];

const RECORD: &[Field] =
    &[u8("slot", 0), u8("numerology", 1).bits(0, 3), u16("frame", 2).bits(0, 9), u8("num_dci", 4)];

const INFO: &[Field] = &[
    u32("carrier_id", 0).bits(0, 2),
    u32("rnti_type", 0).bits(3, 6).named(&[(0, "C_RNTI"), (8, "RA_RNTI")]),
    u32("dci_format", 0).bits(7, 9).named(FORMAT),
    u32("aggregation_level", 0).bits(10, 12).named(&[(0, "LEVEL_1"), (1, "LEVEL_2"), (3, "LEVEL_8")]),
    u32("raw_dci_included", 0).bits(13, 13),
];

const FORMAT: Names = &[(1, "UL_0_1"), (2, "DL_1_0"), (3, "DL_1_1")];

const RAW: &[Field] = &[u32("payload_0", 0).mask(), u32("payload_1", 4).mask(), u32("payload_2", 8).mask()];

const UPLINK: &[Field] = &[
    u32("carrier_id", 0).bits(3, 5),
    u32("ndi", 0).bits(6, 6),
    u32("mcs", 0).bits(7, 11),
    u32("freq_hopping_flag", 0).bits(12, 12),
    u32("rv", 0).bits(13, 14),
    u32("harq_id", 0).bits(15, 18),
    u32("pusch_tpc", 0).bits(19, 20),
    u32("ul_sul_ind", 0).bits(21, 21),
    u32("symbol_alloc_index", 0).bits(22, 26),
    u32("bwp_ind", 0).bits(27, 28),
    u32("rb_assignment", 4).bits(0, 17),
    u32("ul_sch_ind", 4).bits(18, 18),
    u32("dai_1", 4).bits(19, 20),
    u32("dai_2", 4).bits(21, 22),
    u32("srs_resource_indication", 4).bits(23, 25),
    u32("precoding_layer_info", 4).bits(26, 31),
    u8("antenna_ports", 8).bits(0, 4),
    u8("dmrs_seq_init_flag", 8).bits(5, 5),
    u8("srs_request", 8).bits(6, 7),
    u16("csi_request", 9).bits(0, 5),
    u16("ra_type", 9).bits(15, 15),
    u8("prune_reason", 11).bits(0, 5).named(&[(0, "NONE"), (11, "INVALID_RES_MCS")]),
    u32("pruned_mask", 12).mask(),
];

const DOWNLINK: &[Field] = &[
    u64("bandwidth_part_indicator", 0).bits(0, 1),
    u64("time_resource_assignment", 0).bits(2, 5),
    u64("mcs", 0).bits(6, 10),
    u64("ndi", 0).bits(11, 11),
    u64("dl_assignment_index", 0).bits(12, 15),
    u64("tpc_command_for_sched_pucch", 0).bits(16, 17),
    u64("pucch_resource_indicator", 0).bits(18, 20),
    u64("pdsch_harq_feedback_timing", 0).bits(21, 23),
    u64("cbg_transmission_info", 0).bits(24, 31),
    u64("cbg_flushing_out_info", 0).bits(32, 32),
    u64("transmission_config_ind", 0).bits(33, 35),
    u64("srs_request", 0).bits(36, 37),
    u64("carrier_id", 0).bits(38, 40),
    u64("harq_id", 0).bits(42, 45),
];
