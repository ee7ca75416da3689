//! Estimates from RTTs: the length of the queue, and whether it was recently nearly empty.

use std::time::Duration;

use airpace_core::Time;

use super::sliding::{SlidingMax, SlidingMin};

/// A queue counts as nearly empty if its delay is at most the oscillation of the RTT (maximum minus minimum) divided by
/// this number.
///
/// Source: Copa §2.2
const EMPTY_PARTS: u64 = 10;

/// Period over which the oscillation is measured, in RTTs.
///
/// Source: Copa §2.2 (RTTmax over the past four RTTs)
const OSCILLATION_RTTS: u64 = 4;

/// Period, in RTTs, within which the queue of a path with only Copa flows is nearly empty at least once.
///
/// Source: Copa §2.2
const EMPTY_RTTS: u64 = 5;

/// Settings of the RTT filters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filters {
    /// Window of RTTmin, the minimum RTT.
    pub rtt_min: Duration,
    /// Minimum window of RTTmin, in multiples of RTTmin.
    pub rtt_min_rtts: u32,
    /// Gain of the smoothed RTT.
    pub srtt_gain: f64,
    /// The test for whether the queue was nearly empty.
    pub empty_test: EmptyTest,
}

/// The test for whether only flows like Copa share the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyTest {
    /// The standing queue was nearly empty within the last five RTTs.
    ///
    /// Source: Copa §2.2
    Standing,
    /// The minimum RTT of the last four RTTs shows a nearly empty queue.
    ///
    /// Source: genericCC rtt-window
    Least,
}

/// The filters of RTT samples. All times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Queue {
    filters: Filters,
    srtt: u64,
    latest: u64,
    min: SlidingMin,
    standing: SlidingMin,
    recent_min: SlidingMin,
    recent_max: SlidingMax,
    emptied: u64,
}

impl Queue {
    /// State before the first RTT.
    pub fn new(filters: Filters) -> Queue {
        Queue {
            filters,
            srtt: 0,
            latest: 0,
            min: SlidingMin::default(),
            standing: SlidingMin::default(),
            recent_min: SlidingMin::default(),
            recent_max: SlidingMax::default(),
            emptied: 0,
        }
    }

    /// Processes an RTT sample.
    pub fn on_sample(&mut self, now: Time, rtt: Duration) {
        let (now, rtt) = (now.as_nanos(), nanos(rtt));
        let Filters { srtt_gain, empty_test, .. } = self.filters;
        let known_min = self.min.get();
        self.latest = rtt;
        self.srtt = match known_min {
            Some(_) => (srtt_gain * rtt as f64 + (1.0 - srtt_gain) * self.srtt as f64) as u64,
            None => rtt,
        };
        let of_rtts = known_min.unwrap_or(0).saturating_mul(u64::from(self.filters.rtt_min_rtts));
        let longest = nanos(self.filters.rtt_min).max(of_rtts);
        let recent = longest.min(self.srtt.saturating_mul(OSCILLATION_RTTS));
        self.min.update(now, rtt, longest);
        self.standing.update(now, rtt, longest.min(self.srtt / 2)); // Copa §2.1: τ = srtt / 2
        self.recent_max.update(now, rtt, recent);
        match empty_test {
            EmptyTest::Standing if known_min.is_none() || self.is_nearly_empty(self.standing.get()) => {
                self.emptied = now;
            }
            EmptyTest::Standing => {}
            EmptyTest::Least => self.recent_min.update(now, rtt, recent),
        }
    }

    /// Whether the queue empties as often as it does if only Copa flows share the bottleneck.
    pub fn empties(&self, now: Time) -> bool {
        match self.filters.empty_test {
            EmptyTest::Standing => {
                now.as_nanos().saturating_sub(self.emptied) <= self.srtt.saturating_mul(EMPTY_RTTS)
            }
            EmptyTest::Least => self.is_nearly_empty(self.recent_min.get()),
        }
    }

