//! Errors of the emulator, with facts and remedies.

use std::io;

use airpace_core::{Refused, Remedy};

/// An operation that the emulator could not carry out.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// The operating system refused a step.
    #[error("cannot {step}: {why}")]
    System {
        /// The step that failed.
        step: String,
        /// The error of the operating system.
        why: io::Error,
        /// The remedy for the user.
        #[source]
        remedy: Option<Remedy>,
    },
    /// A request that the emulator cannot fulfil.
    #[error(transparent)]
    Refused(#[from] Refused),
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

    /// Creates the error of a request that the emulator cannot fulfil.
    pub(crate) fn refused(what: impl Into<String>) -> EmuError {
        Refused::new(what).into()
    }

    /// Creates the same error as [`EmuError::step`], with a remedy.
    pub(crate) fn step_or(step: impl Into<String>, remedy: Remedy) -> impl FnOnce(io::Error) -> EmuError {
        let step = step.into();
        move |why| EmuError::System { step, why, remedy: Some(remedy) }
    }
}

/// The facts and the remedy of an error, for another process or a warning.
impl From<EmuError> for Refused {
    fn from(error: EmuError) -> Refused {
        match error {
            EmuError::Refused(refused) => refused,
            EmuError::System { remedy: Some(ref remedy), .. } => {
                Refused::new(error.to_string()).but(remedy.clone())
            }
            other => Refused::new(other.to_string()),
        }
    }
}
