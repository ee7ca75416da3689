//! Sweeps, on threads of this machine or run by run on workers of a cluster.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use airpace_core::Refused;
use airpace_page::sweep::SweepPage;
use airpace_run::seeds::Seeds;
use airpace_run::sweep::{self, Axis, Plan, Record, Runner, Spec, Sweep};
use airpace_run::{Host, RunError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::attend::attend;
use crate::raise;
use crate::table::Table;

/// A sweep whose folder this process has locked.
#[pyclass(frozen, module = "airpace")]
pub struct SweepSession {
    /// The open sweep; `None` after `finish` or `close`.
    sweep: Mutex<Option<Sweep>>,
    folder: PathBuf,
    spec: String,
    missing: Vec<u64>,
}

/// The values of a key: text as after `--set`, or a list.
#[derive(FromPyObject)]
pub enum Values {
    Typed(String),
    Listed(Vec<String>),
}

impl SweepSession {
    fn claimed(&self) -> MutexGuard<'_, Option<Sweep>> {
        self.sweep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `what` with the sweep, unless the sweep is finished.
    fn with<T>(&self, what: impl FnOnce(&Sweep) -> Result<T, RunError>) -> PyResult<T> {
        match &*self.claimed() {
            Some(sweep) => what(sweep).map_err(raise::run),
            None => Err(raise::failed("this sweep is finished already")),
        }
    }
}

#[pymethods]
impl SweepSession {
    #[new]
    #[pyo3(signature = (what, *, set, schemes, seeds, jobs, out, command))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
    fn new(
        py: Python<'_>,
        what: &str,
        set: Vec<(String, Values)>,
        schemes: Vec<String>,
        seeds: Option<Vec<u64>>,
        jobs: Option<usize>,
        out: Option<PathBuf>,
        command: &str,
    ) -> PyResult<SweepSession> {
        let axis = |(key, values): (String, Values)| match values {
            Values::Typed(text) => Axis::parse(&key, &text),
            Values::Listed(values) => Axis::of(&key, values),
        };
        let set = set.into_iter().map(axis).collect::<Result<Vec<_>, _>>().map_err(raise::refused)?;
        let seeds = seeds.map(Seeds::of).transpose().map_err(raise::refused)?;
        let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let opened = py.detach(|| {
            let spec = Spec::read(what, set, &schemes, seeds)?;
            let folder = out.map_or_else(|| sweep::usual_folder(&spec), Ok)?;
            let text = serde_json::to_string(&spec).expect("plain data with text keys");
            let sweep = Sweep::open(Plan::new(spec)?, &folder, Host::here(command, jobs))?;
            Ok((sweep, text))
        });
        let (sweep, spec) = opened.map_err(raise::run)?;
        Ok(SweepSession {
            folder: sweep.root().to_owned(),
            missing: sweep.todo().missing.clone(),
            sweep: Mutex::new(Some(sweep)),
            spec,
        })
    }

    /// The specification of the sweep as JSON, for `SweepPlan` on a worker.
    #[getter]
    fn spec(&self) -> &str {
        &self.spec
    }

    /// The folder.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// The runs that were missing when the sweep was opened: `count` of them, from index `first` on.
    fn batch(&self, first: usize, count: usize) -> Vec<u64> {
        self.missing.iter().skip(first).take(count).copied().collect()
    }

    /// Number of completed runs, of failed runs, and of all runs.
    fn progress(&self) -> PyResult<(u64, u64, u64)> {
        let at = self.with(|sweep| Ok(sweep.progress()))?;
        Ok((at.done, at.failed, at.cells))
    }

    /// Makes the runs on threads of this machine.
    fn run(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let stop = AtomicBool::new(false);
        let claimed = self.claimed();
        let Some(sweep) = &*claimed else { return Err(raise::failed("this sweep is finished already")) };
        let tell = || -> PyResult<()> {
            let Some(progress) = &progress else { return Ok(()) };
            let at = sweep.progress();
            progress.call1((at.done as f64 / at.cells as f64, at.done, at.cells)).map(drop)
        };
        let listener = |_| match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let (ended, interrupted) = attend(py, &stop, &tell, &|_| (), || sweep.run(&listener))?;
        match (ended, interrupted) {
            (Err(RunError::Stopped { .. }), Some(why)) => Err(why),
            (Err(error), _) => Err(raise::run(error)),
            (Ok(()), Some(why)) => Err(why),
            (Ok(()), None) => tell(),
        }
    }

    /// Adds the records that `SweepPlan.run` returned for these runs.
    fn add(&self, py: Python<'_>, cells: Vec<u64>, lines: &[u8]) -> PyResult<()> {
        let text = std::str::from_utf8(lines).map_err(raise::failed)?;
        let records: Result<Vec<Record>, Refused> = text.lines().map(Record::parse).collect();
        let records =
            records.map_err(|reason| raise::failed(format!("a worker sent no record: {reason}")))?;
        if records.len() != cells.len() {
            let (cells, records) = (cells.len(), records.len());
            return Err(raise::failed(format!("a worker sent {records} records for {cells} runs")));
        }
        py.detach(|| {
            self.with(|sweep| {
                cells.into_iter().zip(records).try_for_each(|(cell, record)| sweep.add(cell, record))
            })
        })
    }

    /// Records that a run failed.
    fn fail(&self, cell: u64, reason: String) -> PyResult<()> {
        self.with(|sweep| {
            sweep.fail(cell, reason);
            Ok(())
        })
    }

    /// Writes dataset, list of failures and page. Nothing can be added afterwards.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let Some(sweep) = self.claimed().take() else {
            return Err(raise::failed("this sweep is finished already"));
        };
        py.detach(|| sweep.finish::<SweepPage>(&mut |_, _, _| Ok(()))).map(drop).map_err(raise::run)
    }

    /// Unlocks the folder.
    fn close(&self) {
        drop(self.claimed().take());
    }
}

