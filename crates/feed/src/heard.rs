//! Statistics of a source of reports, and whether its reports are useful now.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use airpace_core::Time;
use airpace_radio::{RadioReport, Rnti, Scope};

/// Time without a useful report after which the telemetry counts as stale.
///
/// Chosen: the maximum age at which the senders and receivers of PBE-CC and BISCAY still use reports. Each of them
/// falls back by its own rule at its next decision; this constant defines the state that users and programs see.
pub const STALE_AFTER: Duration = Duration::from_millis(100);

/// Content of a report that a scheme requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The device's own grants: BISCAY.
    Own,
    /// The grants of all users, with a mark on the device's own grants: PBE-CC.
    Everyone,
}

/// Content that a scheme requires and that is missing in the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The identity of the device: the reports come from a passive receiver.
    Device,
    /// The grants of other users: a modem logs its own grants only.
    Others,
    /// A part of the control channel, possibly with grants, was not decoded.
    Unread,
}

/// State of the telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No report has arrived yet.
    Waiting,
    /// Useful reports arrive.
    Fresh,
    /// Reports arrive, but no report was useful for [`STALE_AFTER`]: schemes use their fallback.
    WrongScope(Lack),
    /// No report has arrived for this duration: schemes use their fallback.
    Stale(Duration),
}

/// Statistics of a source. Any thread may read them.
#[derive(Debug, Default)]
pub struct Heard {
    name: String,
    reports: AtomicU64,
    lacks: [AtomicU64; 3],
    unreadable: AtomicU64,
    late: AtomicU64,
    behind_ns: AtomicU64,
    opened: AtomicU64,
    is_open: AtomicBool,
    is_over: AtomicBool,
    /// Arrival of the last report (ns of the monotonic clock); 0 before the first report.
    last: AtomicU64,
    /// Arrival of the last report with the required content, for [`Need::Own`] and [`Need::Everyone`].
    of_use: [AtomicU64; 2],
    /// Number of interruptions: times that no report with the required content arrived for more than [`STALE_AFTER`]
    /// before the next such report.
    gaps: [AtomicU64; 2],
    /// Content that the last report lacks for [`Need::Everyone`], as [`Lack`] plus one; 0 if the report lacks nothing.
    lack: AtomicU64,
    /// RNTI of the device in the last report, plus one; 0 if the report contains no RNTI of the device.
    own: AtomicU64,
    /// Reason why the source is not open.
    problem: Mutex<Option<String>>,
}

/// A snapshot of the statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Name of the source for users.
    pub name: String,
    /// State of the telemetry.
    pub state: State,
    /// Reason why the source is not open; `None` if it is open.
    pub problem: Option<String>,
    /// Whether the source has ended permanently.
    pub is_over: bool,
    /// Number of received reports.
    pub reports: u64,
    /// Number of received reports that lack the grants of other users, a part of the control channel, or the device's
    /// identity.
    pub refused: u64,
    /// Number of lines or readings that could not be parsed.
    pub unreadable: u64,
    /// Number of reports that were dropped because this machine decodes too slowly.
    pub late: u64,
    /// Delay of the decoder behind the reception of the samples.
    pub behind: Duration,
    /// Number of times that the source was opened.
    pub opened: u64,
    /// Age of the last useful report; `None` before the first useful report.
    pub age: Option<Duration>,
    /// Number of times that telemetry became stale, or lacked required content, and recovered.
    pub gaps: u64,
    /// RNTI of the reporting device, according to the last report.
    pub own: Option<Rnti>,
}

impl Heard {
    /// Creates the statistics of the source with this name, before any report.
    pub fn of(name: String) -> Heard {
        Heard { name, ..Heard::default() }
    }

