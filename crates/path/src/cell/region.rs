//! Part of a slot that carries downlink data.

/// Part of a slot that carries downlink data. It determines the size of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataRegion {
    /// The symbols of an LTE subframe after the control region.
    Lte {
        /// Number of symbols of the control region.
        cfi: u8,
    },
    /// Symbols of an NR slot.
    Nr {
        /// Number of symbols for data.
        symbols: u8,
        /// Resource elements for data per PRB, without DMRS and overhead.
        res_per_prb: u16,
    },
}

impl DataRegion {
    /// The CFI of an LTE subframe. In NR, the size of the control region does not limit the MCS; the result is then 1.
    pub(super) fn cfi(self) -> u8 {
        match self {
            DataRegion::Lte { cfi } => cfi,
            DataRegion::Nr { .. } => 1,
        }
    }

    /// Resource elements for data per PRB of an NR slot; 0 for LTE, whose block sizes do not follow from this number.
    pub(super) fn res_per_prb(self) -> u16 {
        match self {
            DataRegion::Lte { .. } => 0,
            DataRegion::Nr { res_per_prb, .. } => res_per_prb,
        }
    }

    /// Number of data symbols of an NR slot; `None` for LTE.
    pub(super) fn symbols(self) -> Option<u8> {
        match self {
            DataRegion::Lte { .. } => None,
            DataRegion::Nr { symbols, .. } => Some(symbols),
        }
    }

    /// Whether the slot can carry data.
    pub(super) fn has_data(self) -> bool {
        !matches!(self, DataRegion::Nr { symbols: 0, .. })
    }
}
