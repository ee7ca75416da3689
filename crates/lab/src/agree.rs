//! Schemes over real transports, compared with the same schemes in the simulator.
//!
//! A flow over a real transport consists of two programs with sockets, the kernel, and QUIC, UDP or TCP; their packets
//! cross the scenario's network in real time. Simulator and transport run the same scenario with the same seed.
//!
//! | module | contents |
//! | --- | --- |
//! | this module | the whole comparison |
//! | [`play`] | one run over a transport |
//! | [`flow`] | one endpoint of a flow |
//! | [`inside`] | states of the schemes on both endpoints |
//! | [`kernel`] | schemes that a run needs in the kernel |

pub mod flow;
pub mod inside;
pub mod kernel;
pub mod play;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_cc::{SchemeSpec, Sees, Setup};
use airpace_core::remedy::UserTask;
use airpace_core::{Bytes, Refused, Remedy, Streams};
use airpace_emu::session::Far;
use airpace_event::Recorder;
use airpace_run::wire::{Beside, beside, label, parts};
use airpace_run::{Choice, Matrix, Outcome, Summary};
use airpace_sim::{Prepared, Progress as Clock, Scenario};
use airpace_transfer::bulk::tcp;

use play::{Load, Play};

use crate::error::{LabError, refuse};
use crate::over::Over;
use crate::part::Executable;
use crate::stage::Stage;

/// Delay of the start of all flows, relative to the scenario (s). Real flows open their connections within this time.
///
/// Chosen: even a busy machine has started all programs by then.
const LEAD_S: f64 = 1.5;

/// Range of additional random start times in the further runs of the simulator (s).
///
/// Chosen: one subframe, because a packet of a real program may by chance miss a subframe.
const SPREAD_S: f64 = 0.001;

/// Scenario, schemes and transports of a comparison.
#[derive(Clone, Debug)]
pub struct Request {
    /// The scenario, as the user chose it.
    pub choice: Choice,
    /// Schemes to compare; empty for those of the scenario that all transports can carry.
    pub schemes: Vec<SchemeSpec>,
    /// Transports of the flows.
    pub over: Vec<Over>,
    /// Seed of the network's random numbers.
    pub seed: u64,
    /// Number of further runs of the simulator, which show the differences caused by chance.
    pub spread: u16,
    /// Maximum number of repetitions of a run in which the machine did not keep up.
    pub again: u32,
    /// Number of threads for runs of the simulator.
    pub jobs: usize,
    /// Name of the program in the commands of the run folder.
    pub program: String,
    /// The command that repeats the comparison.
    pub command: String,
}

/// A comparison that this machine can perform, before anything is written.
pub struct Comparison {
    request: Request,
    /// The scenario, with flows that start later by [`LEAD_S`].
    choice: Choice,
    schemes: Vec<SchemeSpec>,
}

