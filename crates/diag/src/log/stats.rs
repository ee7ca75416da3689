//! 0xB087, 0xB097, 0xB0A4 and 0xB0B4: what bearers of LTE have sent and received, as RLC and PDCP count. Numbers count
//! from the bearer's begin; those that end in `_rst`, from the last reset of the counters.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{
    Code, Extent, Field, Inner, Kind, Layout, Names, Part, Verified, Version, VersionAt, u8, u16, u32, u64,
};
use crate::packet::LogCode;

/// RLC of the downlink.
pub static B087: Code = stats(0xB087, "LTE RLC DL statistics", &[layout(&[subpackets(RLC_DOWN)])]);
/// RLC of the uplink.
pub static B097: Code = stats(0xB097, "LTE RLC UL statistics", &[layout(&[subpackets(RLC_UPS)])]);
/// PDCP of the downlink.
pub static B0A4: Code = stats(0xB0A4, "LTE PDCP DL statistics", &[layout(&[subpackets(PDCP_DOWNS)])]);
/// PDCP of the uplink.
pub static B0B4: Code = stats(0xB0B4, "LTE PDCP UL statistics", &[layout(&[subpackets(PDCP_UPS)])]);

const fn stats(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Byte, layouts }
}

const fn layout(subpackets: &'static [Part]) -> Layout {
    Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(4, HEAD, subpackets),
    }
}

const HEAD: &[Field] = &[u8("version", 0), u8("num_subpkt", 1)];

const SUBPACKET_HEAD: &[Field] =
    &[u8("subpacket_id", 0), u8("subpacket_version", 1), u16("subpacket_size", 2)];

const fn subpackets(kinds: &'static [Kind]) -> Part {
    Part {
        extent: Extent::Says("subpacket_size"),
        inner: Inner::Choice(["subpacket_id", "subpacket_version"], kinds),
        ..Part::counted("subpackets", "num_subpkt", 4, SUBPACKET_HEAD)
    }
}

const RLC_DOWN: &[Kind] = &[
    Kind {
        id: 66,
        versions: &[2],
        verified: Verified::Read,
        parts: &[Part::once("", 9, RLC_DOWN_HEAD).of(&[Part::counted("rbs", "num_rbs", 182, RLC_DOWN_V2)])],
    },
    Kind {
        id: 66,
        versions: &[3],
        verified: Verified::Checked,
        parts: &[Part::once("", 9, RLC_DOWN_HEAD).of(&[Part::counted("rbs", "num_rbs", 262, RLC_DOWN_V3)])],
    },
];

const RLC_UPS: &[Kind] = &[Kind {
    id: 71,
    versions: &[1],
    verified: Verified::Checked,
    parts: &[Part::once("", 5, &[u8("num_rbs", 0), u32("rlcul_error_count", 1)])
        .of(&[Part::counted("rbs", "num_rbs", 126, RLC_UP)])],
}];

const PDCP_DOWNS: &[Kind] = &[Kind {
    id: 196,
    versions: &[2],
    verified: Verified::Checked,
    parts: &[Part::once("", 13, PDCP_DOWN_HEAD).of(&[Part::counted("rbs", "num_rbs", 167, PDCP_DOWN)])],
}];

const PDCP_UPS: &[Kind] = &[
    Kind {
        id: 197,
        versions: &[1],
        verified: Verified::Read,
        parts: &[Part::once("", 5, PDCP_UP_HEAD).of(&[Part::counted("rbs", "num_rbs", 111, PDCP_UP_V1)])],
    },
    Kind {
        id: 197,
        versions: &[2],
        verified: Verified::Checked,
        parts: &[Part::once("", 5, PDCP_UP_HEAD).of(&[Part::counted("rbs", "num_rbs", 141, PDCP_UP_V2)])],
    },
    // In 19 packets of a real log of NB-IoT, one bearer takes 255 bytes, and only its begin is not 0: it is that of the other
    // versions.
    Kind {
        id: 197,
        versions: &[3],
        verified: Verified::Guess,
        parts: &[Part::once("", 5, PDCP_UP_HEAD).of(&[Part::counted("rbs", "num_rbs", 255, PDCP_UP_V3)])],
    },
    // Only what is not 0 in a real log is named: no public source has this version's layout. Packets have its length to
    // the byte, and what is named agrees with another decoder.
    Kind {
        id: 197,
        versions: &[26],
        verified: Verified::Checked,
        parts: &[Part::once("", 5, PDCP_UP_HEAD).of(&[Part::counted("rbs", "num_rbs", 293, PDCP_UP_V26)])],
    },
];

