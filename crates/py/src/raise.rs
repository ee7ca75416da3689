//! Errors as Python's exceptions. Each exception keeps the error's text, which names the remedy.

use std::path::Path;

use airpace_page::PageError;
use airpace_run::RunError;
use airpace_tables::FileError;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// `ValueError`: an invalid argument.
pub fn value(error: impl ToString) -> PyErr {
    PyValueError::new_err(in_python(&error.to_string()))
}

/// `RuntimeError`: work that failed although its arguments were valid.
pub fn failed(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(in_python(&error.to_string()))
}

/// `OSError` of the operating system, with the file's name. Python derives `FileNotFoundError` and others from its number.
pub fn os(source: &std::io::Error, text: &str, path: &Path) -> PyErr {
    let text = in_python(text);
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text, path.display().to_string())),
        None => PyOSError::new_err(text),
    }
}

/// Phrases in errors that name the program's options, and the phrases that replace them in Python.
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

/// Replaces the program's options in an error text by Python's arguments: `--out` becomes `out=`.
pub fn in_python(text: &str) -> String {
    // A shell command stays unchanged.
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

/// The exception for an error of a matrix of runs, of a sweep, or of a run folder.
pub fn run(error: RunError) -> PyErr {
    let text = in_python(&with_causes(&error));
    match error {
        RunError::File(error) => file(error),
        RunError::ReportFile { ref path, ref source } => os(source, &text, path),
        RunError::Stopped { .. } => PyKeyboardInterrupt::new_err(text),
        RunError::Run { .. } => PyRuntimeError::new_err(text),
        RunError::Occupied { .. }
        | RunError::Strangers { .. }
        | RunError::Damaged { .. }
        | RunError::Busy { .. } => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The exception for an error of a file of a run.
pub fn file(error: FileError) -> PyErr {
    let text = in_python(&with_causes(&error));
    match error {
        FileError::Write { ref path, ref source, .. } | FileError::Read { ref path, ref source } => {
            os(source, &text, path)
        }
        FileError::NewColumn { .. } => PyRuntimeError::new_err(text),
        FileError::Malformed { .. } | FileError::Table { .. } => PyOSError::new_err(text),
        FileError::NotKept { .. } | FileError::NoTable { .. } => PyValueError::new_err(text),
    }
}

/// The exception for an error of a page.
pub fn page(error: PageError) -> PyErr {
    match error {
        PageError::File(error) => file(error),
        PageError::Run(error) => run(error),
        PageError::NoFigure { .. } => value(error),
    }
}

/// The text of an error, followed by those of its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}
