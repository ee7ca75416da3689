//! Application that serves the files of a folder.
//!
//! Memory is bounded: each stream stores a request of at most [`MAX_REQUEST_BYTES`] bytes and a position in a file; the transport
//! limits the number of streams; at most [`MAX_OPEN`] files are open; at most [`MAX_HELD`] bytes wait for
//! acknowledgement. If too many files are open, a file is opened for each chunk. If a different file is found then, its
//! stream is reset.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airpace_cc::schemes::SchemeSpec;
use airpace_core::{Refused, Time};
use airpace_files::{HandedOut, Inside};

use super::MAX_HELD;
use super::request::{self, MAX_REQUEST_BYTES};
use airpace_transport::app::App;
use airpace_transport::endpoint::{Closed, Connection, ConnectionId, Endpoint, Event, Read};
use airpace_transport::quic::{QuicConnection, StreamNews};

/// Maximum number of open files.
///
/// Chosen: half of Linux's default limit per process.
pub const MAX_OPEN: usize = 512;

/// Error code for resetting the stream of a file that is not served.
///
/// Chosen: HTTP's status code for the same case. HTTP/0.9 has no codes.
pub const REFUSED: u32 = 404;

/// Maximum number of bytes per read from a file.
const CHUNK: usize = 64 << 10;

/// Maximum number of chunks written before the thread processes received packets again.
const CHUNKS_AT_ONCE: usize = 16;

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections that were established.
    pub connections: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Files that were written completely.
    pub files: u64,
    /// Refused requests.
    pub refused: u64,
    /// File bytes that the transport accepted.
    pub bytes: u64,
}

/// Event of a server, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A connection was established.
    Connected(SocketAddr),
    /// A file is being served; the text is the requested path.
    Serves(SocketAddr, String),
    /// A request was refused, for this reason.
    Refused(SocketAddr, String),
    /// A connection has ended.
    Closed(SocketAddr, Closed),
}

/// Serves the files of a folder.
pub struct Server {
    folder: Inside,
    spec: SchemeSpec,
    connections: BTreeMap<ConnectionId, Peer>,
    /// Streams that can be written, in round-robin order.
    ready: VecDeque<(ConnectionId, u64)>,
    open_files: usize,
    served: Served,
    tell: Box<dyn FnMut(News) + Send>,
    /// Read buffer, which is reused.
    chunk: Vec<u8>,
    stop: Arc<AtomicBool>,
    is_done: bool,
}

struct Peer {
    address: SocketAddr,
    streams: BTreeMap<u64, Stream>,
}

enum Stream {
    /// The request is incomplete.
    Asking(Vec<u8>),
    /// The file is being sent.
    Answering(Answer),
}

/// A file that is being sent.
struct Answer {
    name: String,
    file: Option<HandedOut>,
    /// Device, inode and length at the first opening.
    identity: (u64, u64, u64),
    /// Number of bytes from the file's start that were scanned for private keys. The number is used when the file is
    /// reopened.
    examined: u64,
    at: u64,
    is_ready: bool,
}

impl Server {
    /// Creates a server of the files of `folder`, with a congestion control scheme. `tell` receives its events. Once `stop`
    /// is set, the next [`App::handle_timeout`] closes all connections, and the server is done.
    ///
    /// # Errors
    /// The scheme cannot send to other QUIC implementations.
    pub fn new(
        folder: Inside,
        spec: SchemeSpec,
        stop: Arc<AtomicBool>,
        tell: Box<dyn FnMut(News) + Send>,
    ) -> Result<Server, Refused> {
        super::controller(&spec)?;
        Ok(Server {
            folder,
            spec,
            connections: BTreeMap::new(),
            ready: VecDeque::new(),
            open_files: 0,
            served: Served::default(),
            tell,
            chunk: vec![0; CHUNK],
            stop,
            is_done: false,
        })
    }

    /// Counters of this server.
    pub fn served(&self) -> Served {
        Served { open: self.connections.len() as u64, ..self.served }
    }

    fn on_connected(&mut self, now: Time, id: ConnectionId, connection: &mut QuicConnection) {
        // The same scheme was built in `new`, so this fails only without random numbers from the system. The connection
        // then keeps CUBIC.
        if let Ok(controller) = super::controller(&self.spec) {
            connection.steer(now, controller);
        }
        let address = connection.peer();
        self.served.connections += 1;
        self.connections.insert(id, Peer { address, streams: BTreeMap::new() });
        (self.tell)(News::Connected(address));
    }

