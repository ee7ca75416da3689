//! Manifest of a run folder: scenarios, schemes, seeds, version and host of the run.

mod emulation;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use airpace_sim::{Scenario, SchemeSpec};
use airpace_tables::percent_encoded;
use serde::{Deserialize, Serialize};

pub use emulation::{Audit, Control, Emulation, Exit, ForeignFrames, Lateness, Program};

/// A scenario, with its spelling and options on the command line.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Spelling on the command line: a built-in name or a file.
    pub argument: String,
    /// The `--set` options that were applied.
    pub set: Vec<(String, String)>,
    /// The scenario, with the `--set`s applied.
    pub scenario: Scenario,
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
    /// Programs and audit of an emulated run. `None` for simulated runs. Until an emulated run has ended, this part
    /// contains only the reason why the run is not fit.
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

/// Name of the installed program.
pub const PROGRAM: &str = "airpace";

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
