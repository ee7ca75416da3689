//! 0xB13C: transmissions of the modem on the uplink control channel.
//!
//! Source: mobileinsight-core @4330fa9; version 161: worked out from a real log (below)

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, bytes, u8, u16, u32};
use crate::log::names::{CARRIER, OFF_ON, PUCCH_FORMAT, SRS_SHORTENING};
use crate::packet::LogCode;

/// Transmissions of the modem on the uplink control channel.
pub static B13C: Code = Code {
    code: LogCode(0xB13C),
    name: "LTE PUCCH Tx report",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(21)],
            verified: Verified::Read,
            root: Part::root(8, HEAD_V21, &[Part::counted("records", "number_of_records", 32, RECORD_V21)]),
        },
        Layout {
            versions: &[Version::Single(22)],
            verified: Verified::Read,
            root: Part::root(8, HEAD_V21, &[Part::counted("records", "number_of_records", 36, RECORD_V22)]),
        },
        Layout {
            versions: &[Version::Single(43)],
            verified: Verified::Checked,
            root: Part::root(8, HEAD_V21, &[Part::counted("records", "number_of_records", 36, RECORD_V43)]),
        },
        Layout {
            versions: &[Version::Single(101)],
            verified: Verified::Read,
            root: Part::root(8, HEAD_V21, &[Part::counted("records", "number_of_records", 36, RECORD_V101)]),
        },
        Layout {
            versions: &[Version::Single(121)],
            verified: Verified::Checked,
            root: Part::root(8, HEAD_V21, &[Part::counted("records", "number_of_records", 36, RECORD_V121)]),
        },
        Layout {
            versions: &[Version::Single(142)],
            verified: Verified::Read,
            root: Part::root(8, HEAD_V21, &[Part::counted("records", "number_of_records", 52, RECORD_V142)]),
        },
        // Packets of a real log are 8 + 68 · records bytes long. The subframes are those of the reports in 0xB14D, and of
        // an acknowledgement four subframes after its block in 0xB126. No other field of a record could be verified.
        Layout {
            versions: &[Version::Single(161)],
            verified: Verified::Guess,
            root: Part::root(8, HEAD_V21, &[Part::counted("records", "number_of_records", 68, RECORD_V161)]),
        },
    ],
};

const HEAD_V21: &[Field] = &[
    u8("version", 0),
    u16("serving_cell_id", 1).bits(0, 8),
    u16("number_of_records", 1).bits(9, 13),
    u16("dispatch_sfn_sf", 4),
];

const RECORD_V21: &[Field] = &[
    u16("current_sfn_sf", 0),
    u16("cqi_payload", 2),
    u32("format", 4).bits(0, 2).named(PUCCH_FORMAT),
    u32("start_rb_slot_0", 4).bits(3, 9),
    u32("start_rb_slot_1", 4).bits(10, 16),
    u32("srs_shorting_for_2nd_slot", 4).bits(17, 17).named(SRS_SHORTENING),
    u32("ue_srs", 4).bits(18, 18).named(OFF_ON),
    u32("dmrs_seq_slot_0", 4).bits(19, 23),
    u32("dmrs_seq_slot_1", 4).bits(24, 28),
    bytes("cyclic_shift_seq_per_symbol", 8, 14),
    u8("pucch_digital_gain_db", 22),
    u8("pucch_tx_power_dbm", 23).bits(0, 5),
    u32("tx_resampler", 24).scaled(4_294_967_296.0, 0.0),
    u16("n_1_pucch", 28),
];

const RECORD_V22: &[Field] = &[
    u16("current_sfn_sf", 0),
    u16("cqi_payload", 2),
    u32("format", 4).bits(0, 2).named(PUCCH_FORMAT),
    u32("start_rb_slot_0", 4).bits(3, 9),
    u32("start_rb_slot_1", 4).bits(10, 16),
    u32("srs_shorting_for_2nd_slot", 4).bits(17, 17).named(SRS_SHORTENING),
    u32("ue_srs", 4).bits(18, 18).named(OFF_ON),
    u32("dmrs_seq_slot_0", 4).bits(19, 23),
    u32("dmrs_seq_slot_1", 4).bits(24, 28),
    bytes("cyclic_shift_seq_per_symbol", 8, 14),
    u8("pucch_digital_gain_db", 22),
    u8("pucch_tx_power_dbm", 23).bits(0, 5),
    u32("tx_resampler", 24).scaled(4_294_967_296.0, 0.0),
    u16("n_1_pucch", 28),
    u32("num_repetition", 32).bits(0, 11),
    u32("rb_nb_start_index", 32).bits(12, 19),
];

const RECORD_V43: &[Field] = &[
    u16("current_sfn_sf", 0),
    u16("cqi_payload", 2),
    u32("format", 4).bits(0, 2).named(PUCCH_FORMAT),
    u32("start_rb_slot_0", 4).bits(3, 9),
    u32("start_rb_slot_1", 4).bits(10, 16),
    u32("srs_shorting_for_2nd_slot", 4).bits(17, 17).named(SRS_SHORTENING),
    u32("ue_srs", 4).bits(18, 18).named(OFF_ON),
    u32("dmrs_seq_slot_0", 4).bits(19, 23),
    u32("dmrs_seq_slot_1", 4).bits(24, 28),
    bytes("cyclic_shift_seq_per_symbol", 8, 14),
    u8("pucch_digital_gain_db", 22),
    u8("pucch_tx_power_dbm", 23).bits(0, 5),
    u32("ack_payload_length", 24).bits(20, 24),
    u32("sr_bit_fmt3", 24).bits(25, 25),
    u32("num_dl_carriers", 24).bits(26, 29),
    u16("n_1_pucch", 28),
    u16("ack_nak_late", 30).bits(12, 12),
    u16("csf_late", 30).bits(13, 13),
    u16("dropped_pucch", 30).bits(14, 14),
    u32("tx_resampler", 32).scaled(4_294_967_296.0, 0.0),
];

