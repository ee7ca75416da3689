//! Run folder of an emulated run: unmodified programs exchanged packets across a scenario's network in real time.
//!
//! The driver opens an [`EmulatedRun`] before the programs start. An unwritable folder is thus reported early, and an
//! interrupted run leaves a manifest that marks it as incomplete. When the programs have ended, the driver replays the
//! record of their packets through the same network in virtual time. The driver passes every [`Departure`] and every
//! event of the last hop to the run. At the end, the driver passes the emulator's audit of itself ([`Emulation`]).
//!
//! ```no_run
//! # fn main() -> Result<(), airpace_run::RunError> {
//! use airpace_core::Time;
//! use airpace_run::emulation::{EmulatedRun, Setup};
//! use airpace_run::manifest::Emulation;
//! use airpace_run::{Choice, Host};
//! use airpace_sim::{Scenario, builtin};
//!
//! let (name, text) = builtin()[0];
//! let scenario = Scenario::load(text, name, &[]).expect("a built-in scenario");
//! let run = EmulatedRun::create(&Setup {
//!     out: "runs/emulated-001".into(),
//!     choice: Choice { argument: name.to_owned(), set: vec![], scenario },
//!     seed: 1,
//!     command: format!("airpace emulate {name} -- iperf3 -c server"),
//!     host: Host::here("airpace emulate …", 1),
//! })?;
//! // … run.depart(&departure); run.record(Event::Capacity(capacity)); …
//! let finished = run.finish(Time::from_secs(10), Emulation { fit: true, ..Emulation::default() })?;
//! finished.folder.write_manifest(&finished.manifest)?;
//! # Ok(())
//! # }
//! ```
//!
//! A flow of an emulated run is a connection in one direction. The [`MAX_FLOWS`] connections with most bytes have their
//! own metrics. All other connections of a device and direction are merged into one flow, called `others`. The emulator
//! does not know which congestion control a program uses. The scheme of every flow is therefore [`SCHEME`], and the
//! scenario's expectations of schemes are not judged.

pub mod departures;
mod largest;
mod measure;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Instant;

use airpace_core::Time;
use airpace_event::{Detail, Event, Recorder};
use airpace_tables::EmulatedTables;
use airpace_tables::departures::Departure;
use airpace_tables::facts::RunFacts;

pub use largest::Flows;

use crate::error::RunError;
use crate::folder::RunFolder;
use crate::manifest::{Choice, Emulation, Host, Manifest, ManifestScenario};
use crate::metrics::Meter;
use crate::summary::{NotJudged, Summary};
use largest::Registry;

/// Scheme name of all flows of emulated runs, which are produced by programs.
pub const SCHEME: &str = "program";

/// Maximum number of connections with their own metrics.
///
/// Chosen: more than a reader compares. A web page takes some tens of connections.
pub const MAX_FLOWS: usize = 50;

/// Inputs of an emulated run's folder that are known before the run starts.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Path of the folder.
    pub out: PathBuf,
    /// The scenario, with its spelling and `--set` options.
    pub choice: Choice,
    /// Seed of the network's random streams.
    pub seed: u64,
    /// The command that repeats the run. It contains the name of the installed program, `airpace`.
    pub command: String,
    /// Description of this host. Its `program` is the program's name in the commands on the page.
    pub host: Host,
}

/// Writes the run folder of an emulated run.
pub struct EmulatedRun {
    folder: RunFolder,
    manifest: Manifest,
    not_judged: Vec<NotJudged>,
    /// Facts of the run, without its flows, which are known only at the end.
    facts: RunFacts,
    tables: EmulatedTables,
    registry: Registry,
    /// Measures the carriers of the cell.
    carriers: Meter,
    /// The first write error.
    failure: Option<RunError>,
    began: Instant,
}

