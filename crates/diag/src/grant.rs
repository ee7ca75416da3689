//! Grants: what the network allowed the phone to send or to receive. Each has its own subframe, whichever log packet
//! reports it.
//!
//! ```text
//! LogPacket ──▶ Grants ──▶ GrantReport::Grant   one transmission: PRBs, MCS, transport blocks
//!                     └──▶ GrantReport::Sum     bytes granted in a span, added up by the modem
//! Grant… ──▶ report::Reports ──▶ RadioReport for the controllers
//! ```
//!
//! A modem reports the same grant several times, from different places of its stack and with different delays: the DCI
//! within a millisecond or two, its results when a batch of them is full. [`Source`] orders the places by how much they
//! know. For each subframe, [`crate::bandwidth`] takes the report that knows most.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`clock`] | a subframe's own time: frame numbers without their wrap, against the modem's clock |
//! | [`dci`] | the bits of a DCI as the air had them |
//! | `grant/origin.rs` | which fields of which log packets say what; the only words here that are of one vendor |
//! | `grant/read.rs` | packets in, grants out |
//! | `grant/size.rs` | sizes of transport blocks, by TS 36.213 and as modems count them |
//! | `grant/merge.rs` | of several who tell of one subframe, who knows most |
//! | [`report`] | grants as radio reports that hold only the phone's own grants |
//! | [`prompt`] | the same from a modem that is listened to, each as soon as nothing more is to be told of it |

pub mod clock;
pub mod dci;
mod merge;
mod origin;
pub mod prompt;
mod read;
pub mod report;
mod size;

use airpace_core::tables::Modulation;
use airpace_core::{Bits, Bytes, Direction};
use airpace_radio::{CarrierId, DciFormat, Numerology, PrbSet, Slot};

pub use merge::{Merge, Merged};
pub use origin::codes;
pub use read::{Grants, Troubles, UPLINK_DELAY};
pub use size::{Checksum, Oracle, Verdict};

use crate::packet::{LogCode, Radio};
use crate::stamp::Stamp;

/// A generation of the radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rat {
    /// The fourth.
    Lte,
    /// The fifth.
    Nr,
}

/// Where in the modem's stack a grant was seen; later variants know more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The MAC layer: bytes.
    Mac,
    /// The control channel: the DCI as it was found. The first to know.
    ControlChannel,
    /// The demapper: PRBs, sizes, modulation.
    Demapper,
    /// The shared channel: what was sent; or what was received, and with which checksum.
    SharedChannel,
}

/// A transport block of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Bits of the block without its checksum; `None` if neither the packet nor a table tells.
    pub bits: Option<Bits>,
    /// MCS index; computed from size and modulation if the packet has only those.
    pub mcs: Option<u8>,
    /// Modulation, if the packet has it.
    pub modulation: Option<Modulation>,
    /// Redundancy version, if the packet has it.
    pub rv: Option<u8>,
    /// New-data indicator, if the packet has it.
    pub ndi: Option<bool>,
    /// Whether its checksum was right, if the packet tells.
    pub crc: Option<bool>,
    /// Whether it had been sent before.
    pub again: bool,
}

/// What one user was granted in one subframe of one carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// The radio whose modem reported it.
    pub radio: Radio,
    /// Which generation.
    pub rat: Rat,
    /// Which way the data goes.
    pub direction: Direction,
    /// The carrier, by the modem's count: 0 is the primary one.
    pub carrier: CarrierId,
    /// Where in the stack it was seen.
    pub source: Source,
    /// The log packet that reported it.
    pub code: LogCode,
    /// When the modem sent that packet: for a DCI of the uplink before [`Grant::time`], for others up to seconds after
    /// it.
    pub stamp: Stamp,
    /// Begin of the subframe in which the data is on the air, by the modem's clock.
    pub time: Stamp,
    /// That subframe, `10 · SFN + subframe`, without the wrap at 10,240.
    pub subframe: u64,
    /// How long the slots of the carrier are; in LTE a slot is a subframe here.
    pub numerology: Numerology,
    /// The slot within the subframe; 0 in LTE.
    pub slot: u8,
    /// PRB pairs of the carrier, if the packet has them.
    pub carrier_prbs: Option<u16>,
    /// PRB pairs granted; 0 if only bytes are known.
    pub prbs: u16,
    /// Which PRB pairs, if the packet tells.
    pub prb_set: Option<PrbSet>,
    /// Spatial layers of all blocks together; antenna ports if one block is sent with transmit diversity.
    pub layers: u8,
    /// HARQ process, if the packet has it.
    pub harq: Option<u8>,
    /// Format of the DCI, if the packet has it.
    pub format: Option<DciFormat>,
    /// Its transport blocks; none if the grant was only for control information.
    pub blocks: [Option<Block>; 2],
}

impl Grant {
    /// The slot in which the data is on the air.
    pub fn on_air(&self) -> Slot {
        let first = self.subframe.saturating_mul(self.numerology.slots_per_subframe());
        Slot { numerology: self.numerology, index: first.saturating_add(self.slot.into()) }
    }

    /// Bits of all blocks; blocks of unknown size count as zero.
    pub fn bits(&self) -> Bits {
        self.blocks.iter().flatten().filter_map(|block| block.bits).sum()
    }

    /// Bits of the blocks that had not been sent before: the grant's share of the bandwidth.
    pub fn new_bits(&self) -> Bits {
        self.blocks.iter().flatten().filter(|block| !block.again).filter_map(|block| block.bits).sum()
    }
}

/// Bytes that the modem added up itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The radio whose modem reported it.
    pub radio: Radio,
    /// Which generation.
    pub rat: Rat,
    /// Which way the data goes.
    pub direction: Direction,
    /// The log packet that reported it.
    pub code: LogCode,
    /// When the modem reported it: the end of the span.
    pub stamp: Stamp,
    /// Milliseconds of the span.
    pub span_ms: u32,
    /// Bytes granted in the span.
    pub bytes: Bytes,
}

/// What a log packet reported about grants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GrantReport {
    /// One grant.
    Grant(Grant),
    /// A sum of grants.
    Sum(Sum),
}
