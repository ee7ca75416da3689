//! The machine's clocks.

use std::time::Duration;

use airpace_core::Time;
use rustix::time::{ClockId, clock_gettime};

/// The instant now: nanoseconds of `CLOCK_MONOTONIC`.
pub fn now() -> Time {
    Time::from_nanos(nanos_of(ClockId::Monotonic))
}

/// Processor time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ThreadCPUTime))
}

/// Processor time that the whole process has used.
pub fn process_cpu() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ProcessCPUTime))
}

fn nanos_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both parts are never negative for these clocks.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What the clock of the time of day shows above the monotonic clock. The kernel stamps arrivals with the former.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset {
    /// The time of day less the monotonic time, in nanoseconds; it may wrap.
    nanos: u64,
    /// When it was measured.
    at: Time,
}

/// A difference of two measurements that means that somebody has set the time of day.
///
/// Chosen: beside this, what a clock that is being adjusted gains on the other: at most 0.5 ms per second, here twice.
const SET: Duration = Duration::from_millis(1);
const ADJUSTED_PER_SECOND: u64 = 1_000_000;

/// A measurement whose two looks at the monotonic clock are further apart is made again.
///
/// Chosen: looks take some tens of nanoseconds each, unless the thread is interrupted.
const INTERRUPTED: Duration = Duration::from_micros(2);

impl Offset {
    /// Measures it.
    pub(crate) fn measure() -> Offset {
        let mut best: Option<(Duration, Offset)> = None;
        for _ in 0..4 {
            let before = now();
            let of_day = nanos_of(ClockId::Realtime);
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
        best.expect("it was measured at least once").1
    }

    /// When it was measured.
    pub(crate) fn at(&self) -> Time {
        self.at
    }

    /// Whether the time of day was set between an earlier measurement and this one.
    pub(crate) fn was_set_since(&self, earlier: &Offset) -> bool {
        let moved = (self.nanos.wrapping_sub(earlier.nanos) as i64).unsigned_abs();
        let span = (self.at - earlier.at).as_nanos() as u64;
        moved > SET.as_nanos() as u64 + (span / 1_000).saturating_mul(ADJUSTED_PER_SECOND / 1_000_000)
    }

    /// The instant at which the time of day was so many nanoseconds; not later than the measurement.
    pub(crate) fn instant(&self, of_day_ns: u64) -> Time {
        let nanos = of_day_ns.wrapping_sub(self.nanos);
        // One from before the machine was started wraps, and is no sound stamp.
        Time::from_nanos(nanos).min(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_becomes_an_instant() {
        let before = now();
        let of_day = nanos_of(ClockId::Realtime);
        let after = now();
        let offset = Offset::measure();
        let instant = offset.instant(of_day);
        let doubt = Duration::from_micros(100);
        assert!(before - doubt <= instant && instant <= after + doubt, "{before:?} {instant:?} {after:?}");
        assert!(!Offset::measure().was_set_since(&offset));
        assert_eq!(offset.instant(of_day + 3_600_000_000_000), offset.at(), "nothing came in the future");
    }

    #[test]
    fn a_clock_that_was_set_is_told_from_one_that_is_adjusted() {
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
