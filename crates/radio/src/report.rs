//! What a radio reports about one slot of one carrier.

use airpace_core::{Bytes, Direction, Time};

use crate::grant::{Dci, Rnti};
use crate::prb::PrbSet;
use crate::slot::Slot;

/// A component carrier, by its index in the scenario's list (0 is the first).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierId(pub u8);

/// The layer whose bits a report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitLayer {
    /// Transport blocks on the air: HARQ errors and protocol headers must still be subtracted.
    #[default]
    Physical,
    /// What a transport gets: nothing has to be subtracted (a recorded trace's delivery chances).
    Transport,
}

/// Whose grants a report holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scope {
    /// Every grant that the cell gave: a PRB without one is idle.
    #[default]
    Everyone,
    /// Grants of everyone, but something else was sent on the control channel that was not read. It may be grants.
    EveryoneBut {
        /// How many control channel elements carry it, at least one. A message has 1, 2, 4 or 8 of them.
        ///
        /// Source: TS 36.211 §6.8.1
        unexplained: u16,
        /// How much that may be; `None` if the reporter does not tell.
        missed: Option<Missed>,
    },
    /// Only the device's own grants, as its modem logs them. A PRB without one may be somebody else's.
    Own,
}

/// How much of a slot was not read, as far as the reporter can tell. All of it is expected, not counted: the numbers are
/// right on average over many slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missed {
    /// Part of the messages that this cell sends which can be read in a slot that was heard like this one: 0…1. The slot's
    /// own messages do not count, so that slots with few messages do not pass for well heard ones.
    pub recall: f64,
    /// Messages that were sent and are not among the grants: noise, fading or interference hid them.
    pub messages: f64,
    /// Control channel elements that hold such a message.
    pub cces: f64,
    /// Downlink PRB pairs that those messages grant.
    pub prbs: f64,
}

impl Missed {
    /// Whether the numbers can be true: none is negative, infinite or no number, and `recall` is at most 1.
    pub fn is_possible(&self) -> bool {
        (0.0..=1.0).contains(&self.recall)
            && [self.messages, self.cces, self.prbs].iter().all(|amount| amount.is_finite() && *amount >= 0.0)
    }
}

/// What a device knows about its own side of one carrier, without decoding the grants of others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnRadio {
    /// Its RNTI on this carrier.
    pub rnti: Rnti,
    /// Whether the carrier is activated for this device in this slot.
    pub active: bool,
    /// Signal to interference and noise ratio that it measured, in dB; `None` if it is not known.
    pub sinr_db: Option<f64>,
    /// Downlink bits that one PRB pair would carry for it at its current CQI, over all layers; zero if it can receive
    /// nothing, `None` if they are not known.
    pub bits_per_prb: Option<f64>,
    /// Whether the transport block granted in this slot was received; `None` without a grant, or if the outcome is
    /// not known.
    pub decoded: Option<bool>,
    /// Bytes that wait in the device for the uplink, over all carriers; `None` if they are not known (reports that
    /// are not from the modem's own log).
    pub uplink_queue: Option<Bytes>,
}

/// One slot of one carrier, as a radio reports it.
///
/// A report has at most a few tens of [`Dci`]s. Reports of one carrier come in order of time. Those of different
/// carriers may be late by different amounts ([`fusion`](crate::fusion) brings them together).
#[derive(Clone, Debug, PartialEq)]
pub struct RadioReport {
    /// The carrier.
    pub carrier: CarrierId,
    /// The slot.
    pub slot: Slot,
    /// Start of the slot, by the reporter's clock.
    pub time: Time,
    /// Whose grants `dcis` holds.
    pub scope: Scope,
    /// Downlink PRB pairs of the carrier; `None` if the width is not known.
    pub carrier_prbs: Option<u16>,
    /// Control format indicator of LTE, 1…4: OFDM symbols of the control region. `None` if it is not known, and for
    /// NR.
    pub cfi: Option<u8>,
    /// The grants of this slot.
    pub dcis: Vec<Dci>,
    /// The reporter's own side; `None` for a bystander, and for the cell's own report.
    pub own: Option<OwnRadio>,
    /// The layer whose bits this report counts.
    pub layer: BitLayer,
}

