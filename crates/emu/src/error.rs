//! Why an emulator cannot run, and what to do.

use std::io;

/// What the emulator could not do. Each says in one sentence what failed and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// The operating system refused a step.
    #[error("cannot {step}: {why}{}", remedy.map(|it| format!("; {it}")).unwrap_or_default())]
    System {
        /// What was to be done.
        step: String,
        /// What the operating system says.
        why: io::Error,
        /// What the user can do.
        remedy: Option<&'static str>,
    },
    /// Something asked for cannot be had.
    #[error("{0}")]
    Refused(String),
    /// The process that holds the namespaces ended or said something else than it should.
    #[error("the process that holds the namespaces {0}; please report this")]
    Session(String),
}

impl EmuError {
    /// For `map_err`: the error of a step that the operating system refused.
    pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> EmuError {
        let step = step.into();
        move |why| EmuError::System { step, why, remedy: None }
    }

    /// As [`EmuError::step`], with a remedy.
    pub(crate) fn step_or(
        step: impl Into<String>,
        remedy: &'static str,
    ) -> impl FnOnce(io::Error) -> EmuError {
        let step = step.into();
        move |why| EmuError::System { step, why, remedy: Some(remedy) }
    }
}
