//! Slots: the time unit of a carrier.

use std::time::Duration;

/// Numerology: subcarrier spacing of a carrier, 15 kHz · 2^µ.
///
/// Source: TS 38.211 §4.2 Table 4.2-1; LTE has µ = 0 (TS 36.211 §6.12)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Numerology(u8);

impl Numerology {
    /// Subcarrier spacing of 15 kHz: the spacing of LTE, and the minimum spacing of NR. A slot is a subframe.
    pub const KHZ_15: Numerology = Numerology(0);
    /// Subcarrier spacing of 30 kHz.
    pub const KHZ_30: Numerology = Numerology(1);
    /// Subcarrier spacing of 60 kHz.
    pub const KHZ_60: Numerology = Numerology(2);
    /// Subcarrier spacing of 120 kHz.
    pub const KHZ_120: Numerology = Numerology(3);
    /// Subcarrier spacing of 240 kHz.
    pub const KHZ_240: Numerology = Numerology(4);

    /// The numerology with the index `mu`, 0…4; `None` for other values.
    pub const fn new(mu: u8) -> Option<Numerology> {
        if mu <= 4 { Some(Numerology(mu)) } else { None }
    }

    /// Index µ of the subcarrier spacing.
    pub const fn mu(self) -> u8 {
        self.0
    }

    /// Number of slots in a subframe of 1 ms.
    ///
    /// Source: TS 38.211 §4.3.2 Table 4.3.2-1
    pub const fn slots_per_subframe(self) -> u64 {
        1 << self.0
    }

    /// Duration of a slot.
    pub const fn slot_duration(self) -> Duration {
        Duration::from_nanos(1_000_000 >> self.0)
    }
}

/// A slot of a carrier. An LTE carrier has grants once per subframe, so this type uses subframes as the slots of an LTE
/// carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// Numerology, which determines the duration of the carrier's slots.
    pub numerology: Numerology,
    /// Slot number. The number increases by one per slot and does not wrap with the frame numbers: for LTE it is 10 ·
    /// SFN + subframe, and continues after SFN 1,023. After a jump of a cell's frame numbers, the slot number continues
    /// by elapsed time.
    pub index: u64,
}

impl Slot {
    /// A subframe of an LTE carrier.
    pub const fn subframe_of_lte(index: u64) -> Slot {
        Slot { numerology: Numerology::KHZ_15, index }
    }

    /// Number of the subframe that contains the slot.
    pub const fn subframe(self) -> u64 {
        self.index >> self.numerology.0
    }

    /// Whether the slot is the last of its subframe.
    pub const fn ends_subframe(self) -> bool {
        let last = self.numerology.slots_per_subframe() - 1;
        self.index & last == last
    }

    /// The slot `subframes` subframes later, or earlier if `subframes` is negative.
    pub const fn later_by(self, subframes: i64) -> Slot {
        let slots = subframes.saturating_mul(self.numerology.slots_per_subframe() as i64);
        Slot { numerology: self.numerology, index: self.index.saturating_add_signed(slots) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_a_subframe_are_counted_on() {
        let slot = |index| Slot { numerology: Numerology::KHZ_30, index };
        assert_eq!([6, 7, 8].map(|index| slot(index).subframe()), [3, 3, 4]);
        assert_eq!([6, 7, 8].map(|index| slot(index).ends_subframe()), [false, true, false]);
        assert_eq!([2, -2, -9].map(|subframes| slot(8).later_by(subframes).index), [12, 4, 0]);
        let lte = Slot::subframe_of_lte(10_247);
        assert_eq!((lte.subframe(), lte.ends_subframe(), lte.later_by(1).index), (10_247, true, 10_248));
        assert_eq!(Numerology::KHZ_120.slot_duration(), Duration::from_micros(125));
        assert_eq!(Numerology::new(5), None);
    }
}
