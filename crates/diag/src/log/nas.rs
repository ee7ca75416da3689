//! 0xB0E0 to 0xB0EE: NAS messages of LTE, and the state of its bearers and its registration.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Names, Part, Verified, Version, VersionAt, bytes, u8, u16};
use crate::packet::LogCode;

/// Session management, protected, from the network.
pub static B0E0: Code = nas(0xB0E0, "LTE NAS ESM protected incoming", UNSEEN);
/// Session management, protected, to the network.
pub static B0E1: Code = nas(0xB0E1, "LTE NAS ESM protected outgoing", SEEN);
/// Session management, plain, from the network.
pub static B0E2: Code = nas(0xB0E2, "LTE NAS ESM plain incoming", SEEN);
/// Session management, plain, to the network.
pub static B0E3: Code = nas(0xB0E3, "LTE NAS ESM plain outgoing", SEEN);
/// Mobility management, protected, from the network.
pub static B0EA: Code = nas(0xB0EA, "LTE NAS EMM protected incoming", SEEN);
/// Mobility management, protected, to the network.
pub static B0EB: Code = nas(0xB0EB, "LTE NAS EMM protected outgoing", SEEN);
/// Mobility management, plain, from the network.
pub static B0EC: Code = nas(0xB0EC, "LTE NAS EMM plain incoming", SEEN);
/// Mobility management, plain, to the network.
pub static B0ED: Code = nas(0xB0ED, "LTE NAS EMM plain outgoing", SEEN);

/// A bearer and its rates.
pub static B0E5: Code = nas(
    0xB0E5,
    "LTE NAS ESM bearer context info",
    &[Layout {
        versions: &[Version::Single(1)],
        verified: Verified::Checked,
        root: Part::root(20, BEARER, &[]),
    }],
);
/// Registration state of the phone, and its temporary identity.
pub static B0EE: Code = nas(
    0xB0EE,
    "LTE NAS EMM state",
    &[Layout {
        versions: &[Version::Single(2)],
        verified: Verified::Checked,
        root: Part::root(19, STATE, &[]),
    }],
);

const fn nas(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Byte, layouts }
}

const SEEN: &[Layout] = &[layout(Verified::Checked)];
const UNSEEN: &[Layout] = &[layout(Verified::Read)];

const fn layout(verified: Verified) -> Layout {
    Layout { versions: &[Version::Single(1)], verified, root: Part::root(4, HEAD, MESSAGE) }
}

const MESSAGE: &[Part] = &[Part::to_end("msg")];

const HEAD: &[Field] =
    &[u8("pkt_version", 0), u8("rrc_release_number", 1), u8("major_version", 2), u8("minor_version", 3)];

const BEARER: &[Field] = &[
    u8("version", 0),
    u8("eps_bearer_type", 1),
    u8("eps_bearer_id", 2),
    u8("eps_bearer_state", 3),
    u8("len", 10),
    u8("qci", 11),
    u8("ul_mbr", 12),
    u8("dl_mbr", 13),
    u8("ul_gbr", 14),
    u8("dl_gbr", 15),
    u8("ul_mbr_ext", 16),
    u8("dl_mbr_ext", 17),
    u8("ul_gbr_ext", 18),
    u8("dl_gbr_ext", 19),
];

const STATE: &[Field] = &[
    u8("version", 0),
    u8("emm_state", 1).named(STATES),
    u16("emm_substate", 2),
    bytes("plmn", 4, 3),
    u8("guti_valid", 7),
    u8("guti_ue_id", 8),
    bytes("guti_plmn", 9, 3),
    bytes("guti_mme_group_id", 12, 2),
    bytes("guti_mme_code", 14, 1),
    bytes("guti_m_tmsi", 15, 4),
];

const STATES: Names = &[
    (1, "EMM_DEREGISTERED"),
    (2, "EMM_REGISTERED_INITIATED"),
    (3, "EMM_REGISTERED"),
    (4, "EMM_TRACKING_AREA_UPDATING_INITIATED"),
    (5, "EMM_SERVICE_REQUEST_INITIATED"),
    (6, "EMM_DEREGISTERED_INITIATED"),
];
