//! Preparation of a scenario for runs. The scenario's files are read and its network is planned once, so that errors
//! are reported before the first run starts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::remedy::{Remedy, UserTask};
use airpace_core::{Direction, Streams};
use airpace_path::cellular::CellularLink;
use airpace_path::network::{CellularPlan, TracePlan};
use airpace_path::recording::Recording;
use airpace_path::trace::{KpiTrace, SizeOffsets, Trace, TraceError, Trains};
use airpace_path::{ConfigError, NetworkPlan};

use crate::document::{CellularWay, RecordedTrace, SynthRate, SynthTrace, TraceHop, TraceSource};
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

/// Interval of a recording's KPIs if the scenario sets none: the modem's granted bytes are summed up over 100 ms.
///
/// Source: BISCAY §3.2.2
const GRANTED_EVERY_MS: u32 = 100;

/// A scenario whose files were read. It can be run any number of times, also from several threads.
#[derive(Clone, Debug)]
pub struct Prepared {
    scenario: Scenario,
    network: NetworkPlan,
    replays: Vec<Replay>,
    recording: Option<Arc<Recording>>,
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
    /// The errors of [`Scenario::prepare`]; here, a hole anywhere in a trace is an error, and so is a proxy.
    pub fn prepare_endless(&self) -> Result<Prepared, ScenarioError> {
        if let Some(flow) = self.flow.iter().position(|flow| flow.proxy.is_some()) {
            let reason =
                "splits a simulated connection; programs have connections of their own: remove it".to_owned();
            return Err(self.origin.refuse_key(&format!("flow.{flow}.proxy"), reason));
        }
        self.read(None)
    }

    /// Reads the scenario's files; `run` is the duration of a run, or `None` if only the run's programs end it.
    fn read(&self, run: Option<Duration>) -> Result<Prepared, ScenarioError> {
        let planned = &self.plan.network;
        let mut reader =
            Reader { scenario: self, origin: &self.origin, run, replays: vec![], recording: None };
        let network = match (&self.trace, &self.cellular) {
            (Some(hop), _) => planned.over_trace(reader.read_hop(hop)?),
            (None, Some(hop)) => {
                let [down, up] = Direction::BOTH.map(|direction| reader.read_cellular(hop.way(direction)));
                let link = CellularPlan::new(down?, up?);
                planned.over_cellular(link).map_err(|error| self.origin.refuse(error))?
            }
            (None, None) => planned.clone(),
        };
        Ok(Prepared { scenario: self.clone(), network, replays: reader.replays, recording: reader.recording })
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
    /// The recording of a simulated cell, if the scenario has one.
    recording: Option<Arc<Recording>>,
}

impl Reader<'_> {
    /// Reads one direction of a cellular link; `table` is the dotted path of the direction's table.
    fn read_cellular(&mut self, (table, way): (&str, &CellularWay)) -> Result<CellularLink, ScenarioError> {
        let [light, heavy, offsets] = ["light", "heavy", "offsets"].map(|key| format!("{table}.{key}"));
        let trains = match (&way.light.file, &way.light.synth) {
            (Some(file), _) => {
                let key = format!("{light}.file");
                Trains::parse(&self.read_file(&key, file)?)
                    .map_err(|error| self.refuse_file(&key, "has no trains", file, error))?
            }
            (None, Some(made)) => {
                let mut rng = Streams::new(made.seed).stream("cellular.light");
                Trains::made(&made.model(), Duration::from_secs(made.seconds.into()), &mut rng)
                    .map_err(|error| self.origin.refuse(error.within("synth").within(&light)))?
            }
            (None, None) => {
                let remedy = Remedy::new("name what `mm-cellular` takes as packet-train trace:")
                    .setting(light.as_str(), "FILE");
                let error = self.origin.refuse_key(&format!("{light}.file"), "is missing".to_owned());
                return Err(error.but(remedy));
            }
        };
        let sizes = match &way.offsets {
            None => SizeOffsets::default(),
            Some(file) => SizeOffsets::parse(&self.read_file(&offsets, file)?)
                .map_err(|error| self.refuse_file(&offsets, "has no offsets", file, error))?,
        };
        let trace = Arc::new(self.trace_of(&way.heavy.source(&heavy, way.link.start_s))?);
        CellularLink::new(Arc::new(trains), trace, Arc::new(sizes), &way.link)
            .map_err(|error| self.origin.refuse(error.within("link").within(table)))
    }

    fn read_hop(&mut self, hop: &TraceHop) -> Result<TracePlan, ScenarioError> {
        let direction = self.scenario.flow[0].direction;
        let (trace, granted) = match &hop.recorded {
            Some(recorded) => {
                let recording = self.record(hop, recorded, direction)?;
                let every_ms = hop.kpi_every_ms.unwrap_or(GRANTED_EVERY_MS);
                let granted = recording.granted_bandwidth(Duration::from_millis(every_ms.into()));
                (recording.trace.clone(), Some(granted))
            }
            None => (self.trace_of(&hop.source())?, None),
        };
        let kpi = match (&hop.kpi, hop.kpi_every_ms) {
            _ if granted.is_some() => granted.filter(|_| hop.telemetry),
            (Some(file), _) => Some(self.read_kpi(file, &trace)?),
            (None, Some(every_ms)) => Some(KpiTrace::of(&trace, Duration::from_millis(every_ms.into()))),
            (None, None) => None,
        };
        let refuse = |error: ConfigError, table| self.origin.refuse(error.within("link").within(table));
        let plan = TracePlan::new(Arc::new(trace), kpi.map(Arc::new), direction, hop.telemetry, &hop.link)
            .map_err(|error| refuse(error, "trace"))?;
        let Some(back) = &hop.back else { return Ok(plan) };
        let trace = Arc::new(self.trace_of(&back.source())?);
        plan.with_back(trace, &back.link).map_err(|error| refuse(error, "trace.back"))
    }

