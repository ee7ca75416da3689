//! Application that fetches files from one server over one connection, several at once.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use airpace_core::Time;
use airpace_core::remedy::explain_plainly;
use airpace_files::Whole;

use super::request;
use airpace_transport::app::App;
use airpace_transport::endpoint::{Closed, ConnectionId, Endpoint, Event, Read};
use airpace_transport::quic::{QuicConnection, StreamNews};

/// Maximum time for the server to complete the handshake.
///
/// Chosen: six attempts of a client whose packets are lost; the interval between attempts starts at one second and doubles.
pub const ANSWERS_WITHIN: Duration = Duration::from_secs(20);

/// Maximum time without file data from a server whose connection is alive.
///
/// Chosen: longer than any outage that a connection survives.
pub const MAX_SILENCE: Duration = Duration::from_secs(60);

/// Interval between checks for silence. Time beyond twice this interval is not counted: the thread was blocked then, for
/// example by a slow reader of the output.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of files fetched concurrently.
///
/// Chosen: as many as a browser requests over one connection. Airpace's server allows 100.
const AT_ONCE: usize = 16;

/// Maximum number of bytes per read from a stream.
const CHUNK: usize = 64 << 10;

/// Destination of a file.
pub enum Sink {
    /// File that gets its name once it is complete.
    File(Whole),
    /// Writer that receives the bytes as they arrive.
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
    /// Path in the request ([`super::url::Url::path`]).
    pub path: String,
    /// Destination of the file.
    pub sink: Sink,
}

/// Stage of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The file is not requested yet.
    #[default]
    Waiting,
    /// The file is requested.
    Fetching,
    /// The file is completely stored.
    Done,
    /// Fetching failed, for this reason.
    Failed(String),
}

/// Progress of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileProgress {
    /// Number of received bytes.
    pub bytes: u64,
    /// Stage of the file.
    pub stage: Stage,
}

/// Duration of silence. Only time in which the thread could have read data counts.
#[derive(Debug, Default)]
struct Silence {
    length: Duration,
    looked: Option<Time>,
}

impl Silence {
    /// Data arrived: resets the duration.
    fn end(&mut self, now: Time) {
        *self = Silence { length: Duration::ZERO, looked: Some(now) };
    }

    /// Adds the time since the last check, and returns whether the silence exceeds the limit.
    fn is_too_long(&mut self, now: Time) -> bool {
        let since = self.looked.replace(now).map_or(Duration::ZERO, |looked| now - looked);
        self.length += since.min(2 * LOOK_EVERY);
        self.length >= MAX_SILENCE
    }

    /// Time of the next check.
    fn poll_timeout(&self) -> Time {
        self.looked.unwrap_or(Time::ZERO) + LOOK_EVERY
    }
}

/// Fetches files from one server.
pub struct Client {
    server: SocketAddr,
    wanted: Vec<Option<Wanted>>,
    /// Indices of the files that are not requested yet, in order.
    waiting: VecDeque<usize>,
    /// Requested files with their indices, by stream number.
    asked: BTreeMap<u64, (usize, Wanted)>,
    id: Option<ConnectionId>,
    is_connected: bool,
    /// Deadline of the handshake.
    until: Time,
    silence: Silence,
    files: Vec<FileProgress>,
    stop: Arc<AtomicBool>,
    is_done: bool,
    buffer: Vec<u8>,
}

impl Client {
    /// Creates a client that fetches `wanted` from a server. The first [`App::handle_timeout`] connects. Once `stop` is set,
    /// the next one cancels all files.
    pub fn new(server: SocketAddr, wanted: Vec<Wanted>, stop: Arc<AtomicBool>) -> Client {
        Client {
            server,
            waiting: (0..wanted.len()).collect(),
            files: vec![FileProgress::default(); wanted.len()],
            wanted: wanted.into_iter().map(Some).collect(),
            asked: BTreeMap::new(),
            id: None,
            is_connected: false,
            until: Time::ZERO,
            silence: Silence::default(),
            stop,
            is_done: false,
            buffer: vec![0; CHUNK],
        }
    }

