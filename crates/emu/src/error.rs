//! Errors of the emulator, with remedies.

use std::io;

/// An operation that the emulator could not carry out. Each error is one sentence: what failed and how to fix it.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// The operating system refused a step.
    #[error("cannot {step}: {why}{}", remedy.map(|it| format!("; {it}")).unwrap_or_default())]
    System {
        /// The step that failed.
        step: String,
        /// The error of the operating system.
        why: io::Error,
        /// The remedy for the user.
        remedy: Option<&'static str>,
    },
    /// A request that the emulator cannot fulfil.
    #[error("{0}")]
    Refused(String),
    /// The process that holds the namespaces ended or sent an unexpected message.
    #[error("the process that holds the namespaces {0}; please report this")]
    Session(String),
}

impl EmuError {
    /// For `map_err`: creates the error of a step that the operating system refused.
    pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> EmuError {
        let step = step.into();
        move |why| EmuError::System { step, why, remedy: None }
    }

    /// Creates the same error as [`EmuError::step`], with a remedy.
    pub(crate) fn step_or(
        step: impl Into<String>,
        remedy: &'static str,
    ) -> impl FnOnce(io::Error) -> EmuError {
        let step = step.into();
        move |why| EmuError::System { step, why, remedy: Some(remedy) }
    }
}
