//! 0x7130, 0x7131 and 0x713A: registration of GSM and UMTS, and their NAS messages. These packets have no version.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Names, Part, Verified, Version, VersionAt, u8, u32};
use crate::packet::LogCode;

/// State of the registration for packet services.
pub static X7130: Code = code(0x7130, "UMTS NAS GMM state", &[layout(Part::root(3, GMM, &[]))]);
/// State of the registration for calls.
pub static X7131: Code = code(0x7131, "UMTS NAS MM state", &[layout(Part::root(3, MM, &[]))]);
/// NAS messages.
pub static X713A: Code = code(0x713A, "UMTS NAS OTA", &[layout(Part::root(5, OTA, MESSAGE))]);

const fn code(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Nowhere, layouts }
}

const fn layout(root: Part) -> Layout {
    Layout { versions: &[Version::Single(0)], verified: Verified::Checked, root }
}

const MESSAGE: &[Part] = &[Part::message("msg", "message_length")];

const OTA: &[Field] =
    &[u8("message_direction", 0).named(&[(0, "TO_UE"), (1, "FROM_UE")]), u32("message_length", 1)];

const GMM: &[Field] = &[
    u8("gmm_state", 0).named(GMM_STATES),
    u8("gmm_substate", 1).named(GMM_SUBSTATES),
    u8("gmm_update_status", 2).named(GMM_UPDATES),
];

const MM: &[Field] = &[
    u8("mm_state", 0).named(MM_STATES),
    u8("mm_substate", 1).named(MM_SUBSTATES),
    u8("mm_update_status", 2).named(&[(0, "UPDATED"), (1, "NOT_UPDATED"), (2, "ROAMING_NOT_ALLOWED")]),
];

/// Source: TS 24.008 §4.1.3
const GMM_STATES: Names = &[
    (0, "GMM_NULL"),
    (1, "GMM_DEREGISTERED"),
    (2, "GMM_REGISTERED_INITIATED"),
    (3, "GMM_REGISTERED"),
    (4, "GMM_DEREGISTERED_INITIATED"),
    (5, "GMM_ROUTING_AREA_UPDATING_INITIATED"),
    (6, "GMM_SERVICE_REQUEST_INITIATED"),
];

const GMM_SUBSTATES: Names = &[
    (0, "GMM_NORMAL_SERVICE"),
    (1, "GMM_LIMITED_SERVICE"),
    (2, "GMM_ATTACH_NEEDED"),
    (3, "GMM_ATTEMPTING_TO_ATTACH"),
    (4, "GMM_NO_IMSI"),
    (5, "GMM_NO_CELL_AVAILABLE"),
    (6, "GMM_PLMN_SEARCH"),
    (7, "GMM_SUSPENDED"),
    (8, "GMM_UPDATE_NEEDED"),
    (9, "GMM_ATTEMPTING_TO_UPDATE"),
    (10, "GMM_ATTEMPTING_TO_UPDATE_MM"),
    (11, "GMM_IMSI_DETACH_INITIATED"),
];

const GMM_UPDATES: Names = &[
    (0, "GMM_GU1_UPDATED"),
    (1, "GMM_GU2_NOT_UPDATED"),
    (2, "GMM_GU3_PLMN_NOT_ALLOWED"),
    (3, "GMM_GU3_ROUTING_AREA_NOT_ALLOWED"),
];

/// Source: TS 24.008 §4.1.2
const MM_STATES: Names = &[
    (0, "MM_NULL"),
    (3, "MM_LOCATION_UPDATE_INITIATED"),
    (5, "MM_WAIT_FOR_OUTGOING_MM_CONNECTION"),
    (6, "MM_CONNECTION_ACTIVE"),
    (7, "MM_IMSI_DETACH_INITIATED"),
    (9, "MM_WAIT_FOR_NETWORK_COMMAND"),
    (10, "MM_LOCATION_UPDATE_REJECTED"),
    (13, "MM_WAIT_FOR_RR_CONNECTION_UL"),
    (14, "MM_WAIT_FOR_RR_CONNECTION_MM"),
    (15, "MM_WAIT_FOR_RR_CONNECTION_IMSI_DETACH"),
    (17, "MM_REESTABLISHMENT_INITIATED"),
    (18, "MM_WAIT_FOR_RR_ACTIVE"),
    (19, "MM_IDLE"),
    (20, "MM_WAIT_FOR_ADDITIONAL_OUTGOING_MM_CONNECTION"),
    (21, "MM_WAIT_FOR_RR_CONNECTION_REESTABLISHMENT"),
    (22, "MM_WAIT_FOR_REESTABLISH_DECISION"),
];

const MM_SUBSTATES: Names = &[
    (0, "MM_NULL_SUBSTATE"),
    (1, "MM_NO_IMSI"),
    (2, "MM_PLMN_SEARCH"),
    (3, "MM_LIMITED_SERVICE"),
    (4, "MM_ATTEMPTING_TO_UPDATE"),
    (5, "MM_LOCATION_UPDATE_NEEDED"),
    (6, "MM_NO_CELL_AVAILABLE"),
    (7, "MM_PLMN_SEARCH_NORMAL_SERVICE"),
    (8, "MM_NORMAL_SERVICE"),
];
