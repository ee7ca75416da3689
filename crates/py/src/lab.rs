//! Experiments in real time: programs on an emulated network, and schemes over real transports.
//!
//! An experiment starts this module again, in an interpreter of its own that loads nothing else: the process that holds
//! namespaces must have only one thread.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use airpace_cc::SchemeSpec;
use airpace_core::DeviceId;
use airpace_emu::session::Far;
use airpace_lab::agree::{self as over_transports, Progress, Request};
use airpace_lab::emu_agree::{self, Step};
use airpace_lab::emulated::{Emulated, Radio};
use airpace_lab::over::Over;
use airpace_lab::part::{INSIDE, PART};
use airpace_lab::programs::Programs;
use airpace_lab::schedule::{Origin, Wanted};
use airpace_lab::{Executable, LabError, inside};
use airpace_run::emulation::Setup;
use airpace_run::manifest::Manifest;
use airpace_run::{Choice, Host, RunFolder};
use airpace_sim::Scenario;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

use crate::attend::attend;
use crate::raise;
use crate::run::Run;

/// Loads this module from its file, without the package around it, and calls [`part`].
const STARTER: &str = "\
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
path = sys.argv[1]
spec = spec_from_file_location('_airpace', path, loader=ExtensionFileLoader('_airpace', path))
module = module_from_spec(spec)
spec.loader.exec_module(module)
sys.exit(module.part(sys.argv[2:]))
";

/// Runs a part of an experiment: `emu-inside NUMBER` or `emu-part JSON`. Returns the exit status.
#[pyfunction]
pub fn part(words: Vec<String>) -> i32 {
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [INSIDE, socket] => socket.parse().map_or(2, inside::hold),
        [PART, json] => match inside::run(json, &mut std::io::stdout()) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("{}", raise::with_causes(&error));
                2
            }
        },
        _ => 2,
    }
}

/// The command line that starts [`part`].
fn executable(python: &str, module: &str) -> Executable {
    Executable([python, "-I", "-S", "-c", STARTER, module].map(OsString::from).into())
}

/// The scenario with these keys set.
fn choice(scenario: &str, set: Vec<(String, String)>) -> PyResult<Choice> {
    let loaded = Scenario::named(scenario, &set).map_err(raise::value)?;
    over_transports::asks_for_no_reports(&loaded).map_err(raise_lab)?;
    Ok(Choice { argument: scenario.to_owned(), set, scenario: loaded })
}

/// The exception for an error of an experiment.
fn raise_lab(error: LabError) -> PyErr {
    match error {
        LabError::Run(error) => raise::run(error),
        LabError::File(error) => raise::file(error),
        LabError::Folder { ref path, ref source } => raise::os(source, &raise::with_causes(&error), path),
        LabError::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
        LabError::System { .. } => PyOSError::new_err(raise::with_causes(&error)),
        LabError::Emu(_) | LabError::Simulation(_) | LabError::Thread(_) | LabError::Program { .. } => {
            raise::failed(raise::with_causes(&error))
        }
        LabError::Scenario(_) | LabError::Scheme(_) | LabError::Refused(_) => raise::value(error),
    }
}

/// The run in a folder, whose page and final manifest are written now.
fn completed(folder: RunFolder, manifest: &Manifest) -> PyResult<Run> {
    airpace_page::complete(&folder, manifest).map_err(raise::page)?;
    let summary = folder.summary().map_err(raise::file)?;
    Ok(Run::in_folder(summary, folder))
}

/// Runs `work` while Python handles signals. `work` receives the flag that stops it.
fn attended<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, LabError> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (ended, interrupted) = attend(py, &stop, &|| Ok(()), &|_| (), || work(&stop))?;
    match interrupted {
        Some(why) => Err(why),
        None => ended.map_err(raise_lab),
    }
}

/// Result of an emulated run: the run, exit status of the program (`None` if it was stopped), reasons why the figures must
/// not be used, and messages about other programs that failed.
type EmulatedRun = (Run, Option<i32>, Vec<String>, Vec<String>);

/// Runs programs on the emulated network of a scenario: see `airpace.emulate`.
#[pyfunction]
#[pyo3(signature = (scenario, command, *, set, seed, out, servers, on, device, isolated, seconds, reports, od, typed, python, module))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub fn emulate(
    py: Python<'_>,
    scenario: &str,
    command: Vec<String>,
    set: Vec<(String, String)>,
    seed: u64,
    out: PathBuf,
    servers: Vec<String>,
    on: Vec<(usize, String)>,
    device: u64,
    isolated: bool,
    seconds: Option<f64>,
    reports: Option<PathBuf>,
    od: Option<PathBuf>,
    typed: String,
    python: &str,
    module: &str,
) -> PyResult<EmulatedRun> {
    let choice = choice(scenario, set)?;
    let far = if isolated { Far::Own } else { Far::Host { or_own: true } };
    let programs = Programs { words: command, device, servers, on, far, seconds };
    let radio = Radio { reports, od };
    let executable = executable(python, module);
    let setup = Setup { out, choice, seed, command: typed.clone(), host: Host::here(&typed, 1) };
    let warnings = Mutex::new(vec![]);
    let ended = attended(py, |stop| {
        let emulated = Emulated::prepare(&executable, &setup.choice, seed, &programs, &radio)?;
        let warn = |text: &str| warnings.lock().expect("no thread panics with it").push(text.to_owned());
        emulated.doubts().iter().for_each(|doubt| warn(doubt));
        emulated.run(&setup, &radio, None, stop, &warn, || ())
    })?;
    let finished = ended.judged.finished;
    let run = completed(finished.folder, &finished.manifest)?;
    let mut messages = warnings.into_inner().expect("no thread panics with it");
    messages.extend(ended.failures);
    Ok((run, ended.status, ended.judged.audit.unfit_because, messages))
}

