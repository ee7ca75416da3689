//! The machine's clocks, and a clock that starts at zero.

use std::time::Duration;

use airpace_core::Time;
use rustix::time::{ClockId, clock_gettime};

/// Returns the present instant, in nanoseconds of `CLOCK_MONOTONIC`.
pub fn now() -> Time {
    Time::from_nanos(nanos_of(ClockId::Monotonic))
}

/// A clock that starts at zero and then advances with the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Time,
}

impl Clock {
    /// Starts a clock.
    pub fn start() -> Clock {
        Clock { start: now() }
    }

    /// The instant of the monotonic clock at which this clock was started.
    pub fn start_instant(&self) -> Time {
        self.start
    }

    /// Returns the present reading of the clock.
    pub fn now(&self) -> Time {
        self.reading_at(now())
    }

    /// Returns the clock's reading at an instant of the monotonic clock; zero before the start.
    pub fn reading_at(&self, instant: Time) -> Time {
        Time::ZERO + (instant - self.start)
    }

    /// The instant of the monotonic clock at which this clock shows `reading`; for [`Time::NEVER`], returns
    /// [`Time::NEVER`].
    pub fn instant_of(&self, reading: Time) -> Time {
        self.start + (reading - Time::ZERO)
    }
}

/// Processor time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ThreadCPUTime))
}

/// Processor time that the whole process has used.
pub fn process_cpu() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ProcessCPUTime))
}

/// Returns the time of day, in nanoseconds since the start of 1970 (UTC).
pub fn time_of_day_ns() -> u64 {
    nanos_of(ClockId::Realtime)
}

fn nanos_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both parts are never negative for these clocks.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The difference between the time of day and the monotonic clock. The kernel stamps received datagrams with the time of day.
#[derive(Clone, Copy, Debug)]
pub struct Offset {
    /// The time of day minus the monotonic time, in nanoseconds; the difference may wrap.
    nanos: u64,
    /// The instant of the measurement.
    at: Time,
}

/// `SET`: minimum change between two measurements that counts as a change of the time of day by somebody.
/// `ADJUSTED_PER_SECOND`: drift that is allowed in addition, in nanoseconds per second.
///
/// Chosen: a clock that is being adjusted drifts by at most 0.5 ms per second; the allowed drift is twice as large.
const SET: Duration = Duration::from_millis(1);
const ADJUSTED_PER_SECOND: u64 = 1_000_000;

/// Maximum difference between the two readings of the monotonic clock in a measurement; with a larger difference, the
/// measurement is repeated.
///
/// Chosen: a reading takes some tens of nanoseconds, unless the thread is interrupted.
const INTERRUPTED: Duration = Duration::from_micros(2);

impl Offset {
    /// Measures the difference between both clocks.
    pub fn measure() -> Offset {
        let mut best: Option<(Duration, Offset)> = None;
        for _ in 0..4 {
            let before = now();
            let of_day = time_of_day_ns();
            let after = now();
            let width = after - before;
            let middle = before + width / 2;
            if best.is_none_or(|(least, _)| width < least) {
                best = Some((width, Offset { nanos: of_day.wrapping_sub(middle.as_nanos()), at: after }));
            }
            if width < INTERRUPTED {
                break;
            }
        }
        best.expect("at least one measurement was made").1
    }

    /// The instant of the measurement.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Whether the time of day was set between the measurement `earlier` and this measurement.
    pub fn was_set_since(&self, earlier: &Offset) -> bool {
        let moved = (self.nanos.wrapping_sub(earlier.nanos) as i64).unsigned_abs();
        let span = (self.at - earlier.at).as_nanos() as u64;
        moved > SET.as_nanos() as u64 + (span / 1_000).saturating_mul(ADJUSTED_PER_SECOND / 1_000_000)
    }

    /// Returns the instant of the monotonic clock at which the time of day was `of_day_ns`, but not an instant later
    /// than the measurement.
    pub fn instant(&self, of_day_ns: u64) -> Time {
        let nanos = of_day_ns.wrapping_sub(self.nanos);
        // A time of day before the machine was started wraps, and is not a valid stamp.
        Time::from_nanos(nanos).min(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_and_instants_are_inverse_to_each_other() {
        let before = now();
        let clock = Clock::start();
        assert!(before <= clock.start_instant() && clock.now() <= Time::ZERO + (now() - before));
        let reading = Time::from_millis(7);
        assert_eq!(clock.reading_at(clock.instant_of(reading)), reading);
        assert_eq!(clock.instant_of(Time::NEVER), Time::NEVER);
        assert_eq!(clock.reading_at(Time::ZERO), Time::ZERO);
    }

    #[test]
    fn a_time_of_day_becomes_an_instant() {
        let before = now();
        let of_day = time_of_day_ns();
        let after = now();
        let offset = Offset::measure();
        let instant = offset.instant(of_day);
        let doubt = Duration::from_micros(100);
        assert!(before - doubt <= instant && instant <= after + doubt, "{before:?} {instant:?} {after:?}");
        assert!(!Offset::measure().was_set_since(&offset));
        assert_eq!(offset.instant(of_day + 3_600_000_000_000), offset.at(), "nothing came in the future");
    }

    #[test]
    fn a_clock_that_was_set_differs_from_one_that_is_adjusted() {
        let earlier = Offset { nanos: 1_000_000_000_000, at: Time::from_secs(100) };
        let later = |nanos: i64, seconds: u64| Offset {
            nanos: earlier.nanos.wrapping_add_signed(nanos),
            at: Time::from_secs(100 + seconds),
        };
        for (nanos, seconds, was_set) in [
            (900_000, 0, false),
            (-900_000, 0, false),
            (-2_000_000, 0, true),
            (5_000_000, 10, false),
            (3_600_000_000_000, 10, true),
        ] {
            assert_eq!(later(nanos, seconds).was_set_since(&earlier), was_set, "{nanos} ns in {seconds} s");
        }
    }
}
