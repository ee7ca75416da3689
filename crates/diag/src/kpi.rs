//! KPIs: named metrics with the same meaning for every modem.
//!
//! ```text
//! KPIS ──names──▶ Subscription ──codes()──▶ log codes to request from the modem
//!                      │
//! LogPacket ──▶ Extractor ──▶ Sample { wanted, value, stamp, subframe, carrier }
//! ```
//!
//! A [`Kpi`] has a name, a unit and a description that are independent of the vendor. The packets and fields of a modem
//! that contain the KPI are in a separate table of origins: [`qualcomm`]. An [`Extractor`] reads from each packet only
//! the bits of the selected KPIs, and allocates nothing for that.
//!
//! | file | subject |
//! | --- | --- |
//! | `kpi/list.rs` | list of KPIs |
//! | `kpi/wanted.rs` | syntax by which a user selects KPIs |
//! | [`origin`] | grammar of origins |
//! | [`qualcomm`] | origins in Qualcomm's log packets |
//! | `kpi/plan.rs` | fields to read from each version of a packet |
//! | `kpi/extract.rs` | packets in, samples out; totals and shares |
//! | `kpi/memory.rs` | earlier transmissions, and queueing delay of bytes |
//! | `kpi/trouble.rs` | counters of unreadable packets |

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
pub use trouble::{MAX_TROUBLES, Reason, Trouble};
pub use wanted::{Carriers, KpiError, Subscription, Wanted, What};

use crate::layout::{Verified, Version};
use crate::packet::LogCode;

/// A metric of a modem that a user can select.
#[derive(Debug, PartialEq, Eq)]
pub struct Kpi {
    /// Name, for example `lte.rsrp`.
    pub name: &'static str,
    /// Unit of the values; empty if they have no unit.
    pub unit: &'static str,
    /// Description in one sentence.
    pub about: &'static str,
    /// Protocol layer.
    pub layer: Layer,
    /// Subject of one sample.
    pub scope: Scope,
    /// Relation between successive samples.
    pub kind: Kind,
}

/// A protocol layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Radio: measurements, transmission of transport blocks, power.
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

/// Subject of one sample of a KPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The phone, or one SIM of it.
    Radio,
    /// One carrier, which is given in the sample.
    Carrier,
    /// One of several cells, each with its own sample.
    Cell,
    /// One of several bearers, each with its own sample.
    Bearer,
}

/// Relation between successive samples of a KPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each value holds until the next sample.
    Level,
    /// Each sample describes one event: a transport block, a message.
    Event,
    /// Running sum, starting from 0 with the extractor: a reader that samples rarely loses nothing.
    Total,
    /// Share among the last [`SHARE_BLOCKS`] blocks of a carrier, from 0 to 1.
    Share,
    /// Queueing delay of bytes in a FIFO queue; one sample each time bytes have left the queue.
    Wait,
}

/// A log packet and version that contains a KPI, and how well its layout is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// The log packet.
    pub code: LogCode,
    /// Version of that log packet.
    pub version: Version,
    /// How well this version's layout is verified, apart from the subpackets in it.
    pub verified: Verified,
}

impl Kpi {
    /// The KPI with this name.
    pub fn named(name: &str) -> Option<&'static Kpi> {
        KPIS.iter().find(|kpi| kpi.name == name)
    }

    /// The possible sources of this KPI; the preferred source first, if a modem sends several.
    pub fn sources(&self) -> Vec<Source> {
        plan::sources(self)
    }
}
