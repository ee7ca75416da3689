//! A sweep in its folder: which runs are still to do, where their records go, and what is made of them at the end.
//!
//! ```text
//! SWEEP/
//! ├── manifest.json    what is swept, by which version, on which host, and whether it is complete
//! ├── cells/           every run that came to its end, a line each: from there an interrupted sweep goes on
//! ├── results/         one Parquet dataset, partitioned by scheme
//! ├── failures.json    the runs that failed, and why
//! └── report.html      heat maps
//! ```
//!
//! Results, failures and page depend on the matrix only: not on the order in which runs ended, on threads, on
//! interruptions, or on who made the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::axis::text_of;
use super::dataset::{self, Ended, Partition};
use super::plan::{Cell, Plan, PointDigest, Runner};
use super::record::{Key, Record};
use super::spec::{Spec, base};
use super::store::{Index, Log, has_records};
use crate::error::EvalError;
use crate::folder::Host;
use crate::report::sweep::{About, Failure, SweepPage};
use crate::tables::flows::FlowRow;
use crate::tables::memory::Batches;
use crate::threads;

/// What was swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepManifest {
    /// Version of airpace that made the results.
    pub version: String,
    /// Whether every run ended or failed.
    pub complete: bool,
    /// The command that makes the same results.
    pub command: String,
    /// How many runs there are.
    pub cells: u64,
    /// How many of them failed.
    pub failed: u64,
    /// The matrix.
    pub sweep: Spec,
    /// Where and when it was made last: the only part that differs between two sweeps of one matrix.
    pub host: Host,
}

/// How long a manifest may be.
///
/// Chosen: ten million seeds or values, several times over.
const MOST_BYTES: u64 = 1 << 30;

/// The manifest of a folder; `None` if it is not that of a sweep.
///
/// # Errors
/// A manifest that cannot be read.
pub fn manifest(root: &Path) -> Result<Option<SweepManifest>, EvalError> {
    let path = root.join("manifest.json");
    let text = match airpace_files::read_to_string(&path, MOST_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(EvalError::read(&path))?,
    };
    #[derive(Deserialize)]
    struct Named {
        sweep: Option<serde::de::IgnoredAny>,
    }
    let malformed = |error: serde_json::Error| EvalError::Damaged {
        path: path.clone(),
        reason: error.to_string(),
        remedy: "the same sweep into the same folder writes it again and keeps the runs that ended",
    };
    if serde_json::from_str::<Named>(&text).map_err(malformed)?.sweep.is_none() {
        return Ok(None);
    }
    serde_json::from_str(&text).map(Some).map_err(malformed)
}

/// Refuses a folder with the sweep of another scenario, whose results would be lost. A sweep of the same scenario, with
/// other values, schemes or seeds, keeps the runs that both have.
fn refuse_other_scenario(root: &Path, plan: &Plan) -> Result<(), EvalError> {
    let Ok(Some(before)) = manifest(root) else { return Ok(()) };
    // A text that this version cannot read has only the name that it was called by.
    let name = |spec: &Spec| {
        base(&spec.text, &spec.scenario).map_or_else(|_| spec.scenario.clone(), |it| it.name.clone())
    };
    let (there, ours) = (name(&before.sweep), name(plan.spec()));
    if there == ours {
        return Ok(());
    }
    Err(EvalError::Sweep(format!(
        "`{}` holds a sweep of the scenario `{there}`, whose results a sweep of `{ours}` would replace; give --out another \
         folder, or remove this one",
        root.display()
    )))
}

