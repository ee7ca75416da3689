//! Errors as Python's exceptions. Each keeps its sentence, which says what to do.

use airpace_eval::EvalError;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// An argument that cannot be what it is.
pub fn value(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Work that failed although its arguments were in order.
pub fn failed(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// What a matrix of runs or a run folder says.
pub fn eval(error: EvalError) -> PyErr {
    let text = with_causes(&error);
    match error {
        EvalError::Stopped { .. } => PyKeyboardInterrupt::new_err(text),
        EvalError::Run { .. } | EvalError::NewColumn { .. } => PyRuntimeError::new_err(text),
        EvalError::Write { .. }
        | EvalError::Read { .. }
        | EvalError::Occupied { .. }
        | EvalError::Strangers { .. }
        | EvalError::Malformed { .. }
        | EvalError::Table { .. }
        | EvalError::Busy { .. }
        | EvalError::ReportFile { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// An error's sentence and those of its causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}
