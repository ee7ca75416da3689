//! 0xB0C0: RRC messages of LTE as transmitted over the air.
//!
//! Source: SCAT @5a56ecf; names of fields: mobileinsight-core @4330fa9
//!
//! Differs: mobileinsight-core reads version 26 with a 16-bit channel number, which makes its frame number wrong. Both
//! decoders include the two bits above the frame number in the frame number. In real logs these bits are flags: only
//! without them do consecutive frame numbers agree with the time between their packets.

use crate::layout::{Code, Field, Layout, Names, Part, Verified, Version, VersionAt, u8, u16, u32};
use crate::log::names::SIBS;
use crate::packet::LogCode;

/// RRC messages of LTE as transmitted over the air.
pub static B0C0: Code = Code {
    code: LogCode(0xB0C0),
    name: "LTE RRC OTA",
    version: VersionAt::Byte,
    layouts: &[
        layout(&[v(2), v(3), v(4)], Verified::Read, Part::root(13, &first(FROM_1), MESSAGE)),
        layout(&[v(7)], Verified::Checked, Part::root(17, &with_sib_mask(FROM_1), MESSAGE)),
        layout(&[v(6)], Verified::Read, Part::root(17, &with_sib_mask(FROM_1), MESSAGE)),
        // The list of channels of this version is unknown.
        layout(&[v(5)], Verified::Read, Part::root(17, &with_sib_mask(&[]), MESSAGE)),
        layout(&[v(8)], Verified::Checked, Part::root(19, &wide(FROM_1), MESSAGE)),
        layout(&[v(13), v(22)], Verified::Read, Part::root(19, &wide(FROM_1), MESSAGE)),
        layout(&[v(9)], Verified::Checked, Part::root(19, &wide(FROM_8), MESSAGE)),
        layout(&[v(12)], Verified::Read, Part::root(19, &wide(FROM_8), MESSAGE)),
        layout(&[v(15), v(20)], Verified::Checked, Part::root(19, &wide(WITHOUT_3), MESSAGE)),
        layout(&[v(14), v(16), v(24)], Verified::Read, Part::root(19, &wide(WITHOUT_3), MESSAGE)),
        layout(&[v(19)], Verified::Checked, Part::root(19, &wide(WITHOUT_2), MESSAGE)),
        layout(&[v(25)], Verified::Read, Part::root(21, &with_nr(WITHOUT_3), MESSAGE)),
        layout(&[v(26)], Verified::Checked, Part::root(21, &with_nr(WITHOUT_2), MESSAGE)),
        layout(&[v(27), v(29)], Verified::Read, Part::root(21, &with_nr(WITHOUT_2), MESSAGE)),
        layout(
            &[v(30), v(31)],
            Verified::Read,
            Part::root(
                21,
                &with_nr(WITHOUT_2),
                &[Part::once("", 3, &[u8("segment", 2)]), Part::message("msg", "msg_length")],
            ),
        ),
    ],
};

const fn v(number: u8) -> Version {
    Version::Single(number)
}

const fn layout(versions: &'static [Version], verified: Verified, root: Part) -> Layout {
    Layout { versions, verified, root }
}

const MESSAGE: &[Part] = &[Part::message("msg", "msg_length")];

/// If the modem does not know the frame, then frame, subframe and flags are all 0. In real logs this holds for all
/// 3,339 messages of uplink channels, and for 518 of 561 messages with system information and without flags.
const fn subframe(byte: usize) -> Field {
    u16("subframe_number", byte).bits(0, 3).unset_where(u16("", byte), 0)
}

const fn frame(byte: usize) -> Field {
    u16("system_frame_number", byte).bits(4, 13).unset_where(u16("", byte), 0)
}

/// The oldest layout, with 16-bit channel numbers.
const fn first(channels: Names) -> [Field; 12] {
    [
        u8("pkt_version", 0),
        u8("rrc_release_number", 1),
        u8("major_minor", 2),
        u8("radio_bearer_id", 3),
        u16("physical_cell_id", 4),
        u16("freq", 6),
        subframe(8),
        frame(8),
        u16("frame_flags", 8).bits(14, 15),
        u8("pdu_number", 10),
        u8("channel", 10).named(channels),
        u16("msg_length", 11),
    ]
}

