//! Grants: downlink control information, and the user that it is for.

use airpace_core::{Bits, Direction};

use crate::prb::PrbSet;

/// A radio network temporary identifier: the user that a DCI is for.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rnti(pub u16);

impl Rnti {
    /// Paging.
    pub const PAGING: Rnti = Rnti(0xFFFE);
    /// System information.
    pub const SYSTEM_INFORMATION: Rnti = Rnti(0xFFFF);
}

/// The DCI formats that carry a grant or assignment of LTE.
///
/// Source: TS 36.212 §5.3.3.1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the variants are the formats' own names
pub enum DciFormat {
    F0,
    #[default]
    F1,
    F1A,
    F1B,
    F1C,
    F1D,
    F2,
    F2A,
    F2B,
}

/// Downlink control information: one user's grant in one subframe of one carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dci {
    /// The user that it is for.
    pub rnti: Rnti,
    /// The direction of the granted data.
    pub direction: Direction,
    /// Its format.
    pub format: DciFormat,
    /// The PRB pairs granted.
    pub prbs: PrbSet,
    /// MCS index per codeword. `None` for a codeword that is not sent ([`Dci::is_sent`]), or whose MCS is not known:
    /// a modem may report only the size. 29…31 are retransmissions (TBS unknown here).
    pub mcs: [Option<u8>; 2],
    /// Transport block size per codeword in bits; zero if it is not sent or unknown (reserved MCS).
    pub tbs: [Bits; 2],
    /// Redundancy version per codeword; `None` if it is not known, or for a codeword that is not sent.
    pub rv: [Option<u8>; 2],
    /// New-data indicator per codeword: toggles when the HARQ process takes new data. `None` if it is not known,
    /// or for a codeword that is not sent.
    pub ndi: [Option<bool>; 2],
    /// HARQ process number; `None` if it is not known.
    pub harq: Option<u8>,
    /// Spatial layers.
    pub layers: u8,
    /// Whether the block of each codeword was sent before in this HARQ process. Whoever made the grant or followed
    /// the NDI knows this. One codeword may send a block again while the other sends a new one.
    pub retransmission: [bool; 2],
}

impl Dci {
    /// Whether codeword 0 or 1 is sent, which means that its MCS or its size is known.
    #[inline]
    pub fn is_sent(&self, codeword: usize) -> bool {
        self.mcs[codeword].is_some() || self.tbs[codeword] > Bits::ZERO
    }

    /// Whether any of its blocks was sent before.
    #[inline]
    pub fn is_retransmission(&self) -> bool {
        self.retransmission[0] || self.retransmission[1]
    }

    /// Bits of all transport blocks granted; zero if unknown.
    #[inline]
    pub fn bits(&self) -> Bits {
        self.tbs[0] + self.tbs[1]
    }

    /// Bits of the transport blocks that are sent for the first time; zero if unknown.
    #[inline]
    pub fn new_bits(&self) -> Bits {
        let of =
            |codeword: usize| if self.retransmission[codeword] { Bits::ZERO } else { self.tbs[codeword] };
        of(0) + of(1)
    }
}
