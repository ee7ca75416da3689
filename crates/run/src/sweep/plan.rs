//! The runs of a sweep, in their order: points (the last key changes fastest), then schemes, then seeds.
//!
//! A point is one combination of values, one per key. Runs are numbered from 0. They are computed from their number and
//! not stored in a list, because there may be millions. A run is a pure function of its scenario, scheme and seed, and is
//! identified by the hash of all of its inputs ([`Key`]).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use airpace_core::remedy::{Refused, Remedy, UserTask, explain_plainly};
use airpace_event::{Detail, Discard, Event, Recorder};
use airpace_sim::{Prepared, Scenario, SchemeSpec, Variants};
use airpace_tables::facts::{RunFacts, Span};
use ring::digest::{Context, SHA256, digest};

use super::axis::text_of;
use super::record::{Key, Record};
use super::spec::{Spec, VARIANT};
use crate::error::RunError;
use crate::flows::FlowRow;
use crate::judge::Judge;
use crate::manifest::ManifestChoice;
use crate::matrix::run_judged;
use crate::metrics::{Course, CourseMeter, RadioTrace, RadioTraceMeter};
use crate::summary::RunSummary;
use crate::threads;

/// A run of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Number of the run.
    pub index: u64,
    /// Number of the run's point.
    pub point: u64,
    /// Index of the run's scheme.
    pub scheme: usize,
    /// Seed of the run.
    pub seed: u64,
}

/// Hash of a point's scenario and of the files that the scenario names.
pub type PointDigest = [u8; 32];

/// A validated sweep with parsed schemes.
pub struct Plan {
    spec: Spec,
    schemes: Vec<SchemeSpec>,
    variants: Variants,
    /// Index of each variant of the scenario by its name.
    variant_of: BTreeMap<String, usize>,
    /// For each scheme: its text with every option.
    prints: Vec<String>,
    /// Hashes of the files that scenarios name. Each file is read only once.
    files: Mutex<BTreeMap<PathBuf, Result<PointDigest, Refused>>>,
}

impl Plan {
    /// Parses the schemes.
    ///
    /// # Errors
    /// The specification was not made by [`Spec::read`] and is invalid, or the scenario requests files that only `airpace
    /// sim` writes.
    pub fn new(spec: Spec) -> Result<Plan, RunError> {
        spec.check()?;
        let parse = |text: &String| {
            SchemeSpec::parse(text).map_err(|error| RunError::Sweep(error.to_string().into()))
        };
        let schemes = spec.schemes.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let print = |scheme: &SchemeSpec| {
            serde_json::to_string(&ManifestChoice::new(scheme)).expect("plain data with text keys")
        };
        let variants = Variants::read(&spec.text, &spec.scenario)?;
        let variant_of = (variants.names().map(str::to_owned)).zip(0..).collect();
        let prints = schemes.iter().map(print).collect();
        Ok(Plan { prints, schemes, variants, variant_of, spec, files: Mutex::default() })
    }

    /// The specification of the sweep.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The variants of the scenario, or the members of its population.
    pub fn variants(&self) -> &Variants {
        &self.variants
    }

    /// Number of runs.
    pub fn cells(&self) -> u64 {
        self.spec.cells()
    }

    /// Number of points.
    pub fn points(&self) -> u64 {
        self.cells() / (self.spec.schemes.len() * self.spec.seeds.len()) as u64
    }

    /// The run with number `index`, which must be less than [`Plan::cells`].
    pub fn cell(&self, index: u64) -> Cell {
        let (seeds, schemes) = (self.spec.seeds.len() as u64, self.spec.schemes.len() as u64);
        let (above, seed) = (index / seeds, index % seeds);
        Cell {
            index,
            point: above / schemes,
            scheme: (above % schemes) as usize,
            seed: self.spec.seeds[seed as usize],
        }
    }

