//! Where a live flow's radio reports come from.
//!
//! A source never holds up the thread that turns: it is asked for what has come ([`Radio::take`]) when its descriptor is
//! readable or its deadline has come. A source that has gone is looked for again and again. What was heard and what was
//! wrong with it is in [`Heard`], which any thread may read.
//!
//! | source | what it is |
//! | --- | --- |
//! | [`Lines`] | lines of [`airpace_radio::line`]: a decoder's, an emulator's or another machine's, from a file, a FIFO, the standard input, or a Unix or TCP socket |
//! | [`Board`] | the KPIs of a libOD daemon, made into reports of the phone's own grants |
//! | [`Fed`] | whatever another thread finds: a modem's log, a decoder of radio samples |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod board;
mod fed;
mod heard;
mod lines;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::Time;
use airpace_radio::RadioReport;

pub use board::Board;
pub use fed::{Fed, Feeder};
pub use heard::{Account, Heard, Lack, Need, STALE_AFTER, State};
pub use lines::{Lines, Place};

/// A source of radio reports.
pub trait Radio: Send {
    /// What to wait for, if the source can be waited for.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Hands over the reports that have come since, up to a bound, with their times by the machine's monotonic clock.
    fn take(&mut self, now: Time, each: &mut dyn FnMut(RadioReport));

    /// When to call [`Radio::take`] although nothing has come.
    fn next(&self) -> Option<Time>;

    /// What was heard so far.
    fn heard(&self) -> Arc<Heard>;
}

/// Maps a reporter's times onto the machine's monotonic clock.
///
/// The reporter's clock has an unknown zero. The report that came with the least delay of late counts as on time, so
/// that a mapped time is later than the true one by that delay: a few milliseconds, and never later than now.
#[derive(Clone, Debug, Default)]
struct Mapping {
    /// The least of arrival less time, in nanoseconds, in this window and in the one before.
    least: [Option<i128>; 2],
    /// When this window began.
    since: Time,
}

/// How long the least delay is remembered, once to twice.
///
/// Chosen: a clock drifts by less than a millisecond in that time.
const WINDOW: Duration = Duration::from_secs(5);

/// A report that seems so old has another zero: its reporter has begun anew.
///
/// Chosen: far above any delay with which a report is of use.
const ANEW: Duration = Duration::from_secs(1);

impl Mapping {
    /// The instant of a time that came now.
    fn instant(&mut self, now: Time, time: Time) -> Time {
        let offset = i128::from(now.as_nanos()) - i128::from(time.as_nanos());
        if self.known().is_some_and(|least| offset - least > ANEW.as_nanos() as i128) {
            self.least = [None; 2];
        }
        if now - self.since > WINDOW {
            self.least = [None, if now - self.since > 2 * WINDOW { None } else { self.least[0] }];
            self.since = now;
        }
        self.least[0] = Some(self.least[0].map_or(offset, |least| least.min(offset)));
        let least = self.known().unwrap_or(offset);
        Time::from_nanos((i128::from(time.as_nanos()) + least).clamp(0, i128::from(now.as_nanos())) as u64)
    }

    fn known(&self) -> Option<i128> {
        self.least.into_iter().flatten().min()
    }
}

/// Numbers subframes on where a reporter begins anew: schemes take no report of a subframe that has passed.
#[derive(Clone, Debug, Default)]
struct Numbers {
    newest: Option<u64>,
    /// What is added to the reporter's numbers.
    shift: i64,
    /// Whether the source was opened since the last report.
    is_anew: bool,
}

/// A number that is lower by so many subframes than the newest is not late: the reporter counts anew.
///
/// Chosen: as of its times, see [`ANEW`].
const ANEW_SUBFRAMES: u64 = 1_000;

impl Numbers {
    /// The source was opened: its next report is newer than all before.
    fn begin_anew(&mut self) {
        self.is_anew = true;
    }

