//! Statistics of packet delays in bounded memory.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::rounded;

/// Maximum recorded delay (µs): one hour. Longer delays are recorded with this value.
const MAX_US: u64 = 3_600_000_000;

/// Mean and percentiles of a delay over delivered packets, in ms; `None` if no packet was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Exact arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile: the smallest delay such that at least 95 % of the packets have at most this delay.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// Collects delays.
pub(super) struct DelayMeter {
    histogram: Histogram<u64>,
    total_ns: u128,
}

impl DelayMeter {
    pub(super) fn new() -> DelayMeter {
        let histogram =
            Histogram::new_with_bounds(1, MAX_US, 3).expect("constants within the histogram's range");
        DelayMeter { histogram, total_ns: 0 }
    }

    pub(super) fn add(&mut self, delay: Duration) {
        let nanos = delay.as_secs() * 1_000_000_000 + u64::from(delay.subsec_nanos());
        self.total_ns += u128::from(nanos);
        // Round to the nearest microsecond, so that 10 ms stays 10 ms even if the clock is off by a nanosecond.
        self.histogram.saturating_record((nanos + 500) / 1_000);
    }

    pub(super) fn finish(&self) -> Delays {
        let packets = self.histogram.len();
        if packets == 0 {
            return Delays::default();
        }
        let percentile = |q| Some(rounded(self.histogram.value_at_quantile(q) as f64 * 1e-3));
        let mean_ns = self.total_ns as f64 / packets as f64;
        Delays {
            mean: Some(rounded(mean_ns * 1e-6)),
            p50: percentile(0.50),
            p95: percentile(0.95),
            p99: percentile(0.99),
        }
    }
}
