//! Packets sent by a schedule in real time and in virtual time, to compare the emulator with the simulator.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`schedule`] | send times of packets: drawn at random, or read from a file |
//! | [`player`] | the program that sends packets in real time and notes send and receive times |
//! | [`virtually`] | the same packets through the same network in virtual time |
//! | [`recorded`] | the packets of a schedule in the record of an emulated run |

pub mod player;
pub mod recorded;
pub mod schedule;
pub mod virtually;

use std::time::Duration;

use airpace_core::Time;
use airpace_rt::clock;
use airpace_rt::sleeper::{Needs, Sleeper};

/// Real-time priority of the players' threads: below the emulator's.
const PRIORITY: i32 = 5;

/// A thread that acts at given instants.
struct Punctual {
    sleeper: Sleeper,
}

impl Punctual {
    /// Configures the calling thread, with real-time priority if permitted. Also returns whether the thread got this
    /// priority.
    fn thread() -> (Punctual, bool) {
        let needs = Needs { priority: Some(PRIORITY), rest: 0, max_sleep: Duration::MAX };
        let sleeper = Sleeper::new(needs);
        let is_realtime = sleeper.refused.is_none();
        (Punctual { sleeper }, is_realtime)
    }

    /// Waits until the machine's monotonic clock reaches `at_ns`. Returns the clock's reading after the wait.
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

/// Returns the instant `after` past `start_ns`, on the machine's monotonic clock.
fn instant_ns(start_ns: u64, after: Time) -> u64 {
    start_ns.saturating_add(after.as_nanos())
}
