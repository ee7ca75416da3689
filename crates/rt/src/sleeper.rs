//! Sleeper of an event loop: wakes up within some microseconds of a deadline, and sleeps often enough that the kernel
//! does not throttle a real-time thread.

use std::io;
use std::time::Duration;

use airpace_core::Time;
use rustix::event::{PollFd, Timespec, poll};

use crate::clock::{self, thread_cpu};
use crate::priority;

/// Time before a deadline at which a thread with real-time priority starts to spin instead of sleeping, because timers
/// fire late.
///
/// Chosen: the duration of a wake-up on an idle machine. With twice this time, the thread used 3 % more of a core.
const SPIN: Duration = Duration::from_micros(30);

/// Interval at which a thread with real-time priority checks whether it has slept, and duration of the forced sleep if
/// it has not. The kernel allows such threads 0.95 s of processor time per second, and stops threads that exceed this
/// limit for the remaining 50 ms.
///
/// Source: Linux sched-rt-group.rst (sched_rt_runtime_us). Chosen: the forced sleep is far below a millisecond, which
/// is the maximum lateness of a valid emulated run, and below the lateness that a pacer tolerates.
const CHECK_EVERY: Duration = Duration::from_millis(2);
const FORCED_SLEEP: Duration = Duration::from_micros(200);

/// Requirements of an event loop for its sleeper.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Real-time priority that the thread requests; `None` for a thread without real-time priority.
    pub priority: Option<i32>,
    /// Minimum time between two spins, in units of 30 µs, which is the maximum duration of a spin. So the thread spins
    /// for at most 1 / (1 + `rest`) of the time.
    pub rest: u32,
    /// Maximum duration of a wait.
    pub max_sleep: Duration,
}

/// A sleep within a wait, with its times by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    /// Start of the sleep.
    pub from: Time,
    /// Maximum duration of the sleep.
    pub planned: Duration,
    /// Instant at which the thread ran again after the sleep.
    pub until: Time,
}

/// Sleeper of the thread that created it.
#[derive(Debug)]
pub struct Sleeper {
    needs: Needs,
    /// Time before a deadline at which the thread starts to spin.
    spin: Duration,
    /// Instant at which the thread last started to spin.
    spun_at: Time,
    /// Instant of the last check of whether the thread sleeps, and the thread's processor time at this check. `None`
    /// without real-time priority.
    checked: Option<(Time, Duration)>,
    /// Reason why the thread has no real-time priority, if it requested one.
    pub refused: Option<io::Error>,
}

impl Sleeper {
    /// Creates a sleeper for the calling thread, and requests the thread's real-time priority.
    pub fn new(needs: Needs) -> Sleeper {
        priority::set_precise_timers();
        let requested = needs.priority.map(priority::set_realtime);
        let is_realtime = matches!(requested, Some(Ok(())));
        Sleeper {
            needs,
            spin: if is_realtime { SPIN } else { Duration::ZERO },
            spun_at: Time::ZERO,
            checked: is_realtime.then(|| (clock::now(), thread_cpu())),
            refused: requested.and_then(Result::err),
        }
    }

    /// Waits until a descriptor is ready, until the instant `due`, or for [`Needs::max_sleep`]. The thread spins for
    /// the last microseconds only if `spins` is set. Calls `slept` after each sleep. Returns whether a descriptor is
    /// ready.
    pub fn wait(
        &mut self,
        due: Time,
        spins: bool,
        descriptors: &mut [PollFd<'_>],
        mut slept: impl FnMut(Sleep),
    ) -> bool {
        self.sleep_if_restless();
        let is_rested = due - self.spun_at >= self.spin * (self.needs.rest + 1);
        let spin = if spins && is_rested { self.spin } else { Duration::ZERO };
        loop {
            let from = clock::now();
            let left = due - from;
            if !left.is_zero() && left < spin {
                self.spun_at = from;
            }
            let planned = left.saturating_sub(spin).min(self.needs.max_sleep);
            let timeout = Timespec {
                tv_sec: planned.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: planned.subsec_nanos().into(),
            };
            let is_ready = poll(descriptors, Some(&timeout)).is_ok_and(|count| count > 0);
            let until = clock::now();
            slept(Sleep { from, planned, until });
            if is_ready || due <= until || left > self.needs.max_sleep {
                return is_ready;
            }
        }
    }

    /// Sleeps briefly if the thread has real-time priority and has slept less than required since the last check. A
    /// loop that does not wait calls this method instead of [`Sleeper::wait`].
    pub fn sleep_if_restless(&mut self) {
        let Some((at, worked)) = self.checked else { return };
        let passed = clock::now() - at;
        if passed < CHECK_EVERY {
            return;
        }
        if is_restless(passed, thread_cpu().saturating_sub(worked)) {
            std::thread::sleep(FORCED_SLEEP);
        }
        self.checked = Some((clock::now(), thread_cpu()));
    }
}

/// Whether a thread that worked for `worked` of the time `passed` is near the kernel's limit.
fn is_restless(passed: Duration, worked: Duration) -> bool {
    worked > passed.mul_f64(0.9)
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, PollFlags, eventfd};

    use super::*;

    #[test]
    fn it_sleeps_until_the_deadline_and_not_less() {
        let max_sleep = Duration::from_millis(500);
        for priority in [None, Some(5)] {
            let mut sleeper = Sleeper::new(Needs { priority, rest: 9, max_sleep });
            let never = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
            let ready = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
            for micros in [0, 1, 20, 40, 100, 1_000, 3_000, 700_000] {
                let due = clock::now() + Duration::from_micros(micros);
                let mut sleeps = vec![];
                let mut descriptors = [PollFd::new(&never, PollFlags::IN)];
                assert!(!sleeper.wait(due, true, &mut descriptors, |sleep| sleeps.push(sleep)));
                let woke = clock::now();
                assert!(woke >= due || micros > 500_000, "{micros} µs; only long waits end early");
                assert!(sleeps.iter().all(|sleep| sleep.planned <= max_sleep && sleep.from <= sleep.until));
                assert!(
                    sleeps.last().is_some_and(|sleep| sleep.until <= woke),
                    "the last sleep was reported"
                );
                let far = clock::now() + Duration::from_secs(3_600);
                let mut descriptors = [PollFd::new(&ready, PollFlags::IN)];
                assert!(
                    sleeper.wait(far, true, &mut descriptors, |_| {}),
                    "a ready descriptor ends the wait"
                );
            }
        }
    }

    #[test]
    fn a_thread_that_never_sleeps_stays_below_the_kernels_limit() {
        assert!(is_restless(CHECK_EVERY, CHECK_EVERY));
        assert!(!is_restless(CHECK_EVERY, CHECK_EVERY / 2));
        // Share of work if the thread alternates between work and forced sleeps.
        let share = CHECK_EVERY.as_secs_f64() / (CHECK_EVERY + FORCED_SLEEP).as_secs_f64();
        assert!(share < 0.95, "{share}");
    }
}
