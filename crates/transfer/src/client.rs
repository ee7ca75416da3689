//! Client of a transfer, which opens the connection: `airpace send`. It reconnects by itself after a lost connection.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_cc::schemes::SchemeSpec;
use airpace_core::plain::plain;
use airpace_core::{Remedy, Time};

use super::link::{Link, Role, Stop, Word, Work};
use super::message::{Code, Fault, Hash, Message, VERSION, Way};
use super::progress::{Progress, Stage as Seen};
use super::receiving::Receiving;
use super::sending::Sending;
use super::source::Sources;
use super::steering::{self, ends};
use super::store::{Finisher, Store};
use airpace_transport::app::App;
use airpace_transport::endpoint::{Closed, Connection, ConnectionId, Endpoint, Event};
use airpace_transport::key::{self, Key};

/// Initial pause before a new attempt. Each pause is twice the previous one, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Maximum pause before a new attempt.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Timeout of the handshake, of the peer's answer to each message before the transfer, and of the final acknowledgement.
const HASTE: Duration = Duration::from_secs(15);

/// Minimum timeout of the handshake, if less of [`Settings::patience`] is left.
const MIN_HASTE: Duration = Duration::from_secs(1);

/// Interval between calls of the progress callback.
const WATCH: Duration = Duration::from_millis(100);

/// Maximum number of file bytes read per timeout event for comparison.
const BUDGET: usize = 1 << 20;

/// Direction and files of a transfer.
pub enum Job {
    /// Send these files.
    Push(Rc<RefCell<dyn Sources>>),
    /// Receive files with these names.
    Pull {
        /// Names of the files in the peer's folder.
        names: Vec<String>,
        /// Storage for the received files.
        store: Rc<dyn Store>,
        /// Whether radio reports of this machine are available.
        has_radio: bool,
    },
}

/// Settings of a client.
pub struct Settings {
    /// Key that the receiver printed.
    pub key: Key,
    /// Address of the receiver.
    pub peer: SocketAddr,
    /// Congestion control scheme of the sender.
    pub scheme: SchemeSpec,
    /// Direction and files of the transfer.
    pub job: Job,
    /// Maximum time without a sign of life from the peer, after which the client gives up.
    pub patience: Duration,
    /// Request to stop in good order; checked about ten times per second.
    pub stop: Arc<AtomicBool>,
}

/// One transfer to or from a receiver.
pub struct Client {
    settings: Settings,
    transfer: String,
    watch: Box<dyn FnMut(&Progress)>,
    finisher: Rc<Finisher>,
    stage: Stage,
    link: Link,
    progress: Progress,
    began: Option<Time>,
    /// Time of the last sign of life from the peer, or of the first attempt.
    heard: Option<Time>,
    pause: Duration,
    /// Time at which the transfer over this connection was accepted.
    moving_since: Option<Time>,
    due: Option<Time>,
    watched: Option<Time>,
    outcome: Option<Result<(), Fault>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No connection; the next attempt starts at this time.
    Pause(Time),
    /// Stages on a connection, each with its deadline.
    Connecting(ConnectionId, Time),
    Hello(ConnectionId, Time),
    Request(ConnectionId, Time),
    Moving(ConnectionId),
    /// All files are stored; the end of the stream is on its way to the peer.
    Ending(ConnectionId, Time),
    Over,
}

impl Client {
    /// Creates a transfer. `watch` receives its progress about ten times per second.
    ///
    /// # Errors
    /// The scheme does not work over a real transport or without a radio, or the system returns no random numbers.
    pub fn new(settings: Settings, watch: impl FnMut(&Progress) + 'static) -> Result<Client, Fault> {
        let made = ends(&settings.scheme)?;
        if let (Job::Pull { has_radio, .. }, Some(receiver)) = (&settings.job, &made.receiver) {
            steering::can_receive(&settings.scheme, receiver.as_ref(), *has_radio)?;
        }
        let mut number = [0; 32];
        number[..16].copy_from_slice(
            &key::random::<16>().map_err(|error| Fault::new(Code::Source, error.to_string()))?,
        );
        let transfer = Hash(number).to_string()[..32].to_owned();
        Ok(Client {
            settings,
            transfer,
            watch: Box::new(watch),
            finisher: Rc::new(Finisher::start()),
            stage: Stage::Pause(Time::ZERO),
            link: Link::default(),
            progress: Progress::default(),
            began: None,
            heard: None,
            pause: FIRST_PAUSE,
            moving_since: None,
            due: None,
            watched: None,
            outcome: None,
        })
    }

