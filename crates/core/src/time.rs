//! Simulation and run time: instants in nanoseconds since the start of the run.
//!
//! Durations are [`std::time::Duration`]. This module never reads a clock of the operating system.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// An instant, in nanoseconds since an epoch that the driver chose (the start of the run).
///
/// Subtraction saturates at zero: an earlier instant counts as no time passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);
    /// An instant after any event: the deadline of an event that will not happen.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// The instant `micros` microseconds after the epoch.
    #[inline]
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros * 1_000)
    }

    /// The instant `millis` milliseconds after the epoch.
    #[inline]
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    /// The instant `secs` seconds after the epoch.
    #[inline]
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs * 1_000_000_000)
    }

    /// The instant `secs` seconds after the epoch, rounded to the nanosecond; the epoch if `secs` is negative or NaN.
    #[inline]
    pub fn from_secs_f64(secs: f64) -> Time {
        // `as` saturates and maps NaN to zero.
        Time(libm::round(secs * 1e9) as u64)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the epoch, rounded down.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds since the epoch.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Milliseconds since the epoch.
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Signed nanoseconds from `earlier` to this instant. Unlike the result of `-`, this difference may be negative, as
    /// between the times of two clocks.
    #[inline]
    pub const fn signed_nanos_since(self, earlier: Time) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }

    /// The earlier of the two instants `self` and `other`.
    #[inline]
    pub fn min(self, other: Time) -> Time {
        Time(self.0.min(other.0))
    }

    /// The later of the two instants `self` and `other`.
    #[inline]
    pub fn max(self, other: Time) -> Time {
        Time(self.0.max(other.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    #[inline]
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(nanos(span)))
    }
}

impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    #[inline]
    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(span)))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} s", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

#[inline]
fn nanos(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(span.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::from_millis(3) - Time::from_millis(5), Duration::ZERO);
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::from_millis(1) - Duration::from_secs(1), Time::ZERO);
    }

    #[test]
    fn two_clocks_may_differ_by_a_negative_time() {
        assert_eq!(Time::from_nanos(5).signed_nanos_since(Time::from_nanos(9)), -4);
    }

    #[test]
    fn seconds_round_to_the_nanosecond() {
        assert_eq!(Time::from_secs_f64(0.001_5), Time::from_micros(1_500));
        assert_eq!(Time::from_secs_f64(f64::NAN), Time::ZERO);
        assert_eq!(Time::from_secs_f64(1.25).to_string(), "1.250000 s");
    }
}
