//! Sweep folder: determines which runs are missing, stores their records, and produces results and report at the end.
//!
//! ```text
//! SWEEP/
//! ├── manifest.json    matrix, version and host of the sweep, and whether it is complete
//! ├── cells/           records of completed runs, one line per run: an interrupted sweep resumes from them
//! ├── results/         one Parquet dataset, partitioned by scheme
//! ├── failures.json    the runs that failed, with reasons
//! ├── variants.toml    the scenario's variants or the members of its population, if it has any
//! └── report.html      heat maps
//! ```
//!
//! Results, failures and page depend on the matrix only, not on the order in which runs ended, the number of threads,
//! interruptions, or the processes that executed the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use airpace_core::remedy::{Refused, Remedy, UserTask, explain_plainly};
use airpace_sim::Variants;
use airpace_tables::FileError;
use airpace_tables::memory::Batches;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::about::{About, Failure, SweepReport};
use super::axis::text_of;
use super::dataset::{self, Ended, Partition};
use super::plan::{Cell, Plan, PointDigest, Runner};
use super::record::{Key, Record};
use super::spec::Spec;
use super::store::{Index, Log, has_records};
use crate::error::{RunError, another_folder};
use crate::flows::FlowRow;
use crate::manifest::Host;
use crate::threads;

/// Manifest of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepManifest {
    /// Version of airpace that made the results.
    pub version: String,
    /// Whether every run was completed or failed.
    pub complete: bool,
    /// The command that reproduces the results.
    pub command: String,
    /// Number of runs.
    pub cells: u64,
    /// Number of runs that failed.
    pub failed: u64,
    /// The matrix of the sweep.
    pub sweep: Spec,
    /// Host, time and duration of the last process that worked on the sweep: the only part that differs between two
    /// sweeps of one matrix.
    pub host: Host,
}

/// Maximum size of a manifest (bytes).
///
/// Chosen: several times the size for ten million seeds or values.
const MAX_BYTES: u64 = 1 << 30;

/// Reads the manifest of a sweep's folder; `None` if the folder holds no sweep.
///
/// # Errors
/// The manifest cannot be read.
pub fn manifest(root: &Path) -> Result<Option<SweepManifest>, RunError> {
    let path = root.join("manifest.json");
    let text = match airpace_files::read_to_string(&path, MAX_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(FileError::read(&path))?,
    };
    #[derive(Deserialize)]
    struct Named {
        sweep: Option<serde::de::IgnoredAny>,
    }
    let malformed = |error: serde_json::Error| RunError::Damaged {
        path: path.clone(),
        reason: error.to_string(),
        remedy: Remedy::new(
            "the same sweep into the same folder writes it again and keeps the runs that ended",
        ),
    };
    if serde_json::from_str::<Named>(&text).map_err(malformed)?.sweep.is_none() {
        return Ok(None);
    }
    serde_json::from_str(&text).map(Some).map_err(malformed)
}

/// Rejects a folder with a sweep of another scenario, because the results of that sweep would be lost. A folder with a
/// sweep of the same scenario and other values, schemes or seeds is accepted, and the runs common to both sweeps are
/// kept.
fn refuse_other_scenario(root: &Path, plan: &Plan) -> Result<(), RunError> {
    let Ok(Some(before)) = manifest(root) else { return Ok(()) };
    // If this version cannot parse the scenario's text, the name from the command line is used.
    let there = Variants::read(&before.sweep.text, &before.sweep.scenario);
    let there = there.map_or(before.sweep.scenario, |variants| variants.text("name").to_owned());
    let ours = plan.variants().text("name").to_owned();
    if there == ours {
        return Ok(());
    }
    let refused = Refused::new(format!(
        "`{}` holds a sweep of the scenario `{there}`, whose results a sweep of `{ours}` would replace",
        root.display()
    ));
    Err(refused.but(another_folder().text(", or remove this one")).into())
}

