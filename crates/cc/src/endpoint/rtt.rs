//! Estimates the round-trip time of a connection from samples.

use std::time::Duration;

use crate::controller::Rtt;

/// Timer granularity.
///
/// Source: RFC 9002 §6.1.2 (`kGranularity`)
pub const GRANULARITY: Duration = Duration::from_millis(1);

/// RTT assumed before the first sample.
///
/// Source: RFC 9002 §6.2.2 (`kInitialRtt`)
const INITIAL: Duration = Duration::from_millis(333);

/// Smoothed round-trip time, its variation and its minimum.
///
/// Source: RFC 9002 §5
#[derive(Clone, Copy, Debug, Default)]
pub struct RttEstimator {
    sampled: Option<Rtt>,
}

impl RttEstimator {
    /// Updates the estimates with one sample. `ack_delay` is the time for which the receiver delayed the ACK on
    /// purpose.
    ///
    /// Source: RFC 9002 §5.3
    pub fn update(&mut self, latest: Duration, ack_delay: Duration) {
        let Some(rtt) = &mut self.sampled else {
            self.sampled =
                Some(Rtt { latest: Some(latest), smoothed: latest, variation: latest / 2, min: latest });
            return;
        };
        rtt.latest = Some(latest);
        rtt.min = rtt.min.min(latest);
        let adjusted = if latest >= rtt.min + ack_delay { latest - ack_delay } else { latest };
        // The computation uses nanoseconds, because `Duration` divides seconds and nanoseconds separately, which is
        // several times slower.
        let [variation, smoothed, adjusted] = [rtt.variation, rtt.smoothed, adjusted].map(nanos);
        let variation = (variation * 3 + smoothed.abs_diff(adjusted)) / 4; // RFC 9002 §5.3: gain 1/4
        let smoothed = (smoothed * 7 + adjusted) / 8; // RFC 9002 §5.3: gain 1/8
        rtt.variation = Duration::from_nanos(variation);
        rtt.smoothed = Duration::from_nanos(smoothed);
    }

    /// The RTT estimates. Before the first sample, they are derived from the initial guess.
    pub fn get(&self) -> Rtt {
        self.sampled.unwrap_or(Rtt {
            latest: None,
            smoothed: INITIAL,
            variation: INITIAL / 2, // RFC 9002 §5.3
            min: INITIAL,
        })
    }

    /// Time without an ACK after which a probe is sent, without back-off.
    ///
    /// Source: RFC 9002 §6.2.1
    pub fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        let rtt = self.get();
        let spread = nanos(GRANULARITY).max(nanos(rtt.variation) * 4);
        Duration::from_nanos(nanos(rtt.smoothed) + spread) + max_ack_delay
    }

    /// Time after which an unacknowledged packet counts as lost if a later packet was acknowledged.
    ///
    /// Source: RFC 9002 §6.1.2 (`kTimeThreshold` 9/8)
    pub fn loss_delay(&self) -> Duration {
        let rtt = self.get();
        let longest = rtt.smoothed.max(rtt.latest.unwrap_or_default());
        GRANULARITY.max(Duration::from_nanos(nanos(longest) * 9 / 8))
    }
}

/// Converts `span` to nanoseconds. RTTs are below 2⁶⁰ ns, so the result fits into 64 bits.
fn nanos(span: Duration) -> u64 {
    span.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_sample_is_taken_whole_and_later_ones_by_an_eighth() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.probe_timeout(ms(0)), ms(999), "three times the initial guess");
        rtt.update(ms(80), ms(0));
        assert_eq!((rtt.get().smoothed, rtt.get().variation), (ms(80), ms(40)));
        rtt.update(ms(160), ms(0));
        assert_eq!((rtt.get().smoothed, rtt.get().variation), (ms(90), ms(50)));
        assert_eq!(rtt.probe_timeout(ms(25)), ms(90 + 200 + 25));
        assert_eq!(rtt.loss_delay(), ms(180), "9/8 of the greater of latest and smoothed");
        assert_eq!(rtt.get().min, ms(80));
    }

    #[test]
    fn a_deliberate_ack_delay_is_taken_off_unless_it_would_go_below_the_minimum() {
        let mut rtt = RttEstimator::default();
        rtt.update(ms(80), ms(0));
        rtt.update(ms(100), ms(20));
        assert_eq!(rtt.get().smoothed, ms(80));
        rtt.update(ms(88), ms(20));
        assert_eq!(
            rtt.get().smoothed,
            ms(81),
            "88 minus the delay would be below the minimum, so nothing is subtracted"
        );
    }
}
