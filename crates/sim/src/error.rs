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
    /// Far more data is sent than the path carries, and no queue drops it.
    #[error(
        "more than {MAX_UNDER_WAY} packets are under way at {} s: lower the rate at which they are sent, or bound the queues",
        at.as_secs_f64()
    )]
    Crowded {
        /// Time of the detection.
        at: Time,
    },
}

/// Maximum number of data packets under way: 6 GB of data.
///
/// Chosen: a hundred times the number that fills a long path; more would exhaust the memory.
pub(crate) const MAX_UNDER_WAY: usize = 4_000_000;
