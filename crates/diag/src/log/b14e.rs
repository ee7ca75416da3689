//! 0xB14E: channel quality as reported with uplink data.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::log::names::{CARRIER, CSF_TX_MODE, CSI_SET, PUSCH_MODE, RANK};
use crate::packet::LogCode;

/// Channel quality as reported with uplink data.
pub static B14E: Code = Code {
    code: LogCode(0xB14E),
    name: "LTE PUSCH CSF",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(22)],
            verified: Verified::Read,
            root: Part::root(36, FIELDS_V22, &[]),
        },
        Layout {
            versions: &[Version::Single(23)],
            verified: Verified::Read,
            root: Part::root(36, FIELDS_V23, &[]),
        },
        Layout {
            versions: &[Version::Single(42)],
            verified: Verified::Checked,
            root: Part::root(36, FIELDS_V42, &[]),
        },
        Layout {
            versions: &[Version::Single(101)],
            verified: Verified::Read,
            root: Part::root(36, FIELDS_V101, &[]),
        },
        Layout {
            versions: &[Version::Single(102)],
            verified: Verified::Checked,
            root: Part::root(36, FIELDS_V102, &[]),
        },
        Layout {
            versions: &[Version::Single(103)],
            verified: Verified::Read,
            root: Part::root(37, FIELDS_V103, &[]),
        },
        Layout {
            versions: &[Version::Single(142)],
            verified: Verified::Read,
            root: Part::root(40, FIELDS_V142, &[]),
        },
    ],
};

const FIELDS_V142: &[Field] = &[
    u8("version", 0),
    u32("start_system_sub_frame_number", 1).bits(0, 3),
    u32("start_system_frame_number", 1).bits(4, 13),
    u32("carrier_index", 1).bits(14, 17).named(CARRIER),
    u32("scell_index", 1).bits(18, 22),
    u32("pusch_reporting_mode", 1).bits(24, 26).named(PUSCH_MODE),
    u32("csi_meas_set_index", 1).bits(27, 27),
    u32("rank_index", 1).bits(28, 29).named(RANK),
    u32("wideband_pmi1", 1).bits(30, 33),
    u32("number_of_subbands", 5).bits(2, 6),
    u32("wideband_cqi_cw0", 5).bits(7, 10),
    u32("wideband_cqi_cw1", 5).bits(11, 14),
    u32("subband_size_k", 5).bits(15, 18),
    u32("size_m", 5).bits(19, 21),
    u32("single_wb_pmi", 5).bits(24, 27),
    u32("single_mb_pmi", 5).bits(28, 31),
    u8("csf_tx_mode", 9).bits(0, 3).named(CSF_TX_MODE),
    u8("num_csirs_ports", 35).bits(0, 3),
    u32("cri", 36).bits(0, 2),
    u32("ul_frame_number", 36).bits(4, 13),
    u32("ul_subframe_number", 36).bits(14, 17),
    u32("ul_payload_length", 36).bits(18, 24),
];

const FIELDS_V102: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("rank_index", 3).bits(2, 2).named(RANK),
    u32("number_of_subbands", 4).bits(0, 4),
    u32("wideband_cqi_cw0", 4).bits(5, 8),
    u32("wideband_cqi_cw1", 4).bits(9, 12),
    u32("subband_size_k", 4).bits(13, 19),
    u32("single_wb_pmi", 4).bits(20, 23),
    u32("single_mb_pmi", 4).bits(24, 27),
    u32("csf_tx_mode", 4).bits(28, 31).named(CSF_TX_MODE),
    u8("carrier_index", 35).bits(0, 3).named(CARRIER),
];

