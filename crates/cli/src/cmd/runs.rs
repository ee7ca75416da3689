//! `airpace runs`: lists run folders.

mod prune;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_run::{Manifest, RunFolder};
use anyhow::Context;
use chrono::DateTime;
use indicatif::DecimalBytes;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::json;

use super::Verdict;
use crate::called;
use crate::terminal::{Paint, columns, fit, hang};

/// Lists the run folders with their start times, commands, states and sizes.
#[derive(clap::Args)]
#[command(before_help = "Example: airpace runs\n         airpace runs prune --incomplete")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The folder that contains the run folders.
    #[arg(long = "in", value_name = "DIR", default_value = "runs", global = true)]
    within: PathBuf,
    /// Prints one JSON object per run folder.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    Prune(prune::Args),
}

/// Lists the run folders, or removes some of them.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    let found = Found::within(&args.within)?;
    match &args.command {
        Some(Command::Prune(prune)) => prune::run(prune, found, args.json, out),
        None => list(&found, args, out),
    }
}

fn list(found: &Found, args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    if args.json {
        for run in &found.runs {
            writeln!(out, "{}", run.as_json())?;
        }
        return Ok(Verdict::Fine);
    }
    for run in &found.runs {
        run.write(out)?;
    }
    let bytes = found.runs.iter().map(|run| run.bytes).sum();
    let place = args.within.display();
    let closing = match found.runs.len() {
        0 => format!(
            "No run folders in `{place}`; `airpace demo`, `airpace sim` and `airpace emu` make them in `runs`."
        ),
        1 => format!("1 run folder in `{place}`, {}.", DecimalBytes(bytes)),
        many => format!("{many} run folders in `{place}`, {}.", DecimalBytes(bytes)),
    };
    writeln!(out, "{}", fit(&called::as_called(&closing)))?;
    Ok(Verdict::Fine)
}

/// The run folders of a folder.
struct Found {
    within: PathBuf,
    /// The run folders, in the order of their start times.
    runs: Vec<Run>,
}

/// A run folder.
struct Run {
    name: String,
    path: PathBuf,
    manifest: Manifest,
    state: State,
    /// Size of all files of the run, in bytes.
    bytes: u64,
    /// Whether the link `latest` points to the folder.
    is_latest: bool,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Complete,
    /// An emulated run was completed, but its results must not be used.
    Unfit,
    /// A run was completed, but its program was ended before the page was written.
    WithoutPage,
    /// The run was stopped, or it failed.
    Incomplete,
    /// Another process writes into the folder.
    Running,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::Unfit => "unfit",
            State::WithoutPage => "without page",
            State::Incomplete => "incomplete",
            State::Running => "running",
        }
    }
}

impl Found {
    /// The run folders directly below `within`: folders with the manifest of a run. Links to folders do not count.
    fn within(within: &Path) -> anyhow::Result<Found> {
        let entries = match fs::read_dir(within) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>(),
            // Nothing was run here yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && within == Path::new("runs") => {
                Ok(vec![])
            }
            Err(error) => Err(error),
        };
        let refused = || {
            format!("cannot look into `{}`; give --in the folder that holds run folders", within.display())
        };
        let latest = within.join("latest").canonicalize().ok();
        let mut runs = Vec::new();
        for entry in entries.with_context(refused)? {
            let path = entry.path();
            let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_file());
            if !entry.file_type().with_context(refused)?.is_dir() || !is_file(&path.join("manifest.json")) {
                continue;
            }
            let Ok(folder) = RunFolder::open(&path) else { continue };
            let Ok(manifest) = folder.manifest() else { continue };
            let state = match manifest.complete {
                true if manifest.emulation.as_ref().is_some_and(|emulation| !emulation.fit) => State::Unfit,
                true if is_file(&path.join("report.html")) => State::Complete,
                true if Claim::is_free(&path) => State::WithoutPage,
                true => State::Running,
                false if Claim::is_free(&path) => State::Incomplete,
                false => State::Running,
            };
            runs.push(Run {
                name: entry.file_name().to_string_lossy().into_owned(),
                bytes: bytes_below(&path),
                is_latest: latest.is_some() && path.canonicalize().ok() == latest,
                manifest,
                state,
                path,
            });
        }
        runs.sort_by(|a, b| {
            (a.manifest.host.started_unix_s, &a.name).cmp(&(b.manifest.host.started_unix_s, &b.name))
        });
        Ok(Found { within: within.to_owned(), runs })
    }
}

