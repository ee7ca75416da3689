//! Distribution of work over threads.

use std::io;
use std::thread::Builder;

/// Calls `work` on this thread and on up to `count - 1` further threads, and waits until all calls have returned. Each
/// call takes items from the remaining work. If the system provides fewer threads, these threads complete all the work.
pub fn share(count: usize, work: &(impl Fn() + Sync)) {
    share_by(count, work, Ok);
}

/// Like [`share`], with `admit` as a hook that can refuse a thread, as the system can.
fn share_by(count: usize, work: &(impl Fn() + Sync), mut admit: impl FnMut(Builder) -> io::Result<Builder>) {
    std::thread::scope(|scope| {
        for _ in 1..count {
            if admit(Builder::new()).and_then(|builder| builder.spawn_scoped(scope, work)).is_err() {
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_work_is_done_with_as_many_threads_as_there_are() {
        for granted in [0, 1, 3, 8] {
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = || {
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            };
            let mut left = granted;
            share_by(8, &work, |builder| {
                left = usize::checked_sub(left, 1).ok_or(io::ErrorKind::WouldBlock)?;
                Ok(builder)
            });
            assert_eq!(done.load(Ordering::Relaxed), 100, "with {granted} further threads");
        }
    }
}
