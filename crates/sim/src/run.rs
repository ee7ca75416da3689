//! Runs of a scenario.

use airpace_cc::ack_trace::{Tape, Traced};
use airpace_cc::{Ends, SchemeSpec};
use airpace_core::Time;
use airpace_event::{Discard, Recorder};
use airpace_scenario::{Prepared, Scenario};

use crate::driver::{Driver, Progress};
use crate::error::RunError;
use crate::foresight::Foresight;
use crate::replacement::EndpointReplacement;
use crate::stats::RunStats;

/// Runs a scenario once: reads its files, then calls [`run_prepared`].
///
/// # Errors
/// The same errors as [`Scenario::prepare`] and [`run_prepared`].
pub fn run(
    scenario: &Scenario,
    scheme: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    run_prepared(&scenario.prepare()?, scheme, seed, recorder, progress)
}

/// Runs a scenario with `scheme` under test. Events go to `recorder` in order of time; `progress` is called every 100 ms
/// of simulated time and may stop the run. The same seed gives the same events.
///
/// # Errors
/// A scheme's option has an invalid value, or more than `MAX_UNDER_WAY` packets are under way.
pub fn run_prepared(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    run_foreseen(prepared, scheme, seed, recorder, None, progress)
}

/// Runs a scenario as [`run_prepared`] does. `tape` receives the ACK trace of the first connection of the flow with index
/// `flow` in the scenario; it receives nothing if there is no such flow. The trace does not affect the run.
///
/// # Errors
/// The same errors as [`run_prepared`].
pub fn run_traced(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    flow: usize,
    tape: Tape,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    let traced = move |ends: Ends, spec: &SchemeSpec| Ends {
        controller: Box::new(Traced::new(ends.controller, spec, tape)),
        receiver: ends.receiver,
    };
    let replacement = EndpointReplacement { flow, replace: Box::new(traced) };
    run_changed(prepared, scheme, seed, replacement, progress)
}

/// Runs a scenario as [`run_prepared`] does, with replaced endpoints of the first connection of one flow.
///
/// # Errors
/// The same errors as [`run_prepared`].
pub fn run_changed(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    replacement: EndpointReplacement,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    run_foreseen(prepared, scheme, seed, &mut Discard, Some(replacement), progress)
}

/// Runs a scenario with given send times: `departures` contains the send time of each packet, by flow and in order of
/// time. The send times of another run reproduce that run. Modified send times of one flow show the result of another
/// sender while all other flows send as before. Flows with prescribed send times must have unlimited data. A flow
/// without an entry in `departures` sends as an Oracle does.
///
/// # Errors
/// The same errors as [`run_prepared`].
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

/// Runs a scenario once. If the scenario has Oracles over a cell, gathering runs for their advance information come
/// first.
fn run_foreseen(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    recorder: &mut dyn Recorder,
    replacement: Option<EndpointReplacement>,
    progress: &mut Progress<'_>,
) -> Result<RunStats, RunError> {
    let end = Time::ZERO + prepared.scenario().duration();
    let mut driver = Driver::new(prepared, scheme, seed, recorder, replacement, Foresight::None)?;
    if let Some(courses) = driver.courses(prepared.network()) {
        let mut next = Some(Foresight::Gathered(courses));
        while let Some(gathering) = next.take() {
            let is_first = !gathering.is_between();
            let mut nobody = Discard;
            let run = Driver::new(prepared, scheme, seed, &mut nobody, None, gathering)?;
            // Only the last run reports its progress, but `progress` can stop the earlier runs too.
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
