//! Results of a simulation, with tables in memory, or of a run folder.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use airpace_core::count::count;
use airpace_run::flows;
use airpace_run::{Manifest, RunError, RunFolder, Summary, sweep};
use airpace_tables::{Memory, TABLES};
use pyo3::prelude::*;
use serde::Serialize;

use crate::raise;
use crate::table::Table;

/// Storage of a run's tables.
enum Place {
    Memory(Memory, Box<Manifest>),
    Folder(RunFolder),
}

/// Results of running schemes in a scenario.
#[pyclass(frozen, module = "airpace")]
pub struct Run {
    summary: Summary,
    place: Place,
    /// Tables that were read or built before.
    known: Mutex<BTreeMap<&'static str, Py<Table>>>,
}

impl Run {
    /// Makes a run whose tables are in memory.
    pub fn in_memory(summary: Summary, manifest: Manifest, memory: Memory) -> Run {
        Run { summary, place: Place::Memory(memory, Box::new(manifest)), known: Mutex::default() }
    }

    /// Makes a run whose tables are in a folder.
    pub fn in_folder(summary: Summary, folder: RunFolder) -> Run {
        Run { summary, place: Place::Folder(folder), known: Mutex::default() }
    }
}

/// Opens the run folder `path`, written by `airpace sim` or `simulate(out=…)`.
#[pyfunction]
pub fn open(py: Python<'_>, path: PathBuf) -> PyResult<Run> {
    let opened = py.detach(|| {
        if let Ok(Some(_)) = sweep::manifest(&path) {
            let path = path.display();
            return Err(RunError::Sweep(
                format!("`{path}` is a sweep; open it with airpace.open_sweep").into(),
            ));
        }
        let folder = RunFolder::open(&path)?;
        Ok((folder.summary()?, folder))
    });
    let (summary, folder) = opened.map_err(raise::run)?;
    Ok(Run::in_folder(summary, folder))
}

#[pymethods]
impl Run {
    /// Returns the table of this name.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let Some(name) = TABLES.into_iter().find(|table| *table == name) else {
            return Err(raise::value(format!(
                "no table is called `{name}`; there are {}",
                TABLES.join(", ")
            )));
        };
        let known =
            self.known.lock().unwrap_or_else(PoisonError::into_inner).get(name).map(|it| it.clone_ref(py));
        if let Some(known) = known {
            return Ok(known);
        }
        let table = match &self.place {
            Place::Memory(memory, _) => memory.table(name, &self.summary.keys()).ok_or_else(|| {
                raise::value(match name {
                    "departures" => {
                        "table `departures` is that of emulated runs, which `airpace emu` makes".to_owned()
                    }
                    _ => format!("table `{name}` was not kept; name it: simulate(…, tables=[\"{name}\"])"),
                })
            })?,
            Place::Folder(folder) => py.detach(|| folder.table(name)).map_err(raise::file)?,
        };
        let table = Py::new(py, Table::new(table))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(name).or_insert(table).clone_ref(py))
    }

    /// The names of all tables.
    #[getter]
    fn table_names(&self) -> Vec<&'static str> {
        TABLES.to_vec()
    }

    /// The metrics, with a row per flow of a run.
    #[getter]
    fn summary(&self) -> Table {
        Table::new(flows::of(&self.summary.runs))
    }

    /// The run folder; `None` if the run is in memory only.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        match &self.place {
            Place::Memory(..) => None,
            Place::Folder(folder) => Some(folder.root().to_owned()),
        }
    }

    /// All metrics as JSON, in the form of `summary.json`.
    fn json(&self) -> PyResult<String> {
        text(&self.summary)
    }

    /// The manifest as JSON, in the form of `manifest.json`; `None` if the run is in memory only.
    fn manifest_json(&self) -> PyResult<Option<String>> {
        match &self.place {
            Place::Memory(..) => Ok(None),
            Place::Folder(folder) => text(&folder.manifest().map_err(raise::file)?).map(Some),
        }
    }

    /// The data of the report's figures, as JSON; for a page with these figures only if `only` names any.
    fn figures_json(&self, py: Python<'_>, only: Vec<String>) -> PyResult<String> {
        let data = py.detach(|| match &self.place {
            Place::Memory(memory, manifest) => {
                airpace_page::data_in_memory(manifest, &self.summary, memory, &only)
            }
            Place::Folder(folder) => airpace_page::data(folder, &only),
        });
        data.map_err(raise::page)
    }

    /// Whether every expectation of the scenario was met.
    #[getter]
    fn all_expectations_met(&self) -> bool {
        self.summary.all_expectations_met()
    }

    fn __repr__(&self) -> String {
        let mut named: Vec<String> = vec![];
        for run in &self.summary.runs {
            let name = format!("{} with {}", run.scenario, run.scheme);
            if named.last() != Some(&name) {
                named.push(name);
            }
        }
        format!("<airpace.Run of {}: {}>", count(self.summary.runs.len() as u64, "run"), named.join(", "))
    }
}

/// The HTML of the report's page, with the data of `Run::figures_json`.
#[pyfunction]
pub fn page(json: &str) -> String {
    airpace_page::page(json)
}

/// The ids of all figures of the report.
#[pyfunction]
pub fn figures() -> Vec<&'static str> {
    airpace_page::figures()
}

fn text(of: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(of).map_err(raise::failed)
}