/// Whether a folder holds a sweep. If the manifest is damaged or missing, records identify the folder as a sweep's.
fn is_sweep(root: &Path) -> Result<bool, RunError> {
    match manifest(root) {
        Ok(Some(_)) => Ok(true),
        Ok(None) => Ok(!root.join("manifest.json").exists() && has_records(root)?),
        Err(error) => {
            if has_records(root)? {
                Ok(true)
            } else {
                Err(error)
            }
        }
    }
}

/// Loads the manifest and all results of a sweep's folder into memory.
///
/// # Errors
/// The folder holds no sweep or an incomplete one, or a file cannot be read.
pub fn results(root: &Path) -> Result<(SweepManifest, Batches), RunError> {
    let Some(manifest) = manifest(root)? else {
        let refused =
            Refused::new(format!("`{}` holds no sweep: it has no manifest.json of one", root.display()));
        return Err(refused.but(Remedy::new("give a folder of").task(UserTask::Sweep)).into());
    };
    if !manifest.complete {
        let refused = Refused::new(format!("the sweep in `{}` is not complete", root.display()));
        let remedy = Remedy::new("the same sweep into the same folder continues it:").command(format!(
            "{} --out {}",
            manifest.command,
            crate::shell::quote(&root.to_string_lossy())
        ));
        return Err(refused.but(remedy).into());
    }
    let table = dataset::read(root, &manifest.sweep.schemes)?;
    Ok((manifest, table))
}

/// Default folder of a sweep. Equal matrices have the same folder.
///
/// # Errors
/// The scenario cannot be parsed.
pub fn usual_folder(spec: &Spec) -> Result<PathBuf, RunError> {
    let variants = Variants::read(&spec.text, &spec.scenario)?;
    let name: String = variants
        .text("name")
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.@".contains(c) { c } else { '_' })
        .collect();
    let json = serde_json::to_string(spec).expect("plain data with text keys");
    let hash = digest(&SHA256, json.as_bytes());
    let digits: String = hash.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Ok(Path::new("sweeps").join(format!("{name}-{digits}")))
}

/// Progress of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepProgress {
    /// Number of runs that were completed or failed, including those of earlier processes.
    pub done: u64,
    /// Number of runs that failed.
    pub failed: u64,
    /// Number of all runs.
    pub cells: u64,
}

/// Receives the progress, on the worker threads, and may stop all runs.
pub type SweepListener<'a> = &'a (dyn Fn(SweepProgress) -> ControlFlow<()> + Sync);

/// Receives the results of each completed run. If the callback returns an error, [`Sweep::finish`] stops with this
/// error.
pub type Told<'a> = &'a mut dyn FnMut(&Plan, Cell, &[FlowRow]) -> Result<(), RunError>;

/// Result of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepOutcome {
    /// Number of all runs.
    pub cells: u64,
    /// Number of failed runs.
    pub failed: u64,
    /// Number of runs that were already completed when this process started.
    pub earlier: u64,
}

/// Missing runs of a plan, determined from the records in the folder.
pub struct Todo {
    /// For each point: its digest, or the reason why the point cannot be run.
    digests: Vec<Result<PointDigest, Refused>>,
    /// The numbers of the missing runs, in ascending order.
    pub missing: Vec<u64>,
    /// Number of runs whose point cannot be run.
    pub impossible: u64,
}

impl Todo {
    /// Computes the digests of all points with `jobs` threads, and determines which runs have no record below `root` (all
    /// runs if `root` is `None`).
    ///
    /// # Errors
    /// The folder cannot be read, or no point of the matrix can be run (with the reason of the first point).
    pub fn of(plan: &Plan, root: Option<&Path>, jobs: usize) -> Result<Todo, RunError> {
        let digests = plan.scan(jobs);
        if let Some(Err(reason)) = digests.first().filter(|_| digests.iter().all(Result::is_err)) {
            return Err(reason.clone().into());
        }
        let index = root.map(Index::read).transpose()?;
        let (mut missing, mut impossible) = (vec![], 0);
        for number in 0..plan.cells() {
            let cell = plan.cell(number);
            match &digests[cell.point as usize] {
                Err(_) => impossible += 1,
                Ok(digest) => {
                    let has = |index: &Index| index.has(plan.key(digest, cell));
                    if !index.as_ref().is_some_and(has) {
                        missing.push(number);
                    }
                }
            }
        }
        Ok(Todo { digests, missing, impossible })
    }