/// Later layouts, with a field for the system information blocks in a message.
const fn with_sib_mask(channels: Names) -> [Field; 13] {
    let [version, release, minor, bearer, cell, freq, subframe, frame, flags, pdu, channel, _] =
        first(channels);
    let (mask, length) = (u32("sib_mask_in_si", 11).flags(SIBS), u16("msg_length", 15));
    [version, release, minor, bearer, cell, freq, subframe, frame, flags, pdu, channel, mask, length]
}

/// Later layouts, with 32-bit channel numbers.
const fn wide(channels: Names) -> [Field; 13] {
    [
        u8("pkt_version", 0),
        u8("rrc_release_number", 1),
        u8("major_minor", 2),
        u8("radio_bearer_id", 3),
        u16("physical_cell_id", 4),
        u32("freq", 6),
        subframe(10),
        frame(10),
        u16("frame_flags", 10).bits(14, 15),
        u8("pdu_number", 12),
        u8("channel", 12).named(channels),
        u32("sib_mask_in_si", 13).flags(SIBS),
        u16("msg_length", 17),
    ]
}

/// Later layouts, with fields for NR.
const fn with_nr(channels: Names) -> [Field; 15] {
    [
        u8("pkt_version", 0),
        u8("rrc_release_number", 1),
        u8("rrc_version_number", 2),
        u8("nr_rrc_release_number", 3),
        u8("nr_rrc_version_number", 4),
        u8("radio_bearer_id", 5),
        u16("physical_cell_id", 6),
        u32("freq", 8),
        subframe(12),
        frame(12),
        u16("frame_flags", 12).bits(14, 15),
        u8("pdu_number", 14),
        u8("channel", 14).named(channels),
        u32("sib_mask_in_si", 15).flags(SIBS),
        u16("msg_length", 19),
    ]
}

const FROM_1: Names = &[
    (1, "BCCH-BCH"),
    (2, "BCCH-DL-SCH"),
    (3, "MCCH"),
    (4, "PCCH"),
    (5, "DL-CCCH"),
    (6, "DL-DCCH"),
    (7, "UL-CCCH"),
    (8, "UL-DCCH"),
];

const FROM_8: Names = &[
    (8, "BCCH-BCH"),
    (9, "BCCH-DL-SCH"),
    (10, "MCCH"),
    (11, "PCCH"),
    (12, "DL-CCCH"),
    (13, "DL-DCCH"),
    (14, "UL-CCCH"),
    (15, "UL-DCCH"),
];

const WITHOUT_3: Names = &[
    (1, "BCCH-BCH"),
    (2, "BCCH-DL-SCH"),
    (4, "MCCH"),
    (5, "PCCH"),
    (6, "DL-CCCH"),
    (7, "DL-DCCH"),
    (8, "UL-CCCH"),
    (9, "UL-DCCH"),
    (54, "BCCH-BCH-NB"),
    (55, "BCCH-DL-SCH-NB"),
    (56, "PCCH-NB"),
    (57, "DL-CCCH-NB"),
    (58, "DL-DCCH-NB"),
    (59, "UL-CCCH-NB"),
    (61, "UL-DCCH-NB"),
];

const WITHOUT_2: Names = &[
    (1, "BCCH-BCH"),
    (3, "BCCH-DL-SCH"),
    (6, "MCCH"),
    (7, "PCCH"),
    (8, "DL-CCCH"),
    (9, "DL-DCCH"),
    (10, "UL-CCCH"),
    (11, "UL-DCCH"),
    (45, "BCCH-BCH-NB"),
    (46, "BCCH-DL-SCH-NB"),
    (47, "PCCH-NB"),
    (48, "DL-CCCH-NB"),
    (49, "DL-DCCH-NB"),
    (50, "UL-CCCH-NB"),
    (52, "UL-DCCH-NB"),
];
