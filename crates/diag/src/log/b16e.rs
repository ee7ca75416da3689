//! 0xB16E: transmit power on the uplink shared channel in each subframe.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8, u32};
use crate::log::names::{PUSCH_DCI_FORMAT, PUSCH_TPC, PUSCH_TX_TYPE};
use crate::packet::LogCode;

/// Transmit power on the uplink shared channel in each subframe.
pub static B16E: Code = Code {
    code: LogCode(0xB16E),
    name: "LTE PUSCH power control",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(4)],
            verified: Verified::Read,
            root: Part::root(4, HEAD_V25, &[Part::counted("records", "number_of_records", 12, RECORD_V4)]),
        },
        Layout {
            versions: &[Version::Single(5)],
            verified: Verified::Read,
            root: Part::root(4, HEAD_V25, &[Part::counted("records", "number_of_records", 12, RECORD_V5)]),
        },
        Layout {
            versions: &[Version::Single(25)],
            verified: Verified::Checked,
            root: Part::root(4, HEAD_V25, &[Part::counted("records", "number_of_records", 12, RECORD_V25)]),
        },
    ],
};

const HEAD_V25: &[Field] = &[u8("version", 0), u8("number_of_records", 3)];

const RECORD_V25: &[Field] = &[
    u32("cell_index", 0).bits(0, 2),
    u32("sfn", 0).bits(3, 12),
    u32("sub_fn", 0).bits(13, 16),
    u32("pusch_tx_power_dbm", 0).bits(17, 24),
    u32("dci_format", 0).bits(25, 28).named(PUSCH_DCI_FORMAT),
    u32("tx_type", 0).bits(29, 30).named(PUSCH_TX_TYPE),
    u32("tpc_frozen", 0).bits(31, 31),
    u32("num_rbs", 4).bits(0, 7),
    u32("transport_block_size", 4).bits(8, 21),
    u32("dl_path_loss", 4).bits(22, 29),
    u32("f_i", 8).bits(0, 9).signed(),
    u32("tpc", 8).bits(10, 14).meant(PUSCH_TPC),
    u32("pusch_actual_tx_power", 8).bits(15, 22),
    u32("max_power", 8).bits(23, 30),
];

const RECORD_V5: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("pusch_tx_power_dbm", 0).bits(14, 21),
    u32("dci_format", 0).bits(22, 25).named(PUSCH_DCI_FORMAT),
    u32("tx_type", 0).bits(26, 27).named(PUSCH_TX_TYPE),
    u32("num_rbs", 4).bits(0, 7),
    u32("transport_block_size", 4).bits(8, 21),
    u32("dl_path_loss", 4).bits(22, 29),
    u32("f_i", 8).bits(0, 9).signed(),
    u32("tpc", 8).bits(10, 14).meant(PUSCH_TPC),
    u32("pusch_actual_tx_power", 8).bits(15, 22),
];

const RECORD_V4: &[Field] = &[
    u32("sfn", 0).bits(0, 9),
    u32("sub_fn", 0).bits(10, 13),
    u32("pusch_tx_power_dbm", 0).bits(14, 21),
    u32("dci_format", 0).bits(22, 25).named(PUSCH_DCI_FORMAT),
    u32("tx_type", 0).bits(26, 27).named(PUSCH_TX_TYPE),
    u32("transport_block_size", 4).bits(0, 13),
    u32("dl_path_loss", 4).bits(14, 21),
    u32("f_i", 4).bits(22, 31).signed(),
    u32("tpc", 8).bits(0, 4).meant(PUSCH_TPC),
    u32("pusch_actual_tx_power", 8).bits(5, 12),
];