    /// Name of the source for users.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of received reports.
    pub fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }

    /// Number of received reports that PBE-CC rejects: reports without the grants of all other users, because the
    /// capacity of these grants would appear idle, and reports without the device's own state.
    pub fn refused(&self) -> u64 {
        self.lacks.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Number of lines or readings that could not be parsed.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Number of times that the source was opened: more than once if the source had disappeared.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Whether the source is open.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Reason why the source is not open; `None` if it is open.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// State of the telemetry for this need.
    pub fn state(&self, now: Time, need: Need) -> State {
        let is_recent = |at: &AtomicU64| {
            let at = at.load(Ordering::Relaxed);
            at != 0 && now - Time::from_nanos(at) <= STALE_AFTER
        };
        if is_recent(&self.of_use[need as usize]) {
            return State::Fresh;
        }
        match self.last.load(Ordering::Relaxed) {
            0 => State::Waiting,
            _ if is_recent(&self.last) => State::WrongScope(self.lack(need)),
            last => State::Stale(now - Time::from_nanos(last)),
        }
    }

    fn lack(&self, need: Need) -> Lack {
        match (need, self.lack.load(Ordering::Relaxed)) {
            (Need::Own, _) | (_, 1) => Lack::Device,
            (_, 3) => Lack::Unread,
            _ => Lack::Others,
        }
    }

    /// Returns a snapshot of the statistics for this need.
    pub fn account(&self, now: Time, need: Need) -> Account {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let of_use = count(&self.of_use[need as usize]);
        Account {
            name: self.name.clone(),
            state: self.state(now, need),
            problem: self.problem(),
            is_over: self.is_over.load(Ordering::Relaxed),
            reports: self.reports(),
            refused: self.refused(),
            unreadable: self.unreadable(),
            late: count(&self.late),
            behind: Duration::from_nanos(count(&self.behind_ns)),
            opened: self.opened(),
            age: (of_use != 0).then(|| now - Time::from_nanos(of_use)),
            gaps: count(&self.gaps[need as usize]),
            own: count(&self.own).checked_sub(1).map(|rnti| Rnti(rnti as u16)),
        }
    }

    /// Counts a report that arrived at `came`.
    pub(super) fn hear(&self, came: Time, report: &RadioReport) {
        let lack = match (&report.own, report.scope) {
            (None, _) => Some(Lack::Device),
            (_, Scope::Own) => Some(Lack::Others),
            (_, Scope::EveryoneBut { missed: None, .. }) => Some(Lack::Unread),
            (_, Scope::EveryoneBut { missed: Some(_), .. } | Scope::Everyone) => None,
        };
        self.own.store(report.own.as_ref().map_or(0, |own| u64::from(own.rnti.0) + 1), Ordering::Relaxed);
        let came_ns = came.as_nanos().max(1);
        self.reports.fetch_add(1, Ordering::Relaxed);
        if let Some(lack) = lack {
            self.lacks[lack as usize].fetch_add(1, Ordering::Relaxed);
        }
        self.lack.store(lack.map_or(0, |lack| lack as u64 + 1), Ordering::Relaxed);
        self.last.store(came_ns, Ordering::Relaxed);
        for (need, is_of_use) in [(Need::Own, lack != Some(Lack::Device)), (Need::Everyone, lack.is_none())] {
            if is_of_use {
                let before = self.of_use[need as usize].swap(came_ns, Ordering::Relaxed);
                let was_stale = before != 0 && came - Time::from_nanos(before) > STALE_AFTER;
                self.gaps[need as usize].fetch_add(u64::from(was_stale), Ordering::Relaxed);
            }
        }
    }

    pub(super) fn count_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a report that was dropped because it is too late.
    pub(super) fn count_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the delay of the decoder behind the reception of the samples.
    pub(super) fn fall_behind(&self, by: Duration) {
        self.behind_ns.store(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn open(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.is_open.store(true, Ordering::Relaxed);
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes that the source has ended permanently.
    pub(super) fn end(&self, why: String) {
        self.is_over.store(true, Ordering::Relaxed);
        self.close(why);
    }

    pub(super) fn close(&self, why: String) {
        self.is_open.store(false, Ordering::Relaxed);
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lack::Device => "the reports do not name their device",
            Lack::Others => "the reports contain only this device's grants",
            Lack::Unread => "the reports are incomplete: something was not decoded",
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Waiting => f.write_str("waiting"),
            State::Fresh => f.write_str("fresh"),
            State::WrongScope(lack) => write!(f, "of wrong scope: {lack}"),
            State::Stale(span) => write!(f, "stale for {:.1} s", span.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_was_heard_is_told() {
        let heard = Heard::of("reports".to_owned());
        let now = Time::from_secs(7);
        assert_eq!(heard.state(now, Need::Everyone), State::Waiting);
        assert_eq!(heard.account(now, Need::Own).age, None);
        heard.open();
        heard.hear(now, &report(1, Scope::Everyone));
        for need in [Need::Own, Need::Everyone] {
            assert_eq!(heard.state(now + STALE_AFTER, need), State::Fresh);
            assert_eq!(heard.state(now + STALE_AFTER + MS, need), State::Stale(STALE_AFTER + MS));
        }
        assert_eq!(heard.state(now + 1300 * MS, Need::Own).to_string(), "stale for 1.3 s");
        heard.close("it has ended".to_owned());
        assert_eq!(heard.account(now, Need::Own).problem.as_deref(), Some("it has ended"));
        heard.open();
        heard.hear(now + 1300 * MS, &report(2, Scope::Everyone));
        let told = heard.account(now + 1301 * MS, Need::Everyone);
        assert_eq!((told.state, told.gaps, told.opened, told.age), (State::Fresh, 1, 2, Some(MS)));
        assert_eq!((told.reports, told.refused, told.problem, told.own), (2, 0, None, Some(Rnti(70))));
    }

    #[test]
    fn a_scope_that_changes_is_noticed_after_a_tenth_of_a_second_though_reports_come() {
        let heard = Heard::default();
        let begin = Time::from_secs(7);
        for subframe in 0..5_000 {
            heard.hear(begin + MS * subframe, &report(subframe.into(), Scope::Everyone));
        }
        let bystander = RadioReport { own: None, ..report(1, Scope::Everyone) };
        let partly = report(1, Scope::EveryoneBut { unexplained: 1, missed: None });
        let cases = [
            (&report(1, Scope::Own), Lack::Others, State::Fresh),
            (&partly, Lack::Unread, State::Fresh),
            (&bystander, Lack::Device, State::WrongScope(Lack::Device)),
        ];
        let mut now = begin + MS * 5_000;
        for (of_wrong_scope, lack, for_own) in cases {
            heard.hear(now, &report(1, Scope::Everyone));
            for _ in 0..100 {
                now += MS;
                heard.hear(now, of_wrong_scope);
                assert_eq!(heard.state(now, Need::Everyone), State::Fresh);
            }
            now += MS;
            heard.hear(now, of_wrong_scope);
            assert_eq!(heard.state(now, Need::Everyone), State::WrongScope(lack));
            assert_eq!(heard.state(now, Need::Own), for_own, "{lack}");
        }
        assert_eq!(heard.account(now, Need::Everyone).refused, 303);
        assert_eq!(heard.account(now, Need::Everyone).gaps, 2, "it came back twice");
    }
}
