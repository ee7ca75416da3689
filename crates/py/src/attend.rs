//! Long work on a thread of its own, while the calling thread shows the progress and handles Ctrl-C.
//!
//! The calling thread wakes every [`LOOK_EVERY`], checks Python's signals, and reports the progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::raise;

/// Interval between checks of Python's signals and reports of the progress.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs `work` on a thread, and calls `tell` at every check to report the progress. If a signal is pending or `tell` raises,
/// `stop` is set, which `work` must heed, and `interrupt` is called. Each further signal calls `interrupt` again. Returns
/// the result of the work, and the exception that stopped it.
pub fn attend<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    tell: &dyn Fn() -> PyResult<()>,
    interrupt: &dyn Fn(Python<'_>),
    work: impl FnOnce() -> T + Send,
) -> PyResult<(T, Option<PyErr>)> {
    let mut interrupted: Option<PyErr> = None;
    let ended = std::thread::scope(|scope| {
        let (done, mut is_done) = channel();
        // The thread is attached to Python while it runs, so that a controller in Python finds its thread state at each ACK.
        let work = move || Python::attach(|py| py.detach(|| drop(done.send(work()))));
        let worker = std::thread::Builder::new().spawn_scoped(scope, work);
        let worker = worker.map_err(|error| raise::failed(format!("no thread for the runs: {error}")))?;
        let ended = loop {
            let waiting = &mut is_done;
            match py.detach(move || waiting.recv_timeout(LOOK_EVERY)) {
                Ok(ended) => break Ok(ended),
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(raise::failed("the simulator crashed; this is a mistake in airpace"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let heard = py.check_signals();
                    let heard = if interrupted.is_none() { heard.and_then(|()| tell()) } else { heard };
                    if let Err(why) = heard {
                        stop.store(true, Ordering::Relaxed);
                        interrupt(py);
                        interrupted.get_or_insert(why);
                    }
                }
            }
        };
        // The thread attaches to Python once more before it ends, so this thread must be detached while it joins.
        drop(py.detach(move || worker.join()));
        ended
    })?;
    Ok((ended, interrupted))
}
