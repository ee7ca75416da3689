//! The client: plays the video of a server in real time, or in the time of a test.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_core::{Bytes, Refused, Remedy, Time};
use airpace_rt::clock;
use airpace_video::{Action, Player, PlayerConfig, Representation, Session, State};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::connection::{Connection, Step};
use super::description::{LADDER_PATH, MAX_LADDER_BYTES, VideoDescription, segment_path};
use super::http::AcceptedLength;

/// Maximum time between two checks of the stop flag, and interval between two reports of progress.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// The parameters of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address of the server.
    pub server: SocketAddr,
    /// Name of the server in requests: host and port.
    pub host: String,
    /// Rule and buffers of the player. The server's description of the video replaces ladder, length and sizes.
    pub player: PlayerConfig,
    /// Time after which the viewer closes the video; `None`: at its end.
    pub duration: Option<Duration>,
    /// Maximum time without an answer of the server.
    pub patience: Duration,
}

/// The clock of a client, and its way to wait.
pub trait Clock {
    /// The current time. Its origin is arbitrary.
    fn now(&self) -> Time;

    /// Waits until the event occurs on the socket, or until the time `until`. May return earlier.
    ///
    /// # Errors
    /// The system cannot wait for the socket.
    fn wait(&mut self, event: Option<(BorrowedFd<'_>, PollFlags)>, until: Time) -> io::Result<()>;
}

/// The machine's monotonic clock, from zero.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(clock::Clock);

impl MonotonicClock {
    /// Starts the clock.
    pub fn start() -> MonotonicClock {
        MonotonicClock(clock::Clock::start())
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn wait(&mut self, event: Option<(BorrowedFd<'_>, PollFlags)>, until: Time) -> io::Result<()> {
        let left = (until - self.now()).min(CHECK_EVERY);
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut events: Vec<PollFd<'_>> =
            event.into_iter().map(|(socket, flags)| PollFd::from_borrowed_fd(socket, flags)).collect();
        match poll(&mut events, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Progress of a session.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// State of the player.
    pub state: State,
    /// Media played.
    pub position: Duration,
    /// Length of the video.
    pub length: Duration,
    /// Media in the buffer.
    pub buffered: Duration,
    /// The representation of the last requested segment.
    pub representation: Representation,
}

/// Reason for the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The whole video was played.
    Complete,
    /// The viewer closed the video after [`Settings::duration`].
    Closed,
    /// The stop flag was set.
    Stopped,
}

impl Ending {
    /// The name of the reason.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Complete => "complete",
            Ending::Closed => "closed",
            Ending::Stopped => "stopped",
        }
    }
}

/// The report of a client.
#[derive(Clone, Debug)]
pub struct Report {
    /// The session until its end; `None` if the server's description of the video did not arrive.
    pub session: Option<Session>,
    /// Time until the description of the video had arrived, which is the start of the session.
    pub set_up: Duration,
    /// Reason for the end, or the failure of connection or server.
    pub ending: Result<Ending, Refused>,
}

/// Plays the video of the server until its end, until the viewer closes it, or until `stop` is set. Reports the progress to
/// `watch` at intervals of 100 ms.
///
/// The session starts when the description of the video has arrived: as in the simulator, the first segment is requested over
/// an open connection.
pub fn play(
    settings: &Settings,
    clock: &mut dyn Clock,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Progress),
) -> Report {
    let start = clock.now();
    let mut client = Client {
        settings,
        clock,
        stop,
        connection: Connection::new(settings.server, settings.host.clone()),
        progressed: start,
    };
    let described = client.describe();
    let set_up = client.clock.now() - start;
    let (ending, session) = match described {
        Ok(Some(description)) => client.session(&description, watch),
        Ok(None) => (Ok(Ending::Stopped), None),
        Err(error) => (Err(error), None),
    };
    Report { session, set_up, ending }
}

struct Client<'a> {
    settings: &'a Settings,
    clock: &'a mut dyn Clock,
    stop: &'a AtomicBool,
    connection: Connection,
    /// Time of the last request or received byte.
    progressed: Time,
}

impl Client<'_> {
    /// Requests the description of the video. `None` if the stop flag was set.
    fn describe(&mut self) -> Result<Option<VideoDescription>, Refused> {
        self.request(LADDER_PATH, AcceptedLength::UpTo(MAX_LADDER_BYTES))?;
        let mut text = vec![];
        while !self.is_stopped() {
            self.wait(Time::NEVER)?;
            if self.step(&mut |part| text.extend_from_slice(part))? == Step::Complete {
                return serde_json::from_slice(&text).map(Some).map_err(|error| self.no_video(&error));
            }
        }
        Ok(None)
    }

