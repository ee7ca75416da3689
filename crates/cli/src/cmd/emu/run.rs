//! An emulated run, from the creation of the namespaces to the report.

use std::cell::OnceCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use airpace_emu::session::Far;
use airpace_lab::Executable;
use airpace_lab::emulated::{Emulated, Ended, Radio};
use airpace_lab::finish::Links;
use airpace_lab::programs::Programs;
use airpace_run::emulation::{SCHEME, Setup};
use airpace_run::shelf::{Claim, point_latest_to};
use airpace_run::{Choice, Host};

use super::super::runs::claim;
use super::super::{Verdict, matrix, on_interrupt};
use super::mmlog::Logs;
use super::{LastHopOptions, Options, Place, outcome};
use crate::called;
use crate::explain::explained;
use crate::terminal;

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
    let programs = Programs {
        words: words.to_vec(),
        device: options.device,
        servers: options.server.clone(),
        on: options.on.clone(),
        far: match options.far {
            Place::Own => Far::Own,
            Place::Host => Far::Host { or_own: false },
            Place::Auto if !options.server.is_empty() => Far::Own,
            Place::Auto => Far::Host { or_own: true },
        },
        seconds: options.seconds,
    };
    let radio = Radio { reports: last_hop.reports.clone(), od: last_hop.od.clone() };
    let mut logs = Logs::begin(last_hop, &choice)?;
    let is_interrupted = on_interrupt()?;
    // The namespaces are created before the run folder: without namespaces there is nothing to write.
    let emulated = Emulated::prepare(&Executable::this()?, &choice, options.seed, &programs, &radio)?;
    if !options.quiet {
        let doubts = emulated.doubts().iter().map(|doubt| explained(doubt));
        for said in emulated.replays().chain(doubts) {
            terminal::say(format_args!("airpace: {said}"));
        }
    }
    let folder = Folder::make(options.out.as_deref(), &choice.scenario.name)?;
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
    // The bar is made after the programs have ended, because they use the terminal.
    let bar = OnceCell::new();
    let has_logs = !logs.is_empty();
    let mut add = |direction, line| logs.add(direction, line);
    let links: Option<Links<'_>> = if has_logs { Some(&mut add) } else { None };
    let warn = |doubt: &str| terminal::say(format_args!("airpace: {doubt}"));
    let show = || bar.get_or_init(|| terminal::progress(options.quiet)).set_message("tables and page");
    let ended = emulated.run(&setup, &radio, links, &is_interrupted, &warn, show)?;
    logs.finish()?;
    let Ended { judged, failures, status } = ended;
    let page = airpace_page::complete(&judged.finished.folder, &judged.finished.manifest)?;
    bar.get().inspect(|bar| bar.finish_and_clear());
    if folder.is_numbered {
        point_latest_to(&folder.path);
    }
    for failure in failures {
        terminal::say(format_args!("airpace: {failure}"));
    }
    outcome::tell(&judged, &page, options, out)?;
    let status = status.unwrap_or(if is_interrupted.load(Ordering::Relaxed) { 130 } else { 0 });
    Ok(match (status, judged.is_fit) {
        (0, true) => Verdict::Fine,
        (0, false) => {
            if !options.quiet {
                terminal::say(terminal::noted(
                    "Status:",
                    &format!(
                        "the program ended with success; {UNFIT} means that the run's figures must not be used."
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
        Ok(Folder { _claim: claim(&path)?, is_numbered: out.is_none(), path })
    }
}
