//! The app that fetches files of one server over one connection, several at once.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use airpace_core::Time;
use airpace_files::Whole;

use super::request;
use crate::app::App;
use crate::quic::{QuicConnection, StreamNews};
use crate::transport::{Closed, Connection, ConnectionId, Endpoint, Event, Figures, Read};

/// How long a server may take to finish the handshake.
///
/// Chosen: six tries of a client whose packets are lost, which begin a second apart and double.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// How long a server that is alive may send nothing of the files.
///
/// Chosen: longer than any outage that a connection survives.
pub const MAX_SILENCE: Duration = Duration::from_secs(60);

/// A longer time between two looks at the clock was spent elsewhere, such as with a reader that takes nothing.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Files that are fetched at once.
///
/// Chosen: as a browser over one connection; a server of ours allows 100.
const AT_ONCE: usize = 16;

/// Bytes that are read of a stream at once.
const CHUNK: usize = 64 << 10;

/// Where a file goes.
pub enum Sink {
    /// Into a file, which gets its name when it is whole.
    File(Whole),
    /// To whoever takes the bytes as they come.
    Stream(Box<dyn Write + Send>),
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::File(file) => file.write_all(bytes),
            Sink::Stream(stream) => stream.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.finish(),
            Sink::Stream(mut stream) => stream.flush(),
        }
    }
}

/// A file to fetch.
pub struct Wanted {
    /// The path in the request ([`super::url::Url::path`]).
    pub path: String,
    /// Where it goes.
    pub sink: Sink,
}

/// How far one file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It was not asked for yet.
    #[default]
    Waiting,
    /// It was asked for.
    Fetching,
    /// All of it is stored.
    Done,
    /// It did not come, and why.
    Failed(String),
}

/// One file's progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProgress {
    /// Bytes that were taken.
    pub bytes: u64,
    /// How far it is.
    pub stage: Stage,
}

/// How far all is.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// In the order in which they were asked for. HTTP/0.9 does not tell how long a file is.
    pub files: Vec<FileProgress>,
    /// The server, once there is a connection.
    pub peer: Option<SocketAddr>,
    /// What is known of the connection.
    pub figures: Figures,
}

/// What others may look at while a [`Client`] works.
pub type Shared = Arc<Mutex<Progress>>;

/// How long nothing has come. Only time in which something could have been read counts.
#[derive(Debug, Default)]
struct Silence {
    length: Duration,
    looked: Option<Time>,
}

impl Silence {
    /// Something came.
    fn end(&mut self, now: Time) {
        *self = Silence { length: Duration::ZERO, looked: Some(now) };
    }

    /// Whether it has lasted too long.
    fn is_too_long(&mut self, now: Time) -> bool {
        let since = self.looked.replace(now).map_or(Duration::ZERO, |looked| now - looked);
        self.length += since.min(2 * LOOK_EVERY);
        self.length >= MAX_SILENCE
    }

    /// When to look next.
    fn next(&self) -> Time {
        self.looked.unwrap_or(Time::ZERO) + LOOK_EVERY
    }
}

/// Fetches files from one server.
pub struct Client {
    server: SocketAddr,
    wanted: Vec<Option<Wanted>>,
    /// Of those that were not asked for yet, in order.
    waiting: VecDeque<usize>,
    /// By the number of the stream.
    asked: BTreeMap<u64, (usize, Wanted)>,
    id: Option<ConnectionId>,
    is_connected: bool,
    /// When to give up the handshake.
    until: Time,
    silence: Silence,
    progress: Progress,
    shared: Shared,
    stop: Arc<AtomicBool>,
    is_done: bool,
    buffer: Vec<u8>,
}

impl Client {
    /// Fetches `wanted` from the server at an address. Its first [`App::on_timeout`] connects. With `stop` set, the
    /// next one gives up.
    pub fn new(server: SocketAddr, wanted: Vec<Wanted>, stop: Arc<AtomicBool>) -> Client {
        let progress = Progress { files: vec![FileProgress::default(); wanted.len()], ..Progress::default() };
        Client {
            server,
            waiting: (0..wanted.len()).collect(),
            wanted: wanted.into_iter().map(Some).collect(),
            asked: BTreeMap::new(),
            id: None,
            is_connected: false,
            until: Time::ZERO,
            silence: Silence::default(),
            shared: Arc::new(Mutex::new(progress.clone())),
            progress,
            stop,
            is_done: false,
            buffer: vec![0; CHUNK],
        }
    }

    /// What others may look at.
    pub fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// How far all is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether a connection was made. If not, the same files may be asked for at another address.
    pub fn was_connected(&self) -> bool {
        self.is_connected
    }

    /// What was not asked for, to try it elsewhere.
    pub fn into_wanted(self) -> Vec<Wanted> {
        self.wanted.into_iter().flatten().collect()
    }

    fn connect(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        match endpoint.connect(now, self.server) {
            Ok(id) => {
                self.id = Some(id);
                self.until = now + ANSWERS_WITHIN;
            }
            Err(why) => self.fail_all(&why),
        }
    }

    /// Asks for files, as many as the server and [`AT_ONCE`] allow.
    fn ask(&mut self, now: Time, connection: &mut QuicConnection) {
        while self.asked.len() < AT_ONCE && !self.waiting.is_empty() {
            let Some(stream) = connection.open_stream() else { return };
            let Some(index) = self.waiting.pop_front() else { return };
            let Some(wanted) = self.wanted[index].take() else { continue };
            let line = request::compose(&wanted.path);
            match connection.write_stream(now, stream, &line) {
                Ok(taken) if taken == line.len() => {
                    connection.finish_stream(now, stream);
                    self.progress.files[index].stage = Stage::Fetching;
                    self.asked.insert(stream, (index, wanted));
                }
                Ok(_) => {
                    connection.give_up_stream(stream, 0);
                    self.fail(index, "the server takes no whole request".to_owned());
                }
                Err(why) => self.fail(index, why),
            }
        }
    }

