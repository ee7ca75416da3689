//! Measurement of a kernel under many conditions, which can be interrupted and continued.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::compare::Comparison;
use super::measure::{self, Bulk};
use super::{Condition, Figures, Measured, paths};
use crate::error::LabError;
use crate::part::Executable;

/// Maximum number of attempts of a run that the machine did not process in time.
///
/// Chosen: on a machine on which one run in three is late, one condition in a thousand still ends the campaign.
pub const TRIES: u32 = 6;

/// Maximum size of the list of a kernel's congestion controls (bytes). A name has at most 15 bytes.
const MAX_NAMES: u64 = 4096;

/// File that lists the kernel's congestion controls.
pub const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The congestion controls that are available in the kernel.
///
/// # Errors
/// The system does not list them.
pub fn available() -> io::Result<Vec<String>> {
    let text = airpace_files::read_to_string(Path::new(AVAILABLE), MAX_NAMES)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// A selection of conditions.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only recorded links and paths whose names contain this text.
    pub trace: Option<String>,
    /// Only queues of this many packets.
    pub queue_packets: Option<u64>,
    /// Only these congestion controls; all if empty.
    pub schemes: Vec<String>,
}

impl Selection {
    /// Whether a condition is selected.
    pub fn wants(&self, condition: &Condition) -> bool {
        self.trace.as_ref().is_none_or(|text| condition.trace.contains(text.as_str()))
            && self.queue_packets.is_none_or(|queue| condition.queue_packets == queue)
            && (self.schemes.is_empty() || self.schemes.contains(&condition.scheme))
    }

    /// The selected conditions: those of the recorded links of `reference`, and those of all paths.
    pub fn conditions(&self, reference: &Measured) -> Vec<Condition> {
        let recorded = reference.runs.iter().map(|(condition, _)| condition.clone());
        let recorded = recorded.filter(|it| paths::path(it).is_none());
        recorded.chain(paths::conditions()).filter(|it| self.wants(it)).collect()
    }
}

/// A campaign.
pub struct Campaign<'a> {
    /// This program.
    pub executable: &'a Executable,
    /// Folder of the recorded links.
    pub traces: &'a Path,
    /// Folder for temporary files.
    pub folder: &'a Path,
    /// The conditions, each with its number of runs.
    pub todo: Vec<(Condition, usize)>,
}

/// A step of a campaign.
pub enum Step<'a> {
    /// A run begins.
    Begins,
    /// A run has lasted this long.
    At(Duration),
    /// A run was measured: everything that was measured so far.
    Measured(&'a Measured),
    /// A run was refused: everything that was measured so far, and the reason.
    Refused(&'a Measured, String),
}

/// Reason why a campaign ended early.
#[derive(Debug)]
pub enum CampaignError<E> {
    /// A run failed.
    Run(LabError),
    /// [`TRIES`] runs of one condition were refused one after the other.
    Refused,
    /// The listener's error.
    Listener(E),
}

impl Campaign<'_> {
    /// Duration of all runs.
    pub fn span(&self) -> Duration {
        self.todo.iter().map(|(it, runs)| measure::wall(it) * *runs as u32).sum()
    }

    /// Performs the runs, and adds them to `measured`. `listener` hears each step; its errors end the campaign.
    ///
    /// # Errors
    /// A run failed, a condition was refused too often, or the listener's error.
    pub fn run<E>(
        &self,
        measured: &mut Measured,
        is_interrupted: &AtomicBool,
        listener: &dyn Fn(&Condition, Step<'_>) -> Result<(), E>,
    ) -> Result<(), CampaignError<E>> {
        let &Campaign { executable, traces, folder, .. } = self;
        let tell = |condition: &Condition, step: Step<'_>| {
            listener(condition, step).map_err(CampaignError::Listener)
        };
        for (condition, runs) in &self.todo {
            for _ in 0..*runs {
                let mut tries = 0;
                loop {
                    tell(condition, Step::Begins)?;
                    // Each run has its own seed: the first has 1.
                    let seed = measured.of(condition).len() as u64 + 1;
                    let bulk = Bulk { executable, traces, condition, seed, folder };
                    let at = |at| _ = listener(condition, Step::At(at));
                    match measure::run(&bulk, is_interrupted, at).map_err(CampaignError::Run)? {
                        Ok(run) => {
                            measured.push(condition, run);
                            tell(condition, Step::Measured(measured))?;
                            break;
                        }
                        Err(why) => {
                            measured.machine.refused += 1;
                            tries += 1;
                            tell(condition, Step::Refused(measured, why.to_string()))?;
                            if tries == TRIES {
                                return Err(CampaignError::Refused);
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Comparisons of a kernel with the kernel of `reference`, under the conditions that both were measured under.
pub fn beside(measured: &Measured, reference: &Measured) -> Vec<Comparison> {
    let figures = |measured: &Measured, condition: &Condition| -> Vec<Figures> {
        measured.of(condition).iter().map(|run| run.figures).collect()
    };
    let both = measured.runs.iter().map(|(condition, _)| {
        let (truth, here) = (figures(reference, condition), figures(measured, condition));
        (condition, truth, here)
    });
    both.filter(|(_, truth, _)| !truth.is_empty())
        .map(|(condition, truth, here)| Comparison::of(condition, &truth, &condition.scheme, &here))
        .collect()
}
