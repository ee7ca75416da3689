//! The exact minimum and maximum of a sliding window.
//!
//! Times, samples and windows are in nanoseconds: a `Duration` would store two numbers per time.
//!
//! [`crate::filter`] stores three samples and may miss the true extreme. Copa needs differences of a few hundred
//! microseconds between such extremes.

use std::collections::VecDeque;

/// Maximum number of stored samples.
const REMEMBERED: usize = 8_192;

/// Number of samples that are stored with any distance in time between them. Once this many are stored, samples are
/// stored only if they are at least `1 / SLOTS` of the window apart.
///
/// Chosen: if the samples rise for more than this many ACKs, the result may be late by `1 / SLOTS` of the window.
/// Without this rule, memory would grow without limit.
const DENSE: usize = 4_096;
/// Number of slots into which the window is divided to thin out samples; see [`DENSE`].
const SLOTS: u64 = 1_024;

/// The minimum of a window. A window always contains the newest sample.
///
/// Source: genericCC rtt-window (a queue of those samples that no later one undercuts)
#[derive(Clone, Debug, Default)]
pub struct SlidingMin {
    /// Time and value of each sample. Times and values both increase from front to back, so the front has the minimum
    /// of the window.
    samples: VecDeque<(u64, u64)>,
}

/// The maximum of a window.
#[derive(Clone, Debug, Default)]
pub struct SlidingMax(SlidingMin);

impl SlidingMin {
    /// Adds `sample` at `now`, and removes samples older than `window`. `now` never decreases.
    pub fn update(&mut self, now: u64, sample: u64, window: u64) {
        while self.samples.back().is_some_and(|newest| newest.1 >= sample) {
            self.samples.pop_back();
        }
        if self.is_crowded(now, window) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, sample));
        while self.samples.len() > 1 && self.samples[0].0 < now.saturating_sub(window) {
            self.samples.pop_front();
        }
    }

    /// The minimum of the window; `None` before the first sample.
    pub fn get(&self) -> Option<u64> {
        self.samples.front().map(|least| least.1)
    }

    /// Whether the newest two samples are so close that the newest one can be removed.
    fn is_crowded(&self, now: u64, window: u64) -> bool {
        let count = self.samples.len();
        count > DENSE && (now - self.samples[count - 2].0 < window / SLOTS || count == REMEMBERED)
    }
}

impl SlidingMax {
    /// Adds `sample` at `now`, and removes samples older than `window`. `now` never decreases.
    pub fn update(&mut self, now: u64, sample: u64, window: u64) {
        self.0.update(now, mirrored(sample), window);
    }

    /// The maximum of the window; `None` before the first sample.
    pub fn get(&self) -> Option<u64> {
        self.0.get().map(mirrored)
    }
}

/// Reverses the order of samples, so that the maximum becomes the minimum. The function is its own inverse.
fn mirrored(sample: u64) -> u64 {
    u64::MAX - sample
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_newest_sample_stays_however_old_it_is() {
        let mut least = SlidingMin::default();
        assert_eq!(least.get(), None);
        least.update(0, 40, 10);
        least.update(5, 45, 10);
        assert_eq!(least.get(), Some(40));
        least.update(11, 50, 10);
        assert_eq!(least.get(), Some(45), "the sample of 40 has left the window");
        least.update(9_000, 60, 0);
        assert_eq!(least.get(), Some(60));
    }

    #[test]
    fn an_rtt_that_only_rises_fills_no_memory() {
        let mut least = SlidingMin::default();
        let mut greatest = SlidingMax::default();
        for step in 0..100_000u64 {
            let now = 100 * step;
            least.update(now, step, 1_000_000);
            greatest.update(now, step, 1_000_000);
            assert!(least.samples.len() <= REMEMBERED);
            let oldest = step.saturating_sub(10_000);
            let seen = least.get().unwrap();
            assert!(
                (oldest..=oldest + 10_000 / 1_024).contains(&seen),
                "{seen} ns instead of the least, {oldest} ns"
            );
            assert_eq!(greatest.get(), Some(step));
        }
    }

    proptest! {
        #[test]
        fn extremes_are_exact(samples in prop::collection::vec((0u64..20, 0u64..100), 1..300), window in 0u64..100) {
            let (mut least, mut greatest) = (SlidingMin::default(), SlidingMax::default());
            let mut now = 0;
            let mut seen = vec![];
            for (step, sample) in samples {
                now += step;
                seen.push((now, sample));
                least.update(now, sample, window);
                greatest.update(now, sample, window);
                let kept = seen.iter().filter(|&&(at, _)| now - at <= window).map(|&(_, sample)| sample);
                prop_assert_eq!(least.get(), kept.clone().min());
                prop_assert_eq!(greatest.get(), kept.max());
            }
        }
    }
}