    fn on_streams(&mut self, now: Time, connection: &mut QuicConnection) {
        while let Some(news) = connection.poll_stream() {
            match news {
                StreamNews::Readable(stream) => self.on_readable(now, connection, stream),
                // A server has nothing to ask of us.
                StreamNews::Opened(stream) => connection.give_up_stream(stream, 0),
                StreamNews::Writable(_) | StreamNews::Flushed(_) | StreamNews::MayOpen => {}
            }
        }
        self.ask(now, connection);
    }

    fn on_readable(&mut self, now: Time, connection: &mut QuicConnection, stream: u64) {
        while let Some((index, wanted)) = self.asked.get_mut(&stream) {
            let index = *index;
            let result = match connection.read_stream(now, stream, &mut self.buffer) {
                Ok(Read::Nothing) => return,
                Ok(Read::Bytes(count)) => {
                    self.silence.end(now);
                    self.progress.files[index].bytes += count as u64;
                    match wanted.sink.write(&self.buffer[..count]) {
                        Ok(()) => continue,
                        Err(error) => Err(format!("cannot be stored: {error}")),
                    }
                }
                Ok(Read::End) => Ok(()),
                Err(why) => Err(format!("the server has no such file or may not give it: {why}")),
            };
            let Some((_, wanted)) = self.asked.remove(&stream) else { return };
            let stored = result.and_then(|()| {
                connection.forget_stream(stream);
                wanted.sink.finish().map_err(|error| format!("cannot be stored: {error}"))
            });
            match stored {
                Ok(()) => self.progress.files[index].stage = Stage::Done,
                Err(why) => {
                    connection.give_up_stream(stream, 0);
                    self.fail(index, why);
                }
            }
        }
    }

    fn fail(&mut self, index: usize, why: String) {
        self.progress.files[index].stage = Stage::Failed(why);
    }

    /// Nothing more will come.
    fn fail_all(&mut self, why: &str) {
        for file in &mut self.progress.files {
            if !matches!(file.stage, Stage::Done | Stage::Failed(_)) {
                file.stage = Stage::Failed(why.to_owned());
            }
        }
        self.asked.clear();
        self.waiting.clear();
    }

    /// Ends when every file's lot is known, and lets others see how far it is.
    fn settle(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        let is_over = |file: &FileProgress| matches!(file.stage, Stage::Done | Stage::Failed(_));
        if let Some(connection) = self.id.and_then(|id| endpoint.connection(id)) {
            self.progress.figures = connection.figures();
            if self.progress.files.iter().all(is_over) && !self.is_done {
                connection.close(now, 0, "");
            }
        }
        self.is_done = self.progress.files.iter().all(is_over);
        // A panic elsewhere leaves plain data behind.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&self.progress);
    }
}

/// Why a connection is over, with the remedy.
fn remedy(why: &Closed) -> String {
    match why {
        Closed::Failed(text) if text.contains("certificate") => format!(
            "{why}; name the server's root with --ca, its certificate's fingerprint with --fingerprint, or trust \
             anyone with --insecure"
        ),
        Closed::Failed(text) if text.contains("application protocol") || text.contains("ALPN") => {
            format!("{why}; the server does not speak hq-interop")
        }
        _ => why.to_string(),
    }
}

impl App for Client {
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, event: Event) {
        if Some(id) != self.id {
            return;
        }
        let connection = endpoint.connection(id).and_then(|connection| connection.quic());
        match (event, connection) {
            (Event::Connected, Some(connection)) => {
                self.is_connected = true;
                self.silence.end(now);
                self.progress.peer = Some(connection.peer());
                self.ask(now, connection);
            }
            (Event::Closed(why), _) => self.fail_all(&remedy(&why)),
            (_, Some(connection)) => self.on_streams(now, connection),
            (_, None) => {}
        }
        self.settle(now, endpoint);
    }

    fn on_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        if self.stop.load(Ordering::Relaxed) {
            self.fail_all("it was interrupted");
        } else if self.id.is_none() {
            self.connect(now, endpoint);
        } else if !self.is_connected && now >= self.until {
            let waited = ANSWERS_WITHIN.as_secs();
            self.fail_all(&format!("{} did not answer in {waited} s; check address and port", self.server));
        } else if self.is_connected && !self.is_done && self.silence.is_too_long(now) {
            let silence = MAX_SILENCE.as_secs();
            self.fail_all(&format!(
                "{} is there, but has sent nothing for {silence} s; try it again later",
                self.server
            ));
        }
        self.settle(now, endpoint);
    }

    fn next(&self) -> Option<Time> {
        match self.id {
            _ if self.is_done => None,
            None => Some(Time::ZERO),
            Some(_) if self.is_connected => Some(self.silence.next()),
            Some(_) => Some(self.until),
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_could_be_read_is_given_up() {
        let at = |seconds: u64| Time::ZERO + Duration::from_secs(seconds);
        let mut silence = Silence::default();
        silence.end(at(10));
        assert!((11..70).all(|now| !silence.is_too_long(at(now))));
        assert!(silence.is_too_long(at(70)));
        silence.end(at(71));
        // The thread waited for an hour for the reader of a pipe.
        assert!(!silence.is_too_long(at(3_600)));
        assert_eq!(silence.next(), at(3_601));
    }
}
