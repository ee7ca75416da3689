//! Packets that are sent by a schedule, in real time and in virtual time: how an emulator is compared with the simulator.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`schedule`] | which packets are sent when: drawn, or from a file |
//! | [`player`] | the program that sends them in real time, and notes when which came |
//! | [`virtually`] | the same packets through the same network in virtual time |
//! | [`recorded`] | what a record of an emulated run says of them |

pub mod player;
pub mod recorded;
pub mod schedule;
pub mod virtually;

use std::time::Duration;

use airpace_core::Time;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use crate::clock::monotonic_ns;
use crate::sys;

/// Priority of the threads of players among real-time threads: below the emulator's.
const PRIORITY: i32 = 5;

/// How long before an instant a thread with real-time priority waits awake.
///
/// Chosen: as the emulator's.
const AWAKE: Duration = Duration::from_micros(60);

/// A thread that does things at their instants.
struct Punctual {
    awake: Duration,
}

impl Punctual {
    /// Makes the calling thread one, with real-time priority if the process is allowed to.
    fn thread() -> (Punctual, bool) {
        let is_first = sys::run_first(PRIORITY).is_ok();
        (Punctual { awake: if is_first { AWAKE } else { Duration::ZERO } }, is_first)
    }

    /// Waits until the machine's monotonic clock shows `at_ns`. Returns what it shows then.
    fn wait_until(&self, at_ns: u64) -> u64 {
        let sleep_until = at_ns.saturating_sub(self.awake.as_nanos() as u64);
        let time = Timespec {
            tv_sec: (sleep_until / 1_000_000_000) as i64,
            tv_nsec: (sleep_until % 1_000_000_000) as i64,
        };
        loop {
            let now = monotonic_ns();
            if now >= at_ns {
                return now;
            }
            if now < sleep_until {
                // An interruption is no reason to stop waiting.
                let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
            }
        }
    }
}

/// The instant of the machine's monotonic clock `after` its instant `start_ns`.
fn instant_ns(start_ns: u64, after: Time) -> u64 {
    start_ns.saturating_add(after.as_nanos())
}