    /// Records the cell of a scenario.
    fn record(
        &mut self,
        hop: &TraceHop,
        recorded: &RecordedTrace,
        direction: Direction,
    ) -> Result<Arc<Recording>, ScenarioError> {
        let table = "trace.recorded";
        let plan = recorded.plan().map_err(|error| self.origin.refuse(error.within(table)))?;
        let (length, streams) = (Duration::from_secs(recorded.seconds.into()), Streams::new(recorded.seed));
        let recording = Recording::make(&plan, direction, length, &streams).map_err(|error| {
            let reason = format!("cannot be recorded: {error}");
            self.origin.refuse_key(table, reason).but(error.remedy)
        })?;
        self.check_holes(&hop.source(), &recording.trace, table, "")?;
        let recording = Arc::new(recording);
        self.recording = Some(recording.clone());
        Ok(recording)
    }

    /// Returns the trace of one direction, from a file or from a model.
    fn trace_of(&mut self, source: &TraceSource<'_>) -> Result<Trace, ScenarioError> {
        match (source.file, source.synth) {
            (Some(file), _) => self.read_trace(source, file),
            (None, Some(made)) => self.make_trace(source.table, made),
            (None, None) => {
                let table = source.table;
                let remedy = Remedy::new("name a recorded trace:").setting(table, "FILE");
                Err(self.origin.refuse_key(&format!("{table}.file"), "is missing".to_owned()).but(remedy))
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
        let key = format!("{table}.file");
        let bytes = self.read_file(&key, file)?;
        let (trace, rates) = Trace::read(&bytes, source.column)
            .map_err(|error| self.refuse_file(&key, "is not a trace", file, error))?;
        self.check_holes(source, &trace, &key, &format!(": {}", file.display()))?;
        self.replays.push(Replay::Trace(TraceReplay::of(source, file, &trace, rates, self.run)));
        Ok(trace)
    }

    /// Rejects a trace with a hole in the part that a run uses. `key` is the key of the error, `of` the end of its text.
    fn check_holes(
        &self,
        source: &TraceSource<'_>,
        trace: &Trace,
        key: &str,
        of: &str,
    ) -> Result<(), ScenarioError> {
        let table = source.table;
        // A run with a random start may meet every hole.
        let from_ms = source.start_s.fixed_ms().map_err(|error| self.origin.refuse(error.within(table)))?;
        let hole = match (from_ms, self.run) {
            (Some(from_ms), Some(run)) => trace.longest_hole_in(from_ms, run.as_millis() as u64),
            _ => trace.longest_hole(),
        };
        if hole.length < MAX_HOLE || source.allow_holes {
            return Ok(());
        }
        let remedy = Remedy::new("cut the trace there, or allow holes if the outage is meant (")
            .setting(format!("{table}.allow_holes"), "true")
            .text(")");
        let reason = format!(
            "has no delivery opportunity for {:.1} s from {:.1} s on{of}",
            hole.length.as_secs_f64(),
            hole.start_ms as f64 * 1e-3,
        );
        Err(self.origin.refuse_key(key, reason).but(remedy))
    }

    fn read_kpi(&mut self, file: &Path, trace: &Trace) -> Result<KpiTrace, ScenarioError> {
        let refuse = |reason: String| self.origin.refuse_key("trace.kpi", reason);
        let kpi = KpiTrace::parse(&self.read_file("trace.kpi", file)?)
            .map_err(|error| self.refuse_file("trace.kpi", "is not a KPI trace", file, error))?;
        let (last_ms, _) = kpi.values()[kpi.values().len() - 1];
        if last_ms >= trace.period_ms() {
            let remedy =
                Remedy::new("cut the KPI trace there, or give the one that belongs to this trace (see")
                    .task(UserTask::MakeKpiTrace)
                    .text(")");
            let error = refuse(format!(
                "has a value at {last_ms} ms, but the trace repeats after {} ms: {}",
                trace.period_ms(),
                file.display(),
            ));
            return Err(error.but(remedy));
        }
        self.replays.extend(KpiReplay::of(file, &kpi, trace).map(Replay::Kpi));
        Ok(kpi)
    }

    /// The error of a file that `key` names; `what` is the problem.
    fn refuse_file(&self, key: &str, what: &str, file: &Path, error: TraceError) -> ScenarioError {
        self.origin.refuse_key(key, format!("{what}: {}: {error}", file.display())).but(error.remedy)
    }

    /// The bytes of the recording that `key` names. The scenario with the file name may come from a stranger.
    fn read_file(&self, key: &str, file: &Path) -> Result<Vec<u8>, ScenarioError> {
        airpace_files::read_recording(file, MAX_RECORDING_BYTES).map_err(|error| {
            let remedy = airpace_files::recording_remedy(file, &error);
            let reason = format!("cannot be read: {}: {error}", file.display());
            self.origin.refuse_key(key, reason).but(remedy)
        })
    }
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

    /// The recording of a simulated cell, if the scenario has one (`[trace.recorded]`).
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_deref()
    }

    /// The recordings that runs replay, in the order in which the files were read.
    pub fn replays(&self) -> &[Replay] {
        &self.replays
    }
}