    /// Number of the first run (the first seed) of a point and scheme. The runs with the other seeds follow.
    pub(super) fn first_of(&self, point: u64, scheme: usize) -> u64 {
        (point * self.spec.schemes.len() as u64 + scheme as u64) * self.spec.seeds.len() as u64
    }

    /// For each axis, the index of its value at this point.
    pub fn places(&self, point: u64) -> Vec<usize> {
        let mut rest = point;
        let mut places: Vec<usize> = (self.spec.set.iter().rev())
            .map(|axis| {
                let place = rest % axis.values.len() as u64;
                rest /= axis.values.len() as u64;
                place as usize
            })
            .collect();
        places.reverse();
        places
    }

    /// The keys with their values at this point.
    pub fn sets(&self, point: u64) -> Vec<(String, String)> {
        let axes = self.spec.set.iter().zip(self.places(point));
        axes.map(|(axis, place)| (axis.key.clone(), axis.values[place].clone())).collect()
    }

    /// The scenario of a point.
    fn scenario(&self, point: u64) -> Result<Scenario, Refused> {
        let (variant, sets): (Vec<_>, Vec<_>) =
            self.sets(point).into_iter().partition(|(key, _)| key == VARIANT);
        let variant = variant.first().and_then(|(_, name)| self.variant_of.get(&text_of(name)));
        let scenario = self.variants.load(variant.copied().unwrap_or(0), &sets)?;
        if let Some(device) = scenario.device.iter().position(|device| device.reports.is_some()) {
            let refused = Refused::new(format!("device.{device}.reports: a sweep does not write that file"));
            return Err(refused.but(Remedy::new("leave the key out, or use").task(UserTask::Simulate)));
        }
        // If every flow had its own scheme, the scheme under test would appear in the results without running on any
        // flow.
        if let Some(last) = scenario.flow.len().checked_sub(1)
            && scenario.flow.iter().all(|flow| flow.scheme.is_some())
        {
            let flows = if last == 0 { "flow.0".to_owned() } else { format!("one of flow.0 to flow.{last}") };
            let refused = Refused::new(
                "every flow has a scheme of its own, so that no flow would run the schemes under test",
            );
            let remedy =
                Remedy::new(format!("leave the key `scheme` of {flows} out, and name its schemes with"));
            return Err(refused.but(remedy.parameter("scheme")));
        }
        Ok(scenario)
    }

    /// Indices of the flows with their own scheme at this point. All other flows run the scheme under test.
    pub(super) fn own_flows(&self, point: u64) -> BTreeSet<u16> {
        let flows = self.scenario(point).map(|scenario| scenario.flow.clone()).unwrap_or_default();
        (0..).zip(&flows).filter(|(_, flow)| flow.scheme.is_some()).map(|(index, _)| index).collect()
    }

    /// Digest of a point.
    ///
    /// # Errors
    /// The reason why the point cannot be run: an invalid key or value, or an unreadable file.
    pub fn digest(&self, point: u64) -> Result<PointDigest, Refused> {
        self.digest_of(&self.scenario(point)?)
    }

