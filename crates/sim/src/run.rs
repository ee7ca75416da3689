//! Runs of a scenario.

use airpace_cc::ack_trace::{Tape, Traced};
use airpace_cc::{Ends, SchemeError, SchemeSpec};
use airpace_core::Time;
use airpace_event::{Discard, Recorder};
use airpace_scenario::{Prepared, Scenario, ScenarioError};

use crate::driver::{Driver, Progress};
use crate::foresight::Foresight;
use crate::stats::RunStats;

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario, or a file that it names, has an error.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// An option of a scheme has an error.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// Far more data is sent than the path carries, and nothing drops it.
    #[error(
        "more than {MOST_UNDER_WAY} packets are under way at {} s: lower the rate at which they are sent, or bound the queues",
        at.as_secs_f64()
    )]
    Crowded {
        /// When this was noticed.
        at: Time,
    },
}

/// Data packets that may be under way at once: 6 GB of data.
///
/// Chosen: a hundred times as many as fill a long path; more would fill the memory.
pub(crate) const MOST_UNDER_WAY: usize = 4_000_000;

/// Runs a scenario once: reads its files, then [`run_prepared`].
///
/// # Errors
/// As [`Scenario::prepare`] and [`run_prepared`].
pub fn run(
    scenario: &Scenario,
    scheme: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    run_prepared(&scenario.prepare()?, scheme, seed, recorder, progress)
}

/// Runs a scenario with `scheme` under test. Events go to `recorder` in order of time; `progress` is called every 100 ms of
/// the run's clock and may stop it. The same seed gives the same events.
///
/// # Errors
/// A scheme's option has a value that is not allowed, or more packets are under way than memory should hold.
pub fn run_prepared(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    run_foreseen(prepared, scheme, seed, recorder, None, progress)
}

/// Runs a scenario as [`run_prepared`] does. `tape` gets the ACK trace of the first connection of flow `flow`, which is an
/// index into the flows of the scenario; if there is no such flow, it gets nothing. The run does not depend on it.
///
/// # Errors
/// As [`run_prepared`].
pub fn run_traced(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    (flow, tape): (usize, Tape),
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    let traced = move |ends: Ends, spec: &SchemeSpec| Ends {
        controller: Box::new(Traced::new(ends.controller, spec, tape)),
        receiver: ends.receiver,
    };
    run_changed(prepared, scheme, seed, (flow, Box::new(traced)), progress)
}

/// Makes other ends from those of a scheme.
pub type Change = Box<dyn FnOnce(Ends, &SchemeSpec) -> Ends>;

/// Runs a scenario as [`run_prepared`] does, with the ends of the first connection of flow `flow` changed.
///
/// # Errors
/// As [`run_prepared`].
pub fn run_changed(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    (flow, change): (usize, Change),
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    run_foreseen(prepared, scheme, seed, &mut Discard, Some((flow, change)), progress)
}

/// Runs a scenario in which nobody decides: `departures` holds, by flow and in order of time, when each packet leaves. The
/// departures of another run give that run again, and changed ones what another sender would have had while all others sent
/// what they sent. It is for flows that have data without end; those of a flow that `departures` lacks leave as an Oracle's do.
///
/// # Errors
/// As [`run_prepared`].
pub fn run_departures(
    prepared: &Prepared,
    departures: Vec<Vec<Time>>,
    seed: u64,
    recorder: &mut dyn Recorder,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    let end = Time::ZERO + prepared.scenario().duration();
    let obeys = SchemeSpec::parse("oracle")?;
    let given = Foresight::Given(departures);
    Driver::new(prepared, &obeys, seed, recorder, None, given)?.run(end, progress)
}

/// One run, and before it the run that shows what its Oracles know beforehand, if there are any over a cell.
fn run_foreseen(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    change: Option<(usize, Change)>,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    let end = Time::ZERO + prepared.scenario().duration();
    let mut driver = Driver::new(prepared, scheme, seed, recorder, change, Foresight::None)?;
    if let Some(courses) = driver.courses(prepared.network()) {
        let mut next = Some(Foresight::Gathered(courses));
        while let Some(gathering) = next.take() {
            let is_first = !gathering.is_between();
            let mut nobody = Discard;
            let run = Driver::new(prepared, scheme, seed, &mut nobody, None, gathering)?;
            // Only the last run is told how far it is; those before may be stopped all the same.
            let (stats, foresight) = run.gather(end, &mut |_| progress(Time::ZERO))?;
            if stats.interrupted {
                return Ok(RunStats { interrupted: true, ..driver.run(Time::ZERO, progress)? });
            }
            next = foresight.between().filter(|_| is_first);
            if next.is_none() {
                driver.foresee(foresight, prepared.network(), seed);
            }
        }
    }
    driver.run(end, progress)
}
