//! Preparation of a scenario for runs. The scenario's files are read and its network is planned once, so that errors
//! are reported before the first run starts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Direction, Streams};
use airpace_path::cellular::CellularLink;
use airpace_path::network::{CellularPlan, TracePlan};
use airpace_path::trace::{KpiTrace, SizeOffsets, Trace, Trains};
use airpace_path::{ConfigError, NetworkPlan};

use crate::document::{CellularWay, SynthRate, SynthTrace, TraceHop, TraceSource};
use crate::replay::{KpiReplay, Replay, TraceReplay};
use crate::{Origin, Scenario, ScenarioError};

/// A trace with a hole (no delivery opportunity) of this length is rejected unless the scenario allows holes.
///
/// Chosen: 5 s, longer than the first timeout of any retransmission timer in use.
const MAX_HOLE: Duration = Duration::from_secs(5);

/// Maximum length of a recording in bytes, both compressed and expanded.
///
/// Chosen: mahimahi's format has about nine bytes for each packet, so this length is an hour at 100 Mbit/s.
pub const MAX_RECORDING_BYTES: u64 = 256 << 20;

/// A scenario whose files were read. It can be run any number of times, also from several threads.
#[derive(Clone, Debug)]
pub struct Prepared {
    scenario: Scenario,
    network: NetworkPlan,
    replays: Vec<Replay>,
}

impl Scenario {
    /// Reads the scenario's files, for runs of `duration_s`.
    ///
    /// # Errors Names key, file, line and remedy: a trace that is missing, cannot be read, has a hole in the part that
    /// a run uses, or does not fit its KPI trace.
    pub fn prepare(&self) -> Result<Prepared, ScenarioError> {
        self.read(Some(self.duration()))
    }

    /// Reads the scenario's files, for runs that are ended by their programs: such runs may use every part of a trace.
    ///
    /// # Errors
    /// The errors of [`Scenario::prepare`]; here, a hole anywhere in a trace is an error.
    pub fn prepare_endless(&self) -> Result<Prepared, ScenarioError> {
        self.read(None)
    }

    /// Reads the scenario's files; `run` is the duration of a run, or `None` if only the run's programs end it.
    fn read(&self, run: Option<Duration>) -> Result<Prepared, ScenarioError> {
        let planned = &self.plan.network;
        let mut reader = Reader { scenario: self, origin: &self.origin, run, replays: vec![] };
        let network = match (&self.trace, &self.cellular) {
            (Some(hop), _) => planned.over_trace(reader.read_hop(hop)?),
            (None, Some(hop)) => {
                let [down, up] = Direction::BOTH.map(|direction| reader.read_cellular(hop.way(direction)));
                let link = CellularPlan::new(down?, up?);
                planned.over_cellular(link).map_err(|error| self.origin.refuse(error))?
            }
            (None, None) => planned.clone(),
        };
        Ok(Prepared { scenario: self.clone(), network, replays: reader.replays })
    }
}

/// Reads the files of one scenario.
struct Reader<'a> {
    scenario: &'a Scenario,
    origin: &'a Origin,
    /// Duration of a run; `None` if only the run's programs end it.
    run: Option<Duration>,
    /// Recordings that the reader has read so far.
    replays: Vec<Replay>,
}