    /// The first point that cannot be run, with the reason.
    pub fn first_impossible(&self) -> Option<(u64, &Refused)> {
        let mut points = self.digests.iter().enumerate();
        points.find_map(|(point, digest)| Some((point as u64, digest.as_ref().err()?)))
    }

    fn key(&self, plan: &Plan, number: u64) -> Option<Key> {
        let cell = plan.cell(number);
        let digest = self.digests.get(cell.point as usize)?.as_ref().ok()?;
        Some(plan.key(digest, cell))
    }
}

/// A sweep whose folder is locked by this process.
pub struct Sweep {
    plan: Plan,
    root: PathBuf,
    todo: Todo,
    log: Log,
    failures: Mutex<BTreeMap<u64, String>>,
    added: AtomicUsize,
    host: Host,
    started: Instant,
}

impl Sweep {
    /// Locks the folder of a sweep, after creating it if necessary, and determines the missing runs. If no point can be
    /// run, nothing is written.
    ///
    /// # Errors
    /// The folder holds other files, or another process is working on it; errors of [`Todo::of`].
    pub fn open(plan: Plan, root: &Path, host: Host) -> Result<Sweep, RunError> {
        let is_there = root.is_dir();
        if is_there {
            let mut entries = fs::read_dir(root).map_err(FileError::write("look into", root))?;
            if entries.next().is_some() && !is_sweep(root)? {
                let refused = Refused::new(format!("`{}` is not empty and holds no sweep", root.display()));
                return Err(refused.but(another_folder().text(", or empty this one")).into());
            }
            refuse_other_scenario(root, &plan)?;
        }
        let mut todo = Todo::of(&plan, is_there.then_some(root), host.jobs)?;
        fs::create_dir_all(root).map_err(FileError::write("make the folder", root))?;
        let started = Instant::now();
        let write = |complete, failed| write_manifest(root, &plan, complete, failed, &host);
        // Leave an existing manifest unchanged until the folder is locked, because another process may hold the lock.
        if !is_there || !matches!(manifest(root), Ok(Some(_))) {
            write(false, 0)?;
        }
        let log = Log::claim(root)?;
        dataset::remove_others(root, &plan.spec().schemes)?;
        write(false, 0)?;
        if plan.variants().names().next().is_some() {
            let path = root.join("variants.toml");
            airpace_files::replace(&path, plan.variants().to_toml())
                .map_err(FileError::write("write", &path))?;
        }
        // Another process may have added records between the first check and the lock.
        let index = Index::read(root)?;
        let is_missing = |number: &u64| !todo.key(&plan, *number).is_some_and(|key| index.has(key));
        todo.missing = todo.missing.iter().copied().filter(is_missing).collect();
        Ok(Sweep {
            root: root.to_owned(),
            log,
            failures: Mutex::default(),
            added: AtomicUsize::new(0),
            host,
            started,
            todo,
            plan,
        })
    }

    /// The plan of the sweep.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Path of the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The runs that were missing when the sweep was opened.
    pub fn todo(&self) -> &Todo {
        &self.todo
    }

    /// The indices of the flows with a scheme of their own. All other flows run the scheme under test. A key is set at
    /// all points or at none, so these flows are the same at every point.
    pub fn own_flows(&self) -> BTreeSet<u16> {
        let possible = self.todo.digests.iter().position(Result::is_ok);
        possible.map(|point| self.plan.own_flows(point as u64)).unwrap_or_default()
    }

