//! Executes the runs of experiments that are missing in the store, on threads.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use airpace_core::{Refused, Time};
use airpace_run::metrics::RadioTrace;
use airpace_run::sweep::{Key, Plan, Runner, VARIANT};
use airpace_run::{RunError, threads};
use airpace_tables::facts::Span;
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Size};
use crate::measure::{Measurement, Step};
use crate::results::{Results, Run};
use crate::store::{Store, Stored};

/// The runs of some experiments.
pub struct Work {
    plans: Vec<Planned>,
    /// All runs, each once.
    runs: Vec<Task>,
    /// Indices of the runs without a result.
    missing: Vec<usize>,
    /// The measurements without a result, each once, with the reason why it could not be made.
    unmeasured: Vec<(Measurement, String)>,
}

/// Reason of a measurement that nobody has tried to make.
const NOT_TRIED: &str = "only the program `airpace` measures, and it has not";

/// A run of one or more campaigns.
struct Task {
    /// Index of a plan that has it.
    plan: usize,
    /// Number of the run in this plan.
    number: u64,
    key: Key,
}

/// A run that another process has made, as it sends it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    key: String,
    made: Made,
}

/// The results of a run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Made {
    stored: Stored,
    /// The details of the radio, if the plan asks for them.
    trace: Option<RadioTrace>,
}

/// A campaign of an experiment, with the keys of its runs.
struct Planned {
    experiment: &'static str,
    campaign: &'static str,
    plan: Plan,
    keys: Vec<Key>,
    traced_ms: Option<(u64, u64)>,
}

/// Progress of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of runs that were made now.
    pub done: usize,
    /// Number of runs that were missing at the start.
    pub missing: usize,
}

