//! 0xB063: downlink transport blocks at the MAC layer.
//!
//! Source: mobileinsight-core @4330fa9; versions 49 and 50: SCAT @5a56ecf
//!
//! Differs: SCAT reads the four bits below the HARQ process of versions 49 and 50 as the carrier. In the only block of
//! these versions in a real log, these bits are 12, but the assignment and the demapper report this block on the
//! primary carrier. They also report HARQ process 3, as this layout does.

use crate::layout::{
    Code, Coded, Extent, Field, Inner, Kind, Layout, Part, Repeat, Verified, Version, VersionAt, bytes, u8,
    u16, u24, u32,
};
use crate::log::names::{RNTI, SUBPACKET};
use crate::mac::Direction;
use crate::packet::LogCode;

/// Downlink transport blocks at the MAC layer.
pub static B063: Code = Code {
    code: LogCode(0xB063),
    name: "LTE MAC DL transport block",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(1)],
            verified: Verified::Checked,
            root: Part::root(
                4,
                HEAD,
                &[Part {
                    extent: Extent::Says("subpacket_size"),
                    inner: Inner::Choice(["subpacket_id", "version"], KINDS),
                    ..Part::counted("subpackets", "num_subpkt", 5, SUBPACKET_HEAD)
                }],
            ),
        },
        Layout {
            versions: &[Version::Single(49)],
            verified: Verified::Checked,
            root: Part::root(8, HEAD_V49, &[Part::once("", 28, &[]).repeated(Repeat::Times(19)), BLOCKS]),
        },
        Layout {
            versions: &[Version::Single(50)],
            verified: Verified::Read,
            root: Part::root(8, HEAD_V49, &[BLOCKS]),
        },
    ],
};

const KINDS: &[Kind] = &[
    Kind {
        id: 7,
        versions: &[2],
        verified: Verified::Checked,
        parts: &[Part::counted("samples", "num_samples", 12, SAMPLE_V2).of(&[HEADER])],
    },
    Kind {
        id: 7,
        versions: &[4],
        verified: Verified::Checked,
        parts: &[Part::counted("samples", "num_samples", 14, SAMPLE_V4).of(&[HEADER])],
    },
];

const HEADER: Part = Part::message("mac_hdr_ce", "hdr_len").coded(Coded::Mac(Direction::Down));

const HEAD: &[Field] = &[u8("version", 0), u8("num_subpkt", 1)];

const SUBPACKET_HEAD: &[Field] = &[
    u8("subpacket_id", 0).named(SUBPACKET),
    u8("version", 1),
    u16("subpacket_size", 2),
    u8("num_samples", 4),
];

const SAMPLE_V2: &[Field] = &[
    u16("sub_fn", 0).bits(0, 3),
    u16("sfn", 0).bits(4, 15),
    u8("rnti_type", 2).named(RNTI),
    u8("harq_id", 3),
    u16("pmch_id", 4),
    u16("dl_tbs_bytes", 6),
    u8("rlc_pdus", 8),
    u16("padding_bytes", 9),
    u8("hdr_len", 11),
];

const SAMPLE_V4: &[Field] = &[
    u8("sub_id", 0),
    u8("cell_id", 1),
    u16("sub_fn", 2).bits(0, 3),
    u16("sfn", 2).bits(4, 15),
    u8("rnti_type", 4).named(RNTI),
    u8("harq_id", 5),
    u16("pmch_id", 6),
    u16("dl_tbs_bytes", 8),
    u8("rlc_pdus", 10),
    u16("padding_bytes", 11),
    u8("hdr_len", 13),
];

const HEAD_V49: &[Field] =
    &[u8("version", 0), u16("num_blocks", 4), u8("num_logical_channels", 6), u8("reason", 7)];

const BLOCKS: Part = Part::counted("blocks", "num_blocks", 16, BLOCK_V49)
    .of(&[Part::counted("sdus", "num_sdus", 3, SDU_V49).of(&[ELEMENT_V49, DATA_V49])]);

const BLOCK_V49: &[Field] = &[
    u32("dl_tbs_bytes", 0),
    u32("padding_bytes", 4),
    u32("sfn", 8).bits(0, 9),
    u32("sub_fn", 8).bits(10, 13),
    u32("rnti_type", 8).bits(15, 18).named(RNTI),
    u8("harq_id", 12).bits(4, 7),
    u8("num_sdus", 13),
    u16("hdr_len", 14).bits(0, 11),
];

const SDU_V49: &[Field] =
    &[u24("control_element", 0).bits(0, 0), u24("lc_id", 0).bits(1, 6), u24("length", 0).bits(7, 22)];

const ELEMENT_V49: Part =
    Part::once("", 9, &[bytes("element", 0, 9)]).repeated(Repeat::If("control_element", 1));

const DATA_V49: Part = Part::once("", 9, &[u8("num_pdcp_groups", 5), u16("num_dynamic", 6)])
    .repeated(Repeat::If("control_element", 0))
    .of(&[
        Part::counted("dynamic", "num_dynamic", 4, &[u32("entry", 0).mask()]),
        Part::counted("pdcp_groups", "num_pdcp_groups", 0, &[]).of(&[WORDS_V49]),
    ]);

const WORDS_V49: Part = Part::once("words", 4, &[u32("more", 0).bits(0, 0), u32("word", 0).mask()])
    .repeated(Repeat::While("more"));