    /// Gives a report its number.
    fn place(&mut self, report: &mut RadioReport) {
        let subframe = report.slot.subframe();
        let mut placed = subframe.saturating_add_signed(self.shift);
        let is_anew = std::mem::take(&mut self.is_anew);
        if let Some(newest) = self.newest
            && (is_anew && placed <= newest || placed.saturating_add(ANEW_SUBFRAMES) < newest)
        {
            let shift = i128::from(newest) + 1 - i128::from(subframe);
            self.shift = shift.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            placed = subframe.saturating_add_signed(self.shift);
        }
        self.newest = Some(self.newest.map_or(placed, |newest| newest.max(placed)));
        let slots = report.slot.numerology.slots_per_subframe() as i64;
        report.slot.index = report.slot.index.saturating_add_signed(self.shift.saturating_mul(slots));
    }
}

#[cfg(test)]
mod tests {
    use airpace_radio::{BitLayer, CarrierId, OwnRadio, Rnti, Scope, Slot};

    use super::*;

    /// A report of a device that nothing was granted to.
    pub(super) fn report(subframe: u64, scope: Scope) -> RadioReport {
        RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(subframe),
            time: Time::from_millis(subframe),
            scope,
            carrier_prbs: Some(50),
            cfi: None,
            dcis: vec![],
            own: Some(OwnRadio {
                rnti: Rnti(70),
                active: true,
                sinr_db: None,
                bits_per_prb: Some(100.0),
                decoded: None,
                uplink_queue: None,
            }),
            layer: BitLayer::Physical,
        }
    }

    #[test]
    fn times_of_another_clock_become_ours() {
        let mut mapping = Mapping::default();
        let ms = Time::from_millis;
        assert_eq!(mapping.instant(ms(50_005), ms(10)), ms(50_005), "the first is on time");
        assert_eq!(mapping.instant(ms(50_006), ms(14)), ms(50_006), "this one was faster by 3 ms");
        assert_eq!(mapping.instant(ms(50_016), ms(20)), ms(50_012), "and this one is late by 4 ms");
        // Half a second later in each step, the reporter's clock is slow by 1 ms in each.
        let mut last = ms(0);
        for step in 1..=100 {
            let now = ms(50_016 + step * 500);
            last = mapping.instant(now, ms(24 + step * 499));
            assert!(now - last <= Duration::from_millis(21), "step {step}: {:?}", now - last);
        }
        assert!(last > ms(100_000));
        assert_eq!(mapping.instant(ms(100_020), ms(3)), ms(100_020), "the reporter has begun anew");
        assert_eq!(mapping.instant(ms(100_021), Time::NEVER), ms(100_021), "no report is from the future");
        assert_eq!(mapping.instant(ms(100_031), Time::ZERO), ms(100_031), "and none from long ago");
    }

    #[test]
    fn a_reporter_that_begins_anew_is_numbered_on() {
        let mut numbers = Numbers::default();
        let place = |numbers: &mut Numbers, subframe: u64| {
            let mut report = report(0, Scope::Everyone);
            report.slot = Slot::subframe_of_lte(subframe);
            numbers.place(&mut report);
            report.slot.subframe()
        };
        assert_eq!([500, 501, 498, 502].map(|subframe| place(&mut numbers, subframe)), [500, 501, 498, 502]);
        numbers.begin_anew();
        assert_eq!([3, 4, 2, 5].map(|subframe| place(&mut numbers, subframe)), [503, 504, 502, 505]);
        numbers.begin_anew();
        assert_eq!(place(&mut numbers, 90), 590, "it goes on with higher numbers");
        assert_eq!([8_000, 6_999].map(|subframe| place(&mut numbers, subframe)), [8_500, 8_501]);
        let mut nr = report(0, Scope::Own);
        nr.slot = Slot { numerology: airpace_radio::Numerology::new(1).unwrap(), index: 2 * 7_000 + 1 };
        numbers.place(&mut nr);
        assert_eq!((nr.slot.subframe(), nr.slot.index % 2), (8_502, 1), "two slots in a subframe");
        for hostile in [u64::MAX, 0, u64::MAX / 2, 1] {
            place(&mut numbers, hostile);
        }
    }
}
