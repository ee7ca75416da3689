//! The clock of all timestamps in the shared-memory region.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since boot, including the time in suspend: Linux' `CLOCK_BOOTTIME`.
///
/// All processes of a machine share this clock, except processes in a time namespace with its own offset: a program in
/// such a container computes wrong ages.
///
/// The function makes no system call if the kernel's vDSO supports this clock (Linux 5.3 and later).
///
/// Chosen: `CLOCK_BOOTTIME` and not `CLOCK_MONOTONIC`, which stops while a phone is suspended: a reading from before
/// the suspend would look recent after it.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    // The time is never negative, and 64 bits of nanoseconds last 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