/// The plan of a sweep, from which a worker makes runs.
#[pyclass(frozen, module = "airpace")]
pub struct SweepPlan(Plan);

#[pymethods]
impl SweepPlan {
    #[new]
    fn new(spec: &str) -> PyResult<SweepPlan> {
        let spec: Spec = serde_json::from_str(spec).map_err(raise::value)?;
        Plan::new(spec).map(SweepPlan).map_err(raise::run)
    }

    /// Makes these runs, one after the other. Returns one line of text per run.
    fn run<'py>(&self, py: Python<'py>, cells: Vec<u64>) -> PyResult<Bound<'py, PyBytes>> {
        if let Some(cell) = cells.iter().find(|cell| **cell >= self.0.cells()) {
            return Err(raise::value(format!("there is no run {cell}; there are {}", self.0.cells())));
        }
        let lines: String = py.detach(|| {
            let mut runner = Runner::new(&self.0);
            let record = |cell: u64| runner.run(cell, &|_| false).map(|record| record.line());
            cells.into_iter().filter_map(record).collect()
        });
        Ok(PyBytes::new(py, lines.as_bytes()))
    }
}

/// The results of a finished sweep: its table, manifest and failures.
#[pyfunction]
pub fn open_sweep(py: Python<'_>, path: PathBuf) -> PyResult<(Table, String)> {
    let opened = py.detach(|| sweep::results(&path));
    let (manifest, table) = opened.map_err(|error| {
        // The same error as that of `open` for a folder that is no run folder.
        let file = path.join("manifest.json");
        match (&error, std::fs::metadata(&file)) {
            (RunError::Sweep(reason), Err(missing)) => raise::os(&missing, &raise::explained(reason), &file),
            _ => raise::run(error),
        }
    })?;
    let manifest = serde_json::to_string(&manifest).map_err(raise::failed)?;
    Ok((Table::new(table), manifest))
}