const RLC_DOWN_HEAD: &[Field] =
    &[u8("num_rbs", 0), u32("rlc_pdcp_q_full_count", 1), u32("rlcdl_error_count", 5)];

const PDCP_DOWN_HEAD: &[Field] = &[
    u8("num_rbs", 0),
    u32("num_errors", 1),
    u32("num_offload_q_full_count", 5),
    u32("num_packet_dropped_offload_q_full", 9),
];

const PDCP_UP_HEAD: &[Field] = &[u8("num_rbs", 0), u32("pdcpul_errors", 1)];

const MODE: Names = &[(1, "AM")];

const PDCP_DOWN: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("mode", 1).named(MODE),
    u8("pdcp_hdr_len", 2),
    u32("num_rst", 3),
    u32("num_flow_ctrl_trigger", 7),
    u32("num_data_pdu_rx", 11),
    u32("num_data_pdu_rx_bytes", 15),
    u32("control_pdu_bytes_rx", 19),
    u32("num_control_pdu_gen", 27),
    u32("num_control_pdu_gen_bytes", 31),
    u32("num_stat_rprt_ctrl_pdu_rx", 35),
    u32("num_rohc_ctrl_pdu_rx", 39),
    u32("num_pdu_rohc_fail", 43),
    u32("num_pdu_integrity_fail", 47),
    u32("num_missing_sdu_to_ul", 51),
    u32("num_missing_sdu_from_ul", 55),
    u32("num_pdu_dups", 59),
    u32("num_pdu_dups_bytes", 63),
    u32("num_pdu_out_of_win", 67),
    u32("num_pdu_out_of_win_bytes", 71),
    u32("num_pdu_invalid", 75),
    u32("num_pdu_invalid_bytes", 79),
    u32("num_flow_ctrl_trigger_rst", 87),
    u32("num_data_pdu_rx_rst", 91),
    u32("num_data_pdu_rx_bytes_rst", 95),
    u32("control_pdu_bytes_rx_rst", 99),
    u32("num_control_pdu_gen_rst", 107),
    u32("num_control_pdu_gen_bytes_rst", 111),
    u32("num_stat_rprt_ctrl_pdu_rx_rst", 115),
    u32("num_rohc_ctrl_pdu_rx_rst", 119),
    u32("num_pdu_rohc_fail_rst", 123),
    u32("num_pdu_integrity_fail_rst", 127),
    u32("num_missing_sdu_to_ul_rst", 131),
    u32("num_missing_sdu_from_ul_rst", 135),
    u32("num_pdu_dups_rst", 139),
    u32("num_pdu_dups_bytes_rst", 143),
    u32("num_pdu_out_of_win_rst", 147),
    u32("num_pdu_out_of_win_bytes_rst", 151),
    u32("num_pdu_invalid_rst", 155),
    u32("num_pdu_invalid_bytes_rst", 159),
];

const PDCP_UP_V1: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("mode", 1).named(MODE),
    u8("pdcp_hdr_len", 2),
    u32("num_rst", 3),
    u32("num_flow_ctrl_trigger", 7),
    u32("num_data_pdu_tx", 11),
    u32("num_data_pdu_tx_bytes", 15),
    u32("num_control_pdu_tx", 19),
    u32("num_control_pdu_tx_bytes", 23),
    u32("num_status_report", 27),
    u32("num_rohc_fail", 31),
    u32("num_rohc_ctrl_pdu_tx", 35),
    u32("num_discard_sdu", 39),
    u32("num_discard_sdu_bytes", 43),
    u32("num_pdu_ho_retx", 47),
    u32("num_pdu_ho_retx_bytes", 51),
    u32("num_flow_ctrl_trigger_rst", 59),
    u32("num_data_pdu_tx_rst", 63),
    u32("num_data_pdu_tx_bytes_rst", 67),
    u32("num_control_pdu_tx_rst", 71),
    u32("num_control_pdu_tx_bytes_rst", 75),
    u32("num_status_report_rst", 79),
    u32("num_rohc_fail_rst", 83),
    u32("num_rohc_ctrl_pdu_tx_rst", 87),
    u32("num_discard_sdu_rst", 91),
    u32("num_discard_sdu_bytes_rst", 95),
    u32("num_pdu_ho_retx_rst", 99),
    u32("num_pdu_ho_retx_bytes_rst", 103),
];

