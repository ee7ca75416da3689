//! Grants: uplink and downlink resources that the network assigned to the phone. Each grant has its own subframe,
//! independent of the log packet that reports it.
//!
//! ```text
//! LogPacket ──▶ Grants ──▶ GrantReport::Grant   one transmission: PRBs, MCS, transport blocks
//!                     └──▶ GrantReport::Sum     bytes granted in a span, added up by the modem
//! Grant… ──▶ report::Reports ──▶ RadioReport for the controllers
//! ```
//!
//! A modem reports the same grant several times, from different layers of its stack and with different delays: the DCI
//! is reported within a millisecond or two, and the results of the grant when a batch of results is full. [`Source`]
//! orders the layers by their level of detail. For each subframe, [`crate::bandwidth`] uses the most detailed report.
//!
//! | module | subject |
//! | --- | --- |
//! | [`clock`] | a subframe's own time: unwrapped frame numbers, aligned with the modem's clock |
//! | [`dci`] | parser for the bits of a DCI |
//! | `grant/origin.rs` | meaning of the fields in each log packet; the only vendor-specific part of this module |
//! | `grant/read.rs` | packets in, grants out |
//! | `grant/size.rs` | sizes of transport blocks, by TS 36.213 and as modems count them |
//! | `grant/merge.rs` | selection of the most detailed report of each subframe |
//! | [`report`] | grants as radio reports that contain only the phone's own grants |
//! | [`prompt`] | radio reports of a running modem, each as soon as it is complete |

pub mod clock;
pub mod dci;
mod merge;
mod origin;
pub mod prompt;
mod read;
pub mod report;
mod size;

use core::fmt;

use airpace_core::tables::Modulation;
use airpace_core::{Bits, Bytes, Direction};
use airpace_radio::{CarrierId, DciFormat, Numerology, PrbSet, Slot};

pub use merge::{Merge, Merged};
pub use origin::codes;
pub use read::{Grants, Troubles, UPLINK_DELAY};
pub use size::{Checksum, Oracle, Verdict};

use crate::packet::{LogCode, Radio};
use crate::stamp::Stamp;

/// Radio access technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rat {
    /// LTE (fourth generation).
    Lte,
    /// NR (fifth generation).
    Nr,
}

/// `lte` or `nr`, as in tables.
impl fmt::Display for Rat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rat::Lte => "lte",
            Rat::Nr => "nr",
        })
    }
}

/// Layer of the modem's stack that reported a grant; later variants contain more detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The MAC layer: reports bytes.
    Mac,
    /// The control channel: the DCI as it was detected. This layer reports first.
    ControlChannel,
    /// The demapper: PRBs, sizes, modulation.
    Demapper,
    /// The shared channel: transmitted blocks, or received blocks with the result of their CRC.
    SharedChannel,
}

/// A transport block of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Bits of the block without its checksum; `None` if neither the packet nor a table contains the size.
    pub bits: Option<Bits>,
    /// MCS index; computed from size and modulation if the packet has only those.
    pub mcs: Option<u8>,
    /// Modulation, if the packet has it.
    pub modulation: Option<Modulation>,
    /// Redundancy version, if the packet has it.
    pub rv: Option<u8>,
    /// New-data indicator, if the packet has it.
    pub ndi: Option<bool>,
    /// Whether the CRC passed, if the packet contains it.
    pub crc: Option<bool>,
    /// Whether this is a retransmission.
    pub again: bool,
}

/// Resources assigned to one user in one subframe of one carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// The radio whose modem reported it.
    pub radio: Radio,
    /// The radio access technology.
    pub rat: Rat,
    /// Direction of the data.
    pub direction: Direction,
    /// The carrier, numbered by the modem: 0 is the primary carrier. Carriers of LTE and of NR have the same numbers.
    pub carrier: CarrierId,
    /// Layer of the stack that reported the grant.
    pub source: Source,
    /// The log packet that reported it.
    pub code: LogCode,
    /// Time at which the modem sent that packet. This is before [`Grant::time`] for a DCI of the uplink, and up to
    /// seconds after [`Grant::time`] for other grants.
    pub stamp: Stamp,
    /// Start of the subframe in which the data is transmitted, by the modem's clock.
    pub time: Stamp,
    /// Number of that subframe, `10 · SFN + subframe`, without the wrap at 10,240.
    pub subframe: u64,
    /// Numerology, which determines the slot duration. For LTE, `slot` is always 0 and a slot means a subframe.
    pub numerology: Numerology,
    /// The slot within the subframe; 0 in LTE.
    pub slot: u8,
    /// PRB pairs of the carrier, if the packet has them.
    pub carrier_prbs: Option<u16>,
    /// Number of PRB pairs granted; 0 if the report contains only bytes.
    pub prbs: u16,
    /// The assigned PRB pairs, if the packet contains them.
    pub prb_set: Option<PrbSet>,
    /// Number of spatial layers of all blocks together; the number of antenna ports if one block is sent with transmit
    /// diversity.
    pub layers: u8,
    /// HARQ process, if the packet has it.
    pub harq: Option<u8>,
    /// Format of the DCI, if the packet has it.
    pub format: Option<DciFormat>,
    /// Transport blocks; none if the grant was only for control information.
    pub blocks: [Option<Block>; 2],
}

impl Grant {
    /// The slot in which the data is transmitted.
    pub fn on_air(&self) -> Slot {
        let first = self.subframe.saturating_mul(self.numerology.slots_per_subframe());
        Slot { numerology: self.numerology, index: first.saturating_add(self.slot.into()) }
    }

    /// The phone's carrier that carries the data.
    fn place(&self) -> (Radio, Rat, CarrierId) {
        (self.radio, self.rat, self.carrier)
    }

    /// Sum of bits of all blocks; blocks of unknown size count as zero.
    pub fn bits(&self) -> Bits {
        self.blocks.iter().flatten().filter_map(|block| block.bits).sum()
    }

    /// Sum of bits of the initial transmissions: the grant's share of the bandwidth.
    pub fn new_bits(&self) -> Bits {
        self.blocks.iter().flatten().filter(|block| !block.again).filter_map(|block| block.bits).sum()
    }
}

/// A sum of granted bytes, added up by the modem itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The radio whose modem reported it.
    pub radio: Radio,
    /// The radio access technology.
    pub rat: Rat,
    /// Direction of the data.
    pub direction: Direction,
    /// The log packet that reported it.
    pub code: LogCode,
    /// Time of the report: the end of the span.
    pub stamp: Stamp,
    /// Duration of the span in milliseconds.
    pub span_ms: u32,
    /// Bytes granted in the span.
    pub bytes: Bytes,
}

/// A report about grants in a log packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GrantReport {
    /// One grant.
    Grant(Grant),
    /// A sum of grants.
    Sum(Sum),
}
