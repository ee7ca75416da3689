//! Estimates for reports that lack grants but state how many grants are missing. The true number of granted PRBs lies
//! between the PRBs of the decoded grants and the PRBs that can have been granted.
//!
//! | quantity | minimum | maximum | estimate |
//! | --- | --- | --- | --- |
//! | idle PRBs | none | those outside of decoded grants | those, minus the PRBs expected in undecoded messages |
//! | this device's PRBs | those of its decoded grants | also all remaining ones | if the modem reports a grant in this slot: the mean size of the device's grants. If the modem reports nothing: the device's share of the undecoded PRBs, in slots without a decoded grant of its own |
//! | users | decoded within the window | decoded before it too | the window grows by undecoded time ([`users`](super::users)) |
//!
//! Differs: the paper's decoder decodes every message. If undecoded PRBs counted as idle or as granted to nobody, a
//! device with poor reception would send more than its share.

use airpace_core::Direction;
use airpace_radio::{OwnRadio, RadioReport};

use super::resources::{self, MILLI};

/// Number of own grants over which the size of an own grant, and the share of grants that the modem reports, are
/// averaged, for each slot of a subframe.
///
/// Chosen: some tens of milliseconds for a device with a queue.
const OWN_GRANTS: f64 = 32.0;

/// Number of subframes over which the device's share of the granted PRBs is averaged.
const SUBFRAMES: f64 = 100.0;

/// Minimum share of decoded messages that is assumed for a slot. It limits the time for which a user that has left
/// still counts while almost nothing is decoded.
///
/// Chosen: a user then counts for at most ten windows.
const MIN_HEARD: f64 = 0.1;

/// Division of the PRBs of one slot, in thousandths of a PRB ([`resources`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// PRBs granted to this device.
    pub own: u64,
    /// PRBs granted to no user.
    pub idle: u64,
}

/// Share of the cell's messages that can be decoded in a slot: 1 for a complete report.
pub fn heard(report: &RadioReport) -> f64 {
    report.missed().map_or(1.0, |missed| missed.recall.clamp(MIN_HEARD, 1.0))
}

/// Converts thousandths of a PRB to PRBs.
pub fn prbs(milli: u64) -> f64 {
    milli as f64 / MILLI as f64
}

/// Statistics of the device's decoded grants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unread {
    /// Mean number of PRBs of an own grant; `None` before the first grant.
    own_prbs: Option<f64>,
    /// Share of own grants for which the modem reported whether it had decoded the data.
    told: f64,
    /// The device's share of all granted PRBs.
    share: f64,
    /// Share of the incomplete slots in which an own grant was decoded.
    read: f64,
}

impl Unread {
    /// The division of a slot's PRBs; `None` if the report contains neither the idle PRBs nor the number of missed
    /// messages.
    pub fn share(&mut self, report: &RadioReport, own: &OwnRadio) -> Option<Shared> {
        let downlink = report.dcis.iter().filter(|dci| dci.direction == Direction::Downlink);
        let granted = resources::granted(report, downlink.clone());
        let its = resources::granted(report, downlink.filter(|dci| dci.rnti == own.rnti));
        let slots = report.slot.numerology.slots_per_subframe() as f64;
        self.learn(prbs(its), prbs(granted), own, slots);
        let left = resources::carrier(report).saturating_sub(granted);
        if report.idle_prbs().is_some() {
            return Some(Shared { own: its, idle: left });
        }
        let missed = report.missed()?;
        report.carrier_prbs?;
        let left = prbs(left);
        let unread = (missed.prbs * resources::weight(report)).min(left);
        self.read += (f64::from(u8::from(its > 0)) - self.read) / (SUBFRAMES * slots);
        let own_unread = match own.decoded {
            _ if its > 0 => 0.0,
            Some(_) => self.own_prbs.unwrap_or(unread).min(left),
            None if self.told > 0.5 => 0.0,
            // If an own grant was decoded, the undecoded PRBs belong to others. The device's undecoded PRBs are
            // therefore in slots without a decoded own grant.
            None => (self.share * unread / (1.0 - self.read).max(self.share)).min(left),
        };
        let idle = left - unread.max(own_unread);
        // The cast with `as` truncates fractions of a thousandth of a PRB.
        let milli = |prbs: f64| (prbs * MILLI as f64) as u64;
        Some(Shared { own: its + milli(own_unread), idle: milli(idle) })
    }

