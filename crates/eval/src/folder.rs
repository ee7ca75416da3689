//! Run folder: the files that a run writes. The report is made from these files alone.
//!
//! ```text
//! RUN/
//! ├── manifest.json    scenarios, schemes, seeds, version and host of the run, and whether the run is complete
//! ├── scenarios/       the scenarios as they were run, after --set
//! ├── summary.json     all metrics of all runs, and the verdicts on expectations
//! ├── packets/ acks/ losses/ controller/ prbs/ capacity/     Parquet, see [`crate::tables`]
//! ├── departures/      Parquet; only emulated runs, which have this table, `prbs/` and `capacity/`
//! ├── qlog/            qlogs, if requested
//! ├── agreement.json, agreement.parquet, schedule.csv     only for emulated runs that were compared with virtual time
//! └── report.html      the report page
//! ```
//!
//! The same scenarios, schemes and seeds give the same bytes, except for the manifest's `host` part. An emulated run is
//! not reproducible in this sense: see [`crate::emulation`]. If the program was called from a checkout, the commands in
//! manifest and page contain `./airpace` instead of `airpace`, so that they can be pasted into a shell. The manifest is
//! written first with `"complete": false`, and again at the end, after the page. An interrupted run can thus be
//! distinguished from a complete one.

mod contents;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use airpace_sim::{Scenario, SchemeSpec};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::agreement::Agreement;
use crate::emulation::Emulation;
use crate::error::EvalError;
use crate::matrix::Choice;
use crate::summary::Summary;
use crate::tables::percent_encoded;
use contents::Contents;

/// A folder that holds a run or is prepared for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    root: PathBuf,
}

/// Manifest of a run: scenarios, schemes, seeds, version and host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of airpace that made the run.
    pub version: String,
    /// Whether every run of the matrix was completed.
    pub complete: bool,
    /// The command that reproduces this folder's contents. It contains the name of the installed program, `airpace`.
    pub command: String,
    /// The scenarios, in the order of the command.
    pub scenarios: Vec<ManifestScenario>,
    /// The schemes under test, as spelled in the command and in its order. Empty if each scenario names its own schemes.
    pub schemes: Vec<String>,
    /// For every spelling of a scheme in the results: the scheme, preset and options that it stands for.
    #[serde(default)]
    pub choices: Vec<ManifestChoice>,
    /// The seeds, in the order of the command.
    pub seeds: Vec<u64>,
    /// Programs and audit of an emulated run. `None` for simulated runs. Until an emulated run has ended, it contains
    /// only the reason why the run is not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
    /// Host, time and duration of the run: the only part of a run folder that differs between two runs of one command.
    pub host: Host,
}

/// A scenario of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestScenario {
    /// Name of the scenario: the value of the `scenario` column.
    pub name: String,
    /// Description in one line.
    pub about: String,
    /// Publication from which the scenario is taken.
    pub source: String,
    /// Spelling on the command line: a built-in name or a file.
    pub argument: String,
    /// The `--set key=value` options that were applied.
    pub set: Vec<(String, String)>,
    /// File with the scenario's text after `--set`, relative to the folder.
    pub file: String,
    /// Source of the trace that the last hop replays; `None` if it replays no trace.
    #[serde(default)]
    pub trace: Option<ReplayedTrace>,
    /// Sources of further replayed data, by the scenario's table: `trace.back`, `cellular.down.light`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also_replays: BTreeMap<String, ReplayedTrace>,
    /// Which parts of the trace files the runs use, and how their numbers were interpreted: one sentence per file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<String>,
    /// Labels of the devices; filled in for emulated runs only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

/// Path of a scenario's file, relative to the run folder.
pub fn scenario_file(name: &str) -> String {
    format!("scenarios/{}.toml", percent_encoded(name))
}

impl ManifestScenario {
    /// The manifest entry of a chosen scenario, without the fields that are only known later (`replays`, `devices`).
    pub(crate) fn of(Choice { argument, set, scenario }: &Choice) -> ManifestScenario {
        ManifestScenario {
            name: scenario.name.clone(),
            about: scenario.about.clone(),
            source: scenario.source.clone(),
            argument: argument.clone(),
            set: set.clone(),
            file: scenario_file(&scenario.name),
            trace: scenario.trace.as_ref().map(|trace| ReplayedTrace::of(trace.file.as_deref())),
            also_replays: also_replays(scenario),
            replays: vec![],
            devices: vec![],
        }
    }
}

