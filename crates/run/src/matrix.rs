//! Matrix of simulated runs (scenarios × schemes × seeds), executed on threads and judged.
//!
//! Each run is a pure function of its scenario, scheme and seed, and writes to its own files. Results are assembled in
//! the order of the matrix. The output therefore depends neither on the number of threads nor on the order in which runs
//! finish.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use airpace_core::remedy::explain_plainly;
use airpace_core::{DeviceId, Refused, Remedy, Time};
use airpace_event::Recorder;
use airpace_sim::{Prepared, Progress as Clock, Scenario, SchemeSpec};
use airpace_tables::facts::RunFacts;
use airpace_tables::{FurtherColumns, Memory};

use crate::error::RunError;
use crate::expect::{check_metrics, verdicts};
use crate::folder::RunFolder;
use crate::judge::{Judge, Keep, Room};
use crate::manifest::{Choice, Host, Manifest, ManifestChoice, ManifestScenario, PROGRAM};
use crate::reports::ReportFile;
use crate::summary::{RunSummary, Summary};
use crate::{shell, threads};

/// A matrix of runs and its options.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The scenarios. Their names must differ.
    pub scenarios: Vec<Choice>,
    /// The schemes under test. If empty, each scenario's own list is used.
    pub schemes: Vec<SchemeSpec>,
    /// The seeds; at least one.
    pub seeds: Vec<u64>,
    /// Number of threads; at least one.
    pub jobs: usize,
    /// Path of the run folder. `None`: only measure, or keep the tables in memory.
    pub out: Option<PathBuf>,
    /// Name of the program in the commands of the run folder: `airpace`, or `./airpace` if it was called from a checkout.
    pub program: String,
    /// The command as it was typed, for the manifest's host part.
    pub command: String,
    /// Whether to write a qlog per flow.
    pub qlog: bool,
    /// The command that reproduces the results, if it is not `airpace sim`.
    pub again: Option<String>,
    /// Whether a page follows. If so, the manifest in the folder still marks the run as incomplete at the end. The caller
    /// writes the page, and then [`Outcome::manifest`].
    pub page: bool,
    /// Names of values that the runs report in addition to those of their schemes, such as the kernel's state of its
    /// flows.
    pub further: Vec<&'static str>,
}

/// The progress of one run of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Index of the run.
    pub job: usize,
    /// Number of runs.
    pub jobs: usize,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// The scheme under test.
    pub scheme: &'a str,
    /// The seed.
    pub seed: u64,
    /// Fraction of the simulated time that has passed, in [0, 1]. It is 1 exactly once, at the end of the run.
    pub fraction: f64,
}

/// The results of a matrix.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All metrics of all runs.
    pub summary: Summary,
    /// Manifest of the run folder.
    pub manifest: Manifest,
    /// The run folder; `None` if no run folder was requested.
    pub folder: Option<RunFolder>,
}

