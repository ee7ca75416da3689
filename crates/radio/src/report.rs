//! Radio reports: the grants and measurements of one slot of one carrier.

use airpace_core::{Bytes, Direction, Time};

use crate::grant::{Dci, Rnti};
use crate::prb::PrbSet;
use crate::slot::Slot;

/// Identifies a component carrier: the carrier's index in the scenario's list (0 is the first carrier).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CarrierId(pub u8);

/// Protocol layer of the bits in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitLayer {
    /// Bits of transport blocks on the air. To get the bits at the transport layer, HARQ errors and protocol headers
    /// must be subtracted.
    #[default]
    Physical,
    /// Bits at the transport layer, from which nothing must be subtracted (delivery opportunities of a recorded trace).
    Transport,
}

/// Scope of the grants in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scope {
    /// The report contains all grants of the cell: a PRB without a grant is idle.
    #[default]
    Everyone,
    /// The report contains grants of all users, but may lack some grants: other transmissions on the control channel
    /// were not decoded, and may be grants.
    EveryoneBut {
        /// Number of control channel elements with undecoded transmissions, at least one. A message has 1, 2, 4 or 8
        /// control channel elements.
        ///
        /// Source: TS 36.211 §6.8.1
        unexplained: u16,
        /// Estimate of the undecoded messages; `None` if the reporter has no estimate.
        missed: Option<Missed>,
    },
    /// The report contains only the device's own grants, from its modem's log. A PRB without a grant may be granted to
    /// another user.
    Own,
}

/// Estimate of the undecoded messages of a slot. All numbers are expected values, not counts: the numbers are correct
/// on average over many slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missed {
    /// Share of the cell's messages that is decodable at the signal quality of this slot, 0…1. The share does not
    /// depend on the messages in the slot itself, so slots with few messages do not look like well received slots.
    pub recall: f64,
    /// Number of transmitted messages that are not among the grants, because of noise, fading or interference.
    pub messages: f64,
    /// Number of control channel elements of these messages.
    pub cces: f64,
    /// Number of downlink PRB pairs that these messages grant.
    pub prbs: f64,
}

impl Missed {
    /// Whether the numbers are valid: all are finite and not negative, and `recall` is at most 1.
    pub fn is_possible(&self) -> bool {
        (0.0..=1.0).contains(&self.recall)
            && [self.messages, self.cces, self.prbs].iter().all(|amount| amount.is_finite() && *amount >= 0.0)
    }
}

/// State of the reporting device on one carrier, available without decoding the grants of other users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnRadio {
    /// RNTI of the device on this carrier.
    pub rnti: Rnti,
    /// Whether the carrier is activated for this device in this slot.
    pub active: bool,
    /// Measured signal to interference and noise ratio (dB); `None` if unknown.
    pub sinr_db: Option<f64>,
    /// Downlink bits per PRB pair at the device's current CQI, over all layers; zero if the device can receive no data,
    /// `None` if unknown. On NR: bits per PRB of a slot with 13 data symbols, in the reports of all slots.
    pub bits_per_prb: Option<f64>,
    /// Whether the device decoded the transport block granted to it in this slot; `None` without a grant, or if the
    /// outcome is unknown.
    pub decoded: Option<bool>,
    /// Bytes waiting in the device for the uplink, over all carriers; `None` if unknown (reports that do not come from
    /// the modem's own log).
    pub uplink_queue: Option<Bytes>,
}

