//! Counters of unreadable packets, by reason.

use std::fmt;

use crate::layout::{Misfit, Version};
use crate::packet::LogCode;

/// Maximum number of kinds of trouble that are counted separately; further kinds are counted together.
///
/// Chosen: no modem uses this many versions at once, but bytes that are not a log could.
pub const MAX_TROUBLES: usize = 256;

/// Packets that could not be read, or could be read only in part, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Log code.
    pub code: LogCode,
    /// Version, if known.
    pub version: Option<Version>,
    /// Reason; for misfits, the first misfit.
    pub reason: Reason,
    /// Number of packets.
    pub count: u64,
}

/// Reason why a packet, or a part of it, could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The packet's length field exceeds the bytes received.
    Cut,
    /// The packet is too short to contain a version.
    Empty,
    /// There is no layout for this version.
    Version,
    /// The version's layout does not fit the packet's bytes; no value of the packet is used.
    Misfit(Misfit),
    /// There is no layout for a subpacket with this id and version; the rest of the packet is used.
    Subpacket(u64, u64),
    /// A MAC or RLC header in the packet cannot be read to its end; no value of that header is used.
    Header,
    /// This KPI of the subscription, given by its index, cannot be computed from the version.
    MissingKpi(usize),
}

impl Reason {
    /// All misfits of one version are the same trouble, independent of their position.
    fn is_same(self, other: Reason) -> bool {
        matches!((self, other), (Reason::Misfit(_), Reason::Misfit(_))) || self == other
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(version) = self.version {
            write!(f, " version {version}")?;
        }
        match self.reason {
            Reason::Cut => write!(f, ": cut: its length field exceeds the received bytes"),
            Reason::Empty => write!(f, ": too short to contain its version"),
            Reason::Version => write!(f, ": no layout for this version"),
            Reason::Misfit(misfit) => write!(f, ": {misfit}"),
            Reason::Subpacket(id, version) => {
                write!(f, ": no layout for subpacket {id} version {version}")
            }
            Reason::Header => write!(f, ": a header of MAC or RLC cannot be followed to its end"),
            Reason::MissingKpi(wanted) => write!(f, ": does not contain the subscribed KPI {wanted}"),
        }
    }
}

/// Troubles so far.
#[derive(Clone, Debug)]
pub(super) struct Troubles {
    /// Kinds of trouble, in the order of their first occurrence. All memory is allocated at the start.
    kinds: Vec<Trouble>,
    /// Number of troubles of kinds beyond the first [`MAX_TROUBLES`].
    beyond: u64,
}

impl Troubles {
    pub fn new() -> Troubles {
        Troubles { kinds: Vec::with_capacity(MAX_TROUBLES), beyond: 0 }
    }

    /// Counts a trouble; returns it if it is the first of its kind.
    pub fn count(&mut self, code: LogCode, version: Option<Version>, reason: Reason) -> Option<Trouble> {
        let known = self
            .kinds
            .iter_mut()
            .find(|known| known.code == code && known.version == version && known.reason.is_same(reason));
        if let Some(known) = known {
            known.count += 1;
            return None;
        }
        if self.kinds.len() == MAX_TROUBLES {
            self.beyond += 1;
            return None;
        }
        let trouble = Trouble { code, version, reason, count: 1 };
        self.kinds.push(trouble);
        Some(trouble)
    }

    pub fn kinds(&self) -> &[Trouble] {
        &self.kinds
    }

    pub fn beyond(&self) -> u64 {
        self.beyond
    }
}
