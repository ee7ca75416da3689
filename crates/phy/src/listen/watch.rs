//! Whether the followed cell has a stronger one beside it: a look from time to time.

use super::searching::Searching;
use crate::sync::{Ring, VIEW_HZ};

/// When to look, and what was seen so far.
pub(super) struct Watch {
    /// What the look sees. It is kept, because its filters take long to make.
    view: Option<Box<Searching>>,
    is_looking: bool,
    /// Milliseconds of samples since the last look, and how many there must be.
    passed_ms: u64,
    wait_ms: u64,
    /// Whether the next look comes soon, whatever else the wait is.
    hurries: bool,
    /// How many there must be between two times that a stronger cell is followed.
    rest_ms: u64,
    rested_ms: u64,
}

/// Samples of the view that a look takes: two frames, so that at least one whole part of the PBCH is among them.
pub(super) const LOOK: usize = VIEW_HZ as usize / 50;

/// The shortest wait between two looks, where another cell is known to be there; the first, where none is; and the longest,
/// to which each look doubles it.
///
/// Chosen: a look at 20 ms of samples takes some 5 ms of a core. So looks take a thousandth of the time, and soon after
/// another cell was heard a twentieth. What waits is counted in samples that came, at least 20 ms of which make a look: no
/// input makes looks more frequent.
const SHORT_WAIT_MS: u64 = 100;
const FIRST_WAIT_MS: u64 = 500;
const LONG_WAIT_MS: u64 = 5000;

/// A stronger cell that was followed for less than this was hardly one: the next is taken later.
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

    /// Some milliseconds of samples passed.
    pub(super) fn pass(&mut self, ms: u64) {
        self.passed_ms += ms;
        self.rested_ms += ms;
    }

    /// The cell that is followed from now on was found, and another beside it or none.
    pub(super) fn begin(&mut self, is_other_there: bool) {
        self.is_looking = false;
        self.passed_ms = 0;
        self.hurries = false;
        self.wait_ms = if is_other_there { SHORT_WAIT_MS } else { FIRST_WAIT_MS };
    }

    /// Whether the next look should come soon.
    pub(super) fn hurry(&mut self, hurries: bool) {
        self.hurries = hurries;
    }

    /// The next look should begin at once.
    pub(super) fn rush(&mut self) {
        self.passed_ms = self.passed_ms.max(self.wait_ms);
    }

    /// A stronger cell that was followed is gone.
    pub(super) fn lose(&mut self, after_ms: u64) {
        self.rest_ms =
            if after_ms < SHORT_LIFE_MS { (2 * self.rest_ms).min(LONG_WAIT_MS) } else { SHORT_WAIT_MS };
        self.rested_ms = 0;
        self.begin(true);
    }

    /// Whether a stronger cell may be followed if one is found.
    pub(super) fn is_rested(&self) -> bool {
        self.rested_ms >= self.rest_ms
    }

    /// Looks at the raw samples before number `end`. Gives the view once it is full.
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
            // Samples were lost: another time.
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

    /// What the last look saw.
    pub(super) fn view(&self) -> Option<&Searching> {
        self.view.as_deref()
    }

    /// Number of the first raw sample that the present look needs.
    pub(super) fn needed_from(&self) -> Option<i64> {
        let view = self.view.as_ref().filter(|_| self.is_looking)?;
        Some(view.origin as i64)
    }

    /// Samples of views that are held.
    pub(super) fn samples_held(&self) -> usize {
        self.view.as_ref().map_or(0, |view| view.views.iter().map(|view| view.samples.len()).sum())
    }
}
