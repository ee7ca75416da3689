//! What a source of reports has told, and whether it is of use now.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use airpace_core::Time;
use airpace_radio::{RadioReport, Rnti, Scope};

/// Telemetry counts as stale when no report of use has come for so long.
///
/// Chosen: the most that the halves of PBE-CC and BISCAY allow before they do without. Each falls back by its own rule
/// when it next decides something; this is what people and programs are told.
pub const STALE_AFTER: Duration = Duration::from_millis(100);

/// What a scheme needs to know from a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// This device's own grants: BISCAY.
    Own,
    /// Everybody's grants, and which of them are this device's: PBE-CC.
    Everyone,
}

/// What the reports lack that a scheme needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// They do not say which device reports: a bystander's.
    Device,
    /// They hold the device's own grants only, as a modem logs them.
    Others,
    /// Something on the control channel was not read, which may be grants.
    Unread,
}

/// Whether telemetry comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has come yet.
    Waiting,
    /// It comes.
    Fresh,
    /// It comes, but for [`STALE_AFTER`] no report was of use: schemes have fallen back.
    WrongScope(Lack),
    /// Nothing came for so long: schemes have fallen back.
    Stale(Duration),
}

/// What a source has told. Any thread may read it.
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
    /// When the last report came, in nanoseconds of the monotonic clock; 0 before the first.
    last: AtomicU64,
    /// The same, of reports that hold what is needed: [`Need::Own`], [`Need::Everyone`].
    of_use: [AtomicU64; 2],
    /// How often no such report had come for [`STALE_AFTER`] before the next one did.
    gaps: [AtomicU64; 2],
    /// What the last report lacks for [`Need::Everyone`], as [`Lack`] plus one; 0 if nothing.
    lack: AtomicU64,
    /// Whose own side the last report has, plus one; 0 if nobody's.
    own: AtomicU64,
    /// Why the source is not open.
    problem: Mutex<Option<String>>,
}

/// All of it at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// What the source is, for people.
    pub name: String,
    /// Whether telemetry comes.
    pub state: State,
    /// Why the source is not open, if it is not.
    pub problem: Option<String>,
    /// Whether it does not come back.
    pub is_over: bool,
    /// Reports that came.
    pub reports: u64,
    /// Of these, reports without everybody's grants, or that do not say which device reports.
    pub refused: u64,
    /// Lines or readings that could not be read.
    pub unreadable: u64,
    /// Reports that were left out, because this machine decodes too slowly.
    pub late: u64,
    /// How far its reading is behind the samples.
    pub behind: Duration,
    /// How often the source was opened.
    pub opened: u64,
    /// How old the last report is that was of use; `None` before the first.
    pub age: Option<Duration>,
    /// How often telemetry had become stale, or of the wrong scope, and came back.
    pub gaps: u64,
    /// Which user the last report says that its reporter is.
    pub own: Option<Rnti>,
}

impl Heard {
    /// Nothing has come yet from the source of this name.
    pub fn of(name: String) -> Heard {
        Heard { name, ..Heard::default() }
    }

    /// What the source is, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reports that came.
    pub fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }

    /// Of these, reports that PBE-CC refuses: without everybody's grants, so that what others take would look idle, or
    /// without its own side.
    pub fn refused(&self) -> u64 {
        self.lacks.iter().map(|count| count.load(Ordering::Relaxed)).sum()
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

    /// Why the source is not open; `None` if it is.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether telemetry comes that is of use for this need.
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

    /// All of it now, for this need.
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

    /// A report came, at this instant.
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

    /// A report is so late that it is left out.
    pub(super) fn count_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// The reading of samples is so far behind.
    pub(super) fn fall_behind(&self, by: Duration) {
        self.behind_ns.store(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn open(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.is_open.store(true, Ordering::Relaxed);
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The source has ended for good.
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
            Lack::Device => "they do not say which device reports",
            Lack::Others => "they hold this device's own grants only",
            Lack::Unread => "they have something that was not read",
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
