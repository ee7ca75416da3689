//! The run folder of an emulated run: unmodified programs ran, and their packets crossed a scenario's network in real time.
//!
//! The driver opens an [`EmulatedRun`] before the programs start, so that a folder that cannot be written is refused
//! early, and a run that is interrupted leaves a manifest that says so. When the programs have ended, it plays the record
//! of their packets through the same network again, in virtual time, and gives the run every [`Departure`] and every
//! event of the last hop as they come. At the end it gives what the emulator knows of itself ([`Emulation`]).
//!
//! ```no_run
//! # fn main() -> Result<(), airpace_eval::EvalError> {
//! use airpace_core::Time;
//! use airpace_eval::emulation::{EmulatedRun, Emulation, Setup};
//! use airpace_eval::{Choice, Host};
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
//! println!("{}", finished.page.display());
//! # Ok(())
//! # }
//! ```
//!
//! What simulated runs call a flow is here a connection in one direction. The [`MOST_FLOWS`] connections with most bytes
//! have numbers of their own. All others of a device and direction are put together as one flow, called `others`. The
//! emulator does not know which congestion control a program uses: the scheme of every flow is [`SCHEME`], and a run gives
//! no verdict on what its scenario expects of schemes.

mod connection;
mod largest;
mod measure;
mod section;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use airpace_core::{Bytes, DeviceId, Direction, Time};
use airpace_event::{Detail, Event, Fate, Recorder};

pub use connection::{Connection, End, Protocol};
pub(crate) use largest::Flows;
pub use section::{Audit, Control, Emulation, Exit, ForeignFrames, Lateness, Program};

use crate::error::EvalError;
use crate::facts::RunFacts;
use crate::folder::{Host, Manifest, ManifestScenario, RunFolder};
use crate::matrix::Choice;
use crate::metrics::Meter;
use crate::report;
use crate::summary::{NotJudged, Summary};
use crate::tables::EmulatedTables;
use largest::Registry;

/// The word in place of a scheme: what ran was a program.
pub const SCHEME: &str = "program";

/// How many connections have numbers of their own.
///
/// Chosen: more than a reader compares. A page of the Web takes some tens of connections.
pub const MOST_FLOWS: usize = 50;

/// A packet whose journey through the emulated network is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The device at one end.
    pub device: DeviceId,
    /// Whether it went to the device or came from there.
    pub direction: Direction,
    /// Its connection, in the direction of the packet.
    pub connection: Connection,
    /// Its size: the whole IP packet.
    pub bytes: Bytes,
    /// When it was read from its TUN device.
    pub entered: Time,
    /// When the network let it go or dropped it, by the network's own clock: not earlier than `entered`.
    pub released: Time,
    /// When it was handed to the other side: not earlier than `released`. `None` if it was dropped, or if the run was over
    /// before. In the second case `fate` is [`Fate::Delivered`]; such packets are in the table, but in no number.
    pub handed: Option<Time>,
    /// How long the network takes when it is empty.
    pub propagation_delay: Duration,
    /// What the network did with it.
    pub fate: Fate,
    /// Whether a copy of it had come out before (the wire makes copies).
    pub duplicate: bool,
    /// Whether a queue of the network marked it (ECN).
    pub marked: bool,
}

/// What a run folder says of an emulated run before it begins.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The folder.
    pub out: PathBuf,
    /// The scenario and how it was chosen.
    pub choice: Choice,
    /// Seed of the network's random streams.
    pub seed: u64,
    /// The command that runs the same again. It calls the program as an installed one is called: `airpace …`.
    pub command: String,
    /// This host. Its `program` is what commands on the page call the program.
    pub host: Host,
}

/// Writes the run folder of an emulated run.
pub struct EmulatedRun {
    folder: RunFolder,
    manifest: Manifest,
    not_judged: Vec<NotJudged>,
    /// Without flows: which those are is known at the end.
    facts: RunFacts,
    tables: EmulatedTables,
    registry: Registry,
    /// Sees the carriers of the cell.
    carriers: Meter,
    /// The first failure to write.
    failure: Option<EvalError>,
    began: Instant,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The folder.
    pub folder: RunFolder,
    /// Every number.
    pub summary: Summary,
    /// The page.
    pub page: PathBuf,
}

impl EmulatedRun {
    /// Makes the folder, with a manifest that says that the run is not complete, the scenario and empty tables.
    ///
    /// # Errors
    /// As [`RunFolder::create`]; a file that cannot be made.
    pub fn create(setup: &Setup) -> Result<EmulatedRun, EvalError> {
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
            tables: EmulatedTables::create(folder.root(), &facts)?,
            registry: Registry::default(),
            carriers: Meter::new(&facts),
            folder,
            facts,
            failure: None,
            began: Instant::now(),
        })
    }

    /// Takes a packet whose journey is over. Packets come in the order in which the network released them. A failure to
    /// write is kept for [`EmulatedRun::finish`]; what comes later is then not written.
    pub fn depart(&mut self, departure: &Departure) {
        if self.failure.is_none() {
            let spelled = self.registry.count(departure);
            self.failure = self.tables.depart(departure, spelled).err();
        }
    }

    /// Writes the numbers, the page and the complete manifest. `ended` is when the run ended; what comes out of the network
    /// later is in the tables, and in no throughput.
    ///
    /// # Errors
    /// The first file that could not be written or read back, since [`EmulatedRun::create`].
    pub fn finish(self, ended: Time, emulation: Emulation) -> Result<Finished, EvalError> {
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
        let page = report::write_with(&folder, &manifest);
        folder.write_manifest(&manifest)?;
        let page = page?;
        Ok(Finished { folder, summary, page })
    }
}

/// Takes the events of the last hop, [`Event::Capacity`] and [`Event::Subframe`], in order of time. Other events are not of an
/// emulated run and are left out.
impl Recorder for EmulatedRun {
    fn record(&mut self, event: Event<'_>) {
        if self.failure.is_none() {
            self.carriers.record(&event);
            self.failure = self.tables.record(&event).err();
        }
    }

    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Subframes
    }
}
