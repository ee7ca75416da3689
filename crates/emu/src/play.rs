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
use airpace_rt::clock;
use airpace_rt::sleeper::{Needs, Sleeper};

/// Priority of the threads of players among real-time threads: below the emulator's.
const PRIORITY: i32 = 5;

/// A thread that does things at their instants.
struct Punctual {
    sleeper: Sleeper,
}

impl Punctual {
    /// Makes the calling thread one, with real-time priority if the process is allowed to. Returns whether it has that.
    fn thread() -> (Punctual, bool) {
        let needs = Needs { priority: Some(PRIORITY), rest: 0, max_sleep: Duration::MAX };
        let sleeper = Sleeper::new(needs);
        let is_realtime = sleeper.refused.is_none();
        (Punctual { sleeper }, is_realtime)
    }

    /// Waits until the machine's monotonic clock shows `at_ns`. Returns what it shows then.
    fn wait_until(&mut self, at_ns: u64) -> u64 {
        let due = Time::from_nanos(at_ns);
        loop {
            let now = clock::now();
            if now >= due {
                return now.as_nanos();
            }
            // A signal may end the sleep early.
            self.sleeper.wait(due, true, &mut [], |_| {});
        }
    }
}

/// The instant of the machine's monotonic clock `after` its instant `start_ns`.
fn instant_ns(start_ns: u64, after: Time) -> u64 {
    start_ns.saturating_add(after.as_nanos())
}
