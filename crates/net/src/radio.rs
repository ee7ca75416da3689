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

mod board;
mod lines;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use airpace_core::Time;
use airpace_radio::{RadioReport, Scope};

pub use board::Board;
pub use lines::{Lines, Place};

/// Telemetry counts as stale when nothing was heard for so long.
///
/// Chosen: the halves of PBE-CC and BISCAY fall back at about that time, each by its own rule; this is for the display.
pub const STALE_AFTER: Duration = Duration::from_millis(100);

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

    /// Its name for people.
    fn describe(&self) -> String;
}

/// What a source has told. Any thread may read it.
#[derive(Debug, Default)]
pub struct Heard {
    reports: AtomicU64,
    others: AtomicU64,
    unreadable: AtomicU64,
    opened: AtomicU64,
    is_open: AtomicBool,
    /// When the last report came, in nanoseconds of the monotonic clock; 0 before the first.
    last: AtomicU64,
}

/// Whether telemetry comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has come yet.
    Waiting,
    /// It comes.
    Fresh,
    /// Nothing came for so long: schemes have fallen back.
    Stale(Duration),
}

impl Heard {
    /// Reports that came.
    pub fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }

    /// Of these, reports without everybody's grants. PBE-CC refuses them: what others take would look idle.
    pub fn without_others(&self) -> u64 {
        self.others.load(Ordering::Relaxed)
    }

    /// Lines or readings that could not be read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// How often the source was opened: more than once if it went away.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Whether the source is there.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Whether telemetry comes.
    pub fn state(&self, now: Time) -> State {
        match Time::from_nanos(self.last.load(Ordering::Relaxed)) {
            Time::ZERO => State::Waiting,
            last if now - last <= STALE_AFTER => State::Fresh,
            last => State::Stale(now - last),
        }
    }

    /// A sentence if most reports lack the grants of others, which PBE-CC needs.
    pub fn scope_warning(&self) -> Option<String> {
        let (all, without) = (self.reports(), self.without_others());
        (without * 2 > all).then(|| {
            format!(
                "{without} of {all} radio reports do not hold everybody's grants, which PBE-CC needs, so that it falls \
                 back to BBR; give it the reports of a decoder of the control channel (`airpace decode --reports`, or \
                 `device-N.control` of `airpace emu --reports`)"
            )
        })
    }

    fn hear(&self, now: Time, report: &RadioReport) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        self.others.fetch_add(u64::from(report.scope != Scope::Everyone), Ordering::Relaxed);
        self.last.store(now.as_nanos().max(1), Ordering::Relaxed);
    }

    fn count_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    fn open(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.is_open.store(true, Ordering::Relaxed);
    }

    fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Waiting => f.write_str("waiting"),
            State::Fresh => f.write_str("fresh"),
            State::Stale(span) => write!(f, "stale for {:.1} s", span.as_secs_f64()),
        }
    }
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

#[cfg(test)]
mod tests {
    use airpace_radio::{BitLayer, CarrierId, Slot};

    use super::*;

    pub(super) fn report(subframe: u64, scope: Scope) -> RadioReport {
        RadioReport {
            carrier: CarrierId(0),
            slot: Slot::subframe_of_lte(subframe),
            time: Time::from_millis(subframe),
            scope,
            carrier_prbs: Some(50),
            cfi: None,
            dcis: vec![],
            own: None,
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
    fn what_was_heard_is_told() {
        let heard = Heard::default();
        let now = Time::from_secs(7);
        assert_eq!((heard.state(now), heard.scope_warning()), (State::Waiting, None));
        heard.hear(now, &report(1, Scope::Everyone));
        assert_eq!(heard.state(now + Duration::from_millis(100)), State::Fresh);
        let stale = heard.state(now + Duration::from_millis(1_300));
        assert_eq!(stale.to_string(), "stale for 1.3 s");
        heard.hear(now, &report(2, Scope::Own));
        assert_eq!(heard.scope_warning(), None);
        heard.hear(now, &report(3, Scope::EveryoneBut { unexplained: 1 }));
        let warning = heard.scope_warning().unwrap();
        assert!(warning.starts_with("2 of 3 radio reports do not hold everybody's grants"), "{warning}");
    }
}
