//! What this machine carries: the rights that an emulator needs, and how late its timers wake a thread.

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

/// Why something cannot be had, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lack {
    /// What the operating system says.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

/// How late a thread was woken up, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The latest.
    pub max_us: f64,
}

/// How often the thread is to wake up.
///
/// Chosen: a subframe, the unit in which cells and traces serve.
const EVERY: Duration = Duration::from_millis(1);

/// Whether namespaces can be made without being root, in a user namespace.
///
/// # Errors
/// What forbids it.
pub fn user_namespaces() -> Result<(), Lack> {
    let mut command = Command::new("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    sys::in_new_namespaces(&mut command);
    match command.status() {
        Ok(_) => Ok(()),
        // The namespaces were made, and then there was no such program in them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Lack { why: error.to_string(), remedy: namespace_remedy(&error, "user") }),
    }
}

/// Whether namespaces can be made without a user namespace.
pub fn is_privileged() -> bool {
    crate::session::is_privileged()
}

/// Whether packet devices can be opened.
///
/// # Errors
/// Why not.
pub fn tun() -> Result<(), Lack> {
    open_tun()
        .map(drop)
        .map_err(|error| Lack { why: error.to_string(), remedy: tun_remedy(&error).to_owned() })
}

/// Whether the emulator's thread can run before all threads without real-time priority.
///
/// # Errors
/// Why not.
pub fn real_time() -> Result<(), Lack> {
    in_thread(|| priority::set_realtime(PRIORITY)).map_err(|error| Lack {
        why: error.to_string(),
        remedy: "the capability CAP_SYS_NICE, or a limit `rtprio`".to_owned(),
    })
}

/// The priority that the emulator's thread asks for, among real-time threads.
pub const REAL_TIME_PRIORITY: i32 = PRIORITY;

/// Whether the emulator's memory can be kept from the disk.
///
/// # Errors
/// Why not.
pub fn memory_lock() -> Result<(), Lack> {
    // What this process has locked before is nothing.
    let locked = priority::lock_memory(MEMORY_TO_LOCK).and_then(|()| Ok(rustix::mm::munlockall()?));
    locked.map_err(|error| {
        let limit = match getrlimit(Resource::Memlock).current {
            Some(bytes) => format!("{} kB may be locked: {error}", bytes / 1024),
            None => error.to_string(),
        };
        Lack { why: limit, remedy: "the capability CAP_IPC_LOCK, or a higher limit `memlock`".to_owned() }
    })
}

/// Measures how late a thread is woken up that wants to be woken every millisecond. `is_first` is whether it has
/// real-time priority, as the emulator's thread has where it may.
///
/// # Errors
/// If it cannot have this priority.
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
            // Deadlines that have passed meanwhile were missed by the same wake-up.
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
