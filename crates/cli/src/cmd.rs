//! The commands, one file each: `Args` says what may be typed, `run` does it and writes results to `out`.

pub mod completions;
pub mod decode;
pub mod demo;
pub mod diag;
pub mod doctor;
pub mod encode;
pub mod list;
pub mod man;
mod matrix;
pub mod report;
mod scenario;
pub mod sim;
pub mod trace;

/// How a command that could be carried out went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As hoped.
    Fine,
    /// An expectation failed.
    Failed,
}
