//! Layout tables of log packets, one file per code.
//!
//! Field names are those of the decoders from which the layouts were taken. A layout is
//! [checked](crate::layout::Verified) if lengths of packets in real logs match to the byte and values agree with the
//! values that another decoder returns. Other layouts are *unverified*.

mod b063;
mod b064;
mod b066;
mod b067;
mod b0c0;
mod b0c1;
mod b0c2;
mod b121;
mod b126;
mod b130;
mod b132;
mod b139;
mod b13c;
mod b14d;
mod b14e;
mod b16b;
mod b16c;
mod b16d;
mod b16e;
mod b16f;
mod b173;
mod b179;
mod b17f;
mod b18a;
mod b193;
mod b195;
mod b198;
mod b244;
mod b245;
mod b246;
mod b821;
mod b822;
mod b823;
mod b84d;
mod b872;
mod b873;
mod b881;
mod b883;
mod b885;
mod b887;
mod b888;
mod b889;
mod b8dd;
mod b975;
mod b97f;
mod cdma;
mod integrity;
mod names;
mod nas;
mod pdcp;
mod proven;
mod rlc;
mod stats;
mod umts;
mod unread;

use crate::layout::{Code, Decoded, Unreadable, Version, VersionAt};
use crate::packet::{LogCode, LogPacket};

pub use unread::Unread;

/// All codes with a layout, sorted by code.
pub static CODES: &[&Code] = &[
    &cdma::X1007,
    &cdma::X107C,
    &umts::X7130,
    &umts::X7131,
    &umts::X713A,
    &b063::B063,
    &b064::B064,
    &b066::B066,
    &b067::B067,
    &rlc::B082,
    &stats::B087,
    &rlc::B092,
    &stats::B097,
    &pdcp::B0A3,
    &stats::B0A4,
    &integrity::B0A5,
    &pdcp::B0B3,
    &stats::B0B4,
    &integrity::B0B5,
    &b0c0::B0C0,
    &b0c1::B0C1,
    &b0c2::B0C2,
    &proven::B0C8,
    &nas::B0E0,
    &nas::B0E1,
    &nas::B0E2,
    &nas::B0E3,
    &proven::B0E4,
    &nas::B0E5,
    &proven::B0E6,
    &nas::B0EA,
    &nas::B0EB,
    &nas::B0EC,
    &nas::B0ED,
    &nas::B0EE,
    &b121::B121,
    &b126::B126,
    &proven::B12A,
    &b130::B130,
    &b132::B132,
    &proven::B133,
    &b139::B139,
    &b13c::B13C,
    &b14d::B14D,
    &b14e::B14E,
    &b16b::B16B,
    &b16c::B16C,
    &b16d::B16D,
    &b16e::B16E,
    &b16f::B16F,
    &b173::B173,
    &b179::B179,
    &b17f::B17F,
    &b18a::B18A,
    &proven::B18F,
    &b193::B193,
    &b195::B195,
    &b198::B198,
    &proven::B1DC,
    &b244::B244,
    &b245::B245,
    &b246::B246,
    &b821::B821,
    &b822::B822,
    &b823::B823,
    &b84d::B84D,
    &b872::B872,
    &b873::B873,
    &b881::B881,
    &b883::B883,
    &b885::B885,
    &b887::B887,
    &b888::B888,
    &b889::B889,
    &b8dd::B8DD,
    &b975::B975,
    &b97f::B97F,
];

/// The layouts of a code, if any.
pub fn code(code: LogCode) -> Option<&'static Code> {
    CODES.binary_search_by_key(&code, |known| known.code).ok().map(|at| CODES[at])
}

/// The version number in a packet; `None` if the packet is too short, or if packets of its code have no version number.
///
/// Chosen: for a code without layouts, the version number is assumed at the position that related codes use: in four
/// bytes for NR codes, in one byte for other codes. Some old codes of GSM and UMTS do not follow this convention.
pub fn version(packet: &LogPacket<'_>) -> Option<Version> {
    /// The first code of NR.
    const NR: LogCode = LogCode(0xB800);
    let at = if packet.code < NR { VersionAt::Byte } else { VersionAt::Pair };
    match code(packet.code).map_or(at, |known| known.version) {
        VersionAt::Nowhere => None,
        at => at.read(packet.payload),
    }
}

/// Reads all fields of a packet.
///
/// # Errors
/// If there is no layout for its code or version, or the layout does not fit its bytes.
pub fn read<'a>(packet: &LogPacket<'a>) -> Result<Decoded<'a>, Unreadable> {
    code(packet.code).ok_or(Unreadable::Code(packet.code))?.read(packet.payload)
}
