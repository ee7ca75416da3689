//! Scheduling of periodic checks for a cell stronger than the tracked cell.

use super::searching::Searching;
use crate::sync::{Ring, VIEW_HZ};

/// Schedule of the checks, and the samples of the last check.
pub(super) struct Watch {
    /// Samples of the check. The buffer is reused because its filters take long to design.
    view: Option<Box<Searching>>,
    is_looking: bool,
    /// Milliseconds of samples since the last check, and the interval until the next check.
    passed_ms: u64,
    wait_ms: u64,
    /// Whether the next check follows after [`SHORT_WAIT_MS`] instead of `wait_ms`.
    hurries: bool,
    /// Minimum time between two periods in which a stronger cell is tracked (milliseconds of samples), and the time
    /// since the last such period.
    rest_ms: u64,
    rested_ms: u64,
}

/// Length of a check, in samples of the view: two frames, so that the samples contain at least one complete
/// transmission of the PBCH.
pub(super) const LOOK: usize = VIEW_HZ as usize / 50;

/// Minimum interval between checks (milliseconds of samples). Used if a neighbour cell is known to be present.
///
/// Chosen: a check of 20 ms of samples takes about 5 ms on one core. So checks take a thousandth of real time, and a
/// twentieth soon after another cell was detected. Intervals are counted in received samples, and a check needs at least
/// 20 ms of samples. So no input can make checks more frequent.
const SHORT_WAIT_MS: u64 = 100;

/// Initial interval between checks if no neighbour is known (milliseconds of samples). Each check doubles the interval.
const FIRST_WAIT_MS: u64 = 500;

/// Maximum interval between checks (milliseconds of samples).
const LONG_WAIT_MS: u64 = 5000;

/// A stronger cell that is tracked for less than this time (milliseconds) was probably not stronger. The next switch is
/// then delayed.
const SHORT_LIFE_MS: u64 = 1000;

impl Watch {
    pub(super) fn new() -> Watch {
        Watch {
            view: None,
            is_looking: false,
            passed_ms: 0,
            wait_ms: FIRST_WAIT_MS,
            hurries: false,
            rest_ms: SHORT_WAIT_MS,
            rested_ms: SHORT_WAIT_MS,
        }
    }

    /// Advances the time by `ms` milliseconds of samples.
    pub(super) fn pass(&mut self, ms: u64) {
        self.passed_ms += ms;
        self.rested_ms += ms;
    }

    /// Restarts the schedule after a cell was acquired. `is_other_there`: another cell is present too.
    pub(super) fn begin(&mut self, is_other_there: bool) {
        self.is_looking = false;
        self.passed_ms = 0;
        self.hurries = false;
        self.wait_ms = if is_other_there { SHORT_WAIT_MS } else { FIRST_WAIT_MS };
    }

    /// Sets whether the next check follows after [`SHORT_WAIT_MS`].
    pub(super) fn hurry(&mut self, hurries: bool) {
        self.hurries = hurries;
    }

    /// Makes the next check due at once.
    pub(super) fn rush(&mut self) {
        self.passed_ms = self.passed_ms.max(self.wait_ms);
    }

    /// Reports that a stronger cell was lost after it was tracked for `after_ms`.
    pub(super) fn lose(&mut self, after_ms: u64) {
        self.rest_ms =
            if after_ms < SHORT_LIFE_MS { (2 * self.rest_ms).min(LONG_WAIT_MS) } else { SHORT_WAIT_MS };
        self.rested_ms = 0;
        self.begin(true);
    }

    /// Returns whether a stronger cell may be tracked if one is found.
    pub(super) fn is_rested(&self) -> bool {
        self.rested_ms >= self.rest_ms
    }

    /// Adds the raw samples before number `end` to the check. Returns the view once it is full.
    pub(super) fn look(&mut self, raw: &[Ring], end: i64, rate_hz: u64) -> Option<&mut Searching> {
        if !self.is_looking {
            let wait_ms = if self.hurries { SHORT_WAIT_MS } else { self.wait_ms };
            if self.passed_ms < wait_ms || !self.is_rested() {
                return None;
            }
            let view = self.view.get_or_insert_with(|| Box::new(Searching::new(rate_hz, raw.len(), end)));
            view.restart(end);
            self.is_looking = true;
            return None;
        }
        let view = self.view.as_mut()?;
        let run = raw[0].run_from(view.next)?;
        if run.start > view.next {
            // Samples were lost: drop this check and wait for the next one.
            self.is_looking = false;
            self.passed_ms = 0;
            return None;
        }
        let count = (end.min(run.end) - view.next).max(0) as usize;
        view.look(raw, count);
        if view.len() < LOOK {
            return None;
        }
        self.is_looking = false;
        self.passed_ms = 0;
        if !self.hurries {
            self.wait_ms = (2 * self.wait_ms).min(LONG_WAIT_MS);
        }
        self.view.as_deref_mut()
    }

    /// Returns the view of the last check.
    pub(super) fn view(&self) -> Option<&Searching> {
        self.view.as_deref()
    }

    /// Returns the number of the first raw sample that the running check needs.
    pub(super) fn needed_from(&self) -> Option<i64> {
        let view = self.view.as_ref().filter(|_| self.is_looking)?;
        Some(view.origin as i64)
    }

    /// Number of samples held by the views.
    pub(super) fn samples_held(&self) -> usize {
        self.view.as_ref().map_or(0, |view| view.views.iter().map(|view| view.samples.len()).sum())
    }
}