    /// Divides [`MAX_HELD`] among the connections, at most 24 MiB for each.
    fn share(&self, endpoint: &mut dyn Endpoint) {
        let each = MAX_HELD / self.connections.len().max(1) as u64;
        for id in self.connections.keys() {
            if let Some(connection) = endpoint.connection(*id).and_then(QuicConnection::of) {
                connection.hold_at_most(each.min(24 << 20));
            }
        }
    }

    fn on_streams(&mut self, now: Time, id: ConnectionId, connection: &mut QuicConnection) {
        while let Some(news) = connection.poll_stream() {
            match news {
                StreamNews::Opened(stream) => {
                    let Some(peer) = self.connections.get_mut(&id) else { continue };
                    peer.streams.insert(stream, Stream::Asking(Vec::new()));
                }
                StreamNews::Readable(stream) => self.on_readable(now, id, connection, stream),
                StreamNews::Writable(stream) => self.set_ready(id, stream),
                StreamNews::Flushed(_) | StreamNews::MayOpen => {}
            }
        }
    }

    fn on_readable(&mut self, now: Time, id: ConnectionId, connection: &mut QuicConnection, stream: u64) {
        let Some(peer) = self.connections.get_mut(&id) else { return };
        let Some(Stream::Asking(request)) = peer.streams.get_mut(&stream) else { return };
        let mut buffer = [0; 512];
        let asked = loop {
            match connection.read_stream(now, stream, &mut buffer) {
                Ok(Read::Bytes(count)) => request.extend_from_slice(&buffer[..count]),
                Ok(Read::Nothing) if request.len() <= MAX_REQUEST_BYTES => return,
                Ok(Read::Nothing | Read::End) => break std::mem::take(request),
                Err(_) => return self.give_up(id, connection, stream),
            }
            if request.len() > MAX_REQUEST_BYTES {
                break std::mem::take(request);
            }
        };
        match self.begin(&asked) {
            Ok(answer) => {
                connection.forget_stream(stream);
                if let Some(peer) = self.connections.get_mut(&id) {
                    let path = request::parse(&asked).unwrap_or_default().to_owned();
                    (self.tell)(News::Serves(peer.address, path));
                    peer.streams.insert(stream, Stream::Answering(answer));
                }
                self.set_ready(id, stream);
            }
            Err(why) => {
                self.refuse(id, why.to_string());
                self.give_up(id, connection, stream);
            }
        }
    }

    fn refuse(&mut self, id: ConnectionId, why: String) {
        self.served.refused += 1;
        if let Some(peer) = self.connections.get(&id) {
            (self.tell)(News::Refused(peer.address, why));
        }
    }

    /// Opens the file that a request names.
    fn begin(&mut self, asked: &[u8]) -> Result<Answer, Refused> {
        let path = request::parse(asked).map_err(|error| error.to_string())?;
        let named = |error: &dyn std::fmt::Display| format!("{path}: {error}");
        let name = request::file_of(path).map_err(|error| named(&error))?;
        let (file, identity) = self.opened(&name, 0).map_err(|error| named(&error))?;
        let examined = file.examined();
        let file = self.keep(file);
        Ok(Answer { name, file, identity, examined, at: 0, is_ready: false })
    }

    /// Opens a file whose first `examined` bytes were scanned before.
    fn opened(&self, name: &str, examined: u64) -> io::Result<(HandedOut, (u64, u64, u64))> {
        let file = self.folder.hand_out_again(name, examined)?;
        let about = file.metadata()?;
        Ok((file, (about.dev(), about.ino(), about.len())))
    }

    /// Keeps a file open if the limit allows.
    fn keep(&mut self, file: HandedOut) -> Option<HandedOut> {
        let has_room = self.open_files < MAX_OPEN;
        self.open_files += usize::from(has_room);
        has_room.then_some(file)
    }

    fn set_ready(&mut self, id: ConnectionId, stream: u64) {
        let peer = self.connections.get_mut(&id);
        if let Some(Stream::Answering(answer)) = peer.and_then(|peer| peer.streams.get_mut(&stream))
            && !answer.is_ready
        {
            answer.is_ready = true;
            self.ready.push_back((id, stream));
        }
    }

    /// Resets a stream, which reports the refusal to the peer.
    fn give_up(&mut self, id: ConnectionId, connection: &mut QuicConnection, stream: u64) {
        connection.give_up_stream(stream, REFUSED);
        let gone = self.connections.get_mut(&id).and_then(|peer| peer.streams.remove(&stream));
        self.let_go(gone);
    }

