//! Grants: downlink control information (DCI), and the user that receives it.

use airpace_core::{Bits, Direction};

use crate::prb::PrbSet;

/// Radio network temporary identifier: the user of a DCI.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rnti(pub u16);

impl Rnti {
    /// RNTI of paging messages.
    pub const PAGING: Rnti = Rnti(0xFFFE);
    /// RNTI of system information.
    pub const SYSTEM_INFORMATION: Rnti = Rnti(0xFFFF);
}

/// DCI formats that carry a grant or assignment: those of LTE, and those of NR with the prefix `Nr`.
///
/// Source: TS 36.212 §5.3.3.1; TS 38.212 §7.3.1
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
    Nr00,
    Nr01,
    Nr10,
    Nr11,
}

impl DciFormat {
    /// Whether the format is one of NR.
    pub const fn is_nr(self) -> bool {
        matches!(self, DciFormat::Nr00 | DciFormat::Nr01 | DciFormat::Nr10 | DciFormat::Nr11)
    }
}

/// Downlink control information: one user's grant in one subframe of one carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dci {
    /// User of the grant.
    pub rnti: Rnti,
    /// Direction of the granted data.
    pub direction: Direction,
    /// DCI format.
    pub format: DciFormat,
    /// Granted PRB pairs.
    pub prbs: PrbSet,
    /// MCS index per codeword. `None` for a codeword that is not transmitted ([`Dci::is_sent`]), or with an unknown
    /// MCS: a modem may report only the size. The indices 29…31 are retransmissions, whose transport block size is not
    /// known from this grant.
    pub mcs: [Option<u8>; 2],
    /// Transport block size per codeword (bits); zero if the codeword is not transmitted or the size is unknown
    /// (reserved MCS).
    pub tbs: [Bits; 2],
    /// Redundancy version per codeword; `None` if unknown, or for a codeword that is not transmitted.
    pub rv: [Option<u8>; 2],
    /// New-data indicator per codeword: toggles when the HARQ process transmits new data. `None` if unknown, or for a
    /// codeword that is not transmitted.
    pub ndi: [Option<bool>; 2],
    /// HARQ process number; `None` if unknown.
    pub harq: Option<u8>,
    /// Number of spatial layers.
    pub layers: u8,
    /// Number of OFDM symbols of the granted data, 1…14; `None` if unknown, and for LTE, where data has the whole
    /// subframe after the control region.
    ///
    /// Source: TS 38.214 §5.1.2.1, §6.1.2.1 (L)
    pub symbols: Option<u8>,
    /// Number of slots from the DCI to its data: K0 of a downlink grant, K2 of an uplink grant. `None` if unknown, and
    /// for LTE, where it is 0 on the downlink and 4 on the uplink of FDD.
    ///
    /// Source: TS 38.214 §5.1.2.1, §6.1.2.1
    pub offset_slots: Option<u8>,
    /// Whether the transport block of each codeword is a retransmission in this HARQ process. The component that made
    /// the grant or tracked the NDI sets this field. One codeword may be a retransmission while the other codeword has
    /// new data.
    pub retransmission: [bool; 2],
}

impl Dci {
    /// Whether codeword 0 or 1 is transmitted, that is, whether its MCS or its size is known.
    #[inline]
    pub fn is_sent(&self, codeword: usize) -> bool {
        self.mcs[codeword].is_some() || self.tbs[codeword] > Bits::ZERO
    }

    /// Whether the transport block of any codeword is a retransmission.
    #[inline]
    pub fn is_retransmission(&self) -> bool {
        self.retransmission[0] || self.retransmission[1]
    }

    /// Total size of the granted transport blocks (bits); a block of unknown size counts as zero.
    #[inline]
    pub fn bits(&self) -> Bits {
        self.tbs[0] + self.tbs[1]
    }

    /// Total size of the transport blocks with new data (bits); a block of unknown size counts as zero.
    #[inline]
    pub fn new_bits(&self) -> Bits {
        let of =
            |codeword: usize| if self.retransmission[codeword] { Bits::ZERO } else { self.tbs[codeword] };
        of(0) + of(1)
    }
}
