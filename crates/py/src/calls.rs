//! Calls of simulations into code of Python that users wrote: controllers, agents, and what makes them.
//!
//! Simulations are on threads of their own, but Python hears Ctrl-C in its main thread only. So it is noted which threads are
//! in such code, and the exception is raised there: code that never returns is stopped too.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// The calls of all runs of a matrix, and the first exception that came of them. After it there are no further calls.
#[derive(Default)]
pub struct Calls {
    has_stopped: AtomicBool,
    raised: Mutex<Option<PyErr>>,
    /// The threads that are in code of Python now, by Python's numbers. It is changed by who holds the interpreter.
    inside: Mutex<Vec<u64>>,
}

impl Calls {
    /// Makes a call, unless the runs are to stop. What it raises is kept and stops the runs. Returns `None` if there is no
    /// answer.
    pub fn make<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        Python::attach(|py| {
            if self.has_stopped() {
                return None;
            }
            let answer = own_number(py).and_then(|thread| {
                self.inside().push(thread);
                let answer = call(py);
                let mut inside = self.inside();
                if let Some(at) = inside.iter().position(|other| *other == thread) {
                    inside.swap_remove(at);
                }
                answer
            });
            answer.map_err(|error| self.keep(error)).ok()
        })
    }

    /// Whether the runs are to stop.
    pub fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::Relaxed)
    }

    /// What was raised.
    pub fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Allows no further calls, and raises `KeyboardInterrupt` in those that are under way.
    pub fn interrupt(&self, py: Python<'_>) {
        self.has_stopped.store(true, Ordering::Relaxed);
        // Not held while Python runs: a call that returns meanwhile wants to note that.
        let inside = self.inside().clone();
        for thread in inside {
            let raised =
                py.import("airpace._interrupt").and_then(|it| it.call_method1("interrupt", (thread,)));
            if let Err(error) = raised {
                error.write_unraisable(py, None);
            }
        }
    }

    /// Keeps what was raised, if it is the first.
    fn keep(&self, error: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.has_stopped.store(true, Ordering::Relaxed);
    }

    fn inside(&self) -> MutexGuard<'_, Vec<u64>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Python's number of this thread.
fn own_number(py: Python<'_>) -> PyResult<u64> {
    thread_local! {
        // It is wanted at every ACK, and never changes.
        static NUMBER: OnceCell<u64> = const { OnceCell::new() };
    }
    NUMBER.with(|known| {
        if let Some(number) = known.get() {
            return Ok(*number);
        }
        let number = py.import("threading")?.call_method0("get_ident")?.extract()?;
        Ok(*known.get_or_init(|| number))
    })
}