const PDCP_UP_V3: &[Field] = &[u8("rb_cfg_idx", 0), u8("mode", 1).named(MODE), u8("pdcp_hdr_len", 2)];

const PDCP_UP_V2: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("mode", 1).named(MODE),
    u8("pdcp_hdr_len", 2),
    u32("num_rst", 3),
    u16("num_pdcp_ul_buffer_pkt", 7),
    u32("num_pdcp_ul_buffer_pkt_bytes", 9),
    u32("num_flow_ctrl_trigger", 13),
    u32("num_data_pdu_tx", 17),
    u32("num_data_pdu_tx_bytes", 21),
    u32("num_control_pdu_tx", 25),
    u32("num_control_pdu_tx_bytes", 29),
    u32("num_status_report", 33),
    u32("num_rohc_ctrl_pdu_tx", 37),
    u32("num_rohc_fail", 41),
    u32("num_discard_sdu", 45),
    u32("num_discard_sdu_bytes", 49),
    u32("num_pdu_ho_retx", 53),
    u32("num_pdu_ho_retx_bytes", 57),
    u32("num_piggybk_rohc_feedbk_rcvd", 61),
    u32("num_rohc_pdu_drop_ho", 65),
    u32("num_rohc_pdu_drop_ho_bytes", 69),
    u32("num_flow_ctrl_trigger_rst", 77),
    u32("num_data_pdu_tx_rst", 81),
    u32("num_data_pdu_tx_bytes_rst", 85),
    u32("num_control_pdu_tx_rst", 89),
    u32("num_control_pdu_tx_bytes_rst", 93),
    u32("num_status_report_rst", 97),
    u32("num_rohc_ctrl_pdu_tx_rst", 101),
    u32("num_rohc_fail_rst", 105),
    u32("num_discard_sdu_rst", 109),
    u32("num_discard_sdu_bytes_rst", 113),
    u32("num_pdu_ho_retx_rst", 117),
    u32("num_pdu_ho_retx_bytes_rst", 121),
    u32("num_piggybk_rohc_feedbk_rcvd_rst", 125),
    u32("num_rohc_pdu_drop_ho_rst", 129),
    u32("num_rohc_pdu_drop_ho_bytes_rst", 133),
];

const RLC_UP: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("mode", 1).named(MODE),
    u32("num_rst", 2),
    u32("num_new_data_pdu", 6),
    u32("num_new_data_pdu_bytes", 10),
    u32("num_sdu", 14),
    u32("num_sdu_bytes", 18),
    u32("num_ctrl_pdu_tx", 22),
    u32("num_ctrl_pdu_bytes_tx", 26),
    u32("num_retx_pdu", 30),
    u32("num_retx_pdu_bytes", 34),
    u32("num_ctrl_pdu_rx", 38),
    u32("num_complete_nack", 42),
    u32("num_segm_nack", 46),
    u32("num_invalid_ctrl_pdu_rx", 50),
    u32("num_poll", 54),
    u32("num_t_poll_retx_expiry", 58),
    u32("num_new_data_pdu_rst", 66),
    u32("num_new_data_pdu_bytes_rst", 70),
    u32("num_sdu_rst", 74),
    u32("num_sdu_bytes_rst", 78),
    u32("num_ctrl_pdu_tx_rst", 82),
    u32("num_ctrl_pdu_bytes_tx_rst", 86),
    u32("num_retx_pdu_rst", 90),
    u32("num_retx_pdu_bytes_rst", 94),
    u32("num_ctrl_pdu_rx_rst", 98),
    u32("num_complete_nack_rst", 102),
    u32("num_segm_nack_rst", 106),
    u32("num_invalid_ctrl_pdu_rx_rst", 110),
    u32("num_poll_rst", 114),
    u32("num_t_poll_retx_expiry_rst", 118),
];