/// Sends one schedule of packets in real and in virtual time: see `airpace.agree_emulator`. Returns the run and the
/// comparison as JSON.
#[pyfunction]
#[pyo3(signature = (scenario, *, set, seed, out, schedule, seconds, device, typed, python, module))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub fn agree_emulator(
    py: Python<'_>,
    scenario: &str,
    set: Vec<(String, String)>,
    seed: u64,
    out: PathBuf,
    schedule: &str,
    seconds: Option<f64>,
    device: Option<u16>,
    typed: String,
    python: &str,
    module: &str,
) -> PyResult<(Run, String, bool)> {
    let choice = choice(scenario, set)?;
    let length = seconds.map(std::time::Duration::try_from_secs_f64).transpose().map_err(raise::value)?;
    let wanted = Wanted {
        origin: Origin::named(schedule),
        length,
        only: device.map(|number| DeviceId(number.saturating_sub(1))),
    };
    let executable = executable(python, module);
    let setup = Setup { out, choice, seed, command: typed.clone(), host: Host::here(&typed, 1) };
    let agreed = attended(py, |stop| {
        let tell = |_: Step| ();
        let comparison = emu_agree::Comparison::prepare(&executable, &setup.choice, seed, &wanted, &tell)?;
        comparison.run(&setup, stop, &tell)
    })?;
    let finished = agreed.judged.finished;
    let run = completed(finished.folder, &finished.manifest)?;
    let text = serde_json::to_string(&agreed.agreement).map_err(raise::failed)?;
    Ok((run, text, agreed.agreement.agrees()))
}

/// Compares schemes over real transports with the simulator: see `airpace.agree`. Returns the run and the rows of the
/// comparison as JSON.
#[pyfunction]
#[pyo3(signature = (scenario, *, schemes, transports, set, seed, spread, again, out, typed, progress, python, module))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub fn agree(
    py: Python<'_>,
    scenario: &str,
    schemes: Vec<String>,
    transports: Vec<String>,
    set: Vec<(String, String)>,
    seed: u64,
    spread: u16,
    again: u32,
    out: PathBuf,
    typed: String,
    progress: Option<Bound<'_, PyAny>>,
    python: &str,
    module: &str,
) -> PyResult<(Run, String)> {
    let mut specs = vec![];
    for word in schemes {
        specs.extend(SchemeSpec::named(&word).map_err(raise::value)?);
    }
    let over = |name: &String| {
        Over::of(name).filter(|over| *over != Over::Kernel).ok_or_else(|| {
            raise::value(format!(
                "transport `{name}`: give `udp` or `quic`; the program `airpace agree` has `kernel`"
            ))
        })
    };
    let request = Request {
        choice: choice(scenario, set)?,
        schemes: specs,
        over: transports.iter().map(over).collect::<PyResult<_>>()?,
        seed,
        spread,
        again,
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        program: "airpace".to_owned(),
        command: typed,
    };
    let executable = executable(python, module);
    let stop = AtomicBool::new(false);
    let share = Mutex::new((0.0, 0, 1));
    let tell = |at: Progress<'_>| {
        if let Progress::Run(_, index, runs, fraction) = at {
            let ended = index + usize::from(fraction >= 1.0);
            *share.lock().expect("no thread panics with it") =
                ((index as f64 + fraction) / runs.max(1) as f64, ended, runs);
        }
    };
    let show = || match &progress {
        Some(progress) => progress.call1(*share.lock().expect("no thread panics with it")).map(drop),
        None => Ok(()),
    };
    let load = |_: &SchemeSpec| Err("Python loads no schemes into the kernel".to_owned());
    let (ended, interrupted) = attend(py, &stop, &show, &|_| (), || {
        over_transports::Comparison::prepare(&executable, request)?.run(&executable, out, &load, &stop, &tell)
    })?;
    if let Some(why) = interrupted {
        return Err(why);
    }
    let compared = ended.map_err(raise_lab)?;
    show()?;
    let rows = serde_json::to_string_pretty(&compared.rows).map_err(raise::failed)?;
    let Some(folder) = compared.outcome.folder else { return Err(raise::failed("there is no run folder")) };
    folder.write("agree.json", (rows.clone() + "\n").as_bytes()).map_err(raise::file)?;
    Ok((completed(folder, &compared.outcome.manifest)?, rows))
}