    /// Progress of the transfer.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Result of the transfer; `None` while it runs.
    pub fn outcome(&self) -> Option<&Result<(), Fault>> {
        self.outcome.as_ref()
    }

    /// Stops the transfer in good order, so that it can be resumed.
    fn stop(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        let fault = Fault::new(Code::Stopped, "it was stopped; type the same command again to go on");
        self.end(now, endpoint, Err(fault));
    }

    fn id(&self) -> Option<ConnectionId> {
        match self.stage {
            Stage::Pause(_) | Stage::Over => None,
            Stage::Connecting(id, _)
            | Stage::Hello(id, _)
            | Stage::Request(id, _)
            | Stage::Moving(id)
            | Stage::Ending(id, _) => Some(id),
        }
    }

    fn end(&mut self, now: Time, endpoint: &mut dyn Endpoint, outcome: Result<(), Fault>) {
        if self.outcome.is_some() {
            return;
        }
        if let Some(connection) = self.id().and_then(|id| endpoint.connection(id)) {
            self.progress.look(connection, self.link.work.tally());
            let (code, text) = match &outcome {
                Ok(()) => (Code::Fine, String::new()),
                Err(fault) => (fault.code, fault.short()),
            };
            connection.close(now, code.number(), &text);
        }
        if outcome.is_ok() {
            self.progress.stage = Seen::Done;
        }
        self.stage = Stage::Over;
        self.outcome = Some(outcome);
        self.show(now);
    }

    /// Abandons the connection and schedules a new attempt, unless the peer has been silent for longer than the patience.
    fn lost(&mut self, now: Time, endpoint: &mut dyn Endpoint, why: &str) {
        // The pause is reset only if the transfer lasted a while: a connection that is accepted and ends at once may be
        // refused for long, for example because another sender is writing the file.
        if self.moving_since.take().is_some_and(|since| since + MAX_PAUSE <= now) {
            self.pause = FIRST_PAUSE;
        }
        if let Some(connection) = self.id().and_then(|id| endpoint.connection(id)) {
            connection.close(now, Code::Busy.number(), "the sender opens a new connection");
        }
        self.link = Link::default();
        self.due = None;
        self.progress.losses += 1;
        let heard = *self.heard.get_or_insert(now);
        if now + self.pause - heard > self.settings.patience {
            self.stage = Stage::Over;
            let (peer, silence) = (self.settings.peer, (now - heard).as_secs_f64());
            let remedy =
                Remedy::new("repeat the transfer, which goes on, or wait longer with").parameter("patience");
            let sentence = if silence < 1.0 {
                format!("{peer} refuses: {why}")
            } else {
                format!("nothing was received from {peer} for {silence:.0} s: {why}")
            };
            return self.end(now, endpoint, Err(Fault::new(Code::Busy, sentence).but(remedy)));
        }
        self.stage = Stage::Pause(now + self.pause);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        self.progress.stage = Seen::Waiting(why.to_owned());
        self.show(now);
    }

    fn fail(&mut self, now: Time, endpoint: &mut dyn Endpoint, fault: Fault) {
        match fault.code.may_pass() {
            true => self.lost(now, endpoint, &fault.sentence),
            false => self.end(now, endpoint, Err(fault)),
        }
    }