const FIELDS_V101: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("csi_meas_set_index", 3).bits(1, 1).named(CSI_SET),
    u8("rank_index", 3).bits(2, 7).named(RANK),
    u32("number_of_subbands", 4).bits(0, 4),
    u32("wideband_cqi_cw0", 4).bits(5, 8),
    u32("wideband_cqi_cw1", 4).bits(9, 12),
    u32("subband_size_k", 4).bits(13, 19),
    u32("single_wb_pmi", 4).bits(20, 23),
    u32("single_mb_pmi", 4).bits(24, 27),
    u32("csf_tx_mode", 4).bits(28, 31).named(CSF_TX_MODE),
    u8("carrier_index", 35).bits(0, 3).named(CARRIER),
    u8("num_csirs_ports", 35).bits(4, 7),
];

const FIELDS_V42: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("rank_index", 3).bits(1, 1).named(RANK),
    u8("csi_meas_set_index", 3).bits(2, 2).named(CSI_SET),
    u32("number_of_subbands", 4).bits(0, 4),
    u32("wideband_cqi_cw0", 4).bits(5, 8),
    u32("wideband_cqi_cw1", 4).bits(9, 12),
    u32("subband_size_k", 4).bits(13, 19),
    u32("single_wb_pmi", 4).bits(20, 23),
    u32("single_mb_pmi", 4).bits(24, 27),
    u32("csf_tx_mode", 4).bits(28, 31).named(CSF_TX_MODE),
    u8("carrier_index", 35).bits(0, 3).named(CARRIER),
    u8("num_csirs_ports", 35).bits(4, 7),
];

const FIELDS_V23: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("rank_index", 3).bits(1, 1).named(RANK),
    u32("number_of_subbands", 4).bits(0, 4),
    u32("wideband_cqi_cw0", 4).bits(5, 8),
    u32("wideband_cqi_cw1", 4).bits(9, 12),
    u32("subband_size_k", 4).bits(13, 19),
    u32("single_wb_pmi", 4).bits(20, 23),
    u32("single_mb_pmi", 4).bits(24, 27),
    u32("csf_tx_mode", 4).bits(28, 31).named(CSF_TX_MODE),
    u8("carrier_index", 35).bits(0, 3).named(CARRIER),
    u8("num_csirs_ports", 35).bits(4, 7),
];

const FIELDS_V22: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("pusch_reporting_mode", 3).bits(1, 3).named(PUSCH_MODE),
    u8("rank_index", 3).bits(4, 4).named(RANK),
    u32("number_of_subbands", 4).bits(0, 4),
    u32("wideband_cqi_cw0", 4).bits(5, 8),
    u32("wideband_cqi_cw1", 4).bits(9, 12),
    u32("subband_size_k", 4).bits(13, 19),
    u32("single_wb_pmi", 4).bits(20, 23),
    u32("single_mb_pmi", 4).bits(24, 27),
    u32("csf_tx_mode", 4).bits(28, 31).named(CSF_TX_MODE),
    u8("carrier_index", 35).bits(0, 3).named(CARRIER),
];

const FIELDS_V103: &[Field] = &[
    u8("version", 0),
    u32("start_system_sub_frame_number", 1).bits(0, 3),
    u32("start_system_frame_number", 1).bits(4, 13),
    u32("pusch_reporting_mode", 1).bits(14, 16).named(PUSCH_MODE),
    u32("csi_meas_set_index", 1).bits(17, 17),
    u32("rank_index", 1).bits(18, 19).named(RANK),
    u32("wideband_pmi1", 1).bits(20, 23),
    u32("number_of_subbands", 1).bits(24, 28),
    u32("wideband_cqi_cw0", 1).bits(29, 31),
    u16("wideband_cqi_cw1", 5).bits(1, 4),
    u16("subband_size_k", 5).bits(5, 8),
    u16("size_m", 5).bits(9, 11),
    u16("single_wb_pmi", 5).bits(12, 15),
    u8("single_mb_pmi", 7).bits(0, 3),
    u8("csf_tx_mode", 7).bits(4, 7).named(CSF_TX_MODE),
    u8("forced_max_ri", 22),
    u8("carrier_index", 28).bits(1, 1).named(CARRIER),
    u8("num_csirs_ports", 36).bits(4, 7),
];