const RECORD_V101: &[Field] = &[
    u16("current_sfn_sf", 0),
    u16("cqi_payload", 2),
    u32("carrier_index", 4).bits(0, 1).named(CARRIER),
    u32("format", 4).bits(2, 4).named(PUCCH_FORMAT),
    u32("start_rb_slot_0", 4).bits(5, 11),
    u32("start_rb_slot_1", 4).bits(12, 18),
    u32("srs_shorting_for_2nd_slot", 4).bits(19, 19).named(SRS_SHORTENING),
    u32("ue_srs", 4).bits(20, 20).named(OFF_ON),
    u32("dmrs_seq_slot_0", 4).bits(21, 25),
    u32("dmrs_seq_slot_1", 4).bits(26, 30),
    bytes("cyclic_shift_seq_per_symbol", 8, 14),
    u8("pucch_digital_gain_db", 22),
    u8("pucch_tx_power_dbm", 23).bits(0, 5),
    u32("ack_payload_length", 24).bits(20, 24),
    u32("sr_bit_fmt3", 24).bits(25, 25),
    u32("num_dl_carriers", 24).bits(26, 29),
    u16("n_1_pucch", 28),
    u16("ack_nak_late", 30).bits(12, 12),
    u16("csf_late", 30).bits(13, 13),
    u16("dropped_pucch", 30).bits(14, 14),
    u32("tx_resampler", 32).scaled(4_294_967_296.0, 0.0),
];

const RECORD_V121: &[Field] = &[
    u16("current_sfn_sf", 0),
    u16("cqi_payload", 2),
    u32("carrier_index", 4).bits(0, 1).named(CARRIER),
    u32("format", 4).bits(2, 4).named(PUCCH_FORMAT),
    u32("start_rb_slot_0", 4).bits(5, 11),
    u32("start_rb_slot_1", 4).bits(12, 18),
    u32("srs_shorting_for_2nd_slot", 4).bits(19, 19).named(SRS_SHORTENING),
    u32("ue_srs", 4).bits(20, 20).named(OFF_ON),
    u32("dmrs_seq_slot_0", 4).bits(21, 25),
    u32("dmrs_seq_slot_1", 4).bits(26, 30),
    bytes("cyclic_shift_seq_per_symbol", 8, 14),
    u8("pucch_digital_gain_db", 22),
    u8("pucch_tx_power_dbm", 23).bits(0, 5),
    u32("ack_payload_length", 24).bits(20, 24),
    u32("sr_bit_fmt3", 24).bits(25, 25),
    u32("num_dl_carriers", 24).bits(26, 29),
    u32("dl_carrier_index", 24).bits(30, 30).named(CARRIER),
    u16("n_1_pucch", 28),
    u16("ack_nak_late", 30).bits(12, 12),
    u16("csf_late", 30).bits(13, 13),
    u16("dropped_pucch", 30).bits(14, 14),
    u32("tx_resampler", 32).scaled(4_294_967_296.0, 0.0),
];

const RECORD_V142: &[Field] = &[
    u16("current_sfn_sf", 0),
    u16("cqi_payload", 2),
    u32("carrier_index", 4).bits(0, 1).named(CARRIER),
    u32("format", 4).bits(2, 4).named(PUCCH_FORMAT),
    u32("start_rb_slot_0", 4).bits(5, 11),
    u32("start_rb_slot_1", 4).bits(12, 18),
    u32("srs_shorting_for_2nd_slot", 4).bits(19, 19).named(SRS_SHORTENING),
    u32("ue_srs", 4).bits(20, 20).named(OFF_ON),
    u32("dmrs_seq_slot_0", 4).bits(21, 25),
    u32("dmrs_seq_slot_1", 4).bits(26, 30),
    bytes("cyclic_shift_seq_per_symbol", 8, 14),
    u8("pucch_digital_gain_db", 22),
    u8("pucch_tx_power_dbm", 23).bits(0, 5),
    bytes("ack_payload_0", 24, 4),
    bytes("ack_payload_1", 28, 4),
    bytes("ack_payload_2", 32, 4),
    bytes("ack_payload_3", 36, 4),
    u8("ack_payload_length", 40).bits(0, 6),
    u8("sr_bit_fmt3", 40).bits(7, 7),
    u16("num_dl_carriers", 41).bits(0, 2),
    u16("dl_carrier_index", 41).bits(3, 5).named(CARRIER),
    u16("num_rb", 41).bits(6, 12),
    u16("cdm_index", 41).bits(13, 13),
    u16("n_1_pucch", 44),
    u16("ack_nak_late", 46).bits(12, 12),
    u16("csf_late", 46).bits(13, 13),
    u16("dropped_pucch", 46).bits(14, 14),
    u32("tx_resampler", 48).scaled(4_294_967_296.0, 0.0),
];

const RECORD_V161: &[Field] = &[u16("current_sfn_sf", 0)];
