//! 0xB0E0 to 0xB0ED: NAS messages of LTE.
//!
//! Source: mobileinsight-core @4330fa9

use crate::layout::{Code, Field, Layout, Part, Verified, Version, VersionAt, u8};
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
