//! Reports that lack grants, and say how much: what they lack is estimated, between what is surely granted and what may be.
//!
//! | | at least | at most | the estimate |
//! | --- | --- | --- | --- |
//! | idle PRBs | none | those that no read grant names | those, less what the reporter expects of unread messages |
//! | this device's PRBs | those of its read grants | and all that they leave | if its modem had a grant in this slot: as many as its grants mostly have. If the modem does not tell: its share of what unread messages grant, where none of its own was read |
//! | users | those read within the window | those read before it too | the window grows by what was not heard in it ([`users`](super::users)) |
//!
//! Differs: the paper's decoder reads every message. If what was not read counted as idle, or as nobody's, a device that
//! hears badly would send more than its share.

use airpace_core::Direction;
use airpace_radio::{OwnRadio, PrbSet, RadioReport};

/// PRBs are counted in thousandths, so that sums of estimates are exact.
pub const MILLI: u64 = 1_000;

/// The device's own grants over which their size, and whether its modem tells of them, is averaged.
///
/// Chosen: some tens of milliseconds of a device with a queue.
const OWN_GRANTS: f64 = 32.0;

/// Slots over which the device's share of what is granted is averaged.
const SLOTS: f64 = 100.0;

/// The least part of a slot that counts as heard: whoever left while hardly anything was heard must be forgotten some time.
///
/// Chosen: so a user counts for at most ten windows.
const LEAST_HEARD: f64 = 0.1;

/// The PRBs of one slot, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Of this device.
    pub own: u64,
    /// Of nobody.
    pub idle: u64,
}

/// How much of the cell's messages can be read in a slot: 1 for a report that lacks nothing.
pub fn heard(report: &RadioReport) -> f64 {
    report.missed().map_or(1.0, |missed| missed.recall.clamp(LEAST_HEARD, 1.0))
}

/// What is known of the device's grants from those that were read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unread {
    /// PRBs of one of its grants; `None` before the first.
    own_prbs: Option<f64>,
    /// Part of its grants of which its modem told.
    told: f64,
    /// Its part of all PRBs that are granted.
    share: f64,
    /// Part of the slots that lack something in which a grant of it was read.
    read: f64,
}

impl Unread {
    /// The PRBs of a slot; `None` if the report does not tell which are idle, nor how much it missed.
    pub fn share(&mut self, report: &RadioReport, own: &OwnRadio) -> Option<Shared> {
        let granted = report.granted_prbs();
        let its = report
            .dcis
            .iter()
            .filter(|dci| dci.rnti == own.rnti && dci.direction == Direction::Downlink)
            .fold(PrbSet::EMPTY, |set, dci| set.union(dci.prbs));
        self.learn(f64::from(its.len()), f64::from(granted.len()), own);
        let whole = |prbs: u16| u64::from(prbs) * MILLI;
        if let Some(idle) = report.idle_prbs() {
            return Some(Shared { own: whole(its.len()), idle: whole(idle) });
        }
        let missed = report.missed()?;
        let left = f64::from(report.carrier_prbs?.saturating_sub(granted.len()));
        let unread = missed.prbs.min(left);
        self.read += (f64::from(u8::from(!its.is_empty())) - self.read) / SLOTS;
        let own_unread = match own.decoded {
            _ if !its.is_empty() => 0.0,
            Some(_) => self.own_prbs.unwrap_or(unread).min(left),
            None if self.told > 0.5 => 0.0,
            // Where one of its grants was read, what is unread is others': its own is in the remaining slots.
            None => (self.share * unread / (1.0 - self.read).max(self.share)).min(left),
        };
        let idle = left - unread.max(own_unread);
        // `as` cuts what is below a thousandth of a PRB.
        let milli = |prbs: f64| (prbs * MILLI as f64) as u64;
        Some(Shared { own: whole(its.len()) + milli(own_unread), idle: milli(idle) })
    }

    fn learn(&mut self, its: f64, granted: f64, own: &OwnRadio) {
        if its > 0.0 {
            let mean = self.own_prbs.unwrap_or(its);
            self.own_prbs = Some(mean + (its - mean) / OWN_GRANTS);
            self.told += (f64::from(u8::from(own.decoded.is_some())) - self.told) / OWN_GRANTS;
        }
        if granted > 0.0 {
            self.share += (its / granted - self.share) / SLOTS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Time;
    use airpace_radio::{BitLayer, CarrierId, Dci, Missed, Rnti, Scope, Slot};

    const OWN: Rnti = Rnti(100);

    /// A slot of 50 PRBs in which each `(user, PRBs)` has a grant that was read.
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

    /// After some whole reports: of 20 PRBs of this device beside 20 of another, and whether its modem told.
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
