//! Statistics of an event loop's lateness: the delays from deadlines to the execution of their actions.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Maximum delay that is recorded; longer delays are recorded as this value.
const MAX: Duration = Duration::from_secs(10);

/// A distribution of delays, with an error of about 1 %.
#[derive(Clone)]
pub struct Lateness {
    nanos: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Lateness {
        let nanos = Histogram::new_with_bounds(1, MAX.as_nanos() as u64, 2);
        Lateness { nanos: nanos.expect("the bounds are sound") }
    }
}

impl Lateness {
    /// Adds a delay.
    pub fn record(&mut self, late: Duration) {
        self.nanos.saturating_record(late.as_nanos().try_into().unwrap_or(u64::MAX));
    }

    /// Number of delays.
    pub fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// The quantile `share` (0 to 1) of the delays; `None` if no delay was recorded.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.nanos.value_at_quantile(share)))
    }

    /// The maximum delay; `None` if no delay was recorded.
    pub fn longest(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.nanos.max()))
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(median), Some(p99), Some(longest)) =
            (self.quantile(0.5), self.quantile(0.99), self.longest())
        else {
            return f.write_str("nothing was paced");
        };
        let micros = |span: Duration| span.as_secs_f64() * 1e6;
        write!(
            f,
            "{:.0} µs late in the median, 99 % within {:.0} µs, the worst {:.0} µs",
            micros(median),
            micros(p99),
            micros(longest)
        )
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lateness({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_printed_as_three_numbers() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.to_string(), "nothing was paced");
        for micros in 1..=100 {
            lateness.record(Duration::from_micros(micros));
        }
        lateness.record(Duration::from_secs(3_600));
        assert_eq!(lateness.count(), 101);
        let text = lateness.to_string();
        assert!(text.starts_with("51 µs late in the median, 99 % within 1"), "{text}");
        assert!(lateness.longest().unwrap() >= MAX);
    }
}
