//! The clock of all times on the board.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine was started, including the time in which it slept: Linux' `CLOCK_BOOTTIME`.
///
/// The clock is the same in all processes of a machine, except those in a time namespace with an offset of its own: a
/// program in such a container sees wrong ages.
///
/// It costs no system call if the kernel's clock page supports this clock (Linux 5.3 and later).
///
/// Chosen: not `CLOCK_MONOTONIC`, which stands still while a phone sleeps: a reading from before the sleep would look
/// new afterwards.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    // It is never negative, and 64 bits hold 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