/// Receives the progress of a run, on the thread that runs it. It may stop all runs.
pub type Listener<'a> = &'a (dyn Fn(Progress<'_>) -> ControlFlow<()> + Sync);

/// Turns a scenario, a scheme and a seed into events. The function reports the simulated time
/// repeatedly to the clock, and stops if the clock requests so.
pub type Simulate<'a> = &'a (
        dyn Fn(&Scenario, &SchemeSpec, u64, &mut dyn Recorder, &mut Clock<'_>) -> Result<(), Refused> + Sync
    );

struct Job<'a> {
    choice: &'a Choice,
    scheme: SchemeSpec,
    seed: u64,
}

impl Matrix {
    /// Executes all runs in the simulator.
    ///
    /// # Errors
    /// Before anything is written: a scenario's files cannot be read, two scenarios have the same name, an expectation
    /// names an unknown metric, or the folder cannot be written. Later: the first run in matrix order failed, or the
    /// listener stopped the runs. The manifest then marks the folder as incomplete.
    pub fn run(&self, listener: Listener<'_>) -> Result<Outcome, RunError> {
        self.run_prepared(&self.prepare()?, listener)
    }

    /// Reads the files that the scenarios name. If a file is a pipe without a writer, this function never returns.
    ///
    /// # Errors
    /// A scenario's files cannot be read.
    pub fn prepare(&self) -> Result<Vec<Prepared>, RunError> {
        let prepare = |choice: &Choice| Ok(choice.scenario.prepare()?);
        self.scenarios.iter().map(prepare).collect()
    }

    /// Executes all runs in the simulator, with the scenarios that [`Matrix::prepare`] returned.
    ///
    /// # Errors
    /// Errors of [`Matrix::run`].
    pub fn run_prepared(&self, prepared: &[Prepared], listener: Listener<'_>) -> Result<Outcome, RunError> {
        self.run_for(prepared, None, listener)
    }

    /// Executes all runs in the simulator like [`Matrix::run_prepared`], with the tables in memory and without a run
    /// folder.
    ///
    /// # Errors
    /// Errors of [`Matrix::run`].
    pub fn run_in_memory(
        &self,
        prepared: &[Prepared],
        memory: &Memory,
        listener: Listener<'_>,
    ) -> Result<Outcome, RunError> {
        self.run_for(prepared, Some(memory), listener)
    }

    fn run_for(
        &self,
        prepared: &[Prepared],
        memory: Option<&Memory>,
        listener: Listener<'_>,
    ) -> Result<Outcome, RunError> {
        let simulate = |scenario: &Scenario,
                        scheme: &SchemeSpec,
                        seed: u64,
                        recorder: &mut dyn Recorder,
                        progress: &mut Clock<'_>| {
            let ready = prepared.iter().find(|ready| ready.scenario().name == scenario.name);
            let ready = ready.expect("every scenario was prepared");
            airpace_sim::run_prepared(ready, scheme, seed, recorder, progress)
                .map(drop)
                .map_err(|error| explain_plainly(&error).into())
        };
        self.run_all(&simulate, prepared, memory, listener)
    }

    /// Executes all runs with `simulate`.
    ///
    /// # Errors
    /// Errors of [`Matrix::run`].
    pub fn run_with(&self, simulate: Simulate<'_>, listener: Listener<'_>) -> Result<Outcome, RunError> {
        self.run_all(simulate, &[], None, listener)
    }

    fn run_all(
        &self,
        simulate: Simulate<'_>,
        prepared: &[Prepared],
        memory: Option<&Memory>,
        listener: Listener<'_>,
    ) -> Result<Outcome, RunError> {
        for (index, choice) in self.scenarios.iter().enumerate() {
            check_metrics(&choice.scenario)?;
            if self.scenarios[..index].iter().any(|other| other.scenario.name == choice.scenario.name) {
                return Err(RunError::Twice { name: choice.scenario.name.clone() });
            }
        }
        let jobs = self.jobs()?;
        check_reports(&jobs)?;
        let out = self.out.as_deref().filter(|_| memory.is_none());
        let folder = out.map(RunFolder::create).transpose()?;
        let started = Instant::now();
        let mut manifest = self.manifest()?;
        for scenario in &mut manifest.scenarios {
            let read = prepared.iter().find(|ready| ready.scenario().name == scenario.name);
            let replays = read.map_or(&[][..], Prepared::replays);
            scenario.replays = replays.iter().map(ToString::to_string).collect();
        }
        if let Some(folder) = &folder {
            folder.write_manifest(&manifest)?;
            for choice in &self.scenarios {
                folder.write(&ManifestScenario::of(choice).file, choice.scenario.to_toml().as_bytes())?;
            }
        }
        let room = match memory {
            Some(memory) => Some(Room::Memory(memory)),
            None => folder.as_ref().map(Room::Folder),
        };
        let runs = self.run_jobs(&jobs, room, simulate, listener)?;
        let expectations =
            self.scenarios.iter().flat_map(|choice| verdicts(&choice.scenario, &runs)).collect();
        let summary = Summary { runs, expectations, not_judged: Vec::new() };
        manifest.complete = true;
        manifest.host.wall_ms = started.elapsed().as_millis() as u64;
        if let Some(folder) = &folder {
            folder.write_summary(&summary)?;
            if !self.page {
                folder.write_manifest(&manifest)?;
            }
        }
        Ok(Outcome { summary, manifest, folder })
    }

    /// The commands that reproduce the results: one per scenario, and a single one for all variants of a scenario.
    /// Options that do not affect results are omitted.
    pub fn canonical_command(&self) -> String {
        if let Some(again) = &self.again {
            return again.clone();
        }
        let schemes = spelled(&self.schemes);
        let of_choice =
            |choice: &Choice| shell::sim(PROGRAM, &choice.argument, &schemes, &self.seeds, &choice.set);
        shell::one_after_another(self.scenarios.iter().map(of_choice))
    }

    fn jobs(&self) -> Result<Vec<Job<'_>>, RunError> {
        let mut jobs = Vec::new();
        for choice in &self.scenarios {
            for scheme in self.schemes_of(&choice.scenario) {
                jobs.extend(self.seeds.iter().map(|seed| Job {
                    choice,
                    scheme: scheme.clone(),
                    seed: *seed,
                }));
            }
        }
        Ok(jobs)
    }

    fn schemes_of<'a>(&'a self, scenario: &'a Scenario) -> &'a [SchemeSpec] {
        if self.schemes.is_empty() { scenario.schemes() } else { &self.schemes }
    }

    /// Every choice of a scheme that occurs in the results, without duplicates, sorted by spelling.
    fn choices(&self) -> Result<Vec<ManifestChoice>, RunError> {
        let mut choices = BTreeMap::new();
        for Choice { scenario, .. } in &self.scenarios {
            for under_test in self.schemes_of(scenario) {
                let own = (0..scenario.flow.len()).map(|flow| scenario.scheme_of(flow, under_test));
                choices.extend(own.map(|spec| (spec.text().to_owned(), ManifestChoice::new(&spec))));
            }
        }
        Ok(choices.into_values().collect())
    }

    fn manifest(&self) -> Result<Manifest, RunError> {
        Ok(Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: false,
            command: self.canonical_command(),
            scenarios: self.scenarios.iter().map(ManifestScenario::of).collect(),
            schemes: spelled(&self.schemes),
            choices: self.choices()?,
            seeds: self.seeds.clone(),
            emulation: None,
            host: Host { program: self.program.clone(), ..Host::here(&self.command, self.jobs) },
        })
    }

    /// Executes `jobs` on threads, and returns the results in the order of `jobs`.
    fn run_jobs(
        &self,
        jobs: &[Job<'_>],
        room: Option<Room<'_>>,
        simulate: Simulate<'_>,
        listener: Listener<'_>,
    ) -> Result<Vec<RunSummary>, RunError> {
        let mut inspected = inspected_names(jobs)?;
        for name in &self.further {
            if !inspected.iter().any(|known| known == name) {
                inspected.push((*name).to_owned());
            }
        }
        let has_nr = jobs.iter().any(|job| crate::facts::has_nr(&job.choice.scenario));
        let further = FurtherColumns { inspected: &inspected, has_nr };
        let keep = room.map(|room| Keep { room, further, qlog: self.qlog });
        let folder = match room {
            Some(Room::Folder(folder)) => Some(folder),
            _ => None,
        };
        let next = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        let results: Mutex<Vec<Option<JobResult>>> = Mutex::new(jobs.iter().map(|_| None).collect());
        let work = || {
            while !stopped.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(index) else { return };
                let tell = |fraction| {
                    let stop = listener(job.progress(index, jobs.len(), fraction)).is_break();
                    stopped.fetch_or(stop, Ordering::Relaxed) || stop
                };
                let result = job.run(keep, simulate, &tell);
                let mut results = results.lock().expect("no thread panics while it holds the results");
                results[index] = Some(result);
                let kept = folder.map_or(Ok(()), |folder| folder.write_summary(&so_far(&results)));
                if let Err(error) = kept {
                    results[index] = Some(Err(error.into()));
                }
                stopped.fetch_or(!matches!(results[index], Some(Ok(Some(_)))), Ordering::Relaxed);
            }
        };
        threads::share(self.jobs.clamp(1, jobs.len().max(1)), &work);
        let results = results.into_inner().expect("every thread has ended").into_iter().flatten();
        // If a run failed, return its error and not the `Stopped` error of the runs that were stopped because of the
        // failure.
        let ended: Vec<RunSummary> = results.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        if ended.len() < jobs.len() {
            return Err(RunError::Stopped { ended: ended.len(), runs: jobs.len() });
        }
        Ok(ended)
    }
}

