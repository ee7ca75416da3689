//! The clock of a device, which need not agree with the senders'.

use std::time::Duration;

use airpace_core::Time;

use crate::scenario::ClockConfig;

/// What a device's clock shows at the run's beginning when it is neither ahead nor behind: an hour, so that no
/// offset, drift or step makes it show a time before zero.
const EPOCH: i64 = 3_600_000_000_000;

/// A device's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceClock {
    ahead_nanos: i64,
    /// Nanoseconds gained per nanosecond.
    drift: f64,
    step_nanos: i64,
    step_at: Time,
}

impl DeviceClock {
    pub(crate) fn new(config: &ClockConfig) -> DeviceClock {
        let nanos = |ms: f64| (ms * 1e6).round() as i64;
        DeviceClock {
            ahead_nanos: EPOCH + nanos(config.offset_ms),
            drift: config.drift_ppm * 1e-6,
            step_nanos: nanos(config.step_ms),
            step_at: Time::from_secs_f64(config.step_at_s),
        }
    }

    /// What it shows at the true instant `now`.
    pub(crate) fn read(&self, now: Time) -> Time {
        let mut ahead = self.ahead_nanos;
        if self.drift != 0.0 {
            ahead += (now.as_nanos() as f64 * self.drift) as i64;
        }
        if now >= self.step_at {
            ahead += self.step_nanos;
        }
        let shift = Duration::from_nanos(ahead.unsigned_abs());
        if ahead < 0 { now - shift } else { now + shift }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_ahead_by_offset_drift_and_step() {
        let clock = DeviceClock::new(&ClockConfig {
            offset_ms: -250.0,
            drift_ppm: 100.0,
            step_ms: 50.0,
            step_at_s: 10.0,
        });
        let ahead_ms =
            |s| clock.read(Time::from_secs(s)).signed_nanos_since(Time::from_secs(3600 + s)) / 1_000_000;
        assert_eq!(ahead_ms(0), -250);
        assert_eq!(ahead_ms(5), -249, "half a millisecond, and integer division rounds towards zero");
        assert_eq!(ahead_ms(10), -250 + 50 + 1);
        assert_eq!(ahead_ms(20), -250 + 50 + 2);
    }

    #[test]
    fn a_right_clock_is_an_hour_ahead() {
        let clock = DeviceClock::new(&ClockConfig::default());
        assert_eq!(clock.read(Time::from_millis(7)), Time::from_secs(3600) + Duration::from_millis(7));
    }
}
