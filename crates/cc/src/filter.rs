//! The maximum or minimum of a sliding window, approximated with three stored samples.
//!
//! The filter stores the best sample of the window, the best sample after that one, and the best sample after the
//! second. Each represents a part of the window, so that a good successor is available when the best sample expires.
//! The result is always a sample of the window, and at least as good as the newest sample. It may not be the true
//! extreme of the window, because only three samples are stored.
//!
//! A position is the quantity in which the window is measured: a [`Time`] with a window of [`Duration`], or a count of
//! rounds (`u64`) with a window of rounds.
//!
//! Source: Linux lib/win_minmax.c (Kathleen Nichols' algorithm)

use std::time::Duration;

use airpace_core::Time;

/// The position at which a sample was taken.
pub trait Position: Copy + PartialEq + std::fmt::Debug {
    /// The length of a window over such positions.
    type Span: Copy + std::fmt::Debug;

    /// Number of units from `earlier` to `self`; zero if `self` is not after `earlier`.
    fn since(self, earlier: Self) -> u64;

    /// Number of units in a window.
    fn units(window: Self::Span) -> u64;
}

/// The unit is a nanosecond.
impl Position for Time {
    type Span = Duration;

    fn since(self, earlier: Time) -> u64 {
        self.as_nanos().saturating_sub(earlier.as_nanos())
    }

    fn units(window: Duration) -> u64 {
        (Time::ZERO + window).as_nanos()
    }
}

/// The unit is a round, or one step of any other counter that never decreases.
impl Position for u64 {
    type Span = u64;

    fn since(self, earlier: u64) -> u64 {
        self.saturating_sub(earlier)
    }

    fn units(window: u64) -> u64 {
        window
    }
}

/// The maximum of the samples in the last window.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMax<V, P>(Windowed<V, P>);

/// The minimum of the samples in the last window.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMin<V, P>(Windowed<V, P>);

impl<V: Copy + PartialOrd, P: Position> WindowedMax<V, P> {
    /// An empty filter over `window`.
    pub fn new(window: P::Span) -> Self {
        WindowedMax(Windowed::new(window))
    }

    /// Adds `value` at `position` and returns the maximum of the window. Positions never decrease.
    pub fn update(&mut self, position: P, value: V) -> V {
        self.0.update(position, value, |new, old| new >= old)
    }

    /// The maximum as of the last update; `None` before the first.
    pub fn get(&self) -> Option<V> {
        self.0.best().map(|best| best.1)
    }

    /// The position of the maximum.
    pub fn position(&self) -> Option<P> {
        self.0.best().map(|best| best.0)
    }

    /// Discards all values.
    pub fn reset(&mut self) {
        self.0.samples = None;
    }

    /// Sets another window length. It applies from the next update on.
    pub fn set_window(&mut self, window: P::Span) {
        self.0.set_window(window);
    }
}

impl<V: Copy + PartialOrd, P: Position> WindowedMin<V, P> {
    /// An empty filter over `window`.
    pub fn new(window: P::Span) -> Self {
        WindowedMin(Windowed::new(window))
    }

    /// Adds `value` at `position` and returns the minimum of the window. Positions never decrease.
    pub fn update(&mut self, position: P, value: V) -> V {
        self.0.update(position, value, |new, old| new <= old)
    }

    /// The minimum as of the last update; `None` before the first.
    pub fn get(&self) -> Option<V> {
        self.0.best().map(|best| best.1)
    }

    /// The position of the minimum.
    pub fn position(&self) -> Option<P> {
        self.0.best().map(|best| best.0)
    }

    /// Discards all values.
    pub fn reset(&mut self) {
        self.0.samples = None;
    }

    /// Sets another window length. It applies from the next update on.
    pub fn set_window(&mut self, window: P::Span) {
        self.0.set_window(window);
    }
}

#[derive(Clone, Copy, Debug)]
struct Windowed<V, P> {
    /// Length of the window, in units of the position.
    window: u64,
    /// Best, second and third best sample, each not earlier than the previous one.
    samples: Option<[(P, V); 3]>,
}

impl<V: Copy + PartialOrd, P: Position> Windowed<V, P> {
    fn new(window: P::Span) -> Self {
        Windowed { window: P::units(window), samples: None }
    }

    fn set_window(&mut self, window: P::Span) {
        self.window = P::units(window);
    }

    fn best(&self) -> Option<(P, V)> {
        self.samples.map(|samples| samples[0])
    }

    fn update(&mut self, now: P, value: V, as_good: impl Fn(V, V) -> bool) -> V {
        let sample = (now, value);
        let Some(samples) = &mut self.samples else {
            self.samples = Some([sample; 3]);
            return value;
        };
        if as_good(value, samples[0].1) || now.since(samples[2].0) > self.window {
            *samples = [sample; 3];
            return value;
        }
        if as_good(value, samples[1].1) {
            samples[1] = sample;
            samples[2] = sample;
        } else if as_good(value, samples[2].1) {
            samples[2] = sample;
        }
        let age = now.since(samples[0].0);
        if age > self.window {
            // The best sample has expired, and the second may have expired too.
            *samples = [samples[1], samples[2], sample];
            if now.since(samples[0].0) > self.window {
                *samples = [samples[1], samples[2], sample];
            }
        } else if samples[1].0 == samples[0].0 && age > self.window / 4 {
            // A quarter of the window has passed without a second sample: the newest sample, which is in the second
            // quarter, becomes the second sample.
            samples[1] = sample;
            samples[2] = sample;
        } else if samples[2].0 == samples[1].0 && age > self.window / 2 {
            // Half of the window has passed without a third sample: the newest sample, which is in the second half,
            // becomes the third sample.
            samples[2] = sample;
        }
        samples[0].1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_greatest_leaves_with_its_window_and_the_next_best_follows() {
        let mut filter = WindowedMax::new(10);
        assert_eq!(filter.get(), None);
        assert_eq!(filter.update(0u64, 100), 100);
        assert_eq!(filter.update(3, 60), 100, "a lesser value does not replace the greatest");
        assert_eq!(filter.update(10, 20), 100, "the greatest value counts until its window ends");
        assert_eq!(filter.update(11, 20), 60, "then the greatest later value counts");
        assert_eq!(filter.update(12, 80), 80, "a greater value counts at once");
        filter.reset();
        assert_eq!(filter.get(), None);
    }

    #[test]
    fn the_least_over_time() {
        let mut filter = WindowedMin::new(Duration::from_secs(10));
        assert_eq!(filter.update(Time::ZERO, 40), 40);
        assert_eq!(filter.update(Time::from_secs(6), 55), 40);
        assert_eq!(filter.update(Time::from_secs(11), 70), 55);
        assert_eq!(filter.position(), Some(Time::from_secs(6)));
    }

    #[test]
    fn silence_longer_than_the_window_forgets_all() {
        let mut filter = WindowedMax::new(10);
        for round in 0..10u64 {
            filter.update(round, 100 - round);
        }
        assert_eq!(filter.update(100, 1), 1);
    }

    proptest! {
        #[test]
        fn the_result_was_seen_in_the_window_and_is_at_least_the_newest(
            samples in prop::collection::vec((0u64..5, 0u32..1000), 1..200),
            window in 4u64..50,
        ) {
            let mut filter = WindowedMax::new(window);
            let mut now = 0;
            let mut seen = Vec::new();
            for (step, value) in samples {
                now += step;
                seen.push((now, value));
                let best = filter.update(now, value);
                prop_assert!(best >= value);
                prop_assert!(seen.iter().any(|&(at, value)| value == best && now - at <= window));
            }
        }
    }
}