impl Reader<'_> {
    /// Reads one direction of a cellular link; `table` is the dotted path of the direction's table.
    fn read_cellular(&mut self, (table, way): (&str, &CellularWay)) -> Result<CellularLink, ScenarioError> {
        let [light, heavy, offsets] = ["light", "heavy", "offsets"].map(|key| format!("{table}.{key}"));
        let trains = match (&way.light.file, &way.light.synth) {
            (Some(file), _) => {
                let refuse = |reason: String| self.origin.refuse_key(&format!("{light}.file"), reason);
                Trains::parse(&read(file).map_err(refuse)?)
                    .map_err(|error| refuse(format!("has no trains: {}: {error}", file.display())))?
            }
            (None, Some(made)) => {
                let mut rng = Streams::new(made.seed).stream("cellular.light");
                Trains::made(&made.model(), Duration::from_secs(made.seconds.into()), &mut rng)
                    .map_err(|error| self.origin.refuse(error.within("synth").within(&light)))?
            }
            (None, None) => {
                let reason = format!(
                    "is missing; name what `mm-cellular` takes as packet-train trace: `--set {light}=FILE`"
                );
                return Err(self.origin.refuse_key(&format!("{light}.file"), reason));
            }
        };
        let sizes = match &way.offsets {
            None => SizeOffsets::default(),
            Some(file) => {
                let refuse = |reason: String| self.origin.refuse_key(&offsets, reason);
                SizeOffsets::parse(&read(file).map_err(refuse)?)
                    .map_err(|error| refuse(format!("has no offsets: {}: {error}", file.display())))?
            }
        };
        let trace = Arc::new(self.trace_of(&way.heavy.source(&heavy, way.link.start_s))?);
        CellularLink::new(Arc::new(trains), trace, Arc::new(sizes), &way.link)
            .map_err(|error| self.origin.refuse(error.within("link").within(table)))
    }

    fn read_hop(&mut self, hop: &TraceHop) -> Result<TracePlan, ScenarioError> {
        let trace = self.trace_of(&hop.source())?;
        let kpi = match (&hop.kpi, hop.kpi_every_ms) {
            (Some(file), _) => Some(self.read_kpi(file, &trace)?),
            (None, Some(every_ms)) => Some(KpiTrace::of(&trace, Duration::from_millis(every_ms.into()))),
            (None, None) => None,
        };
        let direction = self.scenario.flow[0].direction;
        let refuse = |error: ConfigError, table| self.origin.refuse(error.within("link").within(table));
        let plan = TracePlan::new(Arc::new(trace), kpi.map(Arc::new), direction, hop.telemetry, &hop.link)
            .map_err(|error| refuse(error, "trace"))?;
        let Some(back) = &hop.back else { return Ok(plan) };
        let trace = Arc::new(self.trace_of(&back.source())?);
        plan.with_back(trace, &back.link).map_err(|error| refuse(error, "trace.back"))
    }

    /// Returns the trace of one direction, from a file or from a model.
    fn trace_of(&mut self, source: &TraceSource<'_>) -> Result<Trace, ScenarioError> {
        match (source.file, source.synth) {
            (Some(file), _) => self.read_trace(source, file),
            (None, Some(made)) => self.make_trace(source.table, made),
            (None, None) => {
                let table = source.table;
                let reason = format!("is missing; name a recorded trace: `--set {table}=FILE`");
                Err(self.origin.refuse_key(&format!("{table}.file"), reason))
            }
        }
    }

    fn make_trace(&self, table: &str, made: &SynthTrace) -> Result<Trace, ScenarioError> {
        let (length, streams) = (Duration::from_secs(made.seconds.into()), Streams::new(made.seed));
        let trace = match made.rate() {
            SynthRate::Mean(mean) => made.model.with_mean(mean, length, &streams),
            SynthRate::OfModel(rate) => made.model.with_rate(rate, length, &streams),
        };
        trace.map_err(|error| self.origin.refuse(error.within("synth").within(table)))
    }

    fn read_trace(&mut self, source: &TraceSource<'_>, file: &Path) -> Result<Trace, ScenarioError> {
        let table = source.table;
        let refuse = |reason: String| self.origin.refuse_key(&format!("{table}.file"), reason);
        let bytes = read(file).map_err(refuse)?;
        let (trace, rates) = Trace::read(&bytes, source.column)
            .map_err(|error| refuse(format!("is not a trace: {}: {error}", file.display())))?;
        // A run with a random start may meet every hole.
        let from_ms = source.start_s.fixed_ms().map_err(|error| self.origin.refuse(error.within(table)))?;
        let hole = match (from_ms, self.run) {
            (Some(from_ms), Some(run)) => trace.longest_hole_in(from_ms, run.as_millis() as u64),
            _ => trace.longest_hole(),
        };
        if hole.length >= MAX_HOLE && !source.allow_holes {
            return Err(refuse(format!(
                "has no chance to deliver for {:.1} s from {:.1} s on: {}; cut the trace there, or allow it \
                 if the outage is meant (`{table}.allow_holes=true`; `emu link` and `emu cellular`: --allow-holes)",
                hole.length.as_secs_f64(),
                hole.start_ms as f64 * 1e-3,
                file.display(),
            )));
        }
        self.replays.push(Replay::Trace(TraceReplay::of(source, file, &trace, rates, self.run)));
        Ok(trace)
    }

    fn read_kpi(&mut self, file: &Path, trace: &Trace) -> Result<KpiTrace, ScenarioError> {
        let refuse = |reason: String| self.origin.refuse_key("trace.kpi", reason);
        let kpi = KpiTrace::parse(&read(file).map_err(refuse)?)
            .map_err(|error| refuse(format!("is not a KPI trace: {}: {error}", file.display())))?;
        let (last_ms, _) = kpi.values()[kpi.values().len() - 1];
        if last_ms >= trace.period_ms() {
            return Err(refuse(format!(
                "has a value at {last_ms} ms, but the trace repeats after {} ms: {}; cut the KPI trace there, or give \
                 the one that belongs to this trace (`airpace trace kpi` makes one)",
                trace.period_ms(),
                file.display(),
            )));
        }
        self.replays.extend(KpiReplay::of(file, &kpi, trace).map(Replay::Kpi));
        Ok(kpi)
    }
}

/// Reads the bytes of a recording; the error contains the problem and the remedy. The scenario that contains the file
/// name may come from a stranger.
fn read(file: &Path) -> Result<Vec<u8>, String> {
    airpace_files::read_recording(file, MAX_RECORDING_BYTES).map_err(|error| {
        let remedy = airpace_files::recording_remedy(file, &error);
        format!("cannot be read: {}: {error}; {remedy}", file.display())
    })
}

impl Prepared {
    /// The scenario that was prepared.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The network between the endpoints of the scenario's flows.
    pub fn network(&self) -> &NetworkPlan {
        &self.network
    }

    /// The network for whole devices, each with one flow that has data in both directions, for an emulator.
    ///
    /// # Errors
    /// The errors of [`NetworkPlan::for_devices`].
    pub fn devices_network(&self) -> Result<NetworkPlan, ScenarioError> {
        self.network.for_devices().map_err(|error| self.scenario.origin.refuse(error))
    }

    /// The recordings that runs replay, in the order in which the files were read.
    pub fn replays(&self) -> &[Replay] {
        &self.replays
    }
}
