//! The clock of a run: nanoseconds since it began, by the machine's monotonic clock.

use std::time::Duration;

use airpace_core::Time;
use rustix::time::{ClockId, clock_gettime};

/// A run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Clock {
        Clock { start_ns: monotonic_ns() }
    }

    /// What the machine's monotonic clock showed when it began, in nanoseconds.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// What it shows.
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic_ns().saturating_sub(self.start_ns))
    }
}

/// Processor time that the calling thread has used.
pub(crate) fn thread_cpu() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ThreadCPUTime))
}

/// What the machine's monotonic clock shows, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    nanos_of(ClockId::Monotonic)
}

/// What the machine's clock of the time of day shows, in nanoseconds since 1970.
pub(crate) fn of_day_ns() -> u64 {
    nanos_of(ClockId::Realtime)
}

fn nanos_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both parts are never negative for these clocks.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