    /// Current progress.
    pub fn progress(&self) -> SweepProgress {
        let failed = self.failures.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        let waiting = self.todo.missing.len() as u64 - self.added.load(Ordering::Relaxed) as u64 - failed;
        SweepProgress {
            done: self.plan.cells() - waiting,
            failed: failed + self.todo.impossible,
            cells: self.plan.cells(),
        }
    }

    /// Stores the record of a run. A failed run is noted as in [`Sweep::fail`], and so is a record with another key than
    /// expected.
    ///
    /// # Errors
    /// The record cannot be written, for example because the disk is full. Earlier records are kept.
    pub fn add(&self, number: u64, record: Record) -> Result<(), RunError> {
        let failure = match &record.result {
            Err(reason) => Some(reason.clone()),
            Ok(_) if self.todo.key(&self.plan, number) != Some(record.key) => Some(
                "the worker that ran it has another version of airpace, or other files than this process"
                    .to_owned(),
            ),
            Ok(_) => None,
        };
        match failure {
            Some(reason) => {
                self.fail(number, reason);
                Ok(())
            }
            None => {
                self.log.add(&record)?;
                self.added.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Notes that a run failed, and why.
    pub fn fail(&self, number: u64, reason: String) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).insert(number, reason);
    }

    /// Executes the missing runs with as many threads as the host part of the manifest specifies (`jobs`).
    ///
    /// # Errors
    /// A file cannot be written, or the listener stopped the runs ([`RunError::Stopped`]). Records of completed runs are
    /// kept.
    pub fn run(&self, listener: SweepListener<'_>) -> Result<(), RunError> {
        let next = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        let refused: Mutex<Option<RunError>> = Mutex::default();
        let missing = &self.todo.missing;
        let work = || {
            let mut runner = Runner::new(&self.plan);
            let tell = |_| {
                let stop = listener(self.progress()).is_break();
                stopped.fetch_or(stop, Ordering::Relaxed) || stop
            };
            while !stopped.load(Ordering::Relaxed) {
                let Some(number) = missing.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                let Some(record) = runner.run(*number, &tell) else { return };
                if let Err(error) = self.add(*number, record) {
                    stopped.store(true, Ordering::Relaxed);
                    refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
                tell(1.0);
            }
        };
        threads::share(self.host.jobs.clamp(1, missing.len().max(1)), &work);
        if let Some(error) = refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let progress = self.progress();
        if progress.done < progress.cells {
            return Err(RunError::Stopped { ended: progress.done as usize, runs: progress.cells as usize });
        }
        Ok(())
    }

    /// Writes results, list of failures and the page `P` from all records. `told` receives every completed run, ordered
    /// by scheme, then point, then seed.
    ///
    /// # Errors
    /// A file cannot be written or read, or `told` returned an error. [`RunError::Stopped`] if a run was neither
    /// completed nor failed.
    pub fn finish<P: SweepReport>(self, told: Told<'_>) -> Result<SweepOutcome, RunError> {
        let spec = self.plan.spec();
        let name = self.plan.variants().text("name");
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let index = Index::read(&self.root)?;
        let mut page = P::new(self.about(), self.own_flows());
        let mut failed: Vec<(u64, String)> = vec![];
        let mut unknown = 0;
        for scheme in 0..spec.schemes.len() {
            let mut partition = Partition::create(&self.root, &self.plan, name, scheme)?;
            for point in 0..self.plan.points() {
                let first = self.plan.first_of(point, scheme);
                let mut ended: Vec<Vec<FlowRow>> = vec![];
                let mut lost = 0;
                for number in first..first + spec.seeds.len() as u64 {
                    let reason = match (self.todo.key(&self.plan, number), &self.todo.digests[point as usize])
                    {
                        (Some(key), _) => match index.record(key)?.map(|record| record.result) {
                            Some(Ok(flows)) => {
                                let cell = self.plan.cell(number);
                                told(&self.plan, cell, &flows)?;
                                ended.push(flows.clone());
                                partition.add(Ended { cell, key, flows })?;
                                continue;
                            }
                            Some(Err(reason)) => reason,
                            None => match failures.get(&number) {
                                Some(reason) => reason.clone(),
                                None => {
                                    unknown += 1;
                                    continue;
                                }
                            },
                        },
                        (None, Err(reason)) => explain_plainly(reason),
                        (None, Ok(_)) => unreachable!("a point with a hash has keys"),
                    };
                    lost += 1;
                    failed.push((number, reason));
                }
                let ended: Vec<&[FlowRow]> = ended.iter().map(Vec::as_slice).collect();
                page.add(scheme, &self.plan.places(point), &ended, lost);
            }
            partition.finish()?;
        }
        if unknown > 0 {
            let runs = self.plan.cells() as usize;
            return Err(RunError::Stopped { ended: runs - unknown, runs });
        }
        failed.sort_by_key(|(number, _)| *number);
        let listed: Vec<Failure<'_>> =
            failed.iter().map(|(number, reason)| self.failure(*number, reason)).collect();
        self.write("failures.json", &lines(&listed))?;
        self.write("report.html", page.render(&listed).as_bytes())?;
        let host = Host { wall_ms: self.started.elapsed().as_millis() as u64, ..self.host.clone() };
        write_manifest(&self.root, &self.plan, true, listed.len() as u64, &host)?;
        let earlier = self.plan.cells() - self.todo.missing.len() as u64 - self.todo.impossible;
        Ok(SweepOutcome { cells: self.plan.cells(), failed: listed.len() as u64, earlier })
    }

    fn about(&self) -> About {
        let (spec, variants) = (self.plan.spec(), self.plan.variants());
        // A float like `10.0` is shown as `10`.
        let shown = |value: &String| text_of(value.strip_suffix(".0").unwrap_or(value));
        let text = |values: &Vec<String>| values.iter().map(shown).collect();
        About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: spec.command(),
            scenario: variants.text("name").to_owned(),
            about: variants.text("about").to_owned(),
            source: variants.text("source").to_owned(),
            schemes: spec.schemes.clone(),
            seeds: spec.seeds.len(),
            cells: self.plan.cells(),
            axes: spec.set.iter().map(|axis| (axis.key.clone(), text(&axis.values))).collect(),
        }
    }

    fn failure<'a>(&'a self, number: u64, reason: &'a str) -> Failure<'a> {
        let cell = self.plan.cell(number);
        let set: Vec<String> =
            self.plan.sets(cell.point).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        Failure {
            cell: number,
            scheme: &self.plan.spec().schemes[cell.scheme],
            seed: cell.seed,
            set: set.join(" "),
            reason,
        }
    }

    fn write(&self, name: &str, contents: &[u8]) -> Result<(), FileError> {
        let path = self.root.join(name);
        airpace_files::replace(&path, contents).map_err(FileError::write("write", &path))
    }
}

/// Formats a JSON list with one entry per line.
fn lines(of: &[impl Serialize]) -> Vec<u8> {
    let entry = |each| serde_json::to_string(each).expect("plain data with text keys");
    let entries: Vec<String> = of.iter().map(entry).collect();
    match entries.is_empty() {
        true => b"[]\n".to_vec(),
        false => format!("[\n{}\n]\n", entries.join(",\n")).into_bytes(),
    }
}

fn write_manifest(
    root: &Path,
    plan: &Plan,
    complete: bool,
    failed: u64,
    host: &Host,
) -> Result<(), FileError> {
    let manifest = SweepManifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        complete,
        command: plan.spec().command(),
        cells: plan.cells(),
        failed,
        sweep: plan.spec().clone(),
        host: host.clone(),
    };
    let mut text = serde_json::to_string_pretty(&manifest).expect("plain data with text keys");
    text.push('\n');
    let path = root.join("manifest.json");
    airpace_files::replace(&path, text).map_err(FileError::write("write", &path))
}
