//! Grants: what the network gave the phone to send or to receive, each with its own subframe, whatever log packet
//! says it.
//!
//! ```text
//! LogPacket ──▶ Grants ──▶ Told::Grant   one transmission: PRBs, MCS, transport blocks
//!                     └──▶ Told::Sum     bytes granted in a span, added up by the modem
//! Grant… ──▶ report::Reports ──▶ RadioReport for the controllers
//! ```
//!
//! A modem says the same grant several times, from different places of its stack and with different delays: the DCI
//! within a millisecond or two, what came of it when a batch of them is full. [`Source`] orders them by how much they
//! know; [`crate::bandwidth`] takes for each subframe what knows most.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`clock`] | a subframe's own time: frame numbers without their wrap, against the modem's clock |
//! | [`dci`] | the bits of a DCI as the air had them |
//! | `grant/origin.rs` | which fields of which log packets say what; the only words here that are of one vendor |
//! | `grant/read.rs` | packets in, grants out |
//! | `grant/size.rs` | sizes of transport blocks, by TS 36.213 and as modems count them |
//! | `grant/merge.rs` | of several who tell of one subframe, who knows most |
//! | [`report`] | grants as the radio reports that controllers read |

pub mod clock;
pub mod dci;
mod merge;
mod origin;
mod read;
pub mod report;
mod size;

use airpace_core::tables::Modulation;
use airpace_core::{Bits, Bytes, Direction};
use airpace_radio::{CarrierId, DciFormat, PrbSet};

pub use merge::{Merge, Merged};
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

/// Where in the modem's stack a grant was seen; later ones know more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The MAC layer: bytes.
    Mac,
    /// The control channel: the DCI as it was found. First to know.
    ControlChannel,
    /// The demapper: PRBs, sizes, modulation.
    Demapper,
    /// The shared channel: what was sent, or came and with which checksum.
    SharedChannel,
}

/// A transport block of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Bits of the block without its checksum; `None` where neither the packet nor a table says.
    pub bits: Option<Bits>,
    /// MCS index; worked out from size and modulation where the packet has only those.
    pub mcs: Option<u8>,
    /// Modulation, if said.
    pub modulation: Option<Modulation>,
    /// Redundancy version, if said.
    pub rv: Option<u8>,
    /// New-data indicator, if said.
    pub ndi: Option<bool>,
    /// Whether its checksum was right, if said.
    pub crc: Option<bool>,
    /// Whether it had been sent before.
    pub again: bool,
}

/// What one user was given in one subframe of one carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// Whose modem said it.
    pub radio: Radio,
    /// Of which generation.
    pub rat: Rat,
    /// Which way the data goes.
    pub direction: Direction,
    /// The carrier, as the modem counts them: 0 is the primary one.
    pub carrier: CarrierId,
    /// Where it was seen.
    pub source: Source,
    /// The log packet that said it.
    pub code: LogCode,
    /// When the modem sent that packet: a DCI of the uplink before [`Grant::time`], others up to seconds after it.
    pub stamp: Stamp,
    /// Begin of the subframe in which the data is on the air, by the modem's clock.
    pub time: Stamp,
    /// That subframe, `10 · SFN + subframe`, without the wrap at 10,240.
    pub subframe: u64,
    /// The slot within the subframe; 0 in LTE.
    pub slot: u8,
    /// PRB pairs of the carrier, if said.
    pub carrier_prbs: Option<u16>,
    /// PRB pairs granted; 0 where only bytes are known.
    pub prbs: u16,
    /// Which ones, if said.
    pub prb_set: Option<PrbSet>,
    /// Spatial layers, all blocks together; antenna ports where one block is sent with transmit diversity.
    pub layers: u8,
    /// HARQ process, if said.
    pub harq: Option<u8>,
    /// Format of the DCI, if said.
    pub format: Option<DciFormat>,
    /// Its transport blocks; none if it was for control information alone.
    pub blocks: [Option<Block>; 2],
}

impl Grant {
    /// Bits of all blocks; zero where they are not known.
    pub fn bits(&self) -> Bits {
        self.blocks.iter().flatten().filter_map(|block| block.bits).sum()
    }

    /// Bits of the blocks that had not been sent before: what the grant is worth as bandwidth.
    pub fn new_bits(&self) -> Bits {
        self.blocks.iter().flatten().filter(|block| !block.again).filter_map(|block| block.bits).sum()
    }
}

/// Bytes that the modem added up itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Whose modem said it.
    pub radio: Radio,
    /// Of which generation.
    pub rat: Rat,
    /// Which way the data goes.
    pub direction: Direction,
    /// The log packet that said it.
    pub code: LogCode,
    /// When the modem said it: the end of the span.
    pub stamp: Stamp,
    /// Milliseconds of the span.
    pub span_ms: u32,
    /// Bytes granted in it.
    pub bytes: Bytes,
}

/// What a log packet said of grants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    /// One grant.
    Grant(Grant),
    /// A sum of grants.
    Sum(Sum),
}