/// Source of the trace that a last hop replays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayedTrace {
    /// A file of this name. The file does not show whether the trace was recorded or synthesised.
    File(String),
    /// A trace that Airpace synthesised from the scenario's `trace.synth`.
    Made,
}

impl ReplayedTrace {
    /// The source of a table that names `file`; a synthesised trace for `None`.
    pub fn of(file: Option<&Path>) -> ReplayedTrace {
        match file.and_then(Path::file_name) {
            Some(name) => ReplayedTrace::File(name.to_string_lossy().into_owned()),
            None => ReplayedTrace::Made,
        }
    }
}

/// Sources of the data that a scenario's last hop replays in addition to `[trace]`, by table.
fn also_replays(scenario: &Scenario) -> BTreeMap<String, ReplayedTrace> {
    let back = scenario.trace.iter().flat_map(|trace| &trace.back);
    let back = back.map(|back| ("trace.back".to_owned(), ReplayedTrace::of(back.file.as_deref())));
    let ways = scenario.cellular.iter().flat_map(|hop| [("down", &hop.down), ("up", &hop.up)]);
    let tables = ways.flat_map(|(name, way)| {
        let table = move |key: &str, file| (format!("cellular.{name}.{key}"), ReplayedTrace::of(file));
        let offsets = way.offsets.as_deref().map(|file| table("offsets", Some(file)));
        let loads = [("light", way.light.file.as_deref()), ("heavy", way.heavy.file.as_deref())];
        loads.map(|(key, file)| table(key, file)).into_iter().chain(offsets)
    });
    back.chain(tables).collect()
}

/// A choice of a scheme with its preset and all options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestChoice {
    /// Spelling in the command: the value of the `scheme` column.
    pub text: String,
    /// Name of the scheme.
    pub scheme: String,
    /// Name of the preset; `default` if none was given.
    pub preset: String,
    /// Publication of the scheme.
    pub source: String,
    /// Every option and its value, including defaults.
    pub options: BTreeMap<String, String>,
}

impl ManifestChoice {
    /// The scheme, preset and options that `spec` stands for.
    pub fn new(spec: &SchemeSpec) -> ManifestChoice {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        ManifestChoice {
            text: spec.text().to_owned(),
            scheme: spec.scheme().name.to_owned(),
            preset: spec.preset().unwrap_or("default").to_owned(),
            source: spec.scheme().source.to_owned(),
            options: spec.options().iter().map(owned).collect(),
        }
    }
}

/// Host, time and duration of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Name of the program in the commands on the page: `airpace`, or `./airpace` if it was called from a checkout.
    #[serde(default = "installed_program")]
    pub program: String,
    /// The command as it was typed.
    pub command: String,
    /// Start of the run by the host's clock, in seconds since 1970.
    pub started_unix_s: u64,
    /// Wall time of the run, in ms; 0 until the run is complete.
    pub wall_ms: u64,
    /// Number of threads.
    pub jobs: usize,
    /// Operating system and architecture.
    pub platform: String,
    /// Name of the processor, or `unknown` if the operating system does not provide it.
    pub processor: String,
    /// Number of logical processors.
    pub processors: usize,
    /// Load average over one minute at the start, in thousandths. A value above 1,000 times `processors` means that other
    /// programs competed for the processors.
    pub load_milli: u64,
}

impl RunFolder {
    /// Prepares `root` for a new run: creates the folder, or removes the files of an earlier run from it.
    ///
    /// # Errors
    /// The folder cannot be written, or holds anything that the earlier run did not write. In the latter case nothing is
    /// removed.
    pub fn create(root: &Path) -> Result<RunFolder, EvalError> {
        let folder = RunFolder { root: root.to_owned() };
        fs::create_dir_all(root).map_err(EvalError::write("make the folder", root))?;
        let mut entries = fs::read_dir(root).map_err(EvalError::write("look into", root))?;
        if entries.next().is_some() {
            let Ok(manifest) = folder.manifest() else {
                return Err(EvalError::Occupied { path: root.to_owned() });
            };
            let contents = folder.contents(&manifest)?;
            if let [first, rest @ ..] = &contents.strangers[..] {
                return Err(EvalError::Strangers { path: first.clone(), more: rest.len() });
            }
            folder.clear(&contents)?;
        }
        Ok(folder)
    }

