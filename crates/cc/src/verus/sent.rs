//! The window that each packet left with.

use std::collections::VecDeque;

/// Changes of the window that are remembered: some twenty seconds of epochs.
const MOST: usize = 4096;

/// Windows by packet number, one entry per change.
#[derive(Clone, Debug, Default)]
pub struct SentWindows {
    /// First number sent with the window, by rising number.
    changes: VecDeque<(u64, f64)>,
}

impl SentWindows {
    /// Packet `number`, higher than any before, leaves with `window`.
    pub fn push(&mut self, number: u64, window: f64) {
        if self.changes.back().is_some_and(|(_, last)| *last == window) {
            return;
        }
        if self.changes.len() == MOST {
            self.changes.pop_front();
        }
        self.changes.push_back((number, window));
    }

    /// The window that packet `number` left with; `None` if that is forgotten.
    pub fn window_of(&self, number: u64) -> Option<f64> {
        let after = self.changes.partition_point(|(first, _)| *first <= number);
        Some(self.changes[after.checked_sub(1)?].1)
    }
}
