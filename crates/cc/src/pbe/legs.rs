//! Dual connectivity of LTE and NR (EN-DC): the base stations decide which leg carries the data. A leg that the network
//! does not use must not count in the capacity, although its PRBs are idle.
//!
//! ```text
//!          100 ms without an own grant, while the other leg has a queue
//! Counted ─────────────────────────────────────────────────────────────▶ Unused
//!    ▲                                                                     │
//!    └───── an own grant, an activation, or the other leg is missing ──────┘
//! ```
//!
//! Carriers of one technology form one leg. A device without carriers of both technologies has no unused leg.
//!
//! Source: TS 37.340 §4.2.2 (bearers of the LTE leg, of the NR leg, and split bearers)
//!
//! Differs: the paper sums all active carriers, as LTE's carrier aggregation has a common scheduler.
//!
//! Chosen: an unused leg remains unused after the other leg's queue has drained. Otherwise the capacity would contain the
//! leg again as soon as the sender has slowed down, and the queue would return.

/// Time without an own grant after which a leg is unused, in subframes.
///
/// Chosen: longer than a handover of the data between the legs, and shorter than the time in which the queue of the
/// other leg becomes long.
const UNUSED_SUBFRAMES: u64 = 100;

/// A leg: all carriers of LTE, or all carriers of NR.
#[derive(Clone, Copy, Debug, Default)]
struct Leg {
    /// Subframe of the last own grant, or of the last activation of a carrier.
    used: u64,
    /// The first subframe of the present queue; `None` without a queue.
    queued_since: Option<u64>,
    is_unused: bool,
}

/// Both legs of the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Legs {
    lte: Leg,
    nr: Leg,
}

impl Legs {
    fn both(&mut self, is_nr: bool) -> (&mut Leg, &mut Leg) {
        if is_nr { (&mut self.nr, &mut self.lte) } else { (&mut self.lte, &mut self.nr) }
    }

    /// Processes a subframe in which the leg has an own grant, or one of its carriers was activated.
    pub fn on_use(&mut self, is_nr: bool, subframe: u64) {
        let (leg, _) = self.both(is_nr);
        leg.used = leg.used.max(subframe);
        leg.is_unused = false;
    }

    /// Processes the state of a leg in `subframe`: whether all PRBs of its active carriers are granted. A full leg that
    /// has own grants has a queue for the device.
    pub fn on_state(&mut self, is_nr: bool, subframe: u64, is_full: bool) {
        let (leg, other) = self.both(is_nr);
        let is_used = subframe < leg.used + UNUSED_SUBFRAMES;
        leg.queued_since = (is_full && is_used).then(|| leg.queued_since.unwrap_or(subframe));
        if let Some(since) = leg.queued_since {
            other.is_unused |= subframe >= since.max(other.used) + UNUSED_SUBFRAMES;
        }
    }

    /// Whether the network does not use this leg.
    pub fn is_unused(&self, is_nr: bool) -> bool {
        if is_nr { self.nr.is_unused } else { self.lte.is_unused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leg_is_unused_only_beside_a_queue_of_the_other() {
        let mut legs = Legs::default();
        let mut run = |subframes: std::ops::Range<u64>, has_nr: bool, lte_is_full: bool| {
            for subframe in subframes {
                legs.on_use(false, subframe);
                if has_nr {
                    legs.on_use(true, subframe);
                }
                legs.on_state(false, subframe, lte_is_full);
                legs.on_state(true, subframe, false);
            }
            (legs.is_unused(false), legs.is_unused(true))
        };
        assert_eq!(run(0..200, true, true), (false, false));
        assert_eq!(run(200..400, false, false), (false, false), "there is no queue");
        assert_eq!(run(400..500, false, true), (false, false), "99 ms");
        assert_eq!(run(500..501, false, true), (false, true));
        assert_eq!(run(501..5_000, false, false), (false, true), "the queue has drained");
        assert_eq!(run(5_000..5_001, true, false), (false, false), "a grant");
    }
}