/// Progress of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// Further runs of the simulator: number of runs that have ended, and number of all runs.
    Spread(u64, u64),
    /// A run of the comparison: scheme with its transport, index of the run, number of runs, and fraction in [0, 1].
    Run(&'a str, usize, usize, f64),
    /// A message for the user.
    Message(&'a str),
}

/// Receives progress, possibly from several threads.
pub type Tell<'a> = &'a (dyn Fn(Progress<'_>) + Sync);

/// Results of a comparison.
pub struct Compared {
    /// Runs over transports and of the simulator. The caller writes the page, and then the manifest.
    pub outcome: Outcome,
    /// Verdict for each flow and transport.
    pub rows: Vec<Beside>,
}

impl Comparison {
    /// Checks that the scenario can be run with real programs, and that this machine can emulate it.
    ///
    /// # Errors
    /// One of these checks fails, or a transport cannot carry a scheme.
    pub fn prepare(executable: &Executable, request: Request) -> Result<Comparison, LabError> {
        let choice = shifted(&request.choice, None, &mut || 0.0)?;
        can_be_played(&choice.scenario)?;
        let schemes = schemes(&request, &choice.scenario)?;
        if request.over.contains(&Over::Kernel) {
            for scheme in &schemes {
                kernel::needed(&choice.scenario, scheme)?;
            }
        }
        drop(Stage::make(executable, choice.scenario.device.len(), Far::Own)?);
        Ok(Comparison { request, choice, schemes })
    }

    /// Name of the scenario.
    pub fn name(&self) -> &str {
        &self.choice.scenario.name
    }

    /// Runs the simulator and the transports, and writes the run folder `out`, except for the page and the final
    /// manifest. `load` loads schemes into the kernel.
    ///
    /// # Errors
    /// A file cannot be written, a program failed, or the comparison was interrupted.
    pub fn run(
        self,
        executable: &Executable,
        out: PathBuf,
        load: Load<'_>,
        is_interrupted: &AtomicBool,
        tell: Tell<'_>,
    ) -> Result<Compared, LabError> {
        let Comparison { request, choice, schemes } = self;
        let labelled = schemes.iter().flat_map(|scheme| {
            let labelled = |over: &Over| scheme.labelled(label(scheme.text(), over.name()));
            std::iter::once(scheme.clone()).chain(request.over.iter().map(labelled))
        });
        let matrix = Matrix {
            scenarios: vec![choice],
            schemes: labelled.collect(),
            seeds: vec![request.seed],
            // Real-time runs need the whole machine.
            jobs: 1,
            out: Some(out.clone()),
            program: request.program.clone(),
            command: request.command.clone(),
            qlog: false,
            again: Some(request.command.clone()),
            page: true,
            further: if request.over.contains(&Over::Kernel) { tcp::INSPECTED.to_vec() } else { vec![] },
        };
        let prepared: Vec<Prepared> = matrix.prepare()?;
        let more = spread(&request, schemes, is_interrupted, tell)?;
        // Per label: reasons why the results of a run must not be used.
        let unfit: Mutex<Vec<(String, Vec<String>)>> = Mutex::new(vec![]);
        let message = |text: &str| tell(Progress::Message(text));
        let simulate = |scenario: &Scenario,
                        scheme: &SchemeSpec,
                        seed: u64,
                        recorder: &mut dyn Recorder,
                        progress: &mut Clock<'_>| {
            let Some(over) = parts(scheme.text()).and_then(|(_, name)| Over::of(name)) else {
                return airpace_sim::run_prepared(&prepared[0], scheme, seed, recorder, progress)
                    .map(drop)
                    .map_err(|error| Refused::of(&error));
            };
            let play = Play {
                executable,
                load,
                scenario,
                prepared: &prepared[0],
                scheme,
                over,
                seed,
                folder: &out,
                tell: &message,
            };
            let unfit_because = play
                .run(request.again, is_interrupted, recorder, progress)
                .map_err(|error| Refused::of(&error))?;
            let mut unfit = unfit.lock().expect("no thread panics while it holds them");
            unfit.push((scheme.text().to_owned(), unfit_because));
            Ok(())
        };
        let outcome = matrix.run_with(&simulate, &|at| {
            tell(Progress::Run(at.scheme, at.job, at.jobs, at.fraction));
            stop(is_interrupted)
        })?;
        let unfit = unfit.into_inner().expect("all threads have ended");
        let rows = beside(&outcome.summary, &unfit, &more);
        Ok(Compared { outcome, rows })
    }
}

fn stop(is_interrupted: &AtomicBool) -> ControlFlow<()> {
    match is_interrupted.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Runs the further runs of the simulator. Each run has its own seed, and its flows start later by random fractions of
/// [`SPREAD_S`]: in a scenario without random numbers, the seed has no effect.
fn spread(
    request: &Request,
    schemes: Vec<SchemeSpec>,
    is_interrupted: &AtomicBool,
    tell: Tell<'_>,
) -> Result<Summary, LabError> {
    let mut chance = Streams::new(request.seed).stream("agree: when flows begin");
    let mut all = Summary { runs: vec![], expectations: vec![], not_judged: vec![] };
    let count = u64::from(request.spread) * schemes.len() as u64;
    for index in 1..=u64::from(request.spread) {
        let choice =
            shifted(&request.choice, Some(format!("again-{index}")), &mut || chance.range(0.0, SPREAD_S))?;
        let matrix = Matrix {
            scenarios: vec![choice],
            schemes: schemes.clone(),
            seeds: vec![request.seed.wrapping_add(index)],
            jobs: request.jobs,
            out: None,
            program: request.program.clone(),
            command: request.command.clone(),
            qlog: false,
            again: None,
            page: false,
            further: vec![],
        };
        let begun = all.runs.len();
        let outcome = matrix.run(&|at| {
            tell(Progress::Spread((begun + at.job) as u64, count));
            stop(is_interrupted)
        })?;
        all.runs.extend(outcome.summary.runs);
    }
    Ok(all)
}

/// The scenario for simulator and real transports: each flow starts later by [`LEAD_S`] plus the result of `more_s`, and
/// ACKs cross the cell, as the packets of real programs do. `name` may replace the scenario's name.
fn shifted(
    choice: &Choice,
    name: Option<String>,
    more_s: &mut dyn FnMut() -> f64,
) -> Result<Choice, LabError> {
    let scenario = &choice.scenario;
    let mut added = vec![];
    let mut add = |key: String, value: String| added.push((key, value));
    if let Some(name) = name {
        add("name".to_owned(), format!("{name:?}"));
    }
    // The scenario's expectations refer to the original times.
    add("expect".to_owned(), "[]".to_owned());
    add("duration_s".to_owned(), (scenario.duration_s + LEAD_S).to_string());
    for (index, flow) in scenario.flow.iter().enumerate() {
        add(format!("flow.{index}.start_s"), (flow.start_s + LEAD_S + more_s()).to_string());
        if let Some(stop_s) = flow.stop_s {
            add(format!("flow.{index}.stop_s"), (stop_s + LEAD_S).to_string());
        }
        if scenario.cell.is_some() {
            add(format!("flow.{index}.acks"), "\"cell\"".to_owned());
        }
    }
    let set: Vec<(String, String)> = choice.set.iter().cloned().chain(added).collect();
    let scenario = Scenario::named(&choice.argument, &set)?;
    Ok(Choice { argument: choice.argument.clone(), scenario, set })
}

/// Rejects scenarios that request files of radio reports, which only the simulator writes.
///
/// # Errors
/// The message contains the key.
pub fn asks_for_no_reports(scenario: &Scenario) -> Result<(), LabError> {
    if let Some(device) = scenario.device.iter().position(|device| device.reports.is_some()) {
        refuse!("device.{device}.reports: only the simulator writes that file");
    }
    Ok(())
}

/// Rejects scenarios with features that the real programs do not support.
fn can_be_played(scenario: &Scenario) -> Result<(), LabError> {
    asks_for_no_reports(scenario)?;
    if scenario.flow.is_empty() {
        refuse!("the scenario has no flow; add a `[[flow]]`");
    }
    if !scenario.ack_outage.is_empty() {
        refuse!("`ack_outage` is not played over real transports; leave it out");
    }
    if let Some(index) = scenario.device.iter().position(|device| device.clock != Default::default()) {
        refuse!("device.{index}.clock: real programs have this machine's clock; leave it out");
    }
    for (index, flow) in scenario.flow.iter().enumerate() {
        let refused = [
            (
                flow.every_ms.is_some() || flow.bytes.is_some(),
                "bytes",
                "flows of agree have no end of their own",
            ),
            (!flow.schedule.is_empty(), "schedule", "real applications keep their rate"),
            (flow.video.is_some(), "video", "flows of agree always have data to send"),
            (flow.misreport.is_some(), "misreport", "real receivers report what they measure"),
            (flow.proxy.is_some(), "proxy", "only the simulator splits connections"),
            (flow.mss() != Bytes(1_500), "mss_bytes", "real transports send packets of 1500 bytes"),
        ];
        if let Some((_, key, why)) = refused.into_iter().find(|(is_set, ..)| *is_set) {
            refuse!("flow.{index}.{key}: {why}; leave it out");
        }
        let first = scenario.flow.iter().find(|other| other.device == flow.device).unwrap_or(flow);
        if first.rtt_ms != flow.rtt_ms {
            refuse!(
                "flow.{index}.rtt_ms: all flows of a device have the same round trip over real transports"
            );
        }
    }
    Ok(())
}

/// The schemes to compare.
fn schemes(request: &Request, scenario: &Scenario) -> Result<Vec<SchemeSpec>, LabError> {
    let sees_truth = |scheme: &SchemeSpec| -> Result<bool, LabError> {
        let ends = scheme.build(&Setup::new(Bytes(1_500), Streams::new(0).stream("agree")))?;
        Ok(ends.controller.sees() == Sees::Truth)
    };
    if request.schemes.is_empty() {
        let mut kept = vec![];
        for scheme in scenario.schemes() {
            if !sees_truth(scheme)? {
                kept.push(scheme.clone());
            }
        }
        kept.retain(|scheme| request.over.iter().all(|over| over.carries(scheme).is_ok()));
        if kept.is_empty() {
            refuse!("the kernel has none of the scenario's schemes; name schemes that it has");
        }
        return Ok(kept);
    }
    for (index, scheme) in request.schemes.iter().enumerate() {
        if request.schemes[..index].iter().any(|other| other.text() == scheme.text()) {
            refuse!("scheme `{}` is named twice; name it once", scheme.text());
        }
        if sees_truth(scheme)? {
            let refused = Refused::new(format!(
                "`{}` uses information that only a simulator has: no real transport can carry it",
                scheme.text()
            ));
            let remedy = Remedy::new("choose another from").task(UserTask::ListSchemes);
            return Err(refused.but(remedy).into());
        }
        for over in &request.over {
            over.carries(scheme)?;
        }
    }
    Ok(request.schemes.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_runs_have_their_own_chance() {
        let set = [("duration_s", "4"), ("forward.loss", "0.01")];
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let name = "stationary-idle";
        let scenario = Scenario::named(name, &set).expect("a scenario");
        let request = Request {
            choice: Choice { argument: name.to_owned(), set, scenario },
            schemes: vec![],
            over: vec![Over::Udp],
            seed: 1,
            spread: 4,
            again: 0,
            jobs: 1,
            program: "airpace".to_owned(),
            command: String::new(),
        };
        let schemes = vec![SchemeSpec::parse("reno").expect("a scheme")];
        let runs = spread(&request, schemes, &AtomicBool::new(false), &|_| ()).expect("it runs").runs;
        assert_eq!(runs.iter().map(|run| run.seed).collect::<Vec<_>>(), [2, 3, 4, 5]);
        let mbps = runs.iter().map(|run| run.flows[0].metrics.throughput_mbps);
        let least = mbps.clone().fold(f64::MAX, f64::min);
        assert!(mbps.fold(0.0, f64::max) > 1.02 * least, "other packets are lost with each seed");
    }
}