    /// Updates the averages with a slot. `slots` is the number of slots per subframe.
    fn learn(&mut self, its: f64, granted: f64, own: &OwnRadio, slots: f64) {
        let own_grants = OWN_GRANTS * slots;
        if its > 0.0 {
            let mean = self.own_prbs.unwrap_or(its);
            self.own_prbs = Some(mean + (its - mean) / own_grants);
            self.told += (f64::from(u8::from(own.decoded.is_some())) - self.told) / own_grants;
        }
        if granted > 0.0 {
            self.share += (its / granted - self.share) / (SUBFRAMES * slots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Time;
    use airpace_radio::{BitLayer, CarrierId, Dci, Missed, PrbSet, Rnti, Scope, Slot};

    const OWN: Rnti = Rnti(100);

    /// A slot of 50 PRBs with one decoded grant per `(user, PRBs)`.
    fn report(grants: &[(u16, u16)], scope: Scope) -> RadioReport {
        let mut start = 0;
        let dcis = grants.iter().map(|&(rnti, prbs)| {
            start += prbs;
            Dci { rnti: Rnti(rnti), prbs: PrbSet::run(start - prbs, prbs), ..Dci::default() }
        });
        RadioReport {
            carrier: CarrierId(0),
            slot: Slot::default(),
            time: Time::ZERO,
            scope,
            carrier_prbs: Some(50),
            cfi: None,
            symbols: None,
            dcis: dcis.collect(),
            own: None,
            layer: BitLayer::Physical,
        }
    }

    fn own(decoded: Option<bool>) -> OwnRadio {
        OwnRadio { rnti: OWN, active: true, sinr_db: None, bits_per_prb: None, decoded, uplink_queue: None }
    }

    fn lacking(prbs: f64) -> Scope {
        Scope::EveryoneBut {
            unexplained: 2,
            missed: Some(Missed { recall: 0.5, messages: 1.0, cces: 2.0, prbs }),
        }
    }

    /// State after some complete reports with 20 PRBs of this device and 20 of another user. `told` is the modem's
    /// report of the decoded data.
    fn after(told: Option<bool>) -> Unread {
        let mut unread = Unread::default();
        for _ in 0..400 {
            let shared = unread.share(&report(&[(100, 20), (7, 20)], Scope::Everyone), &own(told));
            assert_eq!(shared, Some(Shared { own: 20_000, idle: 10_000 }), "nothing is estimated");
        }
        unread
    }

    #[test]
    fn what_unread_messages_grant_is_not_idle() {
        let of = |grants: &[(u16, u16)], prbs| {
            after(Some(true)).share(&report(grants, lacking(prbs)), &own(None)).map(|shared| shared.idle)
        };
        assert_eq!(of(&[(7, 20)], 12.5), Some(17_500));
        assert_eq!(of(&[(7, 40)], 12.5), Some(0), "there is no more than what is left");
        assert_eq!(of(&[], 0.0), Some(50_000));
        let silent = Scope::EveryoneBut { unexplained: 2, missed: None };
        assert_eq!(after(None).share(&report(&[], silent), &own(None)), None, "nothing is known");
    }

    #[test]
    fn a_grant_that_only_the_modem_heard_has_the_usual_size() {
        let of = |grants: &[(u16, u16)], prbs, decoded| {
            after(Some(true)).share(&report(grants, lacking(prbs)), &own(decoded)).expect("it tells")
        };
        assert_eq!(of(&[(7, 20)], 12.5, Some(true)), Shared { own: 20_000, idle: 10_000 });
        assert_eq!(of(&[(7, 45)], 12.5, Some(false)), Shared { own: 5_000, idle: 0 }, "no more than is left");
        assert_eq!(of(&[(7, 20)], 12.5, None), Shared { own: 0, idle: 17_500 }, "the modem had none");
        assert_eq!(of(&[(100, 8)], 12.5, Some(true)), Shared { own: 8_000, idle: 29_500 }, "it was read");
    }

    #[test]
    fn without_a_modem_the_device_has_its_share_of_what_was_not_read() {
        let shared = after(None).share(&report(&[], lacking(10.0)), &own(None)).expect("it tells");
        let half = i64::try_from(shared.own).expect("few") - 5_000;
        assert!(half.abs() < 200, "half of ten PRBs: {}", shared.own);
        assert_eq!(shared.idle, 40_000);
    }
}
