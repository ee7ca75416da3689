//! The window at the sending of each packet.

use std::collections::VecDeque;

/// Maximum number of stored window changes: the changes of about twenty seconds.
const MAX_CHANGES: usize = 4096;

/// Windows by packet number, one entry per change.
#[derive(Clone, Debug, Default)]
pub struct SentWindows {
    /// The first packet number sent with each window, and the window (packets), in ascending order of the numbers.
    changes: VecDeque<(u64, f64)>,
}

impl SentWindows {
    /// Records that packet `number` leaves with `window`. The number must be higher than all earlier numbers.
    pub fn push(&mut self, number: u64, window: f64) {
        if self.changes.back().is_some_and(|(_, last)| *last == window) {
            return;
        }
        if self.changes.len() == MAX_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((number, window));
    }

    /// The window with which packet `number` left; `None` if this window is no longer stored.
    pub fn window_of(&self, number: u64) -> Option<f64> {
        let after = self.changes.partition_point(|(first, _)| *first <= number);
        Some(self.changes[after.checked_sub(1)?].1)
    }
}
