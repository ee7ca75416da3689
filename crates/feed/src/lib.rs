//! Sources of radio reports for a live flow.
//!
//! A source never blocks the thread of the event loop. The thread calls [`Radio::take`] when the source's descriptor
//! is readable or its deadline has passed. A source that has disappeared is opened again periodically. Statistics and
//! errors of a source are in [`Heard`], which any thread may read.
//!
//! | source | content |
//! | --- | --- |
//! | [`Lines`] | lines of [`airpace_radio::line`] by a decoder, an emulator or another machine, from a file, FIFO, standard input, or Unix or TCP socket |
//! | [`Board`] | KPIs of a libOD daemon, converted to reports of the phone's own grants |
//! | [`Fed`] | reports that another thread produces: from a modem's log, or a decoder of radio samples |

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
    /// The descriptor to poll for input, if the source has a descriptor.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Passes the new reports to `each`, up to a limit, with their times by the machine's monotonic clock.
    fn take(&mut self, now: Time, each: &mut dyn FnMut(RadioReport));

    /// Deadline at which to call [`Radio::take`] even without input.
    fn poll_timeout(&self) -> Option<Time>;

    /// Statistics of the source.
    fn heard(&self) -> Arc<Heard>;
}

/// Maps a reporter's times onto the machine's monotonic clock.
///
/// The reporter's clock has an unknown offset. The report with the minimum delay in the last one to two [`WINDOW`]s
/// counts as undelayed. A mapped time is therefore later than the true time by that minimum delay, a few milliseconds,
/// and never later than now.
#[derive(Clone, Debug, Default)]
struct Mapping {
    /// Minimum of arrival time minus report time (ns), in this window and in the previous window.
    least: [Option<i128>; 2],
    /// Start of this window.
    since: Time,
}

/// Length of the windows of the minimum delay.
///
/// Chosen: a clock drifts by less than a millisecond in this time.
const WINDOW: Duration = Duration::from_secs(5);

/// Apparent age of a report above which the reporter has restarted and its clock has a new offset.
///
/// Chosen: much longer than any delay at which a report is useful.
const ANEW: Duration = Duration::from_secs(1);

impl Mapping {
    /// Returns the monotonic time of a report that arrives at `now` with the reporter's time `time`.
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

/// Makes subframe numbers continue after a restart of the reporter, because schemes reject reports of earlier
/// subframes.
#[derive(Clone, Debug, Default)]
struct Numbers {
    newest: Option<u64>,
    /// Offset that is added to the reporter's numbers.
    shift: i64,
    /// Whether the source was opened again since the last report.
    is_anew: bool,
}

/// Threshold for the difference between a report's subframe number and the newest number (subframes). If a number is
/// lower by more than this, the report is not late: the reporter has restarted.
///
/// Chosen: like [`ANEW`], which applies to times.
const ANEW_SUBFRAMES: u64 = 1_000;

impl Numbers {
    /// Notes that the source was opened again: its next report is newer than all earlier reports.
    fn begin_anew(&mut self) {
        self.is_anew = true;
    }

    /// Sets a report's subframe number so that the numbers continue.
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

    /// A report without grants from a device.
    pub(super) fn report(subframe: u64, scope: Scope) -> RadioReport {
        RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(subframe),
            time: Time::from_millis(subframe),
            scope,
            carrier_prbs: Some(50),
            cfi: None,
            symbols: None,
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
        // The time advances by half a second per step, and the reporter's clock loses 1 ms per step.
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