    fn let_go(&mut self, stream: Option<Stream>) {
        if let Some(Stream::Answering(Answer { file: Some(_), .. })) = stream {
            self.open_files -= 1;
        }
    }

    /// Writes a chunk of each writable stream, in round-robin order.
    fn pump(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        for _ in 0..CHUNKS_AT_ONCE {
            let Some((id, stream)) = self.ready.pop_front() else { return };
            let peer = self.connections.get_mut(&id);
            let Some(Stream::Answering(mut answer)) = peer.and_then(|peer| peer.streams.remove(&stream))
            else {
                continue;
            };
            answer.is_ready = false;
            let connection = endpoint.connection(id).and_then(QuicConnection::of);
            let Some(connection) = connection else {
                self.let_go(Some(Stream::Answering(answer)));
                continue;
            };
            match self.write(now, connection, stream, &mut answer) {
                Ok(Wrote::All) => {
                    connection.finish_stream(now, stream);
                    self.let_go(Some(Stream::Answering(answer)));
                    self.served.files += 1;
                    continue;
                }
                Ok(Wrote::Some) => {
                    answer.is_ready = true;
                    self.ready.push_back((id, stream));
                }
                Ok(Wrote::Blocked) => {}
                Err(why) => {
                    connection.give_up_stream(stream, REFUSED);
                    self.let_go(Some(Stream::Answering(answer)));
                    self.refuse(id, why.to_string());
                    continue;
                }
            }
            if let Some(peer) = self.connections.get_mut(&id) {
                peer.streams.insert(stream, Stream::Answering(answer));
            }
        }
    }

    /// Writes the next chunk of a file.
    fn write(
        &mut self,
        now: Time,
        connection: &mut QuicConnection,
        stream: u64,
        answer: &mut Answer,
    ) -> Result<Wrote, Refused> {
        let named = |why: &dyn std::fmt::Display| format!("/{}: {why}", answer.name);
        let length = answer.identity.2;
        if answer.at < length {
            let mut again;
            let file = match &mut answer.file {
                Some(file) => file,
                None => {
                    let opened = self.opened(&answer.name, answer.examined);
                    let (file, identity) = opened.map_err(|error| named(&error))?;
                    if identity != answer.identity {
                        return Err(named(&"the file was changed while it was read").into());
                    }
                    again = file;
                    &mut again
                }
            };
            let most = usize::try_from(length - answer.at).unwrap_or(CHUNK).min(CHUNK);
            let count = file.read_at(&mut self.chunk[..most], answer.at).map_err(|error| named(&error))?;
            answer.examined = file.examined();
            if count == 0 {
                return Err(named(&"the file became shorter while it was read").into());
            }
            let taken = connection.write_stream(now, stream, &self.chunk[..count])?;
            answer.at += taken as u64;
            self.served.bytes += taken as u64;
            if taken < count {
                return Ok(Wrote::Blocked);
            }
        }
        Ok(if answer.at < length { Wrote::Some } else { Wrote::All })
    }
}

enum Wrote {
    All,
    Some,
    Blocked,
}

impl App for Server {
    fn on_event(&mut self, now: Time, endpoint: &mut dyn Endpoint, id: ConnectionId, event: Event) {
        match event {
            Event::Connected => {
                if let Some(connection) = endpoint.connection(id).and_then(QuicConnection::of) {
                    self.on_connected(now, id, connection);
                }
                self.share(endpoint);
            }
            Event::Closed(why) => {
                if let Some(peer) = self.connections.remove(&id) {
                    for stream in peer.streams.into_values() {
                        self.let_go(Some(stream));
                    }
                    (self.tell)(News::Closed(peer.address, why));
                    self.share(endpoint);
                }
            }
            Event::Moved(address) => {
                if let Some(peer) = self.connections.get_mut(&id) {
                    peer.address = address;
                }
            }
            Event::Readable | Event::Writable | Event::Flushed => {
                if let Some(connection) = endpoint.connection(id).and_then(QuicConnection::of) {
                    self.on_streams(now, id, connection);
                }
            }
        }
        self.pump(now, endpoint);
    }

    fn handle_timeout(&mut self, now: Time, endpoint: &mut dyn Endpoint) {
        if self.stop.load(Ordering::Relaxed) && !self.is_done {
            self.is_done = true;
            for id in self.connections.keys() {
                if let Some(connection) = endpoint.connection(*id) {
                    connection.close(now, 0, "the server ends");
                }
            }
        }
        self.pump(now, endpoint);
    }

    fn poll_timeout(&self) -> Option<Time> {
        (!self.ready.is_empty()).then_some(Time::ZERO)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
