//! The clock of a device, which may differ from the senders' clocks.

use std::time::Duration;

use airpace_core::Time;

use airpace_scenario::ClockConfig;

/// Reading of a device's clock without offset at the start of a run: one hour, so that no offset, drift or step leads to
/// a negative reading (ns).
const EPOCH: i64 = 3_600_000_000_000;

/// A device's clock.
#[derive(Clone, Copy, Debug)]
pub struct DeviceClock {
    ahead_nanos: i64,
    /// Nanoseconds that the clock gains per nanosecond of true time.
    drift: f64,
    step_nanos: i64,
    step_at: Time,
}

impl DeviceClock {
    /// Creates a clock with the offset, drift and step of `config`.
    pub fn new(config: &ClockConfig) -> DeviceClock {
        let nanos = |ms: f64| (ms * 1e6).round() as i64;
        DeviceClock {
            ahead_nanos: EPOCH + nanos(config.offset_ms),
            drift: config.drift_ppm * 1e-6,
            step_nanos: nanos(config.step_ms),
            step_at: Time::from_secs_f64(config.step_at_s),
        }
    }

    /// Returns the clock's reading at the true time `now`.
    pub(crate) fn read(&self, now: Time) -> Time {
        let step = if now >= self.step_at { self.step_nanos } else { 0 };
        ahead(now, self.drifted(now) + step)
    }

    /// Returns the clock's reading at the true time `now` without steps. Timers use this steady clock because it is
    /// never set.
    pub fn steady(&self, now: Time) -> Time {
        ahead(now, self.drifted(now))
    }

    /// Returns the first true time at which the steady clock's reading is at least `shown`.
    pub fn when(&self, shown: Time) -> Time {
        if shown == Time::NEVER {
            return Time::NEVER;
        }
        let elapsed = (shown.as_nanos() as i64).saturating_sub(self.ahead_nanos).max(0) as u64;
        if self.drift == 0.0 {
            return Time::from_nanos(elapsed);
        }
        // The clock's drift is at most a tenth, so only rounding makes this estimate inexact.
        let mut nanos = (elapsed as f64 / (1.0 + self.drift)) as u64;
        while self.steady(Time::from_nanos(nanos)) < shown {
            nanos += 1;
        }
        while nanos > 0 && self.steady(Time::from_nanos(nanos - 1)) >= shown {
            nanos -= 1;
        }
        Time::from_nanos(nanos)
    }

    /// Returns the nanoseconds by which the clock is ahead because of offset and drift.
    fn drifted(&self, now: Time) -> i64 {
        let gained = if self.drift == 0.0 { 0 } else { (now.as_nanos() as f64 * self.drift) as i64 };
        self.ahead_nanos + gained
    }
}

fn ahead(now: Time, nanos: i64) -> Time {
    let shift = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { now - shift } else { now + shift }
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
    fn a_timer_by_the_steady_clock_is_due_at_the_first_instant_that_shows_it() {
        for (offset_ms, drift_ppm) in [(0.0, 0.0), (-250.0, 37.0), (1000.0, -100_000.0), (0.0, 99_999.9)] {
            let clock =
                DeviceClock::new(&ClockConfig { offset_ms, drift_ppm, step_ms: -500.0, step_at_s: 1.0 });
            for nanos in [0, 1, 999_999_999, 1_000_000_007, 86_400_000_000_011] {
                let shown = clock.steady(Time::from_nanos(nanos));
                let when = clock.when(shown);
                assert!(clock.steady(when) >= shown && when <= Time::from_nanos(nanos));
                let before = Time::from_nanos(when.as_nanos().saturating_sub(1));
                assert!(when == Time::ZERO || clock.steady(before) < shown, "not a nanosecond earlier");
            }
        }
        let clock = DeviceClock::new(&ClockConfig::default());
        assert_eq!(clock.when(Time::ZERO), Time::ZERO, "a time that is long past is due now");
        assert_eq!(clock.when(Time::NEVER), Time::NEVER);
    }

    #[test]
    fn a_right_clock_is_an_hour_ahead() {
        let clock = DeviceClock::new(&ClockConfig::default());
        assert_eq!(clock.read(Time::from_millis(7)), Time::from_secs(3600) + Duration::from_millis(7));
    }
}