    /// Opens the folder of an earlier run.
    ///
    /// # Errors
    /// The folder has no readable manifest.
    pub fn open(root: &Path) -> Result<RunFolder, EvalError> {
        let folder = RunFolder { root: root.to_owned() };
        folder.manifest()?;
        Ok(folder)
    }

    /// Path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// The manifest is missing or malformed.
    pub fn manifest(&self) -> Result<Manifest, EvalError> {
        self.read_json("manifest.json")
    }

    /// Reads the summary: all numbers of all completed runs.
    ///
    /// # Errors
    /// The summary is missing, malformed, or contains numbers that no run can have.
    pub fn summary(&self) -> Result<Summary, EvalError> {
        let summary: Summary = self.read_json("summary.json")?;
        summary
            .check()
            .map_err(|reason| EvalError::Malformed { path: self.root.join("summary.json"), reason })?;
        Ok(summary)
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), EvalError> {
        self.write_json("manifest.json", manifest)
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), EvalError> {
        self.write_json("summary.json", summary)
    }

    /// Reads the comparison of an emulated run with virtual time; `None` if the folder has none.
    ///
    /// # Errors
    /// The file is malformed or cannot be read.
    pub fn agreement(&self) -> Result<Option<Agreement>, EvalError> {
        match self.read_json("agreement.json") {
            Err(EvalError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Writes the comparison of an emulated run with virtual time.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_agreement(&self, agreement: &Agreement) -> Result<(), EvalError> {
        self.write_json("agreement.json", agreement)
    }

    /// Writes a file of this folder atomically: either the whole file or nothing.
    ///
    /// # Errors
    /// The file or its folder cannot be written.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, EvalError> {
        let path = self.root.join(name);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(EvalError::write("make the folder", folder))?;
        airpace_files::replace(&path, contents).map_err(EvalError::write("write", &path))?;
        Ok(path)
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), EvalError> {
        let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys");
        text.push('\n');
        self.write(name, text.as_bytes()).map(drop)
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, EvalError> {
        let path = self.root.join(name);
        let text = airpace_files::read_to_string(&path, MAX_JSON_BYTES).map_err(EvalError::read(&path))?;
        serde_json::from_str(&text).map_err(|error| EvalError::Malformed { path, reason: error.to_string() })
    }

    /// Removes the files of the run, and the folder if it is empty then. Returns whether the folder was removed. Links
    /// are not followed.
    ///
    /// # Errors
    /// A file cannot be removed, or the manifest cannot be read.
    pub fn remove(self) -> Result<bool, EvalError> {
        self.clear(&self.contents(&self.manifest()?)?)?;
        match fs::remove_dir(&self.root) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
            Err(error) => Err(EvalError::write("remove", &self.root)(error)),
        }
    }

    fn contents(&self, manifest: &Manifest) -> Result<Contents, EvalError> {
        Contents::of(&self.root, manifest).map_err(EvalError::write("look into", &self.root))
    }

    /// Removes only the files that the run wrote. The manifest is removed last, because it marks the folder as a run
    /// folder.
    fn clear(&self, contents: &Contents) -> Result<(), EvalError> {
        contents
            .remove(&self.root.join("manifest.json"))
            .map_err(|(path, error)| EvalError::write("remove", &path)(error))
    }
}

/// Maximum size of a manifest or summary (bytes).
///
/// Chosen: enough for hundreds of thousands of flows.
const MAX_JSON_BYTES: u64 = 1 << 28;

/// Name of the installed program.
pub(crate) const PROGRAM: &str = "airpace";

fn installed_program() -> String {
    PROGRAM.to_owned()
}

impl Host {
    /// Description of this host at the current time.
    pub fn here(command: &str, jobs: usize) -> Host {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Host {
            program: installed_program(),
            command: command.to_owned(),
            started_unix_s: since_1970.as_secs(),
            wall_ms: 0,
            jobs,
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            processor: processor().unwrap_or_else(|| "unknown".to_owned()),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            load_milli: load_milli().unwrap_or(0),
        }
    }
}

fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load_milli() -> Option<u64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some((load * 1_000.0) as u64)
}
