//! Live samples of KPIs: from a session of this process, or from the shared-memory region of a daemon.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use airpace_diag::kpi::{KpiError, Subscription};
use od::clock::now_ns;
use od::reader::GIVE_UP_AFTER;
use od::{Kpi, Od};

use crate::daemon::{Daemon, Notice, Options, StartError, Tapped};

/// Maximum number of samples in the queue for the terminal.
///
/// Chosen: ten seconds of all grants of a busy modem.
const ROOM: usize = 1 << 16;
/// Interval between reads of the shared-memory region. A read needs no system call.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Interval between attempts to open the shared-memory region of a new daemon after the previous one has stopped.
const REOPEN_EVERY: Duration = Duration::from_millis(500);

/// Error of a source of samples.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A KPI name that is not defined.
    #[error(transparent)]
    Kpi(#[from] KpiError),
    /// The session cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No daemon runs, or the daemon does not offer a KPI.
    #[error(transparent)]
    Daemon(#[from] od::Error),
    /// The port cannot be opened.
    #[error("{port} cannot be opened: {why}")]
    NotOpened {
        /// Name of the port.
        port: String,
        /// The error of the port.
        why: String,
    },
    /// The session has ended without a request.
    #[error("the session has ended by a fault")]
    Ended,
    /// The modem's settings were not restored, or the session failed.
    #[error("{0}")]
    Left(Notice),
}

/// A source of samples.
pub struct Feed {
    names: Vec<(String, &'static str)>,
    /// Radio of each KPI.
    radios: Vec<u8>,
    origin: Origin,
    title: String,
}

enum Origin {
    Session {
        daemon: Daemon,
        tap: Receiver<Tapped>,
        /// Whether to wait for a port that does not exist yet.
        waits: bool,
        was_open: bool,
    },
    Board(Board),
}

/// Shared-memory region of a daemon. It is opened again when the daemon is restarted.
struct Board {
    dir: Option<PathBuf>,
    od: Od,
    /// The KPIs, each with the sequence number of its last reading that was passed on.
    kpis: Vec<(Kpi, u64)>,
    was_alive: bool,
    /// Time at which to open the region again if the daemon sends no heartbeat until then.
    reopen_at: Instant,
    /// Arrival time of the latest reading that was passed on, in ns of [`od::clock`].
    seen_ns: u64,
    notices: Vec<&'static str>,
}

/// A sample of a KPI.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Index of the KPI in the feed.
    pub kpi: usize,
    /// Value of the sample, in the KPI's unit.
    pub value: f64,
    /// Radio of the phone.
    pub radio: u8,
    /// Index of the carrier.
    pub carrier: u8,
    /// Subframe, if known.
    pub subframe: Option<u16>,
    /// Sequence number among the samples of the KPI.
    pub sequence: u64,
    /// Time of the sample by the modem's clock; 0 if the modem did not report it.
    pub modem_ns: u64,
    /// Arrival time, in ns of [`od::clock`].
    pub arrival_ns: u64,
}

impl Feed {
    /// Opens a session of this process with these options, of which [`Options::tap`] is replaced. With `waits`, the session
    /// waits for a port that does not exist yet.
    ///
    /// # Errors
    /// [`WatchError::Kpi`] or [`WatchError::Start`].
    pub fn open_session(mut options: Options, waits: bool) -> Result<Feed, WatchError> {
        let (names, radios) = canonical(&options.kpis)?;
        let (sender, tap) = mpsc::sync_channel(ROOM);
        let title = options.source.to_string();
        options.tap = Some(sender);
        let daemon = Daemon::start(options)?;
        Ok(Feed { names, radios, origin: Origin::Session { daemon, tap, waits, was_open: false }, title })
    }

    /// Reads these KPIs from a running daemon with this folder; `None`: the daemon's usual folder.
    ///
    /// # Errors
    /// [`WatchError::Kpi`] or [`WatchError::Daemon`].
    pub fn open_daemon(dir: Option<&Path>, kpis: &[String]) -> Result<Feed, WatchError> {
        let (names, radios) = canonical(kpis)?;
        let board = Board::open(dir, &names)?;
        let title = match dir {
            Some(dir) => format!("daemon in {}", dir.display()),
            None => "daemon".to_owned(),
        };
        Ok(Feed { names, radios, origin: Origin::Board(board), title })
    }

    /// Title of the view: the name of the source.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Name and unit of every KPI.
    pub fn names(&self) -> &[(String, &'static str)] {
        &self.names
    }

    /// Name and unit of a KPI.
    pub fn name(&self, kpi: usize) -> (&str, &'static str) {
        let (name, unit) = &self.names[kpi];
        (name, unit)
    }

    /// Waits for samples for at most `patience`, and appends the samples that have arrived.
    ///
    /// # Errors
    /// [`WatchError::Ended`], or [`WatchError::Daemon`] if the successor of a daemon does not offer a KPI.
    pub fn wait(&mut self, patience: Duration, seen: &mut Vec<Seen>) -> Result<(), WatchError> {
        let until = Instant::now() + patience;
        match &mut self.origin {
            Origin::Session { tap, .. } => {
                let radios = &self.radios;
                let mut take = |tapped: Tapped| {
                    let kpi = tapped.slot.0 as usize;
                    // A tap delivers only the requested KPIs.
                    let Some(&radio) = radios.get(kpi) else { return };
                    seen.push(Seen {
                        kpi,
                        value: tapped.sample.value,
                        radio,
                        carrier: tapped.sample.carrier,
                        subframe: tapped.sample.subframe,
                        sequence: tapped.sequence,
                        modem_ns: tapped.sample.stamp.nanos(),
                        arrival_ns: tapped.arrival_ns,
                    });
                };
                match tap.recv_timeout(patience) {
                    Ok(tapped) => {
                        take(tapped);
                        tap.try_iter().take(ROOM).for_each(take);
                        Ok(())
                    }
                    Err(RecvTimeoutError::Timeout) => Ok(()),
                    Err(RecvTimeoutError::Disconnected) => Err(WatchError::Ended),
                }
            }
            Origin::Board(board) => {
                board.keep_open(&self.names)?;
                loop {
                    board.look(seen);
                    let left = until.saturating_duration_since(Instant::now());
                    if !seen.is_empty() || left.is_zero() {
                        return Ok(());
                    }
                    std::thread::sleep(left.min(LOOK_EVERY));
                }
            }
        }
    }

    /// Returns the notices since the last call.
    ///
    /// # Errors
    /// [`WatchError::NotOpened`] if the port has never been open, and the session does not wait for it.
    pub fn notices(&mut self) -> Result<Vec<String>, WatchError> {
        match &mut self.origin {
            Origin::Session { daemon, waits, was_open, .. } => {
                let mut said = Vec::new();
                for notice in daemon.notices().try_iter() {
                    match notice {
                        Notice::NotOpened(why) if !*waits && !*was_open => {
                            return Err(WatchError::NotOpened {
                                port: self.title.clone(),
                                why: why.to_string(),
                            });
                        }
                        Notice::Opened => *was_open = true,
                        _ => {}
                    }
                    said.push(notice.to_string());
                }
                Ok(said)
            }
            Origin::Board(board) => Ok(board.notices.drain(..).map(str::to_owned).collect()),
        }
    }

    /// Closes the feed, and restores the settings of a session's modem.
    ///
    /// # Errors
    /// [`WatchError::Left`].
    pub fn close(self) -> Result<(), WatchError> {
        let Origin::Session { daemon, tap, .. } = self.origin else { return Ok(()) };
        daemon.leave();
        drop(tap);
        let mut trouble = None;
        for notice in daemon.notices() {
            if matches!(notice, Notice::NotRestored | Notice::Broken(_)) {
                trouble = Some(notice);
            }
        }
        trouble.map_or(Ok(()), |notice| Err(WatchError::Left(notice)))
    }
}

impl Board {
    /// # Errors
    /// No daemon runs, or the daemon does not offer a KPI.
    fn open(dir: Option<&Path>, names: &[(String, &str)]) -> Result<Board, od::Error> {
        let od = Od::open(dir)?;
        let subscribe = |(name, _): &(String, &str)| -> Result<_, od::Error> {
            let kpi = od.subscribe(name)?;
            // Readings that were published earlier do not count as new.
            let seen = kpi.latest().map_or(0, |reading| reading.sequence);
            Ok((kpi, seen))
        };
        let kpis = names.iter().map(subscribe).collect::<Result<_, _>>()?;
        Ok(Board {
            dir: dir.map(Path::to_owned),
            od,
            kpis,
            was_alive: true,
            reopen_at: Instant::now(),
            seen_ns: now_ns(),
            notices: vec![],
        })
    }

    /// Checks whether the daemon is alive. If it has stopped, opens the shared-memory region of its successor.
    ///
    /// # Errors
    /// The successor does not offer a KPI.
    fn keep_open(&mut self, names: &[(String, &str)]) -> Result<(), od::Error> {
        let is_alive = self.od.is_alive();
        if is_alive != self.was_alive {
            self.was_alive = is_alive;
            // A daemon that is only delayed by the machine's load resumes by itself within this time.
            self.reopen_at = Instant::now() + GIVE_UP_AFTER;
            self.notices.push(if is_alive {
                "the daemon is back"
            } else {
                "the daemon sends no heartbeat; the samples of its successor will be shown"
            });
        }
        if is_alive || Instant::now() < self.reopen_at {
            return Ok(());
        }
        self.reopen_at = Instant::now() + REOPEN_EVERY;
        match Board::open(self.dir.as_deref(), names) {
            Ok(mut board) => {
                // All readings that the new daemon published after the last known reading are new.
                let is_news =
                    |kpi: &Kpi| kpi.latest().is_some_and(|reading| reading.arrival_ns > self.seen_ns);
                for (kpi, seen) in &mut board.kpis {
                    if is_news(kpi) {
                        *seen = 0;
                    }
                }
                board.notices = std::mem::take(&mut self.notices);
                board.was_alive = false;
                board.seen_ns = self.seen_ns;
                *self = board;
                Ok(())
            }
            Err(error @ od::Error::Refused { .. }) => Err(error),
            // There is no successor yet.
            Err(_) => Ok(()),
        }
    }

    /// Appends the new readings.
    fn look(&mut self, seen: &mut Vec<Seen>) {
        for (at, (kpi, last)) in self.kpis.iter_mut().enumerate() {
            if let Some(reading) = kpi.latest().filter(|reading| reading.sequence > *last) {
                *last = reading.sequence;
                self.seen_ns = self.seen_ns.max(reading.arrival_ns);
                seen.push(Seen {
                    kpi: at,
                    value: reading.value,
                    radio: reading.radio,
                    carrier: reading.carrier,
                    subframe: reading.subframe,
                    sequence: reading.sequence,
                    modem_ns: reading.modem_ns,
                    arrival_ns: reading.arrival_ns,
                });
            }
        }
    }
}

/// Names of the KPIs in the daemon's spelling without duplicates, with their units and radios.
type Canonical = (Vec<(String, &'static str)>, Vec<u8>);

fn canonical(kpis: &[String]) -> Result<Canonical, KpiError> {
    let mut once = Subscription::default();
    for wanted in Subscription::new(kpis.iter().map(String::as_str))?.iter() {
        once.add(wanted.clone());
    }
    let names = once.iter().map(|wanted| (wanted.to_string(), wanted.unit())).collect();
    let radios = once.iter().map(|wanted| wanted.radio.0).collect();
    Ok((names, radios))
}
