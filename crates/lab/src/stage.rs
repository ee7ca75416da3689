//! Set-up and end of an emulated run: a session whose network runs in real time, and this program's own parts in it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use airpace_core::{Refused, Time};
use airpace_emu::connections::Connections;
use airpace_emu::record::{Record, Spool};
use airpace_emu::session::{Control, Far, Program, ProgramEnd, SessionPlan, Spot};
use airpace_emu::turn::{Begins, Interfaces, Listeners, Turn, Turned};
use airpace_emu::{Audit, Session, World};
use airpace_rt::clock::Clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::LabError;
use crate::part::{Executable, INSIDE, Part};

/// A session and its interfaces, before the network runs.
pub struct Stage {
    session: Session,
    interfaces: Interfaces,
}

/// A session whose network runs.
pub struct Staged {
    /// The session, in which programs are started.
    pub session: Session,
    /// Clock of the run.
    pub clock: Clock,
    stop: Arc<AtomicBool>,
    turning: JoinHandle<Turned>,
    folder: PathBuf,
}

/// Results of a run.
pub struct Played {
    /// Record of all packets.
    pub record: Record,
    /// The connections of the packets.
    pub connections: Connections,
    /// The emulator's audit of itself.
    pub audit: Audit,
    /// Congestion controls that the sockets of the run used.
    pub controls: Vec<Control>,
}

/// A part of an experiment in the session, and the file with its output.
pub struct Player {
    /// The program, as the session starts it.
    pub program: Program,
    said: File,
    /// Index of the first word after the executable.
    first: usize,
}

impl Stage {
    /// Creates the network namespaces.
    ///
    /// # Errors
    /// A sentence that names the missing capability of this machine.
    pub fn make(executable: &Executable, devices: usize, far: Far) -> Result<Stage, LabError> {
        let (session, interfaces) =
            Session::begin(&SessionPlan { inside: inside(executable), devices, far })?;
        Ok(Stage { session, interfaces })
    }

    /// Warnings about unusual conditions of the session.
    pub fn doubts(&self) -> &[Refused] {
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
    ) -> Result<Staged, LabError> {
        let Stage { session, interfaces } = self;
        let spool = Spool::begin(folder).map_err(LabError::folder(folder))?;
        let (stop, clock, world) = (Arc::new(AtomicBool::new(false)), Clock::start(), world.clone());
        let turn = Turn { interfaces, spool, reports, clock, begins, stop: Arc::clone(&stop) };
        let turning = std::thread::Builder::new().name("turn".to_owned()).spawn(move || turn.run(&world));
        let turning = turning.map_err(LabError::step("the system gives no further thread"))?;
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
    ) -> Result<Vec<Option<ProgramEnd>>, LabError> {
        let until = Instant::now() + longest;
        let mut ends = vec![None; programs.iter().max().map_or(0, |last| last + 1)];
        while programs.iter().any(|&program| ends[program].is_none()) {
            if is_interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
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
    pub fn end(self) -> Result<Played, LabError> {
        let ended = self.session.end();
        self.stop.store(true, Ordering::Relaxed);
        let Turned { spool, connections, mut audit } =
            self.turning.join().map_err(|_| LabError::Thread("turn"))?;
        let (unread, controls) = ended?;
        audit.counts.unread = unread;
        let record = spool.finish().map_err(LabError::step(format!(
            "the record of packets could not be written in `{}`; make room there",
            self.folder.display()
        )))?;
        Ok(Played { record, connections, audit, controls })
    }
}

impl Player {
    /// Prepares a run of this executable with these words. Its output is stored in an unnamed file in `folder`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new(
        executable: &Executable,
        words: &[String],
        spot: Spot,
        folder: &Path,
    ) -> Result<Player, LabError> {
        let said = airpace_files::unnamed(folder).map_err(LabError::folder(folder))?;
        let own = executable.0.iter().map(|word| word.to_str().map(str::to_owned));
        let own = own.collect::<Option<Vec<_>>>();
        let own = own.ok_or(LabError::Refused("the program's path is not text in UTF-8".into()))?;
        let first = own.len();
        let words = own.into_iter().chain(words.iter().cloned()).collect();
        let directory = std::env::current_dir().map_err(LabError::step("there is no working folder"))?;
        Ok(Player { program: Program { words, spot, environment: vec![], directory }, said, first })
    }

    /// Prepares a part of an experiment.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn part(executable: &Executable, part: &Part, spot: Spot, folder: &Path) -> Result<Player, LabError> {
        Player::new(executable, &part.words(), spot, folder)
    }

    /// Starts the program. Returns its number.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&self, session: &mut Session) -> Result<usize, LabError> {
        Ok(session.launch(&self.program, Some(&self.said))?)
    }

    /// Starts the program as a server, and waits until it listens. Returns its number, and whether it listens.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn serve(&self, session: &mut Session) -> Result<(usize, bool), LabError> {
        Ok(session.serve(&self.program, Some(&self.said))?)
    }

    /// Returns the program's output.
    ///
    /// # Errors
    /// The output cannot be read.
    pub fn said(mut self) -> Result<String, LabError> {
        let mut text = String::new();
        self.said
            .rewind()
            .and_then(|()| self.said.read_to_string(&mut text))
            .map_err(LabError::step("the output of a program cannot be read"))?;
        Ok(text)
    }

    /// The command line, without the path of the executable.
    pub fn line(&self) -> String {
        format!("airpace {}", self.program.words[self.first..].join(" "))
    }
}

/// Waits up to 50 ms for a message of the session. Returns whether a message is waiting.
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
pub fn inside(executable: &Executable) -> Vec<OsString> {
    executable.0.iter().cloned().chain([INSIDE.into()]).collect()
}
