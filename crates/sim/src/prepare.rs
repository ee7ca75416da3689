//! From a scenario to something that can run: files are read and everything is built once, so that what is wrong
//! is said before the first run begins.

use std::sync::Arc;
use std::time::Duration;

use airpace_cc::{SchemeError, SchemeSpec};
use airpace_core::{Recorder, Streams, Time};
use airpace_path::queue::Queue;
use airpace_path::trace::Trace;

use crate::driver::{Driver, Progress};
use crate::hop::LastHop;
use crate::scenario::{Scenario, ScenarioError, TraceHop};
use crate::stats::RunStats;

/// A trace with no chance to deliver for so long is refused unless the scenario allows holes.
///
/// Chosen: 5 s, more than any retransmission timer in use waits for a first time.
const LONGEST_HOLE: Duration = Duration::from_secs(5);

/// A scenario whose files were read: runs it as often as one likes, also from several threads.
#[derive(Clone, Debug)]
pub struct Prepared {
    scenario: Scenario,
    trace: Option<Arc<Trace>>,
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario, or a file that it names.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// An option of a scheme.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
}

/// Runs a scenario once: reads its files, then [`Prepared::run`].
///
/// # Errors
/// As [`Scenario::prepare`] and [`Prepared::run`].
pub fn run(
    scenario: &Scenario,
    scheme: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    Ok(scenario.prepare()?.run(scheme, seed, recorder, progress)?)
}

impl Scenario {
    /// Reads the files that the scenario names.
    ///
    /// # Errors
    /// Names key, file, line and remedy: a trace that is not given, cannot be read, or has a hole.
    pub fn prepare(&self) -> Result<Prepared, ScenarioError> {
        let trace = match &self.trace {
            Some(hop) => Some(Arc::new(self.read_trace(hop)?)),
            None => None,
        };
        LastHop::new(self, trace.clone(), &Streams::new(0)).map_err(|error| self.refuse(error))?;
        Ok(Prepared { scenario: self.clone(), trace })
    }

    fn read_trace(&self, hop: &TraceHop) -> Result<Trace, ScenarioError> {
        let refuse = |reason: String| self.refuse_key("trace.file", reason);
        let Some(file) = &hop.file else {
            return Err(refuse("is missing; name a recorded trace: `--set trace=FILE`".to_owned()));
        };
        let bytes = std::fs::read(file).map_err(|error| {
            refuse(format!("cannot be read: {}: {error}; check the path", file.display()))
        })?;
        let trace = Trace::parse(&bytes, hop.column.as_deref())
            .map_err(|error| refuse(format!("is not a trace: {}: {error}", file.display())))?;
        let hole = trace.longest_hole();
        if hole.length >= LONGEST_HOLE && !hop.allow_holes {
            return Err(refuse(format!(
                "has no chance to deliver for {:.1} s from {:.1} s on: {}; cut the trace there, or set \
                 `trace.allow_holes = true` if the outage is meant",
                hole.length.as_secs_f64(),
                hole.start_ms as f64 * 1e-3,
                file.display(),
            )));
        }
        Ok(trace)
    }
}

impl Prepared {
    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Runs the scenario with `scheme` under test. Events go to `recorder` in order of time; `progress` is called
    /// every 100 ms of the run's clock and may stop it. The same seed gives the same events.
    ///
    /// # Errors
    /// An option of a scheme that cannot have its value.
    pub fn run(
        &self,
        scheme: &SchemeSpec,
        seed: u64,
        recorder: &mut dyn Recorder,
        progress: &mut Progress<'_>,
    ) -> Result<RunStats, SchemeError> {
        let end = Time::ZERO + self.scenario.duration();
        Ok(Driver::new(self, scheme, seed, recorder)?.run(end, progress))
    }

    pub(crate) fn last_hop(&self, streams: &Streams) -> LastHop {
        LastHop::new(&self.scenario, self.trace.clone(), streams).expect("preparing has built it before")
    }

    pub(crate) fn internet(&self) -> Option<Queue> {
        self.scenario.internet.as_ref().map(|config| Queue::new(config).expect("loading has built it before"))
    }
}