    /// Plays the video. The session is `None` if the description is invalid.
    fn session(
        &mut self,
        description: &VideoDescription,
        watch: &mut dyn FnMut(&Progress),
    ) -> (Result<Ending, Refused>, Option<Session>) {
        let start = self.clock.now();
        let player = description
            .config(&self.settings.player)
            .and_then(|config| Ok((Player::new(&config, description.draws(), start)?, config)));
        let (mut player, config) = match player {
            Ok(made) => made,
            Err(error) => {
                return (Err(error.at(format_args!("the video of {}", self.settings.server))), None);
            }
        };
        let end = self.settings.duration.map_or(Time::NEVER, |duration| start + duration);
        let mut progress = Progresses { config: &config, representation: 0, due: start };
        let ending = loop {
            match self.turn(&mut player, end, &mut progress, watch) {
                Ok(None) => {}
                Ok(Some(ending)) => break Ok(ending),
                Err(error) => break Err(error),
            }
        };
        let now = self.clock.now().min(end);
        (ending, Some(player.session(now)))
    }

    /// Takes the player's actions, waits for an event, and processes it. Returns the reason if the session has ended.
    fn turn(
        &mut self,
        player: &mut Player,
        end: Time,
        progress: &mut Progresses<'_>,
        watch: &mut dyn FnMut(&Progress),
    ) -> Result<Option<Ending>, Refused> {
        while let Some(action) = player.poll_action() {
            match action {
                Action::Cancel => self.connection.cancel(),
                Action::Request(request) => {
                    progress.representation = request.representation;
                    let path = segment_path(request.representation, request.segment);
                    self.request(&path, AcceptedLength::Exactly(request.bytes.0))?;
                }
            }
        }
        progress.show(self.clock.now(), player, watch);
        if player.state() == State::Ended {
            return Ok(Some(Ending::Complete));
        }
        if self.is_stopped() {
            return Ok(Some(Ending::Stopped));
        }
        self.wait(player.poll_timeout().unwrap_or(Time::NEVER).min(end))?;
        let mut bytes = Bytes::ZERO;
        let step = self.step(&mut |part| bytes += Bytes(part.len() as u64));
        let now = self.clock.now();
        if now >= end {
            return Ok(Some(Ending::Closed));
        }
        let step = step?;
        if bytes > Bytes::ZERO {
            player.on_bytes(now, bytes);
        }
        if step == Step::Complete {
            player.on_complete(now);
        }
        player.handle_timeout(now);
        Ok(None)
    }

    /// Sends a request.
    fn request(&mut self, path: &str, accepted: AcceptedLength) -> Result<(), Refused> {
        self.progressed = self.clock.now();
        self.connection.request(path, accepted)
    }

    /// Waits until the connection can take a step, at most until the time `until`.
    fn wait(&mut self, until: Time) -> Result<(), Refused> {
        let event = self.connection.interest();
        let until = if event.is_some() { until.min(self.progressed + self.settings.patience) } else { until };
        self.clock.wait(event, until).map_err(|error| Refused::new(format!("cannot wait for data: {error}")))
    }

    /// Takes a step of the connection. Fails if the server has been silent for too long.
    fn step(&mut self, content: &mut dyn FnMut(&[u8])) -> Result<Step, Refused> {
        let step = self.connection.step(content)?;
        let (now, patience) = (self.clock.now(), self.settings.patience);
        if step != Step::Idle {
            self.progressed = now;
        } else if self.connection.interest().is_some() && now - self.progressed >= patience {
            let (server, seconds) = (self.settings.server, patience.as_secs_f64());
            let remedy = Remedy::new("check the network, or wait longer with").parameter("patience");
            return Err(
                Refused::new(format!("the video server {server} sent nothing for {seconds} s")).but(remedy)
            );
        }
        Ok(step)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The error of a server whose description of the video cannot be read.
    fn no_video(&self, error: &serde_json::Error) -> Refused {
        let server = self.settings.server;
        let remedy =
            Remedy::new("give the address of a machine with `airpace video serve` of the same version");
        Refused::new(format!("http://{server}{LADDER_PATH} is no description of a video: {error}"))
            .but(remedy)
    }
}

/// Reports progress at intervals.
struct Progresses<'c> {
    config: &'c PlayerConfig,
    /// Representation of the last requested segment.
    representation: usize,
    /// Time of the next report.
    due: Time,
}

impl Progresses<'_> {
    fn show(&mut self, now: Time, player: &Player, watch: &mut dyn FnMut(&Progress)) {
        if now < self.due {
            return;
        }
        self.due = now + CHECK_EVERY;
        watch(&Progress {
            state: player.state(),
            position: player.position(),
            length: self.config.ladder.segment() * self.config.segments(),
            buffered: player.buffered(),
            representation: self.config.ladder.representation[self.representation],
        });
    }
}
