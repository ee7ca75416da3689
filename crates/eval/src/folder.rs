//! A run folder: the files that a run writes. A report is made from them alone.
//!
//! ```text
//! RUN/
//! ├── manifest.json    what was run, by which version, on which host, and whether it is complete
//! ├── scenarios/       the scenarios as they were run, after --set
//! ├── summary.json     every number of every run, and the verdicts on expectations
//! ├── packets/ acks/ losses/ controller/ prbs/ capacity/     Parquet, see [`crate::tables`]
//! ├── departures/      Parquet, of emulated runs: they have this table, `prbs/` and `capacity/`
//! ├── qlog/            on request
//! ├── agreement.json, agreement.parquet, schedule.csv     of an emulated run that was compared with virtual time
//! └── report.html      the page to look at
//! ```
//!
//! The same scenarios, schemes and seeds give the same bytes, except for the manifest's `host` part. (An emulated run
//! happens once: see [`crate::emulation`].) If the program was
//! called from a checkout, the commands in manifest and page say `./airpace` in place of `airpace`, so that they can be
//! pasted. The manifest is written first with `"complete": false` and again at the end, after the page, so that an interrupted run can
//! be told from a complete one.

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

/// A folder that holds a run, or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    root: PathBuf,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of airpace that ran it.
    pub version: String,
    /// Whether every run came to its end.
    pub complete: bool,
    /// The command that makes this folder's contents again. It calls the program as an installed one is called.
    pub command: String,
    /// The scenarios, in order.
    pub scenarios: Vec<ManifestScenario>,
    /// The schemes under test, as they were spelled, in order; empty where each scenario names its own.
    pub schemes: Vec<String>,
    /// For every spelling of a scheme in the results: the scheme, preset and options that it means.
    #[serde(default)]
    pub choices: Vec<ManifestChoice>,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// What an emulated run says of its programs and of itself; `None` for simulated runs, and until an emulated run has
    /// ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
    /// Where and when it ran: the only part of a run folder that differs between two runs of one command.
    pub host: Host,
}

/// One scenario of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestScenario {
    /// Its name: the value of the `scenario` column.
    pub name: String,
    /// What it is about, in one line.
    pub about: String,
    /// Where it is published.
    pub source: String,
    /// How it was named on the command line: a name of the list or a file.
    pub argument: String,
    /// The `--set key=value`s that were applied.
    pub set: Vec<(String, String)>,
    /// Its text after `--set`, relative to the folder.
    pub file: String,
    /// What its last hop replays, where it replays a trace.
    #[serde(default)]
    pub trace: Option<ReplayedTrace>,
    /// What else it replays, by the table in the scenario: `trace.back`, `cellular.down.light`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also_replays: BTreeMap<String, ReplayedTrace>,
    /// Which parts of its files runs use, and how their numbers were read: a sentence for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replays: Vec<String>,
    /// What its devices are called, in an emulated run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

/// Where a run folder keeps a scenario.
pub fn scenario_file(name: &str) -> String {
    format!("scenarios/{}.toml", percent_encoded(name))
}

impl ManifestScenario {
    /// What the manifest says of a scenario that was chosen like this.
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

/// Where the trace that a last hop replays comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayedTrace {
    /// A file of this name was given. Only the person who gave it knows whether it was recorded or made.
    File(String),
    /// Airpace made it, as the scenario's `trace.synth` says.
    Made,
}

impl ReplayedTrace {
    /// What a table replays that names this file, or none.
    pub fn of(file: Option<&Path>) -> ReplayedTrace {
        match file.and_then(Path::file_name) {
            Some(name) => ReplayedTrace::File(name.to_string_lossy().into_owned()),
            None => ReplayedTrace::Made,
        }
    }
}

/// What a scenario's last hop replays beside `[trace]`, by table.
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

