//! Errors as Python's exceptions. Each keeps its sentence, which says what to do.

use std::path::Path;

use airpace_eval::EvalError;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// An argument that cannot be what it is.
pub fn value(error: impl ToString) -> PyErr {
    PyValueError::new_err(in_python(&error.to_string()))
}

/// Work that failed although its arguments were in order.
pub fn failed(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(in_python(&error.to_string()))
}

/// What the operating system refused, with the file's name: Python makes `FileNotFoundError` and others of the number.
pub fn os(source: &std::io::Error, text: &str, path: &Path) -> PyErr {
    let text = in_python(text);
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text, path.display().to_string())),
        None => PyOSError::new_err(text),
    }
}

/// What the crates below say to users of the program, and how it is said in Python.
const SAID: [(&str, &str); 12] = [
    ("`airpace sim --out DIR`", "`airpace.simulate(…, out=FOLDER)`"),
    ("--out DIR", "out=FOLDER"),
    ("give --out another folder", "give `out` another folder"),
    ("with --scheme", "with `schemes`"),
    ("(see `airpace list schemes`)", "(see `airpace.schemes()`)"),
    (
        "`airpace list scenarios` names those that come with the program",
        "`airpace.scenarios()` names those that come with the package",
    ),
    ("`airpace sim` for the variants", "`airpace.simulate`, which runs all variants"),
    ("as `airpace sweep` writes it", "as `airpace.sweep` writes it"),
    ("; try: ", "; make a file that is not: "),
    (" | airpace diag … -", " > FILE"),
    ("`diag decode --json` prints it", "the program's `airpace diag decode --json` prints it"),
    ("--set ", "set "),
];

/// A sentence of the crates below with the words of Python in place of the program's options: `--out` is `out=` here.
pub fn in_python(text: &str) -> String {
    // A command of a shell stays one.
    if let Some((before, command)) = text.split_once("the same command goes on: ") {
        return format!("{}the same call goes on, and so does: {command}", in_python(before));
    }
    let mut text = text.to_owned();
    while let Some((before, rest)) = text.split_once("`--set ")
        && let Some((setting, after)) = rest.split_once('`')
        && let Some((key, value)) = setting.split_once('=')
    {
        text = format!("{before}`set={{\"{key}\": \"{value}\"}}`{after}");
    }
    SAID.iter().fold(text, |text, (program, here)| text.replace(program, here))
}

/// What a matrix of runs or a run folder says.
pub fn eval(error: EvalError) -> PyErr {
    let text = in_python(&with_causes(&error));
    match error {
        EvalError::Write { ref path, ref source, .. }
        | EvalError::Read { ref path, ref source }
        | EvalError::ReportFile { ref path, ref source } => os(source, &text, path),
        EvalError::Stopped { .. } => PyKeyboardInterrupt::new_err(text),
        EvalError::Run { .. } | EvalError::NewColumn { .. } => PyRuntimeError::new_err(text),
        EvalError::Occupied { .. }
        | EvalError::Strangers { .. }
        | EvalError::Malformed { .. }
        | EvalError::Damaged { .. }
        | EvalError::Table { .. }
        | EvalError::Busy { .. } => PyOSError::new_err(text),
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
