//! 0xB14D: channel quality as reported on the uplink control channel.
//!
//! Source: mobileinsight-core @4330fa9; version 162: worked out from a real log (below)

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::log::names::{CARRIER, CSF_TX_MODE, CSI_SET, PUCCH_MODE, PUCCH_REPORT, PUCCH_REPORT_V22, RANK};
use crate::packet::LogCode;

/// Channel quality as reported on the uplink control channel.
pub static B14D: Code = Code {
    code: LogCode(0xB14D),
    name: "LTE PUCCH CSF",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(22)],
            verified: Verified::Read,
            root: Part::root(8, FIELDS_V22, &[]),
        },
        Layout {
            versions: &[Version::Single(24)],
            verified: Verified::Read,
            root: Part::root(12, FIELDS_V24, &[]),
        },
        Layout {
            versions: &[Version::Single(43)],
            verified: Verified::Checked,
            root: Part::root(12, FIELDS_V43, &[]),
        },
        Layout {
            versions: &[Version::Single(101), Version::Single(102)],
            verified: Verified::Checked,
            root: Part::root(12, FIELDS_V101_102, &[]),
        },
        Layout {
            versions: &[Version::Single(103)],
            verified: Verified::Read,
            root: Part::root(12, FIELDS_V103, &[]),
        },
        Layout {
            versions: &[Version::Single(142)],
            verified: Verified::Read,
            root: Part::root(16, FIELDS_V142, &[]),
        },
        Layout {
            versions: &[Version::Single(162)],
            verified: Verified::Guess,
            root: Part::root(20, FIELDS_V162, &[]),
        },
    ],
};

const FIELDS_V22: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("pucch_reporting_mode", 3).bits(1, 2).named(PUCCH_MODE),
    u8("pucch_report_type", 3).bits(3, 4).named(PUCCH_REPORT_V22),
    u8("size_bwp", 3).bits(5, 7),
    u32("number_of_subbands", 4).bits(0, 3),
    u32("bwp_index", 4).bits(4, 6),
    u32("rank_index", 4).bits(7, 7).named(RANK),
    u32("subband_label", 4).bits(8, 9),
    u32("cqi_cw0", 4).bits(10, 13),
    u32("cqi_cw1", 4).bits(14, 17),
    u32("wideband_pmi", 4).bits(18, 21),
    u32("carrier_index", 4).bits(22, 25).named(CARRIER),
    u32("csf_tx_mode", 4).bits(26, 29).named(CSF_TX_MODE),
];

const FIELDS_V24: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("pucch_report_type", 3).bits(1, 4).named(PUCCH_REPORT),
    u8("size_bwp", 3).bits(5, 7),
    u32("number_of_subbands", 4).bits(0, 3),
    u32("bwp_index", 4).bits(4, 6),
    u32("rank_index", 4).bits(7, 7).named(RANK),
    u32("subband_label", 4).bits(8, 9),
    u32("cqi_cw0", 4).bits(10, 13),
    u32("cqi_cw1", 4).bits(14, 17),
    u32("wideband_pmi", 4).bits(18, 21),
    u32("carrier_index", 4).bits(22, 25).named(CARRIER),
    u32("csf_tx_mode", 4).bits(26, 29).named(CSF_TX_MODE),
    u8("num_csirs_ports", 8).bits(0, 3),
    u8("wideband_pmi1", 8).bits(4, 7),
    u8("pti", 9).bits(0, 0),
];

const FIELDS_V43: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("pucch_report_type", 3).bits(1, 4).named(PUCCH_REPORT),
    u32("number_of_subbands", 4).bits(0, 3),
    u32("rank_index", 4).bits(7, 7).named(RANK),
    u32("cqi_cw0", 4).bits(10, 13),
    u32("cqi_cw1", 4).bits(14, 17),
    u32("wideband_pmi", 4).bits(18, 21),
    u32("carrier_index", 4).bits(22, 25).named(CARRIER),
    u32("csf_tx_mode", 4).bits(26, 29).named(CSF_TX_MODE),
];

