//! 0x1007 and 0x107C: broadcast messages of CDMA cells. These packets have no version.
//!
//! Source: mobileinsight-core @4330fa9; bits of the messages: 3GPP2 C.S0005 §3.7.2.3.2.1, 3GPP2 C.S0024 §7.11.6.2.1

use crate::layout::{Code, Field, Layout, Part, Repeat, Verified, Version, VersionAt, from_top, u8, u16};
use crate::packet::LogCode;

/// Messages of the paging channel.
pub static X1007: Code =
    code(0x1007, "CDMA paging channel message", &[layout(Part::root(2, PAGING, &[SYSTEM, Part::rest()]))]);
/// Messages of the control channel of 1xEV-DO.
pub static X107C: Code = code(
    0x107C,
    "1xEV signaling control channel broadcast",
    &[layout(Part::root(13, BROADCAST, &[SECTOR, Part::rest()]))],
);

const fn code(code: u16, name: &'static str, layouts: &'static [Layout]) -> Code {
    Code { code: LogCode(code), name, version: VersionAt::Nowhere, layouts }
}

const fn layout(root: Part) -> Layout {
    Layout { versions: &[Version::Single(0)], verified: Verified::Read, root }
}

/// Steps per degree of latitude or longitude: a step is a quarter of a second of arc.
const STEPS: f64 = 14_400.0;

const PAGING: &[Field] = &[u8("message_length", 0), u8("message_id", 1)];

const SYSTEM: Part = Part::once("system_parameters", 28, PARAMETERS).repeated(Repeat::If("message_id", 1));

const PARAMETERS: &[Field] = &[
    from_top("pilot_pn", 0, 9),
    from_top("config_msg_seq", 9, 6),
    from_top("sid", 15, 15),
    from_top("nid", 30, 16),
    from_top("reg_zone", 46, 12),
    from_top("total_zones", 58, 3),
    from_top("zone_timer", 61, 3),
    from_top("base_id", 66, 16),
    from_top("base_class", 82, 4),
    from_top("max_slot_cycle_index", 89, 3),
    from_top("reg_prd", 98, 7),
    from_top("base_latitude", 105, 22).signed().scaled(STEPS, 0.0),
    from_top("base_longitude", 127, 23).signed().scaled(STEPS, 0.0),
    from_top("t_add", 194, 6),
    from_top("t_drop", 200, 6),
    from_top("t_comp", 206, 4),
    from_top("t_tdrop", 210, 4),
];

const BROADCAST: &[Field] = &[
    u8("band", 0),
    u16("channel_number", 1),
    u16("pilot_pn", 3),
    u16("hstr", 5),
    u8("protocol_type", 11),
    u8("message_id", 12),
    u16("message", 11).named(&[(0x010F, "SectorParameters"), (0x030F, "OtherRATNeighborList")]),
];

const SECTOR: Part =
    Part::once("sector_parameters", 27, SECTOR_FIELDS).repeated(Repeat::If("message", 0x010F));

const SECTOR_FIELDS: &[Field] = &[
    from_top("country_code", 0, 12).mask(),
    from_top("subnet_id_high", 12, 56).mask(),
    from_top("subnet_id_low", 68, 48).mask(),
    from_top("sector_id", 116, 24),
    from_top("subnet_mask", 140, 8),
    from_top("sector_signature", 148, 16),
    from_top("latitude", 164, 22).signed().scaled(STEPS, 0.0),
    from_top("longitude", 186, 23).signed().scaled(STEPS, 0.0),
];