/// Result of a job: `None` if the job was stopped.
type JobResult = Result<Option<RunSummary>, RunError>;

/// Summary of the runs that have ended until now. The summary is written after each run, so that it survives an
/// interruption.
fn so_far(results: &[Option<JobResult>]) -> Summary {
    Summary { runs: results.iter().flatten().flatten().flatten().cloned().collect(), ..Summary::default() }
}

impl Job<'_> {
    /// Executes the run and returns its metrics. `tell` receives the fraction of the run's time that has passed. Returns
    /// `None` if `tell` stopped the run.
    fn run(
        &self,
        keep: Option<Keep<'_>>,
        simulate: Simulate<'_>,
        tell: &dyn Fn(f64) -> bool,
    ) -> Result<Option<RunSummary>, RunError> {
        let facts = crate::facts::of(&self.choice.scenario, &self.scheme, self.seed);
        let mut judge = Judge::new(&facts, keep)?;
        let asked = (0..).zip(&self.choice.scenario.device);
        let asked = asked.filter_map(|(device, config)| Some((DeviceId(device), config.reports.as_ref()?)));
        let reports = asked.map(|(device, path)| ReportFile::create(device, path));
        judge.keep_reports(reports.collect::<Result<_, _>>()?);
        let run = |judge: &mut Judge, progress: &mut Clock<'_>| {
            simulate(&self.choice.scenario, &self.scheme, self.seed, judge, progress)
        };
        if !run_judged(&facts, &mut judge, run, tell).map_err(|reason| self.failed(reason))? {
            return Ok(None);
        }
        let measured = judge.finish()?;
        tell(1.0);
        Ok(Some(RunSummary::new(&facts, measured)))
    }

    fn progress(&self, job: usize, jobs: usize, fraction: f64) -> Progress<'_> {
        let (scenario, scheme) = (&self.choice.scenario.name, self.scheme.text());
        Progress { job, jobs, scenario, scheme, seed: self.seed, fraction }
    }

    fn failed(&self, reason: Refused) -> RunError {
        RunError::Run {
            scenario: self.choice.scenario.name.clone(),
            scheme: self.scheme.text().to_owned(),
            seed: self.seed,
            reason,
        }
    }
}