    fn begin(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        self.began.get_or_insert(now);
        let heard = *self.heard.get_or_insert(now);
        match endpoint.connect(now, self.settings.peer) {
            Ok(id) => {
                let patience = heard + self.settings.patience;
                let until = (now + HASTE).min(patience.max(now + MIN_HASTE));
                self.stage = Stage::Connecting(id, until);
            }
            Err(why) => self.lost(now, endpoint, &why.to_string()),
        }
    }

    /// The handshake is complete. Installs the scheme and sends the proof of the key; the peer must prove the key as well.
    fn connected(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId) -> Result<(), Fault> {
        let Some(connection) = endpoint.connection(id) else { return Ok(()) };
        let ends = ends(&self.settings.scheme)?;
        match self.settings.job {
            Job::Push(_) => connection.steer(now, ends.controller),
            Job::Pull { .. } => connection.listen(ends.receiver),
        }
        self.link = Link::default();
        self.link.channel.put_hello(&Role::Client.prove(&self.settings.key, &connection.binding()));
        self.stage = Stage::Hello(id, now + HASTE);
        self.progress.stage = Seen::Agreeing;
        Ok(())
    }

    fn turn(&mut self, now: Time, endpoint: &mut dyn Endpoint, budget: &mut usize) {
        while let Some(id) = self.id() {
            let Some(connection) = endpoint.connection(id) else { return };
            if matches!(self.stage, Stage::Connecting(..)) {
                return;
            }
            let turned = self.link.turn(now, connection, budget);
            self.due = self.link.poll_timeout(now);
            let heard = match turned {
                Ok(Some(word)) => self.heard(now, connection, id, word),
                Ok(None) => {
                    let is_done = self.link.work.is_done() && self.link.channel.is_flushed();
                    if !is_done || !matches!(self.stage, Stage::Moving(_)) {
                        return;
                    }
                    if let Job::Push(_) = self.settings.job {
                        return self.end(now, endpoint, Ok(()));
                    }
                    // The peer must learn that the last file is stored.
                    connection.finish(now);
                    self.stage = Stage::Ending(id, now + HASTE);
                    return;
                }
                // An event contains the reason.
                Err(Stop::Lost) => return,
                Err(Stop::Fault(fault)) => Err(fault),
            };
            if let Err(fault) = heard {
                return self.fail(now, endpoint, fault);
            }
        }
    }

    fn heard(
        &mut self,
        now: Time,
        connection: &dyn Connection,
        id: ConnectionId,
        word: Word,
    ) -> Result<(), Fault> {
        match (self.stage, word) {
            (Stage::Hello(..), Word::Hello(version, proof)) => {
                if !Role::Server.verify(&self.settings.key, &connection.binding(), &proof) {
                    let why = "the program that answers does not know the key: it is not your receiver, or somebody \
                               intercepts the connection";
                    return Err(Fault::new(Code::Key, format!("{why}; nothing was sent")));
                }
                if version != VERSION {
                    return Err(Fault::protocol(format_args!(
                        "it has version {version} of the protocol, this program has {VERSION}"
                    )));
                }
                let (way, files, bytes, names) = match &self.settings.job {
                    Job::Push(sources) => {
                        (Way::Push, sources.borrow().files(), sources.borrow().bytes(), vec![])
                    }
                    Job::Pull { names, .. } => (Way::Pull, names.len() as u64, None, names.clone()),
                };
                let (transfer, scheme) = (self.transfer.clone(), self.settings.scheme.text().to_owned());
                self.link.channel.put(&Message::Request { transfer, way, scheme, files, bytes, names });
                self.stage = Stage::Request(id, now + HASTE);
                Ok(())
            }
            (Stage::Request(..), Word::Message(Message::Accepted { files, bytes })) => {
                self.link.work = match &self.settings.job {
                    Job::Push(sources) => Work::Sending(Box::new(Sending::new(Rc::clone(sources)))),
                    Job::Pull { names, store, .. } => {
                        if files != names.len() as u64 {
                            return Err(Fault::protocol("it offered another number of files than requested"));
                        }
                        let (store, finisher) = (Rc::clone(store), Rc::clone(&self.finisher));
                        Work::Receiving(Box::new(Receiving::new(
                            self.transfer.clone(),
                            files,
                            bytes,
                            store,
                            finisher,
                        )))
                    }
                };
                self.stage = Stage::Moving(id);
                self.moving_since = Some(now);
                self.progress.stage = Seen::Moving;
                Ok(())
            }
            // The peer has received all files.
            (Stage::Moving(_) | Stage::Ending(..), Word::End) => Ok(()),
            (_, Word::End) => Err(Fault::new(Code::Busy, "the receiver ended its stream too early")),
            (_, Word::Hello(..) | Word::Message(_)) => {
                Err(Fault::protocol("it sent a message at the wrong time"))
            }
        }
    }

