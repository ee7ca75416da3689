//! Errors as Python's exceptions, whose texts are the error's facts and its remedies in the words of Python.

use std::error::Error;
use std::path::Path;

use airpace_core::remedy::{UserTask, Words, explain};
use airpace_page::PageError;
use airpace_run::RunError;
use airpace_tables::FileError;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// `ValueError`: an invalid argument.
pub fn value(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// `ValueError`: an argument that a library refuses, with its remedy.
pub fn refused(error: impl Error + 'static) -> PyErr {
    PyValueError::new_err(explained(&error))
}

/// `RuntimeError`: work that failed although its arguments were valid.
pub fn failed(error: impl ToString) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// `OSError` of the operating system, with the file's name. Python derives `FileNotFoundError` and others from its number.
pub fn os(source: &std::io::Error, text: &str, path: &Path) -> PyErr {
    match source.raw_os_error() {
        Some(number) => PyOSError::new_err((number, text.to_owned(), path.display().to_string())),
        None => PyOSError::new_err(text.to_owned()),
    }
}

/// `OSError` with the error of the operating system, if there is one.
fn system(source: Option<&std::io::Error>, text: &str, path: &Path) -> PyErr {
    source.map_or_else(|| PyOSError::new_err(text.to_owned()), |source| os(source, text, path))
}

/// Names of Python's arguments and functions.
struct Python;

impl Words for Python {
    /// Arguments have the library's names, but for `schemes`; keys of scenarios, which contain a dot, are set by `set`.
    fn parameter(&self, name: &str, value: Option<&str>) -> String {
        match (name, value) {
            _ if name.contains('.') => self.setting(name, value.unwrap_or("VALUE")),
            ("scheme", None) => "`schemes`".to_owned(),
            (_, Some(value)) => format!("`{name}=\"{value}\"`"),
            (_, None) => format!("`{name}`"),
        }
    }

    fn setting(&self, key: &str, value: &str) -> String {
        format!("`set={{\"{key}\": \"{value}\"}}`")
    }

    fn task(&self, task: &UserTask) -> String {
        let function = match task {
            UserTask::Simulate => "simulate",
            UserTask::Sweep => "sweep",
            UserTask::Send => "send",
            UserTask::ListSchemes => "schemes()",
            UserTask::ListScenarios => "scenarios()",
            // What Python has no function for is a command of the program.
            UserTask::MakeKpiTrace => return "the program's `airpace trace kpi`".to_owned(),
            UserTask::Receive => return "the program's `airpace recv`".to_owned(),
            UserTask::Examine => return "the program's `airpace doctor`".to_owned(),
            UserTask::ExamineEmulation => return "the program's `airpace doctor --emu`".to_owned(),
            UserTask::WatchServed => return "the program's `airpace diag watch --od`".to_owned(),
            other => return other.to_string(),
        };
        format!("`airpace.{function}`")
    }
}

/// The facts and the remedies of an error.
pub fn explained(error: &(dyn Error + 'static)) -> String {
    explain(error, &Python)
}

/// The exception for an error of a matrix of runs, of a sweep, or of a run folder.
pub fn run(error: RunError) -> PyErr {
    let text = explained(&error);
    match error {
        RunError::File(error) => file(error),
        RunError::ReportFile { ref path, .. } => system(error.io_error(), &text, path),
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
    let text = explained(&error);
    match error {
        FileError::Write { ref path, .. } | FileError::Read { ref path, .. } => {
            system(error.io_error(), &text, path)
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
        PageError::NoFigure { .. } => refused(error),
    }
}
