//! An emulated run, from the creation of the namespaces to the report.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use airpace_emu::session::Far;
use airpace_emu::turn::Begins;
use airpace_emu::{Session, World};
use airpace_eval::emulation::{EmulatedRun, SCHEME, Setup};
use airpace_eval::{Choice, Host};

use super::super::runs::{Claim, point_latest_to};
use super::super::{Verdict, matrix, on_interrupt};
use super::finish::{self, Ran};
use super::mmlog::Logs;
use super::programs::Cast;
use super::stage::{Played, Stage, has_said};
use super::telemetry::Telemetry;
use super::{LastHopOptions, Options, Place};
use crate::called;
use crate::terminal;

/// Maximum time for programs to end after an interrupt; the terminal interrupts them too.
///
/// Chosen: enough to print a summary.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Runs programs behind the network of a scenario.
///
/// # Errors
/// A sentence that names the missing capability of this machine, or the defect of the scenario or of a program.
pub fn run(
    choice: Choice,
    options: &Options,
    last_hop: &LastHopOptions,
    words: &[String],
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let prepared = choice.scenario.prepare_endless()?;
    let world = World {
        plan: prepared.devices_network()?,
        devices: choice.scenario.device.len(),
        seed: options.seed,
    };
    let name = choice.scenario.name.clone();
    let mut cast = Cast::new(&name, world.devices, &options.server, &options.on, (options.device, words))?;
    // The namespaces are created before the run folder: without namespaces there is nothing to write.
    let far = match options.far {
        Place::Own => Far::Own,
        Place::Host => Far::Host { or_own: false },
        Place::Auto if !options.server.is_empty() => Far::Own,
        Place::Auto => Far::Host { or_own: true },
    };
    let logs = Logs::begin(last_hop, &choice)?;
    let has_radio =
        choice.scenario.cell.is_some() || choice.scenario.trace.as_ref().is_some_and(|it| it.telemetry);
    let is_asked = last_hop.reports.is_some() || last_hop.od.is_some();
    anyhow::ensure!(
        has_radio || !is_asked,
        "the scenario has no radio that could tell anything; take one with a cell"
    );
    if !options.quiet {
        for replay in prepared.replays() {
            terminal::say(format_args!("airpace: {replay}"));
        }
    }
    let is_interrupted = on_interrupt()?;
    let stage = Stage::make(world.devices, far)?;
    if !options.quiet {
        for doubt in stage.doubts() {
            terminal::say(format_args!("airpace: {doubt}"));
        }
    }

    let folder = Folder::make(options.out.as_deref(), &name)?;
    let setup = Setup {
        out: folder.path.clone(),
        choice,
        seed: options.seed,
        command: matrix::command_as_typed(),
        host: Host {
            program: called::lasting_name().to_owned(),
            ..Host::here(&matrix::command_as_typed(), 1)
        },
    };
    let run = EmulatedRun::create(&setup)?;
    let telemetry = Telemetry::open(last_hop.reports.as_deref(), last_hop.od.as_deref(), world.devices)?;
    cast.tell(|device| telemetry.environment(device));
    let (reports, teller) = match telemetry.start(SystemTime::now())? {
        Some((listeners, teller)) => (Some(listeners), Some(teller)),
        None => (None, None),
    };
    let mut staged = stage.turn(&world, Begins::AtOnce, reports, &folder.path)?;
    let attended = attend(&mut cast, &mut staged.session, &folder.path, options, &is_interrupted);
    // The programs are stopped while the network still delivers their packets.
    let played = staged.end();
    if let Some(teller) = teller {
        teller
            .join()
            .map_err(|_| anyhow::anyhow!("the thread that tells reports failed; please report this"))?;
    }
    attended?;
    let Played { record, connections, audit, controls } = played?;
    let ran = Ran { world, record, connections, audit, controls, programs: cast.told() };
    let finished = finish::finish(run, ran, logs, options.quiet)?;
    if folder.is_numbered {
        point_latest_to(&folder.path);
    }
    for failure in cast.failures(&folder.path) {
        terminal::say(format_args!("airpace: {failure}"));
    }
    finish::tell(&finished, options, out)?;
    let status = cast.status().unwrap_or(if is_interrupted.load(Ordering::Relaxed) { 130 } else { 0 });
    Ok(match (status, finished.is_fit) {
        (0, true) => Verdict::Fine,
        (0, false) => {
            if !options.quiet {
                terminal::say(terminal::noted(
                    "Status:",
                    &format!(
                        "the program ended with success; {UNFIT} says that the run's figures must not be used."
                    ),
                ));
            }
            Verdict::Status(UNFIT)
        }
        (status, _) => Verdict::Status(status as u8),
    })
}

/// Exit status of a run whose program succeeded and whose figures must not be used.
pub const UNFIT: u8 = 3;

/// Starts the programs and waits until they have ended, the time limit is reached, or the run is interrupted.
fn attend(
    cast: &mut Cast,
    session: &mut Session,
    folder: &Path,
    options: &Options,
    is_interrupted: &AtomicBool,
) -> anyhow::Result<()> {
    for doubt in cast.start(session, folder)? {
        terminal::say(format_args!("airpace: {doubt}"));
    }
    let began = Instant::now();
    let mut interrupted_at = None;
    loop {
        let is_over = options.seconds.is_some_and(|seconds| began.elapsed().as_secs_f64() >= seconds);
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

/// The run folder, locked by this run.
pub struct Folder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Whether the folder's name is numbered because the user gave no name.
    pub is_numbered: bool,
    _claim: Claim,
}

impl Folder {
    /// Creates the run folder.
    ///
    /// # Errors
    /// Another run writes to the folder, or the folder cannot be written.
    pub fn make(out: Option<&Path>, name: &str) -> anyhow::Result<Folder> {
        let path = match out {
            Some(path) => path.to_owned(),
            None => matrix::next_folder(Path::new("runs"), &format!("{name}-{SCHEME}"))?,
        };
        if out.is_some() {
            super::super::outputs::folder("--out", &path)?;
        }
        Ok(Folder { _claim: Claim::of(&path)?, is_numbered: out.is_none(), path })
    }
}
