//! Errors in the files of traces.

use std::fmt;

use airpace_core::Remedy;

/// Error in a trace, with its line and the remedy. The code that reads the file adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, counted from 1; `None` if the error concerns the whole file.
    pub line: Option<u64>,
    /// Description of the error.
    pub what: String,
    /// The remedy.
    pub remedy: Remedy,
}

impl TraceError {
    pub(super) fn at(line: u64, what: impl Into<String>, remedy: impl Into<Remedy>) -> TraceError {
        TraceError { line: Some(line), what: what.into(), remedy: remedy.into() }
    }

    pub(super) fn whole(what: impl Into<String>, remedy: impl Into<Remedy>) -> TraceError {
        TraceError { line: None, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.remedy)
    }
}