impl Work {
    /// Determines the runs of these experiments that the store lacks.
    ///
    /// # Errors
    /// A scenario is invalid, which is a mistake in this crate.
    pub fn of(experiments: &[&'static Experiment], size: Size, store: &Store) -> Result<Work, RunError> {
        let mut plans = Vec::new();
        for experiment in experiments {
            for campaign in experiment.campaigns(size) {
                let plan = Plan::new(campaign.spec()?)?;
                let keys = keys(&plan)?;
                let (experiment, traced_ms) = (experiment.id, campaign.traced_ms);
                plans.push(Planned { experiment, campaign: campaign.name, plan, keys, traced_ms });
            }
        }
        let mut known = BTreeSet::new();
        let mut runs = Vec::new();
        for (plan, planned) in plans.iter().enumerate() {
            for (number, key) in (0..).zip(planned.keys.iter().copied()) {
                if known.insert((key, planned.traced_ms)) {
                    runs.push(Task { plan, number, key });
                }
            }
        }
        let is_stored = |Task { plan, key, .. }: &Task| {
            let has_trace = |span_ms| store.trace(*key, span_ms).is_some();
            store.get(*key).is_some() && plans[*plan].traced_ms.is_none_or(has_trace)
        };
        let missing = (0..runs.len()).filter(|run| !is_stored(&runs[*run])).collect();
        let mut unmeasured: Vec<(Measurement, String)> = Vec::new();
        for measurement in experiments.iter().flat_map(|experiment| experiment.measurements()) {
            let is_known = unmeasured.iter().any(|(known, _)| known.name == measurement.name);
            if !is_known && store.measured(measurement.name).is_none() {
                unmeasured.push((*measurement, NOT_TRIED.to_owned()));
            }
        }
        Ok(Work { plans, runs, missing, unmeasured })
    }

    /// The measurements that are missing.
    pub fn unmeasured(&self) -> impl Iterator<Item = &Measurement> {
        self.unmeasured.iter().map(|(measurement, _)| measurement)
    }

    /// Makes the missing measurements with `program`, one after the other, and stores each as soon as it has ended. A
    /// measurement that this machine cannot make has no result, and the page contains the reason. `listener` receives the
    /// start and the end of each.
    ///
    /// # Errors
    /// A result could not be stored, or `listener` stopped the work. Measurements that have ended are kept.
    pub fn measure(
        &mut self,
        store: &Store,
        program: &Path,
        listener: &dyn Fn(Step<'_>) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        let all = self.unmeasured.len();
        let beside = store.folder().unwrap_or_else(std::env::temp_dir);
        let mut without = Vec::new();
        for (ended, (measurement, _)) in std::mem::take(&mut self.unmeasured).into_iter().enumerate() {
            let stopped = RunError::Stopped { ended, runs: all };
            if listener(Step::Starts(&measurement)).is_break() {
                return Err(stopped);
            }
            let made = measurement.make(program, &beside);
            // The commands receive the interruption too, and fail.
            if listener(Step::Ended(&measurement)).is_break() {
                return Err(stopped);
            }
            match made {
                Ok(measured) => store.put_measured(measurement.name, &measured)?,
                Err(reason) => without.push((measurement, reason.to_string())),
            }
        }
        self.unmeasured = without;
        Ok(())
    }

    /// Number of all runs, each counted once.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Indices of the runs that are missing, among all runs. The indices are the same for the same experiments in every
    /// process of the same version.
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Executes the missing runs with `jobs` threads, and stores each as soon as it has ended.
    ///
    /// # Errors
    /// A run failed or could not be stored, or `listener` stopped the work. Runs that have ended are kept.
    pub fn run(
        &self,
        store: &Store,
        jobs: usize,
        listener: &(dyn Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<(), RunError> {
        let (next, done, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        let failed: Mutex<Option<RunError>> = Mutex::default();
        let progress = || Progress { done: done.load(Ordering::Relaxed), missing: self.missing.len() };
        let work = || {
            let mut runner: Option<(usize, Runner<'_>)> = None;
            while !stopped.load(Ordering::Relaxed) {
                let Some(&run) = self.missing.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                let tell = |_| {
                    let stop = listener(progress()).is_break();
                    stopped.fetch_or(stop, Ordering::Relaxed) || stop
                };
                let Some(ended) = self.execute(run, &mut runner, &tell) else { return };
                if let Err(error) = ended.and_then(|made| self.keep(store, run, &made)) {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    stopped.store(true, Ordering::Relaxed);
                }
                done.fetch_add(1, Ordering::Relaxed);
                stopped.fetch_or(listener(progress()).is_break(), Ordering::Relaxed);
            }
        };
        threads::share(jobs.clamp(1, self.missing.len().max(1)), &work);
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if done.load(Ordering::Relaxed) < self.missing.len() => {
                Err(RunError::Stopped { ended: done.into_inner(), runs: self.missing.len() })
            }
            None => Ok(()),
        }
    }

    /// Executes a run. `runner` is that of the last run, which is used again if both are of the same plan. `None` if the
    /// caller stopped it.
    fn execute<'w>(
        &'w self,
        run: usize,
        runner: &mut Option<(usize, Runner<'w>)>,
        tell: &dyn Fn(f64) -> bool,
    ) -> Option<Result<Made, RunError>> {
        let Task { plan, number, .. } = self.runs[run];
        let planned = &self.plans[plan];
        if runner.as_ref().is_none_or(|(known, _)| *known != plan) {
            *runner = Some((plan, Runner::new(&planned.plan)));
        }
        let (_, runner) = runner.as_mut()?;
        let span = planned.traced_ms.map(|(from_ms, until_ms)| Span {
            start: Time::from_millis(from_ms),
            end: Time::from_millis(until_ms),
        });
        let (_, ended) = runner.run_with_courses(number, span, tell)?;
        let made =
            ended.map(|(summary, (courses, trace))| Made { stored: Stored { summary, courses }, trace });
        Some(made.map_err(|reason| {
            RunError::Sweep(Refused::new(format!("{}: a run failed: {reason}", planned.experiment)))
        }))
    }

    /// Stores the results of a run.
    fn keep(&self, store: &Store, run: usize, made: &Made) -> Result<(), RunError> {
        let Task { plan, key, .. } = self.runs[run];
        if let (Some(span_ms), Some(trace)) = (self.plans[plan].traced_ms, &made.trace) {
            store.put_trace(key, span_ms, trace)?;
        }
        store.put(key, &made.stored)
    }

    /// Executes these runs, one after the other, for another process: a line per run, for [`Work::add`].
    ///
    /// # Errors
    /// A run does not exist, or failed.
    pub fn lines(&self, runs: &[usize]) -> Result<String, RunError> {
        let mut lines = String::new();
        let mut runner = None;
        for &run in runs {
            let Some(task) = self.runs.get(run) else {
                let what = format!("there is no run {run}; there are {}", self.runs.len());
                return Err(RunError::Sweep(Refused::new(what)));
            };
            let Some(ended) = self.execute(run, &mut runner, &|_| false) else { continue };
            let sent = Sent { key: task.key.to_string(), made: ended? };
            lines += &serde_json::to_string(&sent).expect("plain data with text keys");
            lines.push('\n');
        }
        Ok(lines)
    }

    /// Stores a run that another process has made, given as a line of [`Work::lines`].
    ///
    /// # Errors
    /// The line is damaged or of another run, as from another version, or it cannot be stored.
    pub fn add(&self, store: &Store, run: usize, line: &str) -> Result<(), RunError> {
        let sent: Option<Sent> = serde_json::from_str(line).ok();
        let known = self.runs.get(run).map(|task| task.key);
        match (sent, known) {
            (Some(Sent { key, made }), Some(known)) if key == known.to_string() => {
                self.keep(store, run, &made)
            }
            _ => {
                let what = format!("what was sent for run {run} is not this run; is it of another version?");
                Err(RunError::Sweep(Refused::new(what)))
            }
        }
    }

    /// The results of an experiment, whose runs are all in the store.
    ///
    /// # Errors
    /// A run is missing.
    pub fn results(&self, experiment: &Experiment, store: &Store) -> Result<Results, RunError> {
        let its = self.plans.iter().filter(|planned| planned.experiment == experiment.id);
        let campaigns = its.map(|planned| Ok((planned.campaign, planned.runs(store)?)));
        let results = campaigns.collect::<Result<_, RunError>>().map(Results::new)?;
        let measured = experiment.measurements().iter().map(|measurement| {
            let reason = || {
                let known = self.unmeasured.iter().find(|(known, _)| known.name == measurement.name);
                known.map_or(NOT_TRIED, |(_, reason)| reason).to_owned()
            };
            (*measurement, store.measured(measurement.name).ok_or_else(reason))
        });
        Ok(results.with_measured(measured.collect()))
    }
}

impl Planned {
    fn runs(&self, store: &Store) -> Result<Vec<Run>, RunError> {
        let run = |(number, key): (u64, &Key)| {
            let cell = self.plan.cell(number);
            let trace = self.traced_ms.and_then(|span_ms| store.trace(*key, span_ms));
            let stored = store.get(*key).filter(|_| self.traced_ms.is_none() || trace.is_some());
            let Some(Stored { summary, courses }) = stored else {
                let what =
                    format!("{}: the run {key} is missing; the same command makes it", self.experiment);
                return Err(RunError::Sweep(Refused::new(what)));
            };
            let (variant, set): (Vec<_>, Vec<_>) =
                self.plan.sets(cell.point).into_iter().partition(|(key, _)| key == VARIANT);
            Ok(Run {
                variant: variant.into_iter().next().map(|(_, name)| name).unwrap_or_default(),
                set,
                scheme: self.plan.spec().schemes[cell.scheme].clone(),
                seed: cell.seed,
                summary,
                courses,
                trace,
            })
        };
        (0..).zip(&self.keys).map(run).collect()
    }
}

/// The keys of all runs of a plan.
fn keys(plan: &Plan) -> Result<Vec<Key>, RunError> {
    let mut keys = Vec::new();
    let mut digest = None;
    for number in 0..plan.cells() {
        let cell = plan.cell(number);
        if digest.as_ref().is_none_or(|(point, _)| *point != cell.point) {
            digest = Some((cell.point, plan.digest(cell.point)?));
        }
        let (_, digest) = digest.as_ref().expect("it was just made");
        keys.push(plan.key(digest, cell));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Reproduced;
    use crate::list::named;
    use crate::{gallery, markdown};

    #[test]
    fn an_experiment_is_run_once_and_goes_on_where_it_was_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path(), "test");
        let experiments = named(&["biscay/fig10".to_owned()], Size::Quick).unwrap();
        let work = Work::of(&experiments, Size::Quick, &store).unwrap();
        assert_eq!((work.runs(), work.missing()), (1, &[0][..]));
        let stopped = work.run(&store, 2, &|_| ControlFlow::Break(()));
        assert!(matches!(stopped, Err(RunError::Stopped { ended: 0, runs: 1 })), "{stopped:?}");
        assert!(work.results(experiments[0], &store).is_err(), "a missing run is no result");
        work.run(&store, 2, &|_| ControlFlow::Continue(())).unwrap();
        let again = Work::of(&experiments, Size::Quick, &store).unwrap();
        assert_eq!((again.runs(), again.missing()), (1, &[][..]));
        let results = again.results(experiments[0], &store).unwrap();
        let one = Reproduced::of(experiments[0], &results);
        assert!(one.findings.numbers.iter().all(|number| number.ours.is_some()));
        let all = [one];
        let table = markdown::page(&all, "airpace reproduce biscay/fig10 --quick", "0.1.0");
        assert!(table.contains("## biscay/fig10") && table.contains("| at most 2.5 |"), "{table}");
        let page = gallery::page(&all, "airpace reproduce biscay/fig10 --quick", "0.1.0");
        assert!(page.contains("<svg") && page.contains("id=\"biscay-fig10\"") && !page.contains("NaN"));
    }

    #[test]
    fn runs_of_another_process_are_the_same_and_strange_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [here, there] = ["here", "there"].map(|name| Store::new(&folder.path().join(name), "test"));
        let experiments =
            named(&["pbe/fig3", "biscay/fig10", "morc/fig5"].map(str::to_owned), Size::Quick).unwrap();
        let work = Work::of(&experiments, Size::Quick, &here).unwrap();
        assert!(work.missing().len() > 1);
        let lines = work.lines(work.missing()).unwrap();
        for (run, line) in work.missing().iter().zip(lines.lines()) {
            work.add(&there, *run, line).unwrap();
        }
        work.run(&here, 2, &|_| ControlFlow::Continue(())).unwrap();
        assert!(work.runs.iter().all(|task| here.get(task.key) == there.get(task.key)));
        assert!(Work::of(&experiments, Size::Quick, &there).unwrap().missing().is_empty());
        let second = lines.lines().nth(1).unwrap();
        for line in [second, "", &second[..second.len() / 2]] {
            let refused = work.add(&there, 0, line).unwrap_err().to_string();
            assert!(refused.contains("is not this run"), "{refused}");
        }
        assert!(work.lines(&[work.runs()]).unwrap_err().to_string().contains("there is no run"));
    }

    #[test]
    fn an_experiment_with_details_of_the_radio_needs_them_beside_its_runs() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path(), "test");
        let experiments = named(&["pbe/fig2".to_owned(), "pbe/fig3".to_owned()], Size::Quick).unwrap();
        let work = Work::of(&experiments, Size::Quick, &store).unwrap();
        work.run(&store, 2, &|_| ControlFlow::Continue(())).unwrap();
        for experiment in &experiments {
            let results = work.results(experiment, &store).unwrap();
            let findings = (experiment.findings)(&results);
            assert!(findings.numbers.iter().all(|number| number.ours.is_some()), "{}", experiment.id);
            assert_eq!(findings.pictures.len(), 1, "{}", experiment.id);
        }
        let is_trace = |path: &std::path::Path| path.to_string_lossy().contains(".radio-");
        let folders = std::fs::read_dir(folder.path().join("test")).unwrap();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
        let trace = files.map(|file| file.unwrap().path()).find(|path| is_trace(path)).unwrap();
        std::fs::remove_file(trace).unwrap();
        let again = Work::of(&experiments, Size::Quick, &store).unwrap();
        assert_eq!((again.runs(), again.missing().len()), (2, 1), "a run without its details is made again");
    }
}