impl RadioReport {
    /// Downlink PRB pairs that are granted to nobody. `None` if the report cannot know: it does not hold everyone's
    /// grants, or it does not have the carrier's width.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 4
    #[inline]
    pub fn idle_prbs(&self) -> Option<u16> {
        match self.scope {
            Scope::Everyone => Some(self.carrier_prbs?.saturating_sub(self.granted_prbs().len())),
            Scope::EveryoneBut { .. } | Scope::Own => None,
        }
    }

    /// Downlink PRB pairs that are granted to nobody, as far as this report can tell: what the grants leave, less what
    /// unread messages are expected to grant. That lies between none and all that the grants leave. `None` if the report
    /// does not hold everyone's grants, does not have the carrier's width, or does not tell how much it missed.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 4
    #[inline]
    pub fn idle_estimate(&self) -> Option<f64> {
        match self.scope {
            Scope::Everyone => self.idle_prbs().map(f64::from),
            Scope::EveryoneBut { missed, .. } => {
                let left = self.carrier_prbs?.saturating_sub(self.granted_prbs().len());
                Some((f64::from(left) - missed?.prbs).max(0.0))
            }
            Scope::Own => None,
        }
    }

    /// What was missed, if the report tells.
    pub fn missed(&self) -> Option<Missed> {
        match self.scope {
            Scope::EveryoneBut { missed, .. } => missed,
            Scope::Everyone | Scope::Own => None,
        }
    }

    /// Downlink PRB pairs that the grants of this report name.
    #[inline]
    pub fn granted_prbs(&self) -> PrbSet {
        let downlink = self.dcis.iter().filter(|dci| dci.direction == Direction::Downlink);
        downlink.fold(PrbSet::EMPTY, |granted, dci| granted.union(dci.prbs))
    }

    /// Replaces the RNTI of every user by what `name` returns for it: first those of the grants in their order, then
    /// the reporter's own.
    pub fn rename(&mut self, mut name: impl FnMut(Rnti) -> Rnti) {
        for dci in &mut self.dcis {
            dci.rnti = name(dci.rnti);
        }
        if let Some(own) = &mut self.own {
            own.rnti = name(own.rnti);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_prbs_count_every_user_once_and_only_where_everyone_is_known() {
        let grant = |start, len| Dci { prbs: PrbSet::run(start, len), ..Dci::default() };
        let report = RadioReport {
            carrier: CarrierId(0),
            slot: Slot::default(),
            time: Time::ZERO,
            scope: Scope::Everyone,
            carrier_prbs: Some(50),
            cfi: Some(1),
            dcis: vec![grant(0, 6), grant(6, 4), Dci { direction: Direction::Uplink, ..grant(20, 9) }],
            own: None,
            layer: BitLayer::Physical,
        };
        assert_eq!(report.idle_prbs(), Some(40));
        let partly = |missed| Scope::EveryoneBut { unexplained: 1, missed };
        let missed = |prbs| Some(Missed { recall: 0.5, messages: 1.0, cces: 1.0, prbs });
        for (scope, estimate) in [
            (Scope::Own, None),
            (partly(None), None),
            (partly(missed(0.0)), Some(40.0)),
            (partly(missed(12.5)), Some(27.5)),
            (partly(missed(99.0)), Some(0.0)),
        ] {
            let report = RadioReport { scope, ..report.clone() };
            assert_eq!((report.idle_prbs(), report.idle_estimate()), (None, estimate), "{scope:?}");
        }
        assert_eq!(report.idle_estimate(), Some(40.0));
        assert_eq!(RadioReport { carrier_prbs: None, ..report }.idle_prbs(), None);
    }
}
