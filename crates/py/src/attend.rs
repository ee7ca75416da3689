//! Long work, while Python shows the progress and hears Ctrl-C.
//!
//! The work is on threads of its own. The calling thread wakes now and then, asks Python whether somebody wants to stop, and
//! tells how far the work is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::raise;

/// How often Python is asked whether somebody wants to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does `work`, and `tell`s now and then. If Python wants to stop, or `tell` raises, `stop` is set, which `work` must heed, and
/// `interrupt` is called: again whenever Python wants it again. Returns what came of the work, and what made it stop.
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
        // The thread belongs to Python while it runs, so that a controller in Python finds all in place at each ACK.
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
        // The thread needs Python once more to end: this one must not hold it meanwhile.
        drop(py.detach(move || worker.join()));
        ended
    })?;
    Ok((ended, interrupted))
}
