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
        Clock { start_ns: nanos_of(ClockId::Monotonic) }
    }

    /// What it shows.
    pub fn now(&self) -> Time {
        Time::from_nanos(nanos_of(ClockId::Monotonic).saturating_sub(self.start_ns))
    }
}

/// Processor time that the calling thread has used.
pub(crate) fn thread_cpu() -> Duration {
    Duration::from_nanos(nanos_of(ClockId::ThreadCPUTime))
}

fn nanos_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Both parts are never negative for these clocks.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