    fn digest_of(&self, scenario: &Scenario) -> Result<PointDigest, Refused> {
        let mut hash = Context::new(&SHA256);
        let mut part = |bytes: &[u8]| {
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(b"airpace sweep 1");
        part(env!("CARGO_PKG_VERSION").as_bytes());
        part(scenario.to_toml().as_bytes());
        for file in scenario.files() {
            let known = self.files.lock().unwrap_or_else(PoisonError::into_inner).get(file).cloned();
            let digest = known.unwrap_or_else(|| {
                let digest = digest_of_file(file);
                let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                files.insert(file.to_owned(), digest.clone());
                digest
            });
            part(&digest?);
        }
        Ok(point_digest(hash.finish()))
    }

    /// Digests of all points in ascending order, computed with `jobs` threads.
    pub fn scan(&self, jobs: usize) -> Vec<Result<PointDigest, Refused>> {
        let points = self.points() as usize;
        let next = AtomicUsize::new(0);
        let all: Mutex<Vec<Option<Result<PointDigest, Refused>>>> = Mutex::new(vec![None; points]);
        /// Number of points that a thread takes at once.
        const TAKE: usize = 64;
        let work = || {
            loop {
                let first = next.fetch_add(TAKE, Ordering::Relaxed);
                if first >= points {
                    return;
                }
                let of = |point| Some(self.digest(point as u64));
                let found: Vec<_> = (first..points.min(first + TAKE)).map(of).collect();
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all[first..first + found.len()].clone_from_slice(&found);
            }
        };
        threads::share(jobs.clamp(1, points.div_ceil(TAKE).max(1)), &work);
        let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.into_iter().map(|each| each.expect("every point was looked at")).collect()
    }

    /// Key of a run whose point has this digest.
    pub fn key(&self, digest: &PointDigest, cell: Cell) -> Key {
        let mut hash = Context::new(&SHA256);
        hash.update(digest);
        let print = self.prints[cell.scheme].as_bytes();
        hash.update(&(print.len() as u64).to_le_bytes());
        hash.update(print);
        hash.update(&cell.seed.to_le_bytes());
        let whole = point_digest(hash.finish());
        let mut half = [0; 16];
        half.copy_from_slice(&whole[..16]);
        Key(half)
    }
}

/// Converts a SHA-256 hash to bytes.
fn point_digest(hash: ring::digest::Digest) -> PointDigest {
    hash.as_ref().try_into().expect("a SHA-256 has 32 bytes")
}

/// Maximum size of a hashed file (bytes), which is also the maximum of a trace.
const MAX_BYTES: u64 = 256 << 20;

fn digest_of_file(file: &Path) -> Result<PointDigest, Refused> {
    let refused = |error: std::io::Error| {
        Refused::new(format!("cannot read {}: {error}", file.display())).but(Remedy::new("check the path"))
    };
    let opened = std::fs::File::open(file).map_err(refused)?;
    if !opened.metadata().map_err(refused)?.is_file() {
        let what = format!("{} is no plain file, which a sweep would read again and again", file.display());
        return Err(what.into());
    }
    let mut bytes = vec![];
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("{} is longer than {} MiB", file.display(), MAX_BYTES >> 20).into());
    }
    Ok(point_digest(digest(&SHA256, &bytes)))
}

/// Digest and prepared scenario of a point, or the reason why the point cannot be run.
type Ground = Result<(PointDigest, Prepared), Refused>;

/// An executed run: its key, and its metrics with those of a further recorder, or the reason why it failed.
pub type Executed<R> = (Key, Result<(RunSummary, R), String>);

/// Executes runs of a plan one after the other. It caches the scenario of the latest point, so runs of a point should be
/// consecutive.
pub struct Runner<'a> {
    plan: &'a Plan,
    ground: Option<(u64, Ground)>,
}

