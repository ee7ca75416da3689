//! Executes the runs of experiments that are missing in the store, on threads.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use airpace_core::Refused;
use airpace_run::sweep::{Key, Plan, Runner, VARIANT};
use airpace_run::{RunError, threads};
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Size};
use crate::results::{Results, Run};
use crate::store::{Store, Stored};

/// The runs of some experiments.
pub struct Work {
    plans: Vec<Planned>,
    /// All runs, each once.
    runs: Vec<Task>,
    /// Indices of the runs without a result.
    missing: Vec<usize>,
}

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
    run: Stored,
}

/// A campaign of an experiment, with the keys of its runs.
struct Planned {
    experiment: &'static str,
    campaign: &'static str,
    plan: Plan,
    keys: Vec<Key>,
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
            for campaign in (experiment.campaigns)(size) {
                let plan = Plan::new(campaign.spec()?)?;
                let keys = keys(&plan)?;
                plans.push(Planned { experiment: experiment.id, campaign: campaign.name, plan, keys });
            }
        }
        let mut known = BTreeSet::new();
        let mut runs = Vec::new();
        for (plan, planned) in plans.iter().enumerate() {
            for (number, key) in (0..).zip(planned.keys.iter().copied()) {
                if known.insert(key) {
                    runs.push(Task { plan, number, key });
                }
            }
        }
        let missing = (0..runs.len()).filter(|run| store.get(runs[*run].key).is_none()).collect();
        Ok(Work { plans, runs, missing })
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
                if let Err(error) = ended.and_then(|stored| store.put(self.runs[run].key, &stored)) {
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

    /// Executes a run. `runner` is that of the last run, which is used again if both are of the same plan. `None` if `tell`
    /// stopped it.
    fn execute<'w>(
        &'w self,
        run: usize,
        runner: &mut Option<(usize, Runner<'w>)>,
        tell: &dyn Fn(f64) -> bool,
    ) -> Option<Result<Stored, RunError>> {
        let Task { plan, number, .. } = self.runs[run];
        let planned = &self.plans[plan];
        if runner.as_ref().is_none_or(|(known, _)| *known != plan) {
            *runner = Some((plan, Runner::new(&planned.plan)));
        }
        let (_, runner) = runner.as_mut()?;
        let (_, ended) = runner.run_with_courses(number, tell)?;
        Some(ended.map(|(summary, courses)| Stored { summary, courses }).map_err(|reason| {
            RunError::Sweep(Refused::new(format!("{}: a run failed: {reason}", planned.experiment)))
        }))
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
            let sent = Sent { key: task.key.to_string(), run: ended? };
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
            (Some(Sent { key, run }), Some(known)) if key == known.to_string() => store.put(known, &run),
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
        campaigns.collect::<Result<_, RunError>>().map(Results::new)
    }
}

impl Planned {
    fn runs(&self, store: &Store) -> Result<Vec<Run>, RunError> {
        let run = |(number, key): (u64, &Key)| {
            let cell = self.plan.cell(number);
            let Some(Stored { summary, courses }) = store.get(*key) else {
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
        let experiments = named(&["biscay/fig10".to_owned()]).unwrap();
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
        let experiments = named(&["biscay/fig10".to_owned(), "morc/fig5".to_owned()]).unwrap();
        let work = Work::of(&experiments, Size::Quick, &here).unwrap();
        assert!(work.missing().len() > 1);
        let lines = work.lines(work.missing()).unwrap();
        for (run, line) in work.missing().iter().zip(lines.lines()) {
            work.add(&there, *run, line).unwrap();
        }
        work.run(&here, 2, &|_| ControlFlow::Continue(())).unwrap();
        assert!(work.runs.iter().all(|task| here.get(task.key) == there.get(task.key)));
        let second = lines.lines().nth(1).unwrap();
        for line in [second, "", &second[..second.len() / 2]] {
            let refused = work.add(&there, 0, line).unwrap_err().to_string();
            assert!(refused.contains("is not this run"), "{refused}");
        }
        assert!(work.lines(&[work.runs()]).unwrap_err().to_string().contains("there is no run"));
    }
}
