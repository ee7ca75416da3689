//! Runs schemes in scenarios, while Python shows the progress and handles Ctrl-C.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use airpace_cc::SchemeSpec;
use airpace_cc::schemes::SCHEMES;
use airpace_run::{Choice, Matrix, Outcome, Progress, RunError};
use airpace_sim::{Prepared, Scenario, builtin};
use airpace_tables::Memory;
use airpace_tables::TABLES;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::attend::attend;
use crate::calls::Calls;
use crate::controller;
use crate::raise;
use crate::run::Run;

/// Runs schemes in a scenario: see `airpace.simulate`.
#[pyfunction]
#[pyo3(signature = (scenario, *, schemes, seeds, set, jobs, tables, out, qlog, command, progress))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub fn simulate(
    py: Python<'_>,
    scenario: &str,
    schemes: Vec<(String, Option<Py<PyAny>>)>,
    seeds: Vec<u64>,
    set: Vec<(String, String)>,
    jobs: Option<usize>,
    tables: Vec<String>,
    out: Option<PathBuf>,
    qlog: bool,
    command: String,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Run> {
    let mut specs = vec![];
    let calls = Arc::new(Calls::default());
    let has_own = schemes.iter().any(|(_, factory)| factory.is_some());
    for (word, factory) in schemes {
        match factory {
            None => specs.extend(SchemeSpec::named(&word).map_err(raise::value)?),
            Some(factory) => specs.push(controller::scheme(&word, factory, &calls)?),
        }
    }
    for (at, spec) in specs.iter().enumerate() {
        if specs[..at].iter().any(|other| other.text() == spec.text()) {
            return Err(raise::value(format!("scheme `{}` is named twice; name it once", spec.text())));
        }
    }
    let memory = Memory::of(tables.iter().map(|table| table_named(table)).collect::<PyResult<_>>()?);
    let scenarios = Scenario::named_variants(scenario, &set).map_err(raise::refused)?;
    for device in scenarios.iter().flat_map(|scenario| &scenario.device) {
        if device.reports.is_some() {
            return Err(raise::value(
                "device.N.reports: only `airpace sim` writes that file; leave the key out",
            ));
        }
    }
    let choice = |of: Scenario| Choice { argument: scenario.to_owned(), set: set.clone(), scenario: of };
    // Controllers in Python run one at a time: further threads would only wait.
    let cores = if has_own { 1 } else { std::thread::available_parallelism().map_or(1, usize::from) };
    let matrix = Matrix {
        scenarios: scenarios.into_iter().map(choice).collect(),
        schemes: specs,
        seeds,
        jobs: jobs.unwrap_or(cores),
        out,
        program: "airpace".to_owned(),
        // The program does not have a scheme written in Python: only this call reproduces the results.
        further: Vec::new(),
        again: has_own.then(|| command.clone()),
        command,
        qlog,
        page: true,
    };
    let prepared = py.detach(|| matrix.prepare()).map_err(raise::run)?;
    let outcome = run(py, &matrix, &prepared, &memory, &calls, progress.as_ref());
    // The caller receives the exception of a controller in Python, rather than the stop that it caused.
    let is_stop = |error: &PyErr| error.is_instance_of::<PyKeyboardInterrupt>(py);
    let outcome = match (calls.take(), outcome) {
        // The interrupt was the consequence of another exception, for instance of the progress function.
        (Some(raised), Err(why)) if is_stop(&raised) && !is_stop(&why) => return Err(why),
        (Some(raised), _) => return Err(raised),
        (None, outcome) => outcome?,
    };
    py.detach(|| airpace_page::complete_matrix(&outcome)).map_err(raise::page)?;
    match outcome.folder {
        None => Ok(Run::in_memory(outcome.summary, outcome.manifest, memory)),
        Some(folder) => Ok(Run::in_folder(outcome.summary, folder)),
    }
}

/// Runs the matrix until it ends, or until a signal or an exception stops it.
fn run(
    py: Python<'_>,
    matrix: &Matrix,
    prepared: &[Prepared],
    memory: &Memory,
    calls: &Calls,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let stop = AtomicBool::new(false);
    let fractions: Mutex<Vec<f64>> = Mutex::default();
    let listener = |at: Progress<'_>| {
        let mut fractions = fractions.lock().unwrap_or_else(PoisonError::into_inner);
        fractions.resize(at.jobs, 0.0);
        fractions[at.job] = at.fraction;
        if stop.load(Ordering::Relaxed) || calls.has_stopped() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let tell = |progress: &Bound<'_, PyAny>| -> PyResult<()> {
        let fractions = fractions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ended = fractions.iter().filter(|fraction| **fraction >= 1.0).count();
        let share = fractions.iter().sum::<f64>() / fractions.len().max(1) as f64;
        progress.call1((share, ended, fractions.len())).map(drop)
    };
    let tell_all = || progress.map_or(Ok(()), tell);
    let (ended, interrupted) =
        attend(py, &stop, &tell_all, &|py| calls.interrupt(py), || match &matrix.out {
            None => matrix.run_in_memory(prepared, memory, &listener),
            Some(_) => matrix.run_prepared(prepared, &listener),
        })?;
    match (ended, interrupted) {
        (Err(RunError::Stopped { .. }), Some(why)) => Err(why),
        (Err(_), Some(why)) if calls.has_stopped() => Err(why),
        (Err(error), _) => Err(raise::run(error)),
        (Ok(_), Some(why)) => Err(why),
        (Ok(outcome), None) => {
            progress.map_or(Ok(()), tell)?;
            Ok(outcome)
        }
    }
}

/// Checks the name of a table of simulated runs.
fn table_named(name: &str) -> PyResult<&'static str> {
    let simulated = TABLES.into_iter().filter(|table| *table != "departures");
    simulated.clone().find(|table| *table == name).ok_or_else(|| {
        let known: Vec<&str> = simulated.collect();
        raise::value(format!("no table is called `{name}`; there are {}", known.join(", ")))
    })
}

/// The scenarios that come with airpace, with a description of each.
#[pyfunction]
pub fn scenarios() -> PyResult<Vec<(String, String)>> {
    let about = |(name, text): &(&str, &str)| {
        let scenario = Scenario::load(text, name, &[]).map_err(raise::failed)?;
        Ok(((*name).to_owned(), scenario.about.clone()))
    };
    builtin().iter().map(about).collect()
}

/// The schemes, with a description of each.
#[pyfunction]
pub fn schemes() -> Vec<(&'static str, &'static str)> {
    SCHEMES.iter().map(|scheme| (scheme.name, scheme.summary)).collect()
}