const FIELDS_V101_102: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("pucch_report_type", 3).bits(1, 4).named(PUCCH_REPORT),
    u32("number_of_subbands", 4).bits(0, 3),
    u32("alt_cqi_table_data", 4).bits(7, 7),
    u32("cqi_cw0", 4).bits(10, 13),
    u32("cqi_cw1", 4).bits(14, 17),
    u32("wideband_pmi", 4).bits(18, 21),
    u32("carrier_index", 4).bits(22, 25).named(CARRIER),
    u32("csf_tx_mode", 4).bits(26, 29).named(CSF_TX_MODE),
    u8("num_csirs_ports", 8).bits(0, 3),
    u8("csi_meas_set_index", 9).bits(1, 1),
    u8("rank_index", 9).bits(2, 3).named(RANK),
];

const FIELDS_V103: &[Field] = &[
    u8("version", 0),
    u16("start_system_sub_frame_number", 1).bits(0, 3),
    u16("start_system_frame_number", 1).bits(4, 13),
    u8("pucch_report_type", 3).bits(1, 4).named(PUCCH_REPORT),
    u32("number_of_subbands", 4).bits(0, 3),
    u32("alt_cqi_table_data", 4).bits(7, 7),
    u32("cqi_cw0", 4).bits(10, 13),
    u32("cqi_cw1", 4).bits(14, 17),
    u32("wideband_pmi", 4).bits(18, 21),
    u32("carrier_index", 4).bits(22, 25).named(CARRIER),
    u32("csf_tx_mode", 4).bits(26, 29).named(CSF_TX_MODE),
    u8("num_csirs_ports", 8).bits(0, 3),
    u8("csi_meas_set_index", 9).bits(1, 1).named(CSI_SET),
    u8("rank_index", 9).bits(2, 3).named(RANK),
    u8("forced_max_ri", 9).bits(4, 7),
];

const FIELDS_V142: &[Field] = &[
    u8("version", 0),
    u32("start_system_sub_frame_number", 1).bits(0, 3),
    u32("start_system_frame_number", 1).bits(4, 13),
    u32("carrier_index", 1).bits(14, 17).named(CARRIER),
    u32("scell_index", 1).bits(18, 22),
    u32("pucch_reporting_mode", 1).bits(24, 25).named(PUCCH_MODE),
    u32("pucch_report_type", 1).bits(26, 29).named(PUCCH_REPORT),
    u32("size_bwp", 1).bits(30, 31),
    u8("number_of_subbands", 5).bits(1, 4),
    u8("bwp_index", 5).bits(5, 7),
    u16("alt_cqi_table_data", 6).bits(0, 0),
    u16("subband_label", 6).bits(1, 2),
    u16("cqi_cw0", 6).bits(3, 6),
    u16("cqi_cw1", 6).bits(7, 10),
    u16("wideband_pmi", 6).bits(11, 14),
    u16("csf_tx_mode", 8).bits(0, 3).named(CSF_TX_MODE),
    u16("pucch_reporting_submode", 8).bits(4, 5),
    u16("num_csirs_ports", 8).bits(6, 9),
    u16("wideband_pmi1", 8).bits(10, 13),
    u16("pti", 8).bits(14, 14),
    u16("csi_meas_set_index", 8).bits(15, 15),
    u16("rank_index", 10).bits(0, 1).named(RANK),
    u16("cri", 10).bits(2, 4),
    u16("ul_frame_number", 10).bits(5, 14),
    u16("ul_channel_type", 10).bits(15, 15),
    u32("ul_subframe_number", 12).bits(0, 3),
    u32("ul_payload_length", 12).bits(4, 8),
];

/// Both subframes advance by 80 ms from packet to packet, and differ by four subframes. The second subframe is that of
/// a transmission in 0xB13C. The number of subbands, 13, is that of 20 MHz (TS 36.213 §7.2.1), and 0xB173 shows that
/// 256QAM is in use. The position of the CQI is unknown: the values at the position that version 142 uses differ
/// between reports whose transmitted bits are equal.
const FIELDS_V162: &[Field] = &[
    u8("version", 0),
    u32("start_system_sub_frame_number", 1).bits(0, 3),
    u32("start_system_frame_number", 1).bits(4, 13),
    u8("number_of_subbands", 5).bits(1, 4),
    u16("alt_cqi_table_data", 6).bits(0, 0),
    u32("ul_frame_number", 12).bits(0, 9),
    u32("ul_subframe_number", 12).bits(11, 14),
];
