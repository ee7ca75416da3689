//! Capabilities of this machine: the rights that an emulator needs, and the lateness of its timers.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use airpace_rt::clock::Clock;
use airpace_rt::priority;
use hdrhistogram::Histogram;
use rustix::event::{Timespec, poll};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use crate::session::{namespace_remedy, open_tun, tun_remedy};
use crate::sys;
use crate::turn::{MEMORY_TO_LOCK, PRIORITY};

/// A missing right, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lack {
    /// The error of the operating system.
    pub why: String,
    /// The remedy.
    pub remedy: String,
}

/// Lateness of a thread's wake-ups, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Median of the lateness.
    pub p50_us: f64,
    /// 99th percentile of the lateness.
    pub p99_us: f64,
    /// 99.9th percentile of the lateness.
    pub p999_us: f64,
    /// Maximum of the lateness.
    pub max_us: f64,
}

/// Interval of the wake-ups whose lateness is measured.
///
/// Chosen: one subframe, the time unit in which cells and traces transmit.
const EVERY: Duration = Duration::from_millis(1);

/// Checks whether a user that is not root can create namespaces, in a user namespace.
///
/// # Errors
/// The refusal of the operating system.
pub fn user_namespaces() -> Result<(), Lack> {
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    sys::in_new_namespaces(&mut command);
    match command.status() {
        Ok(_) => Ok(()),
        // The namespaces were created; only the program `true` was not found.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Lack { why: error.to_string(), remedy: namespace_remedy(&error, "user") }),
    }
}

/// Returns whether this process can create namespaces without a user namespace.
pub fn is_privileged() -> bool {
    crate::session::is_privileged()
}

/// Checks whether TUN devices can be opened.
///
/// # Errors
/// The refusal of the operating system.
pub fn tun() -> Result<(), Lack> {
    open_tun()
        .map(drop)
        .map_err(|error| Lack { why: error.to_string(), remedy: tun_remedy(&error).to_owned() })
}

/// Checks whether the emulator's thread can get real-time priority.
///
/// # Errors
/// The refusal of the operating system.
pub fn real_time() -> Result<(), Lack> {
    in_thread(|| priority::set_realtime(PRIORITY)).map_err(|error| Lack {
        why: error.to_string(),
        remedy: "the capability CAP_SYS_NICE, or a limit `rtprio`".to_owned(),
    })
}

/// Real-time priority that the emulator's thread requests.
pub const REAL_TIME_PRIORITY: i32 = PRIORITY;

/// Checks whether the emulator's memory can be locked in RAM.
///
/// # Errors
/// The refusal of the operating system.
pub fn memory_lock() -> Result<(), Lack> {
    // Unlocking everything is correct because this process has not locked memory before.
    let locked = priority::lock_memory(MEMORY_TO_LOCK).and_then(|()| Ok(rustix::mm::munlockall()?));
    locked.map_err(|error| {
        let limit = match getrlimit(Resource::Memlock).current {
            Some(bytes) => format!("{} kB may be locked: {error}", bytes / 1024),
            None => error.to_string(),
        };
        Lack { why: limit, remedy: "the capability CAP_IPC_LOCK, or a higher limit `memlock`".to_owned() }
    })
}

/// Measures how late a thread wakes up that asks for a wake-up every millisecond. `is_first` requests real-time priority,
/// which the emulator's thread uses where it is permitted.
///
/// # Errors
/// Real-time priority was requested but not permitted.
pub fn lateness(is_first: bool, lasting: Duration) -> io::Result<Lateness> {
    in_thread(move || {
        priority::set_precise_timers();
        if is_first {
            priority::set_realtime(PRIORITY)?;
        }
        let mut late_ns =
            Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are right");
        let clock = Clock::start();
        let mut due = clock.now();
        let over = due + lasting;
        while due < over {
            due += EVERY;
            loop {
                let left = due - clock.now();
                if left.is_zero() {
                    break;
                }
                let timeout = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
                let _ = poll(&mut [], Some(&timeout));
            }
            let now = clock.now();
            late_ns.saturating_record((now - due).as_nanos() as u64);
            // The same wake-up also missed the deadlines that have passed in the meantime.
            while due + EVERY < now {
                due += EVERY;
            }
        }
        let at = |quantile: f64| late_ns.value_at_quantile(quantile) as f64 * 1e-3;
        Ok(Lateness {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: late_ns.max() as f64 * 1e-3,
        })
    })
}

fn in_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, act)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_are_counted_in_order() {
        let late = lateness(false, Duration::from_millis(30)).unwrap();
        assert!(late.p50_us > 0.0 && late.p50_us <= late.p99_us, "{late:?}");
        assert!(late.p99_us <= late.p999_us && late.p999_us <= late.max_us * 1.001, "{late:?}");
    }

    #[test]
    fn what_is_lacking_comes_with_a_remedy() {
        for lack in [user_namespaces(), tun(), real_time(), memory_lock()].into_iter().filter_map(Result::err)
        {
            assert!(!lack.why.is_empty() && !lack.remedy.is_empty(), "{lack:?}");
        }
    }
}