/// Executes `run`, which turns a run with these facts into events. `tell` receives the fraction of the run's time that
/// has passed, and stops the run by returning `true`. Returns whether the run was completed.
pub(crate) fn run_judged(
    facts: &RunFacts,
    judge: &mut Judge,
    run: impl FnOnce(&mut Judge, &mut Clock<'_>) -> Result<(), Refused>,
    tell: &dyn Fn(f64) -> bool,
) -> Result<bool, Refused> {
    let mut stopped = false;
    let mut progress = |now: Time| {
        stopped |= tell((now.as_secs_f64() / facts.duration.as_secs_f64()).min(0.999));
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    run(judge, &mut progress)?;
    Ok(!stopped)
}

/// Returns an error if several runs would write the same file of radio reports.
fn check_reports(jobs: &[Job<'_>]) -> Result<(), RunError> {
    for job in jobs {
        let scenario = &job.choice.scenario;
        let runs = jobs.iter().filter(|other| other.choice.scenario.name == scenario.name).count();
        let asks = scenario.device.iter().position(|device| device.reports.is_some());
        if let Some(device) = asks.filter(|_| runs > 1) {
            let remedy = Remedy::new("give one")
                .parameter("scheme")
                .text("and one seed (")
                .value("seeds", "1")
                .text(")");
            return Err(RunError::Reports { device, runs, remedy });
        }
    }
    Ok(())
}

fn spelled(schemes: &[SchemeSpec]) -> Vec<String> {
    schemes.iter().map(|scheme| scheme.text().to_owned()).collect()
}

/// The names of all values that any flow of any job may report, without duplicates, in order of first appearance.
fn inspected_names(jobs: &[Job<'_>]) -> Result<Vec<String>, RunError> {
    let mut names: Vec<String> = Vec::new();
    // Create a controller only once per scheme, because a user-defined controller may write files or draw figures.
    let mut asked = BTreeSet::new();
    for job in jobs {
        for flow in 0..job.choice.scenario.flow.len() {
            let scheme = job.choice.scenario.scheme_of(flow, &job.scheme);
            if !asked.insert(scheme.text().to_owned()) {
                continue;
            }
            for name in scheme.inspected().map_err(|error| job.failed(error.to_string().into()))? {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
    }
    Ok(names)
}
