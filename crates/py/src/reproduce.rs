//! The papers' experiments, on threads of this machine or run by run on workers of a cluster.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use airpace_reproduce::against::results_json;
use airpace_reproduce::{EXPERIMENTS, Experiment, Folder, Origin, Reproduced, Size, Store, Work, named};
use airpace_run::{Host, RunError, shell};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::attend::attend;
use crate::raise;

/// The build by which finished runs are known. The module does not know its commit.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "-python");

/// Names and titles of all experiments, with their places in the papers.
#[pyfunction]
pub fn experiments() -> Vec<(&'static str, &'static str, &'static str)> {
    EXPERIMENTS.iter().map(|experiment| (experiment.id, experiment.title, experiment.source)).collect()
}

/// Experiments whose folder is open. It has the methods of `SweepSession` that work on a cluster needs.
#[pyclass(frozen, module = "airpace")]
pub struct Reproduction {
    experiments: Vec<&'static Experiment>,
    spec: String,
    jobs: usize,
    work: Work,
    store: Store,
    folder: Folder,
    /// Number of missing runs that are stored now.
    done: AtomicUsize,
}

#[pymethods]
impl Reproduction {
    #[new]
    #[pyo3(signature = (what, *, quick, jobs, out, command))]
    fn new(
        py: Python<'_>,
        what: Vec<String>,
        quick: bool,
        jobs: Option<usize>,
        out: PathBuf,
        command: &str,
    ) -> PyResult<Reproduction> {
        let size = if quick { Size::Quick } else { Size::Whole };
        let experiments = named(&what, size).map_err(raise::refused)?;
        let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let spec = serde_json::to_string(&(&what, quick)).map_err(raise::failed)?;
        let mut words = vec!["airpace".to_owned(), "reproduce".to_owned()];
        words.extend(what);
        words.extend(quick.then(|| "--quick".to_owned()));
        let origin = Origin {
            command: shell::join(&words),
            version: env!("CARGO_PKG_VERSION"),
            build: BUILD,
            size,
            host: Host::here(command, jobs),
        };
        let opened = py.detach(|| {
            let folder = Folder::open(&out, origin, &experiments)?;
            let store = Store::new(&Folder::runs(&out), BUILD);
            Ok((folder, Work::of(&experiments, size, &store)?, store))
        });
        let (folder, work, store) = opened.map_err(raise::run)?;
        Ok(Reproduction { experiments, spec, jobs, work, store, folder, done: AtomicUsize::new(0) })
    }

    /// The experiments as JSON, for `ReproductionPlan` on a worker.
    #[getter]
    fn spec(&self) -> &str {
        &self.spec
    }

    /// The missing runs: `count` of them, from index `first` on.
    fn batch(&self, first: usize, count: usize) -> Vec<usize> {
        self.work.missing().iter().skip(first).take(count).copied().collect()
    }

    /// Number of completed runs, of failed runs, and of all runs.
    fn progress(&self) -> (usize, usize, usize) {
        let kept = self.work.runs() - self.work.missing().len();
        (kept + self.done.load(Ordering::Relaxed), 0, self.work.runs())
    }

    /// Makes the missing runs on threads of this machine.
    fn run(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let stop = AtomicBool::new(false);
        let tell = || -> PyResult<()> {
            let Some(progress) = &progress else { return Ok(()) };
            let (done, _, runs) = self.progress();
            progress.call1((done as f64 / runs.max(1) as f64, done, runs)).map(drop)
        };
        let listener = |at: airpace_reproduce::Progress| {
            self.done.store(at.done, Ordering::Relaxed);
            match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let work = || self.work.run(&self.store, self.jobs, &listener);
        match attend(py, &stop, &tell, &|_| (), work)? {
            (Err(RunError::Stopped { .. }), Some(why)) => Err(why),
            (Err(error), _) => Err(raise::run(error)),
            (Ok(()), Some(why)) => Err(why),
            (Ok(()), None) => tell(),
        }
    }

    /// Adds the runs that `ReproductionPlan.run` returned.
    fn add(&self, py: Python<'_>, runs: Vec<usize>, lines: &[u8]) -> PyResult<()> {
        let text = std::str::from_utf8(lines).map_err(raise::failed)?;
        let sent = text.lines().count();
        if sent != runs.len() {
            return Err(raise::failed(format!("a worker sent {sent} results for {} runs", runs.len())));
        }
        let pairs = || runs.iter().zip(text.lines());
        py.detach(|| pairs().try_for_each(|(run, line)| self.work.add(&self.store, *run, line)))
            .map_err(raise::run)?;
        self.done.fetch_add(runs.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Raises, because an experiment has no numbers if a run failed.
    fn fail(&self, run: usize, reason: &str) -> PyResult<()> {
        Err(raise::failed(format!("run {run} failed, so its experiment has no numbers: {reason}")))
    }

    /// Writes the folder. Returns the numbers as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let finished = py.detach(|| {
            let one = |experiment: &&'static Experiment| {
                Ok(Reproduced::of(experiment, &self.work.results(experiment, &self.store)?))
            };
            let all: Vec<Reproduced> = self.experiments.iter().map(one).collect::<Result<_, RunError>>()?;
            self.folder.finish(&all)?;
            Ok(results_json(&all))
        });
        finished.map_err(raise::run)
    }
}

/// The runs of some experiments, for a worker.
#[pyclass(frozen, module = "airpace")]
pub struct ReproductionPlan(Work);

#[pymethods]
impl ReproductionPlan {
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<ReproductionPlan> {
        let (what, quick): (Vec<String>, bool) = serde_json::from_str(spec).map_err(raise::value)?;
        let size = if quick { Size::Quick } else { Size::Whole };
        let experiments = named(&what, size).map_err(raise::refused)?;
        let work = py.detach(|| Work::of(&experiments, size, &Store::nowhere()));
        work.map(ReproductionPlan).map_err(raise::run)
    }

    /// Makes these runs, one after the other. Returns one line of text per run.
    fn run<'py>(&self, py: Python<'py>, runs: Vec<usize>) -> PyResult<Bound<'py, PyBytes>> {
        let lines = py.detach(|| self.0.lines(&runs)).map_err(raise::run)?;
        Ok(PyBytes::new(py, lines.as_bytes()))
    }
}
