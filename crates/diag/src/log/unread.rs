//! Packets that could not be parsed completely, by reason.

use std::fmt;

use crate::layout::{Decoded, Unreadable, Version};
use crate::packet::LogCode;

/// Reason why a packet could not be parsed completely. Packets are grouped by this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// The layout of the code is unknown.
    Code(LogCode),
    /// The layout of the version is unknown.
    Version(LogCode, Version),
    /// The layout of a subpacket with this id and version is unknown.
    Subpacket(LogCode, u64, u64),
    /// The packet does not match its layout, or is empty.
    Misfit(LogCode),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Code(code) => write!(f, "{code}"),
            Unread::Version(code, version) => write!(f, "{code} version {version}"),
            Unread::Subpacket(code, id, version) => write!(f, "{code} with subpacket {id} version {version}"),
            Unread::Misfit(code) => write!(f, "{code} that does not fit its layout"),
        }
    }
}

impl Unread {
    /// The reason why a packet could not be parsed; `None` if it was parsed completely.
    pub fn of(code: LogCode, reading: &Result<Decoded<'_>, Unreadable>) -> Option<Unread> {
        Some(match reading {
            Ok(decoded) => {
                let (id, version) = decoded.unknown.first()?;
                Unread::Subpacket(code, *id, *version)
            }
            Err(Unreadable::Code(_)) => Unread::Code(code),
            Err(Unreadable::Version(_, version)) => Unread::Version(code, *version),
            Err(Unreadable::Empty(_) | Unreadable::Misfit(..)) => Unread::Misfit(code),
        })
    }

    /// Name of a file for packets of this kind.
    pub fn file_name(self) -> String {
        match self {
            Unread::Code(code) => format!("{code}.qmdl"),
            Unread::Version(code, version) => format!("{code}_v{version}.qmdl"),
            Unread::Subpacket(code, id, version) => format!("{code}_subpacket{id}_v{version}.qmdl"),
            Unread::Misfit(code) => format!("{code}_misfit.qmdl"),
        }
    }
}