/// Radio report on one slot of one carrier.
///
/// A report has at most a few tens of [`Dci`]s. Reports of one carrier are in order of time. Reports of different
/// carriers may have different delays ([`fusion`](crate::fusion) merges them).
#[derive(Clone, Debug, PartialEq)]
pub struct RadioReport {
    /// Carrier of the report.
    pub carrier: CarrierId,
    /// Slot of the report.
    pub slot: Slot,
    /// Start of the slot on the reporter's clock.
    pub time: Time,
    /// Scope of the grants in `dcis`.
    pub scope: Scope,
    /// Number of downlink PRB pairs of the carrier; `None` if unknown.
    pub carrier_prbs: Option<u16>,
    /// Control format indicator of LTE, 1…4: number of OFDM symbols in the control region. `None` if unknown, and for NR.
    pub cfi: Option<u8>,
    /// Number of OFDM symbols of the slot that can carry downlink data, 0…14. A special slot of a TDD pattern has fewer
    /// symbols than a downlink slot, and an uplink slot has 0. `None` if unknown, and for LTE, where the symbols follow
    /// from the CFI.
    ///
    /// Source: TS 38.213 §11.1 (downlink, flexible and uplink symbols)
    pub symbols: Option<u8>,
    /// Grants of this slot.
    pub dcis: Vec<Dci>,
    /// State of the reporting device; `None` for a bystander, and for the cell's own report.
    pub own: Option<OwnRadio>,
    /// Protocol layer of the bits in this report.
    pub layer: BitLayer,
}

impl RadioReport {
    /// A report on a slot of a carrier without grants; the carrier's width, the CFI and the state of the reporting
    /// device are unknown. `time` is the start of the slot on the reporter's clock.
    pub fn new(carrier: CarrierId, slot: Slot, time: Time) -> RadioReport {
        RadioReport {
            carrier,
            slot,
            time,
            scope: Scope::Everyone,
            carrier_prbs: None,
            cfi: None,
            symbols: None,
            dcis: Vec::new(),
            own: None,
            layer: BitLayer::Physical,
        }
    }

    /// Number of downlink PRB pairs without a grant; 0 in a slot without downlink symbols. `None` if the report does not
    /// contain all grants of the cell, or does not contain the carrier's width.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 4
    #[inline]
    pub fn idle_prbs(&self) -> Option<u16> {
        match self.scope {
            _ if self.symbols == Some(0) => Some(0),
            Scope::Everyone => Some(self.carrier_prbs?.saturating_sub(self.granted_prbs().len())),
            Scope::EveryoneBut { .. } | Scope::Own => None,
        }
    }

    /// Estimated number of downlink PRB pairs without a grant: the PRB pairs without a known grant, minus the expected
    /// grants of undecoded messages, at least 0. `None` if the report has scope [`Scope::Own`], does not contain the
    /// carrier's width, or has no estimate of undecoded messages.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 4
    #[inline]
    pub fn idle_estimate(&self) -> Option<f64> {
        match self.scope {
            _ if self.symbols == Some(0) => Some(0.0),
            Scope::Everyone => self.idle_prbs().map(f64::from),
            Scope::EveryoneBut { missed, .. } => {
                let left = self.carrier_prbs?.saturating_sub(self.granted_prbs().len());
                Some((f64::from(left) - missed?.prbs).max(0.0))
            }
            Scope::Own => None,
        }
    }

    /// Estimate of the undecoded messages, if the report contains one.
    pub fn missed(&self) -> Option<Missed> {
        match self.scope {
            Scope::EveryoneBut { missed, .. } => missed,
            Scope::Everyone | Scope::Own => None,
        }
    }

    /// Downlink PRB pairs in the grants of this report.
    #[inline]
    pub fn granted_prbs(&self) -> PrbSet {
        let downlink = self.dcis.iter().filter(|dci| dci.direction == Direction::Downlink);
        downlink.fold(PrbSet::EMPTY, |granted, dci| granted.union(dci.prbs))
    }

    /// Replaces the RNTI of every user by the result of `name`: first the RNTIs of the grants, in order, then the RNTI of
    /// the reporting device.
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
            symbols: None,
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
        for scope in [Scope::Everyone, Scope::Own, partly(None)] {
            let uplink = RadioReport { symbols: Some(0), scope, ..report.clone() };
            assert_eq!((uplink.idle_prbs(), uplink.idle_estimate()), (Some(0), Some(0.0)), "{scope:?}");
        }
        assert_eq!(RadioReport { carrier_prbs: None, ..report }.idle_prbs(), None);
    }
}
