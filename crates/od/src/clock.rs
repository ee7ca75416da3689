//! The clock of all times on the board.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine was started, those included in which it slept: Linux' `CLOCK_BOOTTIME`.
///
/// The same in all processes of a machine, but for those in a time namespace with an offset of its own: a program in such a
/// container sees wrong ages.
///
/// Costs no system call where the kernel's clock page knows this clock (Linux 5.3 and later).
///
/// Chosen: not `CLOCK_MONOTONIC`, which stands still while a phone sleeps: a reading from before would look new after.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    // Never negative, and 64 bits hold 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
