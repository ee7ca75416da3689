//! Intervals into which the time series of a run is divided.

use airpace_run::metrics::significant;

/// Equal intervals that cover a run. The last one may be shorter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Intervals {
    span_ms: f64,
    duration_ms: f64,
}

impl Intervals {
    /// Divides the run into at most `most` intervals. Their length is a multiple of 100 ms.
    pub(super) fn of(duration_s: f64, most: usize) -> Intervals {
        let duration_ms = duration_s * 1e3;
        let span_ms = (duration_ms / most as f64 / 100.0).ceil().max(1.0) * 100.0;
        Intervals { span_ms, duration_ms }
    }

    pub(super) fn span_s(self) -> f64 {
        self.span_ms / 1e3
    }

    /// Number of intervals. A remainder of the run that is shorter than a tenth of an interval is not counted, because a
    /// rate computed from one packet in it would be meaningless.
    pub(super) fn count(self) -> usize {
        ((self.duration_ms / self.span_ms - 0.1).ceil() as usize).max(1)
    }

    /// Index of the interval that contains an instant; `None` outside of the run.
    pub(super) fn index(self, time_ms: f64) -> Option<usize> {
        let index = (time_ms / self.span_ms) as usize;
        (index < self.count()).then_some(index)
    }

    /// Rate in Mbit/s of `bytes` in interval `index`.
    pub(super) fn mbps(self, index: usize, bytes: u64) -> f64 {
        let start = index as f64 * self.span_ms;
        let length = self.span_ms.min(self.duration_ms - start);
        significant(bytes as f64 * 8e-3 / length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_run_is_no_interval_if_it_is_too_short_for_a_rate() {
        // In binary, 30 + 1.5 is slightly more than its decimal text.
        for (duration_s, count) in [(31.5, 315), (31.500_000_000_000_004, 315), (31.509, 315), (31.52, 316)] {
            let intervals = Intervals::of(duration_s, 1_000);
            assert_eq!(intervals.count(), count, "{duration_s} s");
            assert_eq!(intervals.index(31_500.5), (count == 316).then_some(315));
            assert!(intervals.mbps(count - 1, 1_500) < 1.3, "a packet in a tenth of an interval at most");
        }
        assert_eq!(Intervals::of(0.001, 1_000).count(), 1);
    }
}