/// One choice of a scheme, in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestChoice {
    /// As it was spelled: the value of the `scheme` column.
    pub text: String,
    /// The scheme.
    pub scheme: String,
    /// The preset; `default` where none was named.
    pub preset: String,
    /// Where the scheme is published.
    pub source: String,
    /// Every option and its value, defaults included.
    pub options: BTreeMap<String, String>,
}

impl ManifestChoice {
    /// What `spec` stands for.
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

/// Where and when a run was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// How commands call the program: `airpace`, or `./airpace` where it was called from a checkout. The commands on
    /// the page use it.
    #[serde(default = "installed_program")]
    pub program: String,
    /// The command as it was typed.
    pub command: String,
    /// Seconds since 1970 at the start, by the host's clock.
    pub started_unix_s: u64,
    /// Milliseconds of wall time that it took; 0 until complete.
    pub wall_ms: u64,
    /// Threads used.
    pub jobs: usize,
    /// Operating system and architecture.
    pub platform: String,
    /// The processor's name, where the operating system gives it.
    pub processor: String,
    /// Logical processors.
    pub processors: usize,
    /// Load average over one minute at the start, in thousandths. Above 1,000 times `processors`, other programs were
    /// working too.
    pub load_milli: u64,
}

impl RunFolder {
    /// Makes `root` ready for a new run: makes the folder, or empties one that holds an earlier run.
    ///
    /// # Errors
    /// The folder cannot be written, or holds anything that the earlier run did not write. Then nothing is removed.
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

    /// Opens a folder that a run made.
    ///
    /// # Errors
    /// A folder without a readable manifest.
    pub fn open(root: &Path) -> Result<RunFolder, EvalError> {
        let folder = RunFolder { root: root.to_owned() };
        folder.manifest()?;
        Ok(folder)
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What was run.
    ///
    /// # Errors
    /// A manifest that is missing or has another form.
    pub fn manifest(&self) -> Result<Manifest, EvalError> {
        self.read_json("manifest.json")
    }

    /// Every number of every run that came to its end.
    ///
    /// # Errors
    /// A summary that is missing, has another form, or numbers that no run has.
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
    /// What the operating system refuses.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), EvalError> {
        self.write_json("manifest.json", manifest)
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), EvalError> {
        self.write_json("summary.json", summary)
    }

    /// What a comparison with virtual time said of an emulated run; `None` if there was none.
    ///
    /// # Errors
    /// A file that has another form.
    pub fn agreement(&self) -> Result<Option<Agreement>, EvalError> {
        match self.read_json("agreement.json") {
            Err(EvalError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Writes what a comparison with virtual time says.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn write_agreement(&self, agreement: &Agreement) -> Result<(), EvalError> {
        self.write_json("agreement.json", agreement)
    }

    /// Writes a file of this folder: the whole file, or nothing.
    ///
    /// # Errors
    /// What the operating system refuses.
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
        let text = airpace_files::read_to_string(&path, MOST_JSON_BYTES).map_err(EvalError::read(&path))?;
        serde_json::from_str(&text).map_err(|error| EvalError::Malformed { path, reason: error.to_string() })
    }

    /// Removes what a run writes, and the folder if nothing else is in it. Returns whether the folder is gone. Links
    /// are not followed.
    ///
    /// # Errors
    /// What the operating system refuses.
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

    /// Removes what the run wrote, and nothing else. The manifest is removed last, because it shows that the folder
    /// belongs to a run.
    fn clear(&self, contents: &Contents) -> Result<(), EvalError> {
        contents
            .remove(&self.root.join("manifest.json"))
            .map_err(|(path, error)| EvalError::write("remove", &path)(error))
    }
}

/// How long a manifest or summary may be.
///
/// Chosen: hundreds of thousands of flows.
const MOST_JSON_BYTES: u64 = 1 << 28;

/// What an installed program is called.
pub(crate) const PROGRAM: &str = "airpace";

fn installed_program() -> String {
    PROGRAM.to_owned()
}

impl Host {
    /// This host, now.
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