    fn closed(&mut self, now: Time, endpoint: &mut dyn Endpoint, why: &Closed) {
        if let Stage::Ending(..) = self.stage {
            return self.end(now, endpoint, Ok(()));
        }
        match why {
            Closed::ByPeer { code, reason } if !Code::of(*code).may_pass() && *code != 0 => {
                let said = plain(reason).into_owned();
                let sentence =
                    if said.is_empty() { format!("the receiver refused, with code {code}") } else { said };
                self.end(now, endpoint, Err(Fault::new(Code::of(*code), sentence)));
            }
            why => self.lost(now, endpoint, &why.to_string()),
        }
    }

    fn show(&mut self, now: Time) {
        self.watched = Some(now);
        self.progress.elapsed = self.began.map_or(Duration::ZERO, |began| now - began);
        (self.watch)(&self.progress);
    }
}

impl App for Client {
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, event: Event) {
        if self.id() != Some(id) {
            return;
        }
        match event {
            Event::Closed(why) => return self.closed(now, endpoint, &why),
            Event::Connected => {
                self.heard = Some(now);
                if let Err(fault) = self.connected(now, endpoint, id) {
                    return self.end(now, endpoint, Err(fault));
                }
            }
            Event::Readable | Event::Writable => self.heard = Some(now),
            Event::Flushed if matches!(self.stage, Stage::Ending(..)) => {
                return self.end(now, endpoint, Ok(()));
            }
            Event::Flushed | Event::Moved(_) => {}
        }
        self.turn(now, endpoint, &mut 0);
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        if self.settings.stop.load(Ordering::Relaxed) {
            return self.stop(now, endpoint);
        }
        match self.stage {
            Stage::Pause(until) if until <= now => self.begin(now, endpoint),
            Stage::Ending(_, until) if until <= now => return self.end(now, endpoint, Ok(())),
            Stage::Connecting(_, until) if until <= now => {
                return self.lost(
                    now,
                    endpoint,
                    "it does not answer: no receiver of files runs there, its UDP port is not open, or the key is \
                     another (over the transport `udp` a wrong key is not answered)",
                );
            }
            Stage::Hello(_, until) | Stage::Request(_, until) if until <= now => {
                return self.lost(
                    now,
                    endpoint,
                    "the program there does not answer as a receiver of files does",
                );
            }
            _ => {}
        }
        self.turn(now, endpoint, &mut { BUDGET });
        if self.outcome.is_none() && self.watched.is_none_or(|watched| now >= watched + WATCH) {
            if let Some(connection) = self.id().and_then(|id| endpoint.connection(id)) {
                self.progress.look(connection, self.link.work.tally());
            }
            self.show(now);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        let stage = match self.stage {
            Stage::Over => return None,
            Stage::Moving(_) => None,
            Stage::Pause(at)
            | Stage::Connecting(_, at)
            | Stage::Hello(_, at)
            | Stage::Request(_, at)
            | Stage::Ending(_, at) => Some(at),
        };
        let watch = self.watched.map_or(Time::ZERO, |watched| watched + WATCH);
        [stage, self.due, Some(watch)].into_iter().flatten().min()
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }
}