/// A completed emulated run.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The run folder.
    pub folder: RunFolder,
    /// All metrics of the run.
    pub summary: Summary,
    /// Manifest of the completed run. The caller writes the page, and then this manifest.
    pub manifest: Manifest,
}

impl EmulatedRun {
    /// Creates the folder with the scenario, empty tables, and a manifest that marks the run as incomplete.
    ///
    /// # Errors
    /// Errors of [`RunFolder::create`]; a file cannot be created.
    pub fn create(setup: &Setup) -> Result<EmulatedRun, RunError> {
        let folder = RunFolder::create(&setup.out)?;
        let scenario = &setup.choice.scenario;
        let manifest = Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: false,
            command: setup.command.clone(),
            scenarios: vec![ManifestScenario {
                devices: scenario.device.iter().map(|device| device.label.clone()).collect(),
                ..ManifestScenario::of(&setup.choice)
            }],
            schemes: vec![SCHEME.to_owned()],
            choices: vec![],
            seeds: vec![setup.seed],
            emulation: Some(Emulation {
                unfit_because: vec!["The run did not come to its end.".to_owned()],
                ..Emulation::default()
            }),
            host: setup.host.clone(),
        };
        folder.write_manifest(&manifest)?;
        folder.write(&manifest.scenarios[0].file, scenario.to_toml().as_bytes())?;
        let facts = RunFacts {
            scenario: scenario.name.clone(),
            scheme: SCHEME.to_owned(),
            seed: setup.seed,
            duration: Time::ZERO,
            flows: vec![],
        };
        let not_judged = scenario.expect.iter().map(|expect| NotJudged {
            scenario: scenario.name.clone(),
            scheme: expect.scheme.clone(),
            say: expect.say.clone(),
        });
        Ok(EmulatedRun {
            manifest,
            not_judged: not_judged.collect(),
            tables: EmulatedTables::create(folder.root(), &facts, crate::facts::has_nr(scenario))?,
            registry: Registry::default(),
            carriers: Meter::new(&facts),
            folder,
            facts,
            failure: None,
            began: Instant::now(),
        })
    }

    /// Records a packet that has left the network or was dropped. The caller passes packets in the order of release. The
    /// first write error is stored for [`EmulatedRun::finish`], and later packets are ignored.
    pub fn depart(&mut self, departure: &Departure) {
        if self.failure.is_none() {
            let spelled = self.registry.count(departure);
            self.failure = self.tables.depart(departure, spelled).err().map(RunError::from);
        }
    }

    /// Writes the tables and the summary. `ended` is the end of the run. Packets that leave the network later are in the
    /// tables but in no throughput. The manifest in the folder still marks the run as incomplete: the caller writes the
    /// page, and then [`Finished::manifest`].
    ///
    /// # Errors
    /// The first file since [`EmulatedRun::create`] that could not be written or read back.
    pub fn finish(self, ended: Time, emulation: Emulation) -> Result<Finished, RunError> {
        let EmulatedRun { folder, mut manifest, not_judged, facts, tables, registry, carriers, .. } = self;
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        tables.finish()?;
        let facts = RunFacts { duration: ended, ..facts };
        let run = measure::measure(folder.root(), facts, &registry, carriers.finish().carriers)?;
        let summary = Summary { runs: vec![run], expectations: vec![], not_judged };
        folder.write_summary(&summary)?;
        manifest.complete = true;
        manifest.emulation = Some(emulation);
        manifest.host.wall_ms = self.began.elapsed().as_millis() as u64;
        Ok(Finished { folder, summary, manifest })
    }
}

/// Records the events of the last hop, [`Event::Capacity`] and [`Event::Subframe`], in order of time. Other events do not
/// occur in emulated runs and are ignored.
impl Recorder for EmulatedRun {
    fn record(&mut self, event: Event<'_>) {
        if self.failure.is_none() {
            self.carriers.record(&event);
            self.failure = self.tables.record(&event).err().map(RunError::from);
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Subframes
    }
}
