//! Calls from simulations into Python code of users: controllers, agents, and the functions that make them.
//!
//! Simulations run on threads of their own, but Python delivers Ctrl-C to its main thread only. The threads that execute such
//! code are therefore recorded, and Ctrl-C raises the exception in them: this also stops code that never returns.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// The calls of all runs of a matrix, and the first exception that a call raised. After an exception no further call is made.
#[derive(Default)]
pub struct Calls {
    has_stopped: AtomicBool,
    raised: Mutex<Option<PyErr>>,
    /// The threads that execute Python code of users, by Python's thread identifiers. Changed only while attached to Python.
    inside: Mutex<Vec<u64>>,
}

impl Calls {
    /// Makes a call, unless the runs are to stop. An exception is kept and stops the runs. Returns `None` if the call was not
    /// made or raised.
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

    /// Takes the exception that was kept.
    pub fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Allows no further calls, and raises `KeyboardInterrupt` in the calls that are in progress.
    pub fn interrupt(&self, py: Python<'_>) {
        self.has_stopped.store(true, Ordering::Relaxed);
        // The lock is released before Python runs: a call that returns in the meantime needs it.
        let inside = self.inside().clone();
        for thread in inside {
            let raised =
                py.import("airpace._interrupt").and_then(|it| it.call_method1("interrupt", (thread,)));
            if let Err(error) = raised {
                error.write_unraisable(py, None);
            }
        }
    }

    /// Keeps an exception if it is the first.
    fn keep(&self, error: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.has_stopped.store(true, Ordering::Relaxed);
    }

    fn inside(&self) -> MutexGuard<'_, Vec<u64>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Python's identifier of this thread.
fn own_number(py: Python<'_>) -> PyResult<u64> {
    thread_local! {
        // The number is read at every ACK, and is constant for a thread.
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