impl Run {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let (columns, paint) = (columns(), Paint::stdout());
        let latest = if self.is_latest { ", latest" } else { "" };
        let facts =
            format!("{}, {}, {}{latest}", self.started(), self.state.word(), DecimalBytes(self.bytes));
        let head = hang(&format!("{}  ", self.name), &facts, 4, columns);
        writeln!(out, "{}", head.replacen(&self.name, &paint.bold(&self.name), 1))?;
        let list = |words: &[String]| words.join(", ");
        let what = format!("{}; {}; seeds {}", list(&self.scenarios()), list(&self.schemes()), self.seeds());
        writeln!(out, "{}", hang("", &what, 4, columns))?;
        writeln!(out, "{}", hang("", &self.manifest.host.command, 4, columns))
    }

    fn as_json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "folder": self.path,
            "started_unix_s": self.manifest.host.started_unix_s,
            "command": self.manifest.host.command,
            "scenarios": self.scenarios(),
            "schemes": self.schemes(),
            "seeds": self.manifest.seeds,
            "state": self.state.word(),
            "bytes": self.bytes,
            "latest": self.is_latest,
        })
    }

    /// Start time of the run.
    fn started(&self) -> String {
        let seconds = i64::try_from(self.manifest.host.started_unix_s).unwrap_or(i64::MAX);
        let started = DateTime::from_timestamp(seconds, 0);
        started.map_or_else(|| "–".to_owned(), |started| started.format("%Y-%m-%d %H:%M UTC").to_string())
    }

    fn scenarios(&self) -> Vec<String> {
        self.manifest.scenarios.iter().map(|scenario| scenario.name.clone()).collect()
    }

    /// The schemes under test. If each scenario names its own, all schemes that ran.
    fn schemes(&self) -> Vec<String> {
        match self.manifest.schemes.is_empty() {
            true => self.manifest.choices.iter().map(|choice| choice.text.clone()).collect(),
            false => self.manifest.schemes.clone(),
        }
    }

    fn seeds(&self) -> String {
        airpace_run::shell::seeds_text(&self.manifest.seeds)
    }
}

/// The size of all files below a folder, in bytes. Links are not followed.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.filter_map(|entry| {
        let about = entry.metadata().ok()?;
        Some(if about.is_dir() { bytes_below(&entry.path()) } else { about.len() })
    });
    bytes.sum()
}

/// Interval between the attempts to claim a folder that another process holds, and number of these attempts.
///
/// Chosen: in total many times as long as `airpace runs` holds the lock of a folder.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS: u32 = 20;

/// A lock on a run's folder, held while the run writes to it. The lock shows other processes that the folder is in use.
/// The operating system releases the lock when the process ends for any reason.
pub struct Claim {
    /// The locked folder; `None` if the file system has no locks, as on some network drives.
    _folder: Option<File>,
}

impl Claim {
    /// Claims a folder.
    ///
    /// # Errors
    /// Another run writes into the folder.
    pub fn of(folder: &Path) -> anyhow::Result<Claim> {
        // A process that lists folders holds each lock for a short time.
        for _ in 0..LOOKS {
            match Claim::attempt(folder) {
                Ok(claim) => return Ok(claim),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
        anyhow::bail!(
            "another run writes into `{}`; wait for its end, or give --out another folder",
            folder.display()
        )
    }

    /// Whether no process has claimed a folder.
    fn is_free(folder: &Path) -> bool {
        Claim::attempt(folder).is_ok()
    }

    fn attempt(folder: &Path) -> Result<Claim, Errno> {
        // If the folder cannot be opened, writing to it will fail later.
        let Ok(opened) = File::open(folder) else { return Ok(Claim { _folder: None }) };
        match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
            Ok(()) => Ok(Claim { _folder: Some(opened) }),
            Err(_) => Ok(Claim { _folder: None }),
        }
    }
}

/// Points the link `latest`, which is next to `folder`, to `folder`. Returns whether the link now points to `folder`.
/// The link is only a convenience, so a failure is not an error.
pub fn point_latest_to(folder: &Path) -> bool {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return false };
    let latest = parent.join("latest");
    if latest.is_symlink() {
        let _ = fs::remove_file(&latest);
    }
    std::os::unix::fs::symlink(name, &latest).is_ok()
}