    /// Progress per file, in the order of the requests. HTTP/0.9 does not transmit the length of a file.
    pub fn files(&self) -> &[FileProgress] {
        &self.files
    }

    /// Whether a connection was established. If not, the same files can be requested at another address.
    pub fn was_connected(&self) -> bool {
        self.is_connected
    }

    /// The files that were not requested, for an attempt at another address.
    pub fn into_wanted(self) -> Vec<Wanted> {
        self.wanted.into_iter().flatten().collect()
    }

    fn connect(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        match endpoint.connect(now, self.server) {
            Ok(id) => {
                self.id = Some(id);
                self.until = now + ANSWERS_WITHIN;
            }
            Err(why) => self.fail_all(&why.to_string()),
        }
    }

    /// Requests files, up to the limits of the server and [`AT_ONCE`].
    fn ask(&mut self, now: Time, connection: &mut QuicConnection) {
        while self.asked.len() < AT_ONCE && !self.waiting.is_empty() {
            let Some(stream) = connection.open_stream() else { return };
            let Some(index) = self.waiting.pop_front() else { return };
            let Some(wanted) = self.wanted[index].take() else { continue };
            let line = request::compose(&wanted.path);
            match connection.write_stream(now, stream, &line) {
                Ok(taken) if taken == line.len() => {
                    connection.finish_stream(now, stream);
                    self.files[index].stage = Stage::Fetching;
                    self.asked.insert(stream, (index, wanted));
                }
                Ok(_) => {
                    connection.give_up_stream(stream, 0);
                    self.fail(index, "the server takes no whole request".to_owned());
                }
                Err(why) => self.fail(index, explain_plainly(&why)),
            }
        }
    }

    fn on_streams(&mut self, now: Time, connection: &mut QuicConnection) {
        while let Some(news) = connection.poll_stream() {
            match news {
                StreamNews::Readable(stream) => self.on_readable(now, connection, stream),
                // A server must not open streams.
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
                    self.files[index].bytes += count as u64;
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
                Ok(()) => self.files[index].stage = Stage::Done,
                Err(why) => {
                    connection.give_up_stream(stream, 0);
                    self.fail(index, why);
                }
            }
        }
    }

    fn fail(&mut self, index: usize, why: String) {
        self.files[index].stage = Stage::Failed(why);
    }

    /// Marks all unfinished files as failed.
    fn fail_all(&mut self, why: &str) {
        for file in &mut self.files {
            if !matches!(file.stage, Stage::Done | Stage::Failed(_)) {
                file.stage = Stage::Failed(why.to_owned());
            }
        }
        self.asked.clear();
        self.waiting.clear();
    }

    /// Closes the connection once every file is done or failed.
    fn settle(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        let is_over = |file: &FileProgress| matches!(file.stage, Stage::Done | Stage::Failed(_));
        if let Some(connection) = self.id.and_then(|id| endpoint.connection(id))
            && self.files.iter().all(is_over)
            && !self.is_done
        {
            connection.close(now, 0, "");
        }
        self.is_done = self.files.iter().all(is_over);
    }
}

/// Reason why the connection was closed, with the remedy.
fn remedy(why: &Closed) -> String {
    match why {
        Closed::Failed(text) if text.contains("certificate") => format!(
            "{why}; name the server's root or its certificate's fingerprint, or trust any certificate"
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
        let connection = endpoint.connection(id).and_then(QuicConnection::of);
        match (event, connection) {
            (Event::Connected, Some(connection)) => {
                self.is_connected = true;
                self.silence.end(now);
                self.ask(now, connection);
            }
            (Event::Closed(why), _) => self.fail_all(&remedy(&why)),
            (_, Some(connection)) => self.on_streams(now, connection),
            (_, None) => {}
        }
        self.settle(now, endpoint);
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
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

    fn poll_timeout(&self) -> Option<Time> {
        match self.id {
            _ if self.is_done => None,
            None => Some(Time::ZERO),
            Some(_) if self.is_connected => Some(self.silence.poll_timeout()),
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
        // The thread was blocked for an hour by the reader of a pipe.
        assert!(!silence.is_too_long(at(3_600)));
        assert_eq!(silence.poll_timeout(), at(3_601));
    }
}
