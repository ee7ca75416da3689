//! KPIs: a few names that mean the same for every modem.
//!
//! ```text
//! KPIS ──names──▶ Subscription ──codes()──▶ what the modem is asked for
//!                      │
//! LogPacket ──▶ Extractor ──▶ Sample { wanted, value, stamp, subframe, carrier }
//! ```
//!
//! A [`Kpi`] has a name, a unit and a sentence; nothing in it belongs to one vendor. Where it comes from, in which
//! packets of which modem, is in a separate table of origins: [`qualcomm`]. An [`Extractor`] reads from each packet
//! only the bits of the wanted KPIs, and allocates nothing for that.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `kpi/list.rs` | the KPIs |
//! | `kpi/wanted.rs` | how a user names what is wanted |
//! | [`origin`] | the grammar of origins |
//! | [`qualcomm`] | the origins in Qualcomm's log packets |
//! | `kpi/plan.rs` | what to read of each version of a packet |
//! | `kpi/extract.rs` | packets in, samples out; totals and shares |
//! | `kpi/memory.rs` | what was sent before, and how long bytes wait |
//! | `kpi/trouble.rs` | packets that could not be read, counted |

mod extract;
mod list;
mod memory;
pub mod origin;
mod plan;
pub mod qualcomm;
mod trouble;
mod wanted;

#[cfg(test)]
mod tests;

use std::fmt;

pub use extract::{Extractor, HOLD_SECONDS, SHARE_BLOCKS, Sample};
pub use list::KPIS;
pub use trouble::{MOST_TROUBLES, Reason, Trouble};
pub use wanted::{Carriers, KpiError, Subscription, Wanted, What};

use crate::layout::{Verified, Version};
use crate::packet::LogCode;

/// A value of a modem that a user can follow.
#[derive(Debug, PartialEq, Eq)]
pub struct Kpi {
    /// Its name: `lte.rsrp`.
    pub name: &'static str,
    /// Unit of its values; empty if they have none.
    pub unit: &'static str,
    /// What it means, in one sentence.
    pub about: &'static str,
    /// Which part of the protocol it belongs to.
    pub layer: Layer,
    /// What one sample is about.
    pub scope: Scope,
    /// How its samples follow each other.
    pub kind: Kind,
}

/// A part of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Radio: measurements, transport blocks on the air, power.
    Phy,
    /// Transport blocks and their headers, buffers, random access.
    Mac,
    /// Segments and retransmission.
    Rlc,
    /// Ciphering and order.
    Pdcp,
    /// Cells, configuration, sleep.
    Rrc,
    /// Registration and bearers.
    Nas,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Phy => "PHY",
            Layer::Mac => "MAC",
            Layer::Rlc => "RLC",
            Layer::Pdcp => "PDCP",
            Layer::Rrc => "RRC",
            Layer::Nas => "NAS",
        })
    }
}

/// What one sample of a KPI is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The phone, or one SIM of it.
    Radio,
    /// One carrier, which the sample names.
    Carrier,
    /// One of several cells: a sample for each.
    Cell,
    /// One of several bearers: a sample for each.
    Bearer,
}

/// How samples of a KPI follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each holds until the next one.
    Level,
    /// Each is about one event: a transport block, a message.
    Event,
    /// The sum of all so far, from 0 when the extractor began: a reader that looks rarely loses nothing.
    Total,
    /// A share among the last [`SHARE_BLOCKS`] of a carrier, from 0 to 1.
    Share,
    /// How long bytes have waited in a queue, first come first served; one sample whenever some have left.
    Wait,
}

/// Where a KPI can come from, and how well its layout is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The log packet.
    pub code: LogCode,
    /// Its version.
    pub version: Version,
    /// How well this version's layout is known, apart from the subpackets in it.
    pub verified: Verified,
}

impl Kpi {
    /// The KPI of this name.
    pub fn named(name: &str) -> Option<&'static Kpi> {
        KPIS.iter().find(|kpi| kpi.name == name)
    }

    /// Where it can come from; the preferred source first, if a modem sends several.
    pub fn sources(&self) -> Vec<Source> {
        plan::sources(self)
    }
}