/// Whether a folder is that of a sweep. Its records make it one, if the manifest is damaged or lost.
fn is_sweep(root: &Path) -> Result<bool, EvalError> {
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

/// All results of a sweep's folder, in memory.
///
/// # Errors
/// A folder of no sweep, or of one that is not complete; files that cannot be read.
pub fn results(root: &Path) -> Result<(SweepManifest, Batches), EvalError> {
    let Some(manifest) = manifest(root)? else {
        return Err(EvalError::Sweep(format!(
            "`{}` holds no sweep: it has no manifest.json of one, as `airpace sweep` writes it",
            root.display()
        )));
    };
    if !manifest.complete {
        return Err(EvalError::Sweep(format!(
            "the sweep in `{}` is not complete; the same command goes on: {} --out {}",
            root.display(),
            manifest.command,
            crate::shell::quote(&root.to_string_lossy())
        )));
    }
    let table = dataset::read(root, &manifest.sweep.schemes)?;
    Ok((manifest, table))
}

/// The folder that a sweep has if the user names none: the same for the same matrix.
///
/// # Errors
/// A scenario that cannot be read.
pub fn usual_folder(spec: &Spec) -> Result<PathBuf, EvalError> {
    let name = base(&spec.text, &spec.scenario)?.name.clone();
    let name: String =
        name.chars().map(|c| if c.is_alphanumeric() || "-_.@".contains(c) { c } else { '_' }).collect();
    let json = serde_json::to_string(spec).expect("plain data with text keys");
    let hash = digest(&SHA256, json.as_bytes());
    let digits: String = hash.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Ok(Path::new("sweeps").join(format!("{name}-{digits}")))
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepProgress {
    /// Runs that ended or failed, those of earlier processes among them.
    pub done: u64,
    /// Runs that failed.
    pub failed: u64,
    /// All runs.
    pub cells: u64,
}

/// Receives the progress on the threads that run, and may stop them.
pub type SweepListener<'a> = &'a (dyn Fn(SweepProgress) -> ControlFlow<()> + Sync);

/// Hears of a run that ended, and may refuse to hear more.
pub type Told<'a> = &'a mut dyn FnMut(&Plan, Cell, &[FlowRow]) -> Result<(), EvalError>;

/// What a sweep ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepOutcome {
    /// All runs.
    pub cells: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that had ended before this process began.
    pub earlier: u64,
}

/// Which runs of a plan have ended, by what a folder holds.
pub struct Todo {
    /// A hash for each point; why it cannot be run.
    digests: Vec<Result<PointDigest, String>>,
    /// The numbers of the runs that are still to do, in their order.
    pub missing: Vec<u64>,
    /// How many runs cannot be made because their point cannot be.
    pub impossible: u64,
}

impl Todo {
    /// Looks at every point, on this many threads, and into the folder if there is one.
    ///
    /// # Errors
    /// A folder that cannot be read; a matrix of which no point can be run: the first reason.
    pub fn of(plan: &Plan, root: Option<&Path>, jobs: usize) -> Result<Todo, EvalError> {
        let digests = plan.scan(jobs);
        if let Some(Err(reason)) = digests.first().filter(|_| digests.iter().all(Result::is_err)) {
            return Err(EvalError::Sweep(reason.clone()));
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

    /// The first point that cannot be run, and why.
    pub fn first_impossible(&self) -> Option<(u64, &str)> {
        let mut points = self.digests.iter().enumerate();
        points.find_map(|(point, digest)| Some((point as u64, digest.as_ref().err()?.as_str())))
    }

    fn key(&self, plan: &Plan, number: u64) -> Option<Key> {
        let cell = plan.cell(number);
        let digest = self.digests.get(cell.point as usize)?.as_ref().ok()?;
        Some(plan.key(digest, cell))
    }
}

/// A sweep whose folder this process has claimed.
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
    /// Claims the folder of a sweep, makes it if it is not there, and looks which runs are still to do. Nothing is written
    /// if no point can be run.
    ///
    /// # Errors
    /// A folder that holds something else, or in which another process works; as [`Todo::of`].
    pub fn open(plan: Plan, root: &Path, host: Host) -> Result<Sweep, EvalError> {
        let is_there = root.is_dir();
        if is_there {
            let mut entries = fs::read_dir(root).map_err(EvalError::write("look into", root))?;
            if entries.next().is_some() && !is_sweep(root)? {
                return Err(EvalError::Sweep(format!(
                    "`{}` is not empty and holds no sweep; give --out another folder, or empty this one",
                    root.display()
                )));
            }
            refuse_other_scenario(root, &plan)?;
        }
        let mut todo = Todo::of(&plan, is_there.then_some(root), host.jobs)?;
        fs::create_dir_all(root).map_err(EvalError::write("make the folder", root))?;
        let started = Instant::now();
        let write = |complete, failed| write_manifest(root, &plan, complete, failed, &host);
        // A folder that others hold stays as it is.
        if !is_there || !matches!(manifest(root), Ok(Some(_))) {
            write(false, 0)?;
        }
        let log = Log::claim(root)?;
        dataset::remove_others(root, &plan.spec().schemes)?;
        write(false, 0)?;
        // Another process may have ended in this moment.
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

    /// What is swept.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Which runs were still to do at the beginning.
    pub fn todo(&self) -> &Todo {
        &self.todo
    }

    /// The flows that have schemes of their own, by their index: the scheme under test runs on all others. A key is set at
    /// all points or at none, so that these are the same flows at each.
    pub fn own_flows(&self) -> BTreeSet<u16> {
        let possible = self.todo.digests.iter().position(Result::is_ok);
        possible.map(|point| self.plan.own_flows(point as u64)).unwrap_or_default()
    }

    /// How far it is.
    pub fn progress(&self) -> SweepProgress {
        let failed = self.failures.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        let waiting = self.todo.missing.len() as u64 - self.added.load(Ordering::Relaxed) as u64 - failed;
        SweepProgress {
            done: self.plan.cells() - waiting,
            failed: failed + self.todo.impossible,
            cells: self.plan.cells(),
        }
    }

    /// Takes what came of a run.
    ///
    /// # Errors
    /// A file that cannot be written; the disk may be full. The runs that were added before are kept.
    pub fn add(&self, number: u64, record: Record) -> Result<(), EvalError> {
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

    /// Notes that a run failed.
    pub fn fail(&self, number: u64, reason: String) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).insert(number, reason);
    }

    /// Makes the runs that are still to do, on as many threads as the host part of the manifest says.
    ///
    /// # Errors
    /// A file that cannot be written, or [`EvalError::Stopped`] if the listener stopped it. What had ended is kept.
    pub fn run(&self, listener: SweepListener<'_>) -> Result<(), EvalError> {
        let next = AtomicUsize::new(0);
        let stopped = AtomicBool::new(false);
        let refused: Mutex<Option<EvalError>> = Mutex::default();
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
            return Err(EvalError::Stopped { ended: progress.done as usize, runs: progress.cells as usize });
        }
        Ok(())
    }

    /// Makes results, list of failures and page of all records. `told` hears of every run that ended: by scheme, then point,
    /// then seed.
    ///
    /// # Errors
    /// A file that cannot be written or read; [`EvalError::Stopped`] if a run neither ended nor failed; what `told` says.
    pub fn finish(self, told: Told<'_>) -> Result<SweepOutcome, EvalError> {
        let spec = self.plan.spec();
        let base = base(&spec.text, &spec.scenario)?;
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let index = Index::read(&self.root)?;
        let mut page = SweepPage::new(self.about(&base), self.own_flows());
        let mut failed: Vec<(u64, String)> = vec![];
        let mut unknown = 0;
        for scheme in 0..spec.schemes.len() {
            let mut partition = Partition::create(&self.root, &self.plan, &base.name, scheme)?;
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
                        (None, Err(reason)) => reason.clone(),
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
            return Err(EvalError::Stopped { ended: runs - unknown, runs });
        }
        failed.sort_by_key(|(number, _)| *number);
        let listed: Vec<Failure<'_>> =
            failed.iter().map(|(number, reason)| self.failure(*number, reason)).collect();
        self.write("failures.json", &lines(&listed))?;
        self.write("report.html", page.render(listed.len(), &listed).as_bytes())?;
        let host = Host { wall_ms: self.started.elapsed().as_millis() as u64, ..self.host.clone() };
        write_manifest(&self.root, &self.plan, true, listed.len() as u64, &host)?;
        let earlier = self.plan.cells() - self.todo.missing.len() as u64 - self.todo.impossible;
        Ok(SweepOutcome { cells: self.plan.cells(), failed: listed.len() as u64, earlier })
    }

    fn about(&self, base: &airpace_sim::Scenario) -> About {
        let spec = self.plan.spec();
        // 10.0 is a number that need not be whole; people read 10.
        let shown = |value: &String| text_of(value.strip_suffix(".0").unwrap_or(value));
        let text = |values: &Vec<String>| values.iter().map(shown).collect();
        About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: spec.command(),
            scenario: base.name.clone(),
            about: base.about.clone(),
            source: base.source.clone(),
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

    fn write(&self, name: &str, contents: &[u8]) -> Result<(), EvalError> {
        let path = self.root.join(name);
        airpace_files::replace(&path, contents).map_err(EvalError::write("write", &path))
    }
}

/// A list in JSON, an entry on each line.
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
) -> Result<(), EvalError> {
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
    airpace_files::replace(&path, text).map_err(EvalError::write("write", &path))
}
