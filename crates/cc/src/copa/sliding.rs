//! The least and the greatest sample of a sliding window, exactly.
//!
//! [`crate::filter`] remembers three samples and may miss the true best; Copa steers by differences of a few hundred
//! microseconds between such extremes.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_core::Time;

/// Samples that are remembered, at most.
const REMEMBERED: usize = 1_024;

/// So many are remembered whatever their distance; more only if they are a part `1 / SLOTS` of the window apart.
///
/// Chosen: what rises for longer than so many ACKs is followed late by such a part, instead of in memory without end.
const DENSE: usize = 256;
/// See [`DENSE`].
const SLOTS: u32 = 128;

/// The least sample of a window. A window always holds the newest sample.
///
/// Source: genericCC rtt-window (a queue of those samples that no later one undercuts)
#[derive(Clone, Debug, Default)]
pub struct SlidingMin {
    /// When and how much, both rising: the front is the least of the window.
    samples: VecDeque<(Time, Duration)>,
}

/// The greatest sample of a window.
#[derive(Clone, Debug, Default)]
pub struct SlidingMax(SlidingMin);

impl SlidingMin {
    /// Takes in `sample` at `now`, which never falls, and forgets what is older than `window`.
    pub fn update(&mut self, now: Time, sample: Duration, window: Duration) {
        while self.samples.back().is_some_and(|newest| newest.1 >= sample) {
            self.samples.pop_back();
        }
        if self.is_crowded(now, window) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, sample));
        while self.samples.len() > 1 && self.samples[0].0 < now - window {
            self.samples.pop_front();
        }
    }

    /// The least of the window; `None` before the first sample.
    pub fn get(&self) -> Option<Duration> {
        self.samples.front().map(|least| least.1)
    }

    /// Whether the newest sample but one is so close that the newest can be spared.
    fn is_crowded(&self, now: Time, window: Duration) -> bool {
        let count = self.samples.len();
        count > DENSE && (now - self.samples[count - 2].0 < window / SLOTS || count == REMEMBERED)
    }
}

impl SlidingMax {
    /// Takes in `sample` at `now`, which never falls, and forgets what is older than `window`.
    pub fn update(&mut self, now: Time, sample: Duration, window: Duration) {
        self.0.update(now, mirrored(sample), window);
    }

    /// The greatest of the window; `None` before the first sample.
    pub fn get(&self) -> Option<Duration> {
        self.0.get().map(mirrored)
    }
}

/// The greatest becomes the least; its own inverse.
fn mirrored(sample: Duration) -> Duration {
    Duration::MAX - sample
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_newest_sample_stays_however_old_it_is() {
        let mut least = SlidingMin::default();
        assert_eq!(least.get(), None);
        least.update(Time::from_millis(0), ms(40), ms(10));
        least.update(Time::from_millis(5), ms(45), ms(10));
        assert_eq!(least.get(), Some(ms(40)));
        least.update(Time::from_millis(11), ms(50), ms(10));
        assert_eq!(least.get(), Some(ms(45)), "40 ms left the window");
        least.update(Time::from_secs(9), ms(60), ms(0));
        assert_eq!(least.get(), Some(ms(60)));
    }

    #[test]
    fn an_rtt_that_only_rises_fills_no_memory() {
        let mut least = SlidingMin::default();
        let mut greatest = SlidingMax::default();
        for step in 0..100_000u64 {
            let now = Time::from_micros(100 * step);
            least.update(now, Duration::from_micros(step), ms(1_000));
            greatest.update(now, Duration::from_micros(step), ms(1_000));
            assert!(least.samples.len() <= REMEMBERED);
            let oldest = step.saturating_sub(10_000);
            let seen = least.get().unwrap().as_micros() as u64;
            assert!(
                (oldest..=oldest + 10_000 / 128).contains(&seen),
                "{seen} µs where {oldest} µs is the least"
            );
            assert_eq!(greatest.get(), Some(Duration::from_micros(step)));
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
                least.update(Time::from_millis(now), ms(sample), ms(window));
                greatest.update(Time::from_millis(now), ms(sample), ms(window));
                let kept = seen.iter().filter(|&&(at, _)| now - at <= window).map(|&(_, sample)| ms(sample));
                prop_assert_eq!(least.get(), kept.clone().min());
                prop_assert_eq!(greatest.get(), kept.max());
            }
        }
    }
}
