//! C-RNTIs, which identify the users of a cell.

use airpace_core::Rng;
use airpace_radio::Rnti;

/// Assigns C-RNTIs. Each C-RNTI is assigned once until all 65,463 are used.
#[derive(Debug)]
pub(super) struct Rntis {
    next: u64,
}

impl Rntis {
    pub(super) fn new(mut rng: Rng) -> Rntis {
        Rntis { next: rng.below(COUNT) }
    }

    /// Assigns an unused C-RNTI.
    pub(super) fn assign(&mut self) -> Rnti {
        // The stride and the count are coprime, so all C-RNTIs are used before a C-RNTI is reused.
        self.next = (self.next + 7919) % COUNT;
        Rnti(FIRST + self.next as u16)
    }
}

/// The first C-RNTI. C-RNTIs are 0x003D…0xFFF3.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
const FIRST: u16 = 0x3D;
const COUNT: u64 = 0xFFF3 - 0x3D + 1;