impl<'a> Runner<'a> {
    /// A runner of this plan.
    pub fn new(plan: &'a Plan) -> Runner<'a> {
        Runner { plan, ground: None }
    }

    /// Executes a run and returns its record. `tell` receives the fraction of the run's time that has passed. Returns
    /// `None` if the caller stopped the run. The key is 0 if the run's point could not be prepared.
    pub fn run(&mut self, index: u64, tell: &dyn Fn(f64) -> bool) -> Option<Record> {
        let (key, result) = self.execute(index, &|_, _| Discard, tell)?;
        let rows = |(run, _): (RunSummary, Discard)| run.flows.iter().map(FlowRow::of).collect();
        Some(Record { key, result: result.map(rows) })
    }

    /// Executes a run like [`Runner::run`], and returns its key with all of its metrics, the courses of its flows, and the
    /// details of its radio in `traced`, or the reason why it failed.
    pub fn run_with_courses(
        &mut self,
        index: u64,
        traced: Option<Span>,
        tell: &dyn Fn(f64) -> bool,
    ) -> Option<Executed<(Vec<Course>, Option<RadioTrace>)>> {
        let meter = |facts: &RunFacts, _: &Scenario| {
            let trace = traced.map(|span| RadioTraceMeter::new(facts, span));
            Detailed { courses: CourseMeter::new(facts), trace }
        };
        let (key, result) = self.execute(index, &meter, tell)?;
        let finished = |meter: Detailed| (meter.courses.finish(), meter.trace.map(RadioTraceMeter::finish));
        Some((key, result.map(|(run, meter)| (run, finished(meter)))))
    }

    /// Executes a run, whose events the recorder that `further` creates receives too.
    fn execute<R: Recorder>(
        &mut self,
        index: u64,
        further: &dyn Fn(&RunFacts, &Scenario) -> R,
        tell: &dyn Fn(f64) -> bool,
    ) -> Option<Executed<R>> {
        let cell = self.plan.cell(index);
        let plan = self.plan;
        if self.ground.as_ref().is_none_or(|(point, _)| *point != cell.point) {
            let prepared = |scenario: Scenario| {
                let digest = plan.digest_of(&scenario)?;
                Ok((digest, scenario.prepare()?))
            };
            self.ground = Some((cell.point, plan.scenario(cell.point).and_then(prepared)));
        }
        let (_, ground) = self.ground.as_ref().expect("it was put there");
        let (digest, prepared) = match ground {
            Ok(ready) => ready,
            Err(reason) => return Some((Key([0; 16]), Err(explain_plainly(reason)))),
        };
        let key = plan.key(digest, cell);
        let run = || measure(prepared, &plan.schemes[cell.scheme], cell.seed, further, tell);
        let result = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(None)) => return None,
            Ok(Ok(Some(measured))) => Ok(measured),
            Ok(Err(error)) => Err(explain_plainly(&error)),
            Err(panic) => {
                Err(format!("the simulator crashed: {}; this is a mistake in airpace", said(&*panic)))
            }
        };
        Some((key, result))
    }
}

/// Metrics of one run, and the further recorder; `None` if the caller stopped the run.
fn measure<R: Recorder>(
    prepared: &Prepared,
    scheme: &SchemeSpec,
    seed: u64,
    further: &dyn Fn(&RunFacts, &Scenario) -> R,
    tell: &dyn Fn(f64) -> bool,
) -> Result<Option<(RunSummary, R)>, RunError> {
    let facts = crate::facts::of(prepared.scenario(), scheme, seed);
    let mut judge = Judge::new(&facts, None)?;
    let mut recorder = further(&facts, prepared.scenario());
    let run = |judge: &mut Judge, progress: &mut airpace_sim::Progress<'_>| {
        let mut both = Both(judge, &mut recorder);
        let ran = airpace_sim::run_prepared(prepared, scheme, seed, &mut both, progress);
        ran.map(drop).map_err(|error| explain_plainly(&error).into())
    };
    match run_judged(&facts, &mut judge, run, tell) {
        Ok(true) => Ok(Some((RunSummary::new(&facts, judge.finish()?), recorder))),
        Ok(false) => Ok(None),
        Err(reason) => Err(reason.into()),
    }
}

/// Records the courses of the flows, and the details of the radio if they are requested.
struct Detailed {
    courses: CourseMeter,
    trace: Option<RadioTraceMeter>,
}

impl Recorder for Detailed {
    fn record(&mut self, event: Event<'_>) {
        self.courses.record(event);
        if let Some(trace) = &mut self.trace {
            trace.record(event);
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        self.courses.wants(detail)
    }
}

/// Two recorders of one run.
struct Both<'a, R>(&'a mut Judge, &'a mut R);

impl<R: Recorder> Recorder for Both<'_, R> {
    fn record(&mut self, event: Event<'_>) {
        self.1.record(event);
        self.0.record(event);
    }

    fn wants(&self, detail: Detail) -> bool {
        self.0.wants(detail) || self.1.wants(detail)
    }
}

/// The text of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}