    /// RTTmin, the RTT of an empty queue; `None` before the first sample.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.min.get().map(Duration::from_nanos)
    }

    /// RTTstanding, the RTT without the jitter of single packets; `None` before the first sample.
    ///
    /// Source: Copa §2.1
    pub fn rtt_standing(&self) -> Option<Duration> {
        self.standing.get().map(Duration::from_nanos)
    }

    /// The last RTT sample.
    pub fn latest(&self) -> Duration {
        Duration::from_nanos(self.latest)
    }

    /// `dq`, the delay of the standing queue.
    ///
    /// Source: Copa §2.1 Eq. 2
    pub fn delay(&self) -> Duration {
        match (self.standing.get(), self.min.get()) {
            (Some(standing), Some(min)) => Duration::from_nanos(standing.saturating_sub(min)),
            _ => Duration::ZERO,
        }
    }

    /// Chosen: if the RTT does not oscillate at all, the queue counts as empty. The `<` of Copa and of genericCC would
    /// classify this queue as full. Their clocks never measure the same RTT twice, but a simulator's clock does.
    fn is_nearly_empty(&self, rtt: Option<u64>) -> bool {
        let (Some(rtt), Some(min), Some(max)) = (rtt, self.min.get(), self.recent_max.get()) else {
            return true;
        };
        rtt.saturating_sub(min).saturating_mul(EMPTY_PARTS) <= max.saturating_sub(min)
    }
}

/// Converts `span` to nanoseconds. Times longer than 584 years become the maximum of `u64`.
fn nanos(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(span.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Filters = Filters {
        rtt_min: Duration::from_secs(10),
        rtt_min_rtts: 0,
        srtt_gain: 0.125,
        empty_test: EmptyTest::Standing,
    };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_late_packet_is_jitter_and_not_queue() {
        let mut queue = Queue::new(PAPER);
        for step in 0..50 {
            // Every other packet is 8 ms late.
            queue.on_sample(Time::from_millis(step), ms(40 + 8 * (step % 2)));
        }
        assert_eq!(queue.delay(), Duration::ZERO);
        for step in 50..100 {
            queue.on_sample(Time::from_millis(step), ms(45 + 8 * (step % 2)));
        }
        assert_eq!(queue.delay(), ms(5), "every RTT within half an RTT was 45 ms or more");
    }

    #[test]
    fn rtt_min_ages() {
        let mut queue = Queue::new(PAPER);
        queue.on_sample(Time::ZERO, ms(40));
        for second in 1..=10 {
            queue.on_sample(Time::from_secs(second), ms(60));
        }
        assert_eq!((queue.rtt_min(), queue.delay()), (Some(ms(40)), ms(20)));
        queue.on_sample(Time::from_millis(10_001), ms(60));
        assert_eq!(
            (queue.rtt_min(), queue.delay()),
            (Some(ms(60)), Duration::ZERO),
            "the route is longer now"
        );
    }

    #[test]
    fn twenty_long_rtts_are_longer_than_ten_seconds() {
        let mut queue = Queue::new(Filters { rtt_min_rtts: 20, ..PAPER });
        queue.on_sample(Time::ZERO, ms(1_000));
        queue.on_sample(Time::from_secs(19), ms(1_500));
        assert_eq!(queue.rtt_min(), Some(ms(1_000)));
        queue.on_sample(Time::from_millis(20_001), ms(1_500));
        assert_eq!(queue.rtt_min(), Some(ms(1_500)));
    }

    #[test]
    fn a_queue_that_never_empties_is_noticed_after_five_rtts_or_when_the_least_of_four_is_high() {
        for (empty_test, noticed) in [(EmptyTest::Standing, 250..300), (EmptyTest::Least, 160..260)] {
            let mut queue = Queue::new(Filters { empty_test, ..PAPER });
            let mut full_since = None;
            for step in 0..600u64 {
                let now = Time::from_millis(step);
                // The queue is empty for 100 ms. After that, its delay is between 10 and 20 ms.
                queue.on_sample(now, if step < 100 { ms(40) } else { ms(50 + step % 11) });
                if !queue.empties(now) && full_since.is_none() {
                    full_since = Some(step - 100);
                }
                assert!(queue.empties(now) || full_since.is_some());
            }
            let full_since = full_since.expect("the full queue is detected");
            assert!(noticed.contains(&full_since), "{empty_test:?}: after {full_since} ms");
            for step in 600..700 {
                queue.on_sample(Time::from_millis(step), ms(40));
            }
            assert!(queue.empties(Time::from_millis(700)), "{empty_test:?}: it is empty again");
        }
    }
}
