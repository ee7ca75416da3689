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
}
