//! Radio state of a device, as far as it can be inferred from the control channel alone.

use std::collections::BTreeMap;
use std::ops::Bound;

use airpace_core::Direction;
use airpace_radio::{Dci, OwnRadio, Rnti};

use crate::found::Found;

/// Radio state of the followed user on one carrier, inferred from the control channel. The result has the type that the
/// receivers of congestion control schemes use.
///
/// | field of [`OwnRadio`] | value |
/// | --- | --- |
/// | `active` | true, from the first subframe with a rated grant: activation and deactivation are signalled in the data channel |
/// | `sinr_db` | SNR of the decoder's receiver, not of the device's |
/// | `bits_per_prb` | bits per PRB pair of the last grant of new data |
/// | `decoded` | outcome of the grant's blocks according to later grants, if these were decoded in time; else `None` |
/// | `uplink_queue` | `None`: a device reports it in the data channel |
#[derive(Clone, Debug)]
pub struct OwnSide {
    rnti: Rnti,
    bits_per_prb: Option<f64>,
    /// Downlink grants of the user by subframe, from the last requested subframe onwards.
    grants: BTreeMap<u64, Dci>,
}

impl OwnSide {
    /// Creates the radio state of the user with the given RNTI.
    pub fn new(rnti: Rnti) -> OwnSide {
        OwnSide { rnti, bits_per_prb: None, grants: BTreeMap::new() }
    }

    /// Takes a message. Messages may arrive in any order. Messages to other users are ignored.
    pub fn hear(&mut self, found: &Found) {
        let own = found.dci.filter(|dci| dci.rnti == self.rnti && dci.direction == Direction::Downlink);
        if let Some(dci) = own {
            self.grants.insert(found.index, dci);
        }
    }

    /// Radio state of the user in subframe `index`; `None` before the first rated grant. The caller must request
    /// subframes in order. A later request has more information on the outcome of the blocks: the HARQ feedback takes 4
    /// subframes, and the next use of the HARQ process at least 4 more.
    ///
    /// Source: TS 36.213 §10.1 (the answer comes four subframes later)
    pub fn radio(&mut self, index: u64, snr_db: f32) -> Option<OwnRadio> {
        self.grants = self.grants.split_off(&index);
        let now = self.grants.get(&index);
        if let Some(dci) = now.filter(|dci| is_rated(dci)) {
            self.bits_per_prb = Some(dci.bits().0 as f64 / f64::from(dci.prbs.len()));
        }
        Some(OwnRadio {
            rnti: self.rnti,
            active: true,
            sinr_db: Some(f64::from(snr_db)),
            bits_per_prb: Some(self.bits_per_prb?),
            decoded: now.and_then(|dci| self.outcome(index, dci)),
            uplink_queue: None,
        })
    }

    /// Whether all blocks of a grant were received. A HARQ process gets new data after its block was received or
    /// abandoned. One failed block determines the outcome; otherwise the outcome of every block must be known.
    ///
    /// Source: TS 36.321 §5.3.2.2
    fn outcome(&self, index: u64, dci: &Dci) -> Option<bool> {
        let sent = (0..2).filter(|&block| dci.mcs[block].is_some());
        let mut outcomes = sent.map(|block| {
            let mut later =
                self.grants.range((Bound::Excluded(index), Bound::Unbounded)).map(|(_, later)| later);
            let next = later.find(|later| later.harq == dci.harq && later.mcs[block].is_some())?;
            Some(!next.retransmission[block])
        });
        if outcomes.clone().any(|block| block == Some(false)) {
            return Some(false);
        }
        outcomes.all(|block| block.is_some()).then_some(true)
    }
}

/// Whether the bits per PRB pair can be computed from a grant. A retransmitted block keeps a size that belongs to the
/// PRBs of its first transmission.
fn is_rated(dci: &Dci) -> bool {
    !dci.is_retransmission() && dci.bits().0 > 0 && !dci.prbs.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Bits;
    use airpace_radio::PrbSet;

    /// A grant of two blocks in a HARQ process: which blocks are transmitted, and which of them are retransmissions.
    fn grant(harq: u8, sent: [bool; 2], again: [bool; 2]) -> Dci {
        Dci {
            rnti: Rnti(100),
            prbs: PrbSet::run(0, 10),
            mcs: sent.map(|is_sent| is_sent.then_some(10)),
            tbs: sent.map(|is_sent| Bits(if is_sent { 2000 } else { 0 })),
            harq: Some(harq),
            retransmission: again,
            ..Dci::default()
        }
    }

    fn side(grants: &[(u64, Dci)]) -> OwnSide {
        OwnSide { grants: grants.iter().copied().collect(), ..OwnSide::new(Rnti(100)) }
    }

    #[test]
    fn the_next_use_of_a_process_shows_whether_its_block_was_acknowledged() {
        const ONE: [bool; 2] = [true, false];
        let mut side = side(&[
            (10, grant(3, ONE, [false; 2])),
            (12, grant(4, ONE, [false; 2])),
            (18, grant(3, ONE, [true, false])),
            (26, grant(3, ONE, [false; 2])),
        ]);
        assert_eq!(side.radio(9, 20.0), None, "before its first grant nothing is known");
        let mut decoded = |index| side.radio(index, 20.0).map(|own| own.decoded);
        assert_eq!(decoded(10), Some(Some(false)), "its block is sent again");
        assert_eq!(decoded(11), Some(None), "no grant, no block");
        assert_eq!(decoded(12), Some(None), "its process was not used again yet");
        assert_eq!(decoded(18), Some(Some(true)), "its process has new data");
        assert_eq!(decoded(26), Some(None));
    }

    #[test]
    fn one_block_that_failed_settles_it_and_of_all_others_it_must_be_known() {
        const BOTH: [bool; 2] = [true; 2];
        let first = (10, grant(0, BOTH, [false; 2]));
        let decoded = |later: &[(u64, Dci)]| {
            let grants: Vec<_> = std::iter::once(first).chain(later.iter().copied()).collect();
            side(&grants).radio(10, 20.0).and_then(|own| own.decoded)
        };
        assert_eq!(decoded(&[(18, grant(0, BOTH, [false; 2]))]), Some(true));
        assert_eq!(decoded(&[(18, grant(0, BOTH, [false, true]))]), Some(false));
        assert_eq!(decoded(&[(18, grant(0, [false, true], [false, true]))]), Some(false));
        assert_eq!(
            decoded(&[(18, grant(0, [false, true], [false; 2]))]),
            None,
            "of the first nothing is said"
        );
    }

    #[test]
    fn bits_per_prb_are_computed_from_new_data_only() {
        const ONE: [bool; 2] = [true, false];
        let again = Dci { prbs: PrbSet::run(0, 2), ..grant(0, ONE, [true, false]) };
        let mut side = side(&[(1, grant(0, ONE, [false; 2])), (9, again)]);
        let mut bits = |index| side.radio(index, 20.0).and_then(|own| own.bits_per_prb);
        assert_eq!([1, 2, 9].map(&mut bits), [Some(200.0); 3]);
    }
}
