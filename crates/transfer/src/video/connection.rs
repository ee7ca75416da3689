//! The client's connection to a server, without blocking: one request at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use airpace_core::{Refused, Remedy};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};

use super::http::{AcceptedLength, ResponseReader, compose_request};

/// Maximum number of bytes per read.
///
/// Chosen: 20 ms of data at 100 Mbit/s, so that a burst needs few calls.
const READ_BYTES: usize = 256 << 10;

/// A connection to one server. After an error, or if the server closes it, the next request opens another one.
pub(super) struct Connection {
    server: SocketAddr,
    host: String,
    socket: Option<Socket>,
    exchange: Option<Exchange>,
    buffer: Vec<u8>,
}

struct Socket {
    stream: TcpStream,
    is_connected: bool,
    /// Whether a response arrived over this connection before.
    was_used: bool,
}

/// A request and its response.
struct Exchange {
    request: Vec<u8>,
    /// Number of bytes of the request that the kernel has taken.
    sent: usize,
    accepted: AcceptedLength,
    response: ResponseReader,
    has_received: bool,
}

/// Result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing arrived.
    Idle,
    /// A part of the response arrived.
    Part,
    /// The last part of the response arrived.
    Complete,
}

impl Connection {
    /// A connection to `server` that is opened by the first request. `host` is the server's name in requests.
    pub(super) fn new(server: SocketAddr, host: String) -> Connection {
        Connection { server, host, socket: None, exchange: None, buffer: vec![0; READ_BYTES] }
    }

    /// Starts the request of a path. The response must have an accepted length.
    ///
    /// # Errors
    /// The system opens no socket, or has no route to the server.
    pub(super) fn request(&mut self, path: &str, accepted: AcceptedLength) -> Result<(), Refused> {
        if self.socket.is_none() {
            self.socket = Some(self.open()?);
        }
        self.exchange = Some(Exchange {
            request: compose_request(path, &self.host),
            sent: 0,
            accepted,
            response: ResponseReader::new(accepted),
            has_received: false,
        });
        Ok(())
    }

    /// Stops the transfer of a response. HTTP/1.1 can do this only by closing the connection.
    ///
    /// Source: RFC 9112 §9.6
    pub(super) fn cancel(&mut self) {
        self.exchange = None;
        self.socket = None;
    }

    /// The socket and the event for which the caller should wait; `None` if no request is outstanding.
    pub(super) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let (exchange, socket) = (self.exchange.as_ref()?, self.socket.as_ref()?);
        let is_sending = !socket.is_connected || exchange.sent < exchange.request.len();
        Some((socket.stream.as_fd(), if is_sending { PollFlags::OUT } else { PollFlags::IN }))
    }

    /// Takes one step of the outstanding request without blocking. Gives received content to `content`.
    ///
    /// # Errors
    /// The server cannot be reached, the connection ended early, or the response cannot be used.
    pub(super) fn step(&mut self, content: &mut dyn FnMut(&[u8])) -> Result<Step, Refused> {
        let (Some(exchange), Some(socket)) = (&mut self.exchange, &mut self.socket) else {
            return Ok(Step::Idle);
        };
        if !socket.is_connected {
            match finish_connecting(&socket.stream) {
                Ok(false) => return Ok(Step::Idle),
                Ok(true) => socket.is_connected = true,
                Err(error) => return Err(cannot_connect(self.server, &error)),
            }
        }
        match transfer(exchange, socket, &mut self.buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock || error.kind() == ErrorKind::Interrupted => {
                Ok(Step::Idle)
            }
            Err(error) if socket.was_used && !exchange.has_received && is_closed(&error) => self.repeat(),
            Err(error) => Err(lost(self.server, exchange, &error)),
            Ok(count) => {
                exchange.has_received = true;
                let part = exchange.response.push(&self.buffer[..count]);
                content(part.map_err(|error| Refused::of(&error).at(self.server))?);
                if !exchange.response.is_complete() {
                    return Ok(Step::Part);
                }
                socket.was_used = true;
                if !exchange.response.persists() {
                    self.socket = None;
                }
                self.exchange = None;
                Ok(Step::Complete)
            }
        }
    }

    /// Repeats a request on another connection: the server closed the idle connection before it received the request.
    ///
    /// Source: RFC 9112 §9.3.1
    fn repeat(&mut self) -> Result<Step, Refused> {
        self.socket = Some(self.open()?);
        if let Some(exchange) = &mut self.exchange {
            exchange.sent = 0;
            exchange.response = ResponseReader::new(exchange.accepted);
        }
        Ok(Step::Idle)
    }

    /// Starts to open a connection.
    fn open(&self) -> Result<Socket, Refused> {
        let start = || {
            let family = if self.server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
            match connect(&socket, &self.server) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
                Err(error) => Err(io::Error::from(error)),
            }
        };
        let stream = start().map_err(|error| cannot_connect(self.server, &error))?;
        Ok(Socket { stream, is_connected: false, was_used: false })
    }
}

/// Whether a connection has been established since it was started.
fn finish_connecting(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sends the rest of the request, and then reads once. Returns the number of bytes in `buffer`.
fn transfer(exchange: &mut Exchange, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
    while exchange.sent < exchange.request.len() {
        exchange.sent += socket.stream.write(&exchange.request[exchange.sent..])?;
    }
    match socket.stream.read(buffer)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

/// Whether an error has the meaning that the server has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&error.kind())
}

/// The error of a connection that cannot be opened.
fn cannot_connect(server: SocketAddr, error: &io::Error) -> Refused {
    let remedy = match error.kind() {
        ErrorKind::ConnectionRefused => "start `airpace video serve` there, or give its port as HOST:PORT",
        _ => "check the address, and the network between the machines",
    };
    Refused::new(format!("cannot connect to the video server {server}: {error}")).but(Remedy::new(remedy))
}

/// The error of a connection that ended before its response.
fn lost(server: SocketAddr, exchange: &Exchange, error: &io::Error) -> Refused {
    let cause = match error.kind() {
        ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
        _ => format!("the connection ended: {error}"),
    };
    let missing =
        exchange.response.left().map(|left| format!(", {left} bytes before the end of its response"));
    Refused::new(format!("{server}: {cause}{}", missing.unwrap_or_default()))
}