const RLC_DOWN_V2: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("mode", 1).named(MODE),
    u32("num_rst", 2),
    u32("num_data_pdu", 6),
    u32("data_pdu_bytes", 10),
    u32("num_status_rxed", 14),
    u32("status_rxed_bytes", 18),
    u32("num_invalid_pdu", 22),
    u32("invalid_pdu_bytes", 26),
    u32("num_retx_pdu", 30),
    u32("retx_pdu_bytes", 34),
    u32("num_dup_pdu", 38),
    u32("dup_pdu_bytes", 42),
    u32("num_dropped_pdu", 46),
    u32("dropped_pdu_bytes", 50),
    u32("num_dropped_pdu_fc", 54),
    u32("dropped_pdu_bytes_fc", 58),
    u32("num_sdu", 62),
    u32("num_sdu_bytes", 66),
    u32("num_nonseq_sdu", 70),
    u32("num_ctrl_pdu", 74),
    u32("num_complete_nack", 78),
    u32("num_segments_nack", 82),
    u32("num_t_reorder_expired", 86),
    u32("num_data_pdu_rst", 94),
    u32("data_pdu_bytes_rst", 98),
    u32("num_status_rxed_rst", 102),
    u32("status_rxed_bytes_rst", 106),
    u32("num_invalid_pdu_rst", 110),
    u32("invalid_pdu_bytes_rst", 114),
    u32("num_retx_pdu_rst", 118),
    u32("retx_pdu_bytes_rst", 122),
    u32("num_dup_pdu_rst", 126),
    u32("dup_pdu_bytes_rst", 130),
    u32("num_dropped_pdu_rst", 134),
    u32("dropped_pdu_bytes_rst", 138),
    u32("num_dropped_pdu_fc_rst", 142),
    u32("dropped_pdu_bytes_fc_rst", 146),
    u32("num_sdu_rst", 150),
    u32("num_sdu_bytes_rst", 154),
    u32("num_nonseq_sdu_rst", 158),
    u32("num_ctrl_pdu_rst", 162),
    u32("num_complete_nack_rst", 166),
    u32("num_segments_nack_rst", 170),
    u32("num_t_reorder_expired_rst", 174),
];

const RLC_DOWN_V3: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("mode", 1).named(MODE),
    u32("num_rst", 2),
    u32("num_data_pdu", 6),
    u64("data_pdu_bytes", 10),
    u32("num_status_rxed", 18),
    u64("status_rxed_bytes", 22),
    u32("num_invalid_pdu", 30),
    u64("invalid_pdu_bytes", 34),
    u32("num_retx_pdu", 42),
    u64("retx_pdu_bytes", 46),
    u32("num_dup_pdu", 54),
    u64("dup_pdu_bytes", 58),
    u32("num_dropped_pdu", 66),
    u64("dropped_pdu_bytes", 70),
    u32("num_dropped_pdu_fc", 78),
    u64("dropped_pdu_bytes_fc", 82),
    u32("num_sdu", 90),
    u64("num_sdu_bytes", 94),
    u32("num_nonseq_sdu", 102),
    u32("num_ctrl_pdu", 106),
    u32("num_complete_nack", 110),
    u32("num_segments_nack", 114),
    u32("num_t_reorder_expired", 118),
    u32("num_t_reorder_start", 122),
    u32("num_missed_um_pdu", 126),
    u32("num_data_pdu_rst", 134),
    u64("data_pdu_bytes_rst", 138),
    u32("num_status_rxed_rst", 146),
    u64("status_rxed_bytes_rst", 150),
    u32("num_invalid_pdu_rst", 158),
    u64("invalid_pdu_bytes_rst", 162),
    u32("num_retx_pdu_rst", 170),
    u64("retx_pdu_bytes_rst", 174),
    u32("num_dup_pdu_rst", 182),
    u64("dup_pdu_bytes_rst", 186),
    u32("num_dropped_pdu_rst", 194),
    u64("dropped_pdu_bytes_rst", 198),
    u32("num_dropped_pdu_fc_rst", 206),
    u64("dropped_pdu_bytes_fc_rst", 210),
    u32("num_sdu_rst", 218),
    u64("num_sdu_bytes_rst", 222),
    u32("num_nonseq_sdu_rst", 230),
    u32("num_ctrl_pdu_rst", 234),
    u32("num_complete_nack_rst", 238),
    u32("num_segments_nack_rst", 242),
    u32("num_t_reorder_expired_rst", 246),
    u32("num_t_reorder_start_rst", 250),
    u32("num_missed_um_pdu_rst", 254),
];

const PDCP_UP_V26: &[Field] = &[
    u8("rb_cfg_idx", 0),
    u8("mode", 1).named(MODE),
    u8("pdcp_hdr_len", 2),
    u32("num_data_pdu_tx", 21),
    u64("num_data_pdu_tx_bytes", 25),
    u64("num_data_bytes_from_ps", 33),
    u32("num_data_pdu_tx_rst", 159),
    u64("num_data_pdu_tx_bytes_rst", 163),
    u64("num_data_bytes_from_ps_rst", 171),
];
