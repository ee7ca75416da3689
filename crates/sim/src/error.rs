//! Errors of a run.

use airpace_cc::SchemeError;
use airpace_core::Time;
use airpace_scenario::ScenarioError;

/// Error of a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario, or a file that it names, has an error.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// An option of a scheme has an error.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A scheme uses inputs that a leg of a split connection does not have.
    #[error(
        "scheme `{0}` uses inputs that a leg of a split connection does not have; choose another, or remove the proxy"
    )]
    NotSplit(String),
    /// The senders send far more data than the path transfers, and no queue drops the excess.
    #[error(
        "more than {MAX_UNDER_WAY} packets are under way at {} s: lower the rate at which they are sent, or bound the queues",
        at.as_secs_f64()
    )]
    Crowded {
        /// Time at which the limit was exceeded.
        at: Time,
    },
}

/// Maximum number of data packets under way, which is 6 GB of data.
///
/// Chosen: a hundred times the number of packets that fills a long path; more packets would exhaust the memory.
pub(crate) const MAX_UNDER_WAY: usize = 4_000_000;
