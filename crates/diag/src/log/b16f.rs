//! 0xB16F: transmit power on the uplink control channel.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::log::names::{PUCCH_DCI_FORMAT, PUCCH_FORMAT, PUCCH_TPC};
use crate::packet::LogCode;

/// Transmit power on the uplink control channel.
pub static B16F: Code = Code {
    code: LogCode(0xB16F),
    name: "LTE PUCCH power control",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(4)],
            verified: Verified::Read,
            root: Part::root(4, HEAD_V24, &[Part::counted("records", "number_of_records", 12, RECORD_V4)]),
        },
        Layout {
            versions: &[Version::Single(24)],
            verified: Verified::Checked,
            root: Part::root(4, HEAD_V24, &[Part::counted("records", "number_of_records", 12, RECORD_V24)]),
        },
    ],
};

const HEAD_V24: &[Field] = &[u8("version", 0), u8("number_of_records", 3)];

const RECORD_V24: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("pucch_tx_power_dbm", 0).bits(14, 21),
    u32("dci_format", 0).bits(22, 25).named(PUCCH_DCI_FORMAT),
    u32("pucch_format", 0).bits(26, 28).named(PUCCH_FORMAT),
    u32("n_harq", 0).bits(29, 29),
    u32("tpc_command", 4).bits(0, 5).meant(PUCCH_TPC),
    u32("n_cqi", 4).bits(6, 10),
    u32("dl_path_loss", 4).bits(11, 18),
    u16("g_i", 8),
    u8("pucch_actual_tx_power", 10),
];

const RECORD_V4: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("pucch_tx_power_dbm", 0).bits(14, 21),
    u32("dci_format", 0).bits(22, 25).named(PUCCH_DCI_FORMAT),
    u32("pucch_format", 0).bits(26, 28).named(PUCCH_FORMAT),
    u32("n_harq", 0).bits(29, 29),
    u32("tpc_command", 4).bits(0, 5).meant(PUCCH_TPC),
    u32("n_cqi", 4).bits(6, 10),
    u32("dl_path_loss", 4).bits(11, 17),
    u16("g_i", 8),
    u8("pucch_actual_tx_power", 10),
];
