//! The shelf of run folders: which there are and in which state, their removal, the folder of the next run, and the claim
//! that shows that a run is in progress.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airpace_tables::FileError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::RunError;
use crate::folder::RunFolder;
use crate::manifest::Manifest;

/// Another process writes into a folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another run writes into `{}`; wait for its end", folder.display())]
pub struct Claimed {
    /// The folder.
    pub folder: PathBuf,
}

/// Reason why a run folder cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Another run writes into the folder.
    #[error(transparent)]
    Claimed(#[from] Claimed),
    /// The folder holds no run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file cannot be removed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The run folders of a folder.
pub struct Shelf {
    /// The folder that contains the run folders.
    pub within: PathBuf,
    /// The run folders, in the order of their start times.
    pub runs: Vec<ShelvedRun>,
}

/// A run folder.
pub struct ShelvedRun {
    /// Name of the folder.
    pub name: String,
    /// Path of the folder.
    pub path: PathBuf,
    /// The manifest.
    pub manifest: Manifest,
    /// State of the run.
    pub state: State,
    /// Size of all its files (bytes).
    pub bytes: u64,
    /// Whether the link `latest` points to the folder.
    pub is_latest: bool,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The run was completed.
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
    /// The state as a word.
    pub fn word(self) -> &'static str {
        match self {
            State::Complete => "complete",
            State::Unfit => "unfit",
            State::WithoutPage => "without page",
            State::Incomplete => "incomplete",
            State::Running => "running",
        }
    }
}

impl Shelf {
    /// The run folders directly below `within`: folders with the manifest of a run. Links to folders do not count. With
    /// `may_be_missing`, a folder that does not exist contains no runs.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn within(within: &Path, may_be_missing: bool) -> io::Result<Shelf> {
        let entries = match fs::read_dir(within) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
            // Nothing was run here yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound && may_be_missing => vec![],
            Err(error) => return Err(error),
        };
        let latest = within.join("latest").canonicalize().ok();
        let mut runs = Vec::new();
        for entry in entries {
            let path = entry.path();
            let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|about| about.is_file());
            if !entry.file_type()?.is_dir() || !is_file(&path.join("manifest.json")) {
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
            runs.push(ShelvedRun {
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
        Ok(Shelf { within: within.to_owned(), runs })
    }

    /// The runs to which all conditions apply, the oldest first. Runs in progress are never among them.
    pub fn chosen(self, conditions: &Conditions, now: SystemTime) -> Vec<ShelvedRun> {
        let before = conditions.older_than_days.map(|days| {
            let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
            since_1970.saturating_sub(Duration::from_secs(u64::from(days) * 86_400)).as_secs()
        });
        let first_kept = conditions.keep.map_or(self.runs.len(), |keep| self.runs.len().saturating_sub(keep));
        let is_chosen = |(at, run): &(usize, ShelvedRun)| {
            run.state != State::Running
                && (conditions.latest || !run.is_latest || run.state == State::Incomplete)
                && (!conditions.incomplete || run.state == State::Incomplete)
                && before.is_none_or(|before| run.manifest.host.started_unix_s < before)
                && *at < first_kept
        };
        self.runs.into_iter().enumerate().filter(is_chosen).map(|(_, run)| run).collect()
    }
}

/// Conditions under which a run is chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions {
    /// Only runs that were stopped or failed before their end.
    pub incomplete: bool,
    /// Only runs that started more than this number of days ago.
    pub older_than_days: Option<u32>,
    /// All but the newest runs of this number.
    pub keep: Option<usize>,
    /// Also the complete run to which `latest` points.
    pub latest: bool,
}

impl ShelvedRun {
    /// Names of its scenarios.
    pub fn scenarios(&self) -> Vec<String> {
        self.manifest.scenarios.iter().map(|scenario| scenario.name.clone()).collect()
    }

    /// The schemes under test. If each scenario names its own, all schemes that ran.
    pub fn schemes(&self) -> Vec<String> {
        match self.manifest.schemes.is_empty() {
            true => self.manifest.choices.iter().map(|choice| choice.text.clone()).collect(),
            false => self.manifest.schemes.clone(),
        }
    }

    /// Removes the files of the run, and its folder if it is then empty. Returns whether the folder was removed.
    ///
    /// # Errors
    /// Another run writes into the folder, or a file cannot be removed.
    pub fn remove(&self) -> Result<bool, RemoveError> {
        // Another run may have started in this folder since it was listed.
        let _claim = Claim::of(&self.path)?;
        Ok(RunFolder::open(&self.path)?.remove()?)
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
    /// `None` if the file system has no locks, as on some network drives.
    _folder: Option<File>,
}

impl Claim {
    /// Claims a folder.
    ///
    /// # Errors
    /// Another run writes into the folder.
    pub fn of(folder: &Path) -> Result<Claim, Claimed> {
        // A process that lists folders holds each lock for a short time.
        for _ in 0..LOOKS {
            match Claim::attempt(folder) {
                Ok(claim) => return Ok(claim),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
        Err(Claimed { folder: folder.to_owned() })
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

/// Points the link `latest` next to `folder` to it. Returns whether the link now points to `folder`. The link is only a
/// convenience, so a failure is not an error.
pub fn point_latest_to(folder: &Path) -> bool {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return false };
    let latest = parent.join("latest");
    if latest.is_symlink() {
        let _ = fs::remove_file(&latest);
    }
    std::os::unix::fs::symlink(name, &latest).is_ok()
}

/// Makes the first of `runs/NAME-001`, `runs/NAME-002`, … that does not exist yet. Characters of `name` that a folder's name
/// may not have are replaced.
///
/// # Errors
/// The folder cannot be made.
pub fn next_folder(runs: &Path, name: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(runs)?;
    let name: String =
        name.chars().map(|c| if c.is_alphanumeric() || "-_.@".contains(c) { c } else { '_' }).collect();
    for number in 1u32.. {
        let folder = runs.join(format!("{name}-{number:03}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("four thousand million runs of one name")
}
