//! How the turning thread sleeps: to the nanosecond, and awake for the last moments if it runs before all others.

use std::num::NonZeroU64;
use std::time::Duration;

use airpace_core::Time;
use rustix::event::{PollFd, Timespec, poll};

use crate::clock::{self, thread_cpu};
use crate::sys;

/// Priority of the thread among real-time threads.
///
/// Chosen: below the emulator's, which may run on the same machine.
pub(crate) const PRIORITY: i32 = 5;

/// How long before a deadline a thread with real-time priority stops sleeping and waits awake: timers come late.
///
/// Chosen: as long as a wake-up takes on a machine that is not busy, as the emulator does.
const AWAKE: Duration = Duration::from_micros(30);

/// How long a thread does not wait awake after it has done so, in lengths of [`AWAKE`].
///
/// Chosen: at most a tenth of the time goes into it. What leaves a little late makes up for it with the next packet.
const REST: u32 = 9;

/// How long a thread with real-time priority works before it looks whether it has slept, and how long it sleeps if it has
/// not: the kernel stops threads that take more than 0.95 s of a second for the rest of it, which is 50 ms.
///
/// Source: Linux sched-rt-group.rst (sched_rt_runtime_us). Chosen: shorter than what a pacer keeps.
const WORKS_FOR: Duration = Duration::from_millis(2);
const SLEEPS_FOR: Duration = Duration::from_micros(200);

/// The longest sleep, after which everything is looked at again.
const LONGEST: Duration = Duration::from_millis(500);

/// A thread's way to sleep.
#[derive(Debug)]
pub(crate) struct Sleeper {
    /// How long before a deadline it stops sleeping.
    awake: Duration,
    /// When it last waited awake.
    was_awake: Time,
    /// If it has real-time priority: when it last looked whether it sleeps, and what it had worked then.
    looked: Option<(Time, Duration)>,
    /// Why it has no real-time priority, if it was asked for.
    pub refused: Option<String>,
}

impl Sleeper {
    /// For the calling thread, with real-time priority if that is asked for and allowed.
    pub(crate) fn new(wants_realtime: bool) -> Sleeper {
        // Without this, timers of ordinary threads come 50 µs late, so that the kernel wakes up less often.
        // Source: man-pages PR_SET_TIMERSLACK(2const)
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let asked = wants_realtime.then(|| sys::run_first(PRIORITY));
        let is_first = matches!(asked, Some(Ok(())));
        Sleeper {
            awake: if is_first { AWAKE } else { Duration::ZERO },
            was_awake: Time::ZERO,
            looked: is_first.then(|| (clock::now(), thread_cpu())),
            refused: asked.and_then(Result::err).map(|error| {
                format!("no real-time priority ({error}), so that packets may leave late on a busy machine; give the program CAP_SYS_NICE")
            }),
        }
    }

    /// Waits until one of these has what it is waited for, or `due` comes. Returns whether one has.
    pub(crate) fn wait(&mut self, due: Time, waiting: &mut [PollFd<'_>]) -> bool {
        self.rest_at_times();
        let is_rested = due - self.was_awake >= self.awake * (REST + 1);
        let awake = if is_rested { self.awake } else { Duration::ZERO };
        loop {
            let now = clock::now();
            let left = due - now;
            if !left.is_zero() && left < awake {
                self.was_awake = now;
            }
            let sleep = left.saturating_sub(awake).min(LONGEST);
            let timeout = Timespec { tv_sec: 0, tv_nsec: sleep.subsec_nanos().into() };
            if poll(waiting, Some(&timeout)).is_ok_and(|count| count > 0) {
                return true;
            }
            if left > LONGEST || due <= clock::now() {
                return false;
            }
        }
    }

    /// Sleeps a little if the thread runs before all others and did hardly sleep since it looked last.
    pub(crate) fn rest_at_times(&mut self) {
        let Some((at, worked)) = self.looked else { return };
        let lasted = clock::now() - at;
        if lasted < WORKS_FOR {
            return;
        }
        if is_restless(lasted, thread_cpu().saturating_sub(worked)) {
            std::thread::sleep(SLEEPS_FOR);
        }
        self.looked = Some((clock::now(), thread_cpu()));
    }
}

/// Whether a thread that has worked so long comes near the kernel's bound.
fn is_restless(lasted: Duration, worked: Duration) -> bool {
    worked > lasted.mul_f64(0.9)
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, PollFlags, eventfd};

    use super::*;

    #[test]
    fn it_sleeps_until_the_instant_and_not_shorter() {
        let mut sleeper = Sleeper::new(true);
        let never = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let rings = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        for micros in [0, 1, 20, 40, 100, 1_000, 3_000, 700_000] {
            let due = clock::now() + Duration::from_micros(micros);
            let woke = sleeper.wait(due, &mut [PollFd::new(&never, PollFlags::IN)]);
            assert!(!woke);
            assert!(clock::now() >= due || micros > 500_000, "{micros} µs; only long sleeps come in parts");
            let far = clock::now() + Duration::from_secs(3_600);
            assert!(
                sleeper.wait(far, &mut [PollFd::new(&rings, PollFlags::IN)]),
                "it does not wait for the instant"
            );
        }
    }

    #[test]
    fn a_thread_that_never_sleeps_stays_below_the_kernels_bound() {
        assert!(is_restless(WORKS_FOR, WORKS_FOR));
        assert!(!is_restless(WORKS_FOR, WORKS_FOR / 2));
        // If it did nothing but work and sleep.
        let share = WORKS_FOR.as_secs_f64() / (WORKS_FOR + SLEEPS_FOR).as_secs_f64();
        assert!(share < 0.95, "{share}");
    }
}
