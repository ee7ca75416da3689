//! Set-up and end of an emulated run: a session whose network runs in real time, and Airpace's own programs in it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airpace_core::Time;
use airpace_emu::connections::Connections;
use airpace_emu::record::{Record, Spool};
use airpace_emu::session::{Control, Far, Program, ProgramEnd, SessionPlan, Spot};
use airpace_emu::turn::{Begins, Interfaces, Listeners, Turn, Turned};
use airpace_emu::{Audit, Session, World};
use airpace_rt::clock::Clock;
use anyhow::{Context, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A session and its interfaces, before the network runs.
pub struct Stage {
    session: Session,
    interfaces: Interfaces,
}

/// A session whose network runs.
pub struct Staged {
    pub session: Session,
    pub clock: Clock,
    stop: Arc<AtomicBool>,
    turning: JoinHandle<Turned>,
    folder: PathBuf,
}

/// Results of a run.
pub struct Played {
    pub record: Record,
    pub connections: Connections,
    pub audit: Audit,
    /// Congestion controls that the sockets of the run used.
    pub controls: Vec<Control>,
}

/// One of Airpace's own programs in the session, and the file with its output.
pub struct Player {
    pub program: Program,
    said: File,
}

impl Stage {
    /// Creates the network namespaces.
    ///
    /// # Errors
    /// A sentence that names the missing capability of this machine.
    pub fn make(devices: usize, far: Far) -> anyhow::Result<Stage> {
        let (session, interfaces) = Session::begin(&SessionPlan { inside: inside()?, devices, far })?;
        Ok(Stage { session, interfaces })
    }

    /// Warnings about unusual conditions of the session.
    pub fn doubts(&self) -> &[String] {
        self.session.doubts()
    }

    /// Starts the network. The record of packets is written to `folder`; radio reports go to `reports`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn turn(
        self,
        world: &World,
        begins: Begins,
        reports: Option<Listeners>,
        folder: &Path,
    ) -> anyhow::Result<Staged> {
        let Stage { session, interfaces } = self;
        let spool = Spool::begin(folder).with_context(|| {
            format!("cannot write into `{}`; choose another place with --out", folder.display())
        })?;
        let (stop, clock, world) = (Arc::new(AtomicBool::new(false)), Clock::start(), world.clone());
        let turn = Turn { interfaces, spool, reports, clock, begins, stop: Arc::clone(&stop) };
        let turning = std::thread::Builder::new().name("turn".to_owned()).spawn(move || turn.run(&world))?;
        Ok(Staged { session, clock, stop, turning, folder: folder.to_owned() })
    }
}

impl Staged {
    /// Waits until these programs have ended, at most for `longest`, and reports the run's time to `progress` several
    /// times per second. Returns the ends of the programs, indexed by their number; `None` for programs that have not
    /// ended.
    ///
    /// # Errors
    /// The run is interrupted, or the session has ended.
    pub fn wait(
        &mut self,
        programs: &[usize],
        longest: Duration,
        is_interrupted: &AtomicBool,
        progress: impl Fn(Time),
    ) -> anyhow::Result<Vec<Option<ProgramEnd>>> {
        let until = Instant::now() + longest;
        let mut ends = vec![None; programs.iter().max().map_or(0, |last| last + 1)];
        while programs.iter().any(|&program| ends[program].is_none()) {
            if is_interrupted.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            if Instant::now() > until {
                break;
            }
            progress(self.clock.now());
            if has_said(&self.session) {
                let end = self.session.wait()?;
                if let Some(place) = ends.get_mut(end.program) {
                    *place = Some(end);
                }
            }
        }
        Ok(ends)
    }

    /// Stops all programs and the network.
    ///
    /// # Errors
    /// The record of packets could not be written.
    pub fn end(self) -> anyhow::Result<Played> {
        let ended = self.session.end();
        self.stop.store(true, Ordering::Relaxed);
        let Turned { spool, connections, mut audit } =
            self.turning.join().map_err(|_| anyhow!("the emulator's thread failed; please report this"))?;
        let (unread, controls) = ended?;
        audit.counts.unread = unread;
        let record = spool.finish().with_context(|| {
            format!(
                "the record of packets could not be written in `{}`; make room there",
                self.folder.display()
            )
        })?;
        Ok(Played { record, connections, audit, controls })
    }
}

impl Player {
    /// Prepares a run of this executable with these arguments. Its output is stored in an unnamed file in `folder`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new(words: &[String], spot: Spot, folder: &Path) -> anyhow::Result<Player> {
        let said = airpace_files::unnamed(folder).with_context(|| {
            format!("cannot write into `{}`; choose another place with --out", folder.display())
        })?;
        let program = this_program()?;
        let program = program.to_str().context("the program's path is not text in UTF-8")?.to_owned();
        let words = std::iter::once(program).chain(words.iter().cloned()).collect();
        let directory = std::env::current_dir().context("there is no working folder")?;
        Ok(Player { program: Program { words, spot, environment: vec![], directory }, said })
    }

    /// Starts the program. Returns its number.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&self, session: &mut Session) -> anyhow::Result<usize> {
        Ok(session.launch(&self.program, Some(&self.said))?)
    }

    /// Starts the program as a server, and waits until it listens. Returns its number, and whether it listens.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn serve(&self, session: &mut Session) -> anyhow::Result<(usize, bool)> {
        Ok(session.serve(&self.program, Some(&self.said))?)
    }

    /// Returns the program's output.
    ///
    /// # Errors
    /// The output cannot be read.
    pub fn said(mut self) -> anyhow::Result<String> {
        let mut text = String::new();
        self.said
            .rewind()
            .and_then(|()| self.said.read_to_string(&mut text))
            .context("what a program said cannot be read again")?;
        Ok(text)
    }

    /// The command line, without the path of the executable.
    pub fn line(&self) -> String {
        format!("airpace {}", self.program.words[1..].join(" "))
    }
}

/// Waits up to 50 ms for a message of the session. Returns whether there is one.
pub fn has_said(session: &Session) -> bool {
    if session.has_end() {
        return true;
    }
    let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let handle = session.handle();
    let mut waiting = [PollFd::new(&handle, PollFlags::IN)];
    poll(&mut waiting, Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// The command line of the process that holds a session's namespaces.
///
/// # Errors
/// The path of this executable is unknown.
pub fn inside() -> anyhow::Result<Vec<OsString>> {
    Ok(vec![this_program()?, "emu-inside".into()])
}

fn this_program() -> anyhow::Result<OsString> {
    Ok(std::env::current_exe().context("the program does not find itself")?.into())
}
