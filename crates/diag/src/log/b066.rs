//! 0xB066: number of bytes queued in each logical channel of the uplink.
//!
//! Source: mobileinsight-core @4330fa9; version 48: worked out from a real log (below)

use crate::layout::{
    Code, Extent, Field, Inner, Kind, Layout, Part, Verified, Version, VersionAt, u8, u16, u32,
};
use crate::log::names::SUBPACKET;
use crate::packet::LogCode;

/// Number of bytes queued in each logical channel of the uplink.
pub static B066: Code = Code {
    code: LogCode(0xB066),
    name: "LTE MAC UL buffer status",
    version: VersionAt::Byte,
    layouts: &[
        Layout {
            versions: &[Version::Single(1)],
            verified: Verified::Checked,
            root: Part::root(4, HEAD, SUBPACKETS),
        },
        // Packets of a real log have one subpacket with a known id and version, which fills the packet. The subpacket
        // has 40 samples, which fill the subpacket. In samples with a frame number, this number matches the time of the
        // packet.
        Layout {
            versions: &[Version::Single(48)],
            verified: Verified::Guess,
            root: Part::root(4, HEAD, SUBPACKETS),
        },
    ],
};

const SUBPACKETS: &[Part] = &[Part {
    extent: Extent::Says("subpacket_size"),
    inner: Inner::Choice(["subpacket_id", "version"], KINDS),
    ..Part::counted("subpackets", "num_subpkt", 5, SUBPACKET_HEAD)
}];

const KINDS: &[Kind] = &[
    Kind {
        id: 10,
        versions: &[3],
        verified: Verified::Checked,
        parts: &[Part::counted("samples", "num_samples", 3, SAMPLE_V3).of(&[Part::counted(
            "lcids",
            "number_of_active_lcid",
            12,
            CHANNEL_V3,
        )])],
    },
    Kind {
        id: 10,
        versions: &[24],
        verified: Verified::Checked,
        parts: &[Part::counted("samples", "num_samples", 4, SAMPLE_V24).of(&[Part::counted(
            "lcids",
            "number_of_active_lcid",
            16,
            CHANNEL_V24,
        )])],
    },
];

const HEAD: &[Field] = &[u8("version", 0), u8("num_subpkt", 1)];

const SUBPACKET_HEAD: &[Field] = &[
    u8("subpacket_id", 0).named(SUBPACKET),
    u8("version", 1),
    u16("subpacket_size", 2),
    u8("num_samples", 4),
];

/// In a sample with an unknown frame, all bits of frame and subframe are 1. Subframe 15 identifies such a sample,
/// because frame 1023 is valid.
const fn subframe(byte: usize) -> Field {
    u16("sub_fn", byte).bits(0, 3).unset_where(u16("", byte).bits(0, 3), 15)
}

const fn frame(byte: usize) -> Field {
    u16("sys_fn", byte).bits(4, 13).unset_where(u16("", byte).bits(0, 3), 15)
}

const SAMPLE_V3: &[Field] = &[subframe(0), frame(0), u8("number_of_active_lcid", 2)];

const CHANNEL_V3: &[Field] =
    &[u8("ld_id", 0), u8("priority", 1), u32("new_bytes", 2), u32("retx_bytes", 6), u16("ctrl_bytes", 10)];

const SAMPLE_V24: &[Field] = &[u8("sub_id", 0), subframe(1), frame(1), u8("number_of_active_lcid", 3)];

const CHANNEL_V24: &[Field] = &[
    u8("ld_id", 0),
    u8("priority", 1),
    u32("new_uncompressed_bytes", 2),
    u32("new_compressed_bytes", 6),
    u32("retx_bytes", 10),
    u16("ctrl_bytes", 14),
];
