//! Emulated runs: unmodified programs behind the network of a scenario, in real time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use airpace_core::Refused;
use airpace_emu::turn::Begins;
use airpace_emu::{Session, World};
use airpace_run::Choice;
use airpace_run::emulation::{EmulatedRun, Setup};
use airpace_sim::Prepared;

use crate::error::LabError;
use crate::finish::{Judged, Links, Ran, finish};
use crate::part::Executable;
use crate::programs::{Cast, Programs};
use crate::stage::{Played, Stage, has_said};
use crate::telemetry::Telemetry;

/// Maximum time for programs to end after an interrupt; the terminal interrupts them too.
///
/// Chosen: enough to print a summary.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Receivers of the radio reports of the devices.
#[derive(Clone, Debug, Default)]
pub struct Radio {
    /// Folder for Unix sockets with the reports as lines.
    pub reports: Option<PathBuf>,
    /// Folder for libOD's shared memory.
    pub od: Option<PathBuf>,
}

/// An emulated run whose namespaces exist, before anything is written.
pub struct Emulated {
    world: World,
    prepared: Prepared,
    cast: Cast,
    stage: Stage,
    seconds: Option<f64>,
}

/// End of an emulated run.
pub struct Ended {
    /// The run with its verdict.
    pub judged: Judged,
    /// Messages about programs other than the main program that failed.
    pub failures: Vec<String>,
    /// Exit status of the main program or, if it is 0, of another program that failed. `None` if the main program was
    /// stopped.
    pub status: Option<i32>,
}

impl Emulated {
    /// Reads the scenario's files, and creates the namespaces.
    ///
    /// # Errors
    /// The scenario is invalid, it lacks a device that a program needs, or the machine cannot emulate.
    pub fn prepare(
        executable: &Executable,
        choice: &Choice,
        seed: u64,
        programs: &Programs,
        radio: &Radio,
    ) -> Result<Emulated, LabError> {
        let scenario = &choice.scenario;
        let prepared = scenario.prepare_endless()?;
        let world = World { plan: prepared.devices_network()?, devices: scenario.device.len(), seed };
        let cast = Cast::new(&scenario.name, world.devices, programs)?;
        let has_radio = scenario.cell.is_some() || scenario.trace.as_ref().is_some_and(|it| it.telemetry);
        if !has_radio && (radio.reports.is_some() || radio.od.is_some()) {
            let reason = "the scenario has no radio that could report anything; take one with a cell";
            return Err(LabError::Refused(reason.into()));
        }
        let stage = Stage::make(executable, world.devices, programs.far)?;
        Ok(Emulated { world, prepared, cast, stage, seconds: programs.seconds })
    }

    /// Which parts of the scenario's trace files the run uses, one sentence per file.
    pub fn replays(&self) -> impl Iterator<Item = String> {
        self.prepared.replays().iter().map(ToString::to_string)
    }

    /// Warnings about unusual conditions of the session.
    pub fn doubts(&self) -> &[Refused] {
        self.stage.doubts()
    }

    /// Runs the programs and writes the run folder, except for the page and the final manifest. `warn` receives messages
    /// during the run, and `ended` is called when the programs have ended and the results are computed.
    ///
    /// # Errors
    /// A file cannot be written, or a program cannot be started.
    pub fn run(
        self,
        setup: &Setup,
        radio: &Radio,
        links: Option<Links<'_>>,
        is_interrupted: &AtomicBool,
        warn: &dyn Fn(&str),
        ended: impl FnOnce(),
    ) -> Result<Ended, LabError> {
        let Emulated { world, mut cast, stage, seconds, .. } = self;
        let folder = &setup.out;
        let run = EmulatedRun::create(setup)?;
        let telemetry = Telemetry::open(radio.reports.as_deref(), radio.od.as_deref(), world.devices)?;
        cast.tell(|device| telemetry.environment(device));
        let (reports, teller) = match telemetry.start(SystemTime::now())? {
            Some((listeners, teller)) => (Some(listeners), Some(teller)),
            None => (None, None),
        };
        let mut staged = stage.turn(&world, Begins::AtOnce, reports, folder)?;
        let attended = attend(&mut cast, &mut staged.session, setup, seconds, is_interrupted, warn);
        // The programs are stopped while the network still delivers their packets.
        let played = staged.end();
        if let Some(teller) = teller {
            teller.join().map_err(|_| LabError::Thread("reports"))?;
        }
        attended?;
        let Played { record, connections, audit, controls } = played?;
        ended();
        let ran = Ran { world, record, connections, audit, controls, programs: cast.told() };
        let judged = finish(run, ran, links)?;
        Ok(Ended { judged, failures: cast.failures(folder), status: cast.status() })
    }
}

/// Starts the programs and waits until they have ended, the time limit is reached, or the run is interrupted.
fn attend(
    cast: &mut Cast,
    session: &mut Session,
    setup: &Setup,
    seconds: Option<f64>,
    is_interrupted: &AtomicBool,
    warn: &dyn Fn(&str),
) -> Result<(), LabError> {
    cast.start(session, &setup.out)?.iter().for_each(|doubt| warn(doubt));
    let began = Instant::now();
    let mut interrupted_at = None;
    loop {
        let is_over = seconds.is_some_and(|seconds| began.elapsed().as_secs_f64() >= seconds);
        if is_interrupted.load(Ordering::Relaxed) && interrupted_at.is_none() {
            interrupted_at = Some(Instant::now());
        }
        if is_over || interrupted_at.is_some_and(|at| at.elapsed() > ENDS_WITHIN) {
            return Ok(());
        }
        if has_said(session) && cast.ended(session.wait()?) {
            return Ok(());
        }
    }
}
