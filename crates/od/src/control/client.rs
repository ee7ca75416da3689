//! Client of the control protocol, for programs.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, sockopt,
};
use rustix::time::Timespec;

use super::{Answer, KpiInfo, MAX_REQUEST_BYTES, Request, SOCKET_NAME};
use crate::clock::now_ns;
use crate::error::Error;
use crate::map::Mapping;

/// Maximum time for a complete answer of the daemon. The daemon's control thread polls the socket every few
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum length of a line from the daemon (bytes).
const MAX_LINE_BYTES: usize = 4_096;
/// Maximum number of KPIs in a list.
///
/// Chosen: about ten times the present number of KPIs.
const MAX_LISTED: u32 = 4_096;

/// A connection to the daemon. The subscriptions of a connection end when it closes.
#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    received: Vec<u8>,
    /// Whether an answer is outstanding, including an answer that did not arrive in time.
    is_answer_due: bool,
    /// Deadline for the answer, in ns of [`crate::clock`].
    until_ns: u64,
}

impl Client {
    /// Connects to the daemon whose folder is `dir`.
    ///
    /// # Errors
    /// [`Error::NoDaemon`] if no daemon answers there.
    pub fn connect(dir: &Path) -> Result<Client, Error> {
        let path = dir.join(SOCKET_NAME);
        let connected = || {
            let address = SocketAddrUnix::new(&path)?;
            let socket = rustix::net::socket_with(
                AddressFamily::UNIX,
                SocketType::STREAM,
                SocketFlags::CLOEXEC,
                None,
            )?;
            // Limits the time of `connect` to a daemon that accepts no connections. `wait_for` limits the time of an
            // answer.
            sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(PATIENCE))?;
            retry_on_intr(|| rustix::net::connect(&socket, &address))?;
            Ok(socket)
        };
        let socket = connected().map_err(|errno| Error::NoDaemon { path: path.clone(), errno })?;
        Ok(Client { socket, received: Vec::new(), is_answer_due: false, until_ns: 0 })
    }

    /// Requests the descriptor of the shared-memory region, and maps it.
    pub(crate) fn board(&mut self) -> Result<Mapping, Error> {
        self.ask(Request::Board, |this| {
            let file = this.receive()?;
            match (this.answer()?, file) {
                (None, Some(file)) => Mapping::open(file.as_fd()),
                (None, None) => {
                    Err(Error::NotABoard { what: "no descriptor came with the answer".to_owned() })
                }
                (Some(number), _) => Err(Error::Protocol { line: format!("ok {number}") }),
            }
        })
    }

    /// Requests the list of all KPIs.
    ///
    /// # Errors
    /// The daemon's refusal, or an answer that violates the protocol.
    pub fn list(&mut self) -> Result<Vec<KpiInfo>, Error> {
        self.ask(Request::List, |this| {
            let count = this.number()?;
            if count > MAX_LISTED {
                return Err(Error::Protocol { line: format!("ok {count}") });
            }
            let mut next = || {
                let line = this.line()?;
                line.parse().map_err(|()| Error::Protocol { line })
            };
            (0..count).map(|_| next()).collect()
        })
    }

    /// Requests a lease on a KPI; returns the index of its row.
    ///
    /// # Errors
    /// The daemon's refusal, or an answer that violates the protocol.
    pub fn subscribe(&mut self, name: &str) -> Result<u32, Error> {
        let request = Request::Subscribe(name);
        let line = request.to_string();
        if Request::parse(&line) != Ok(request) || line.len() >= MAX_REQUEST_BYTES {
            let text = format!("{name:?} is no name of a KPI");
            return Err(Error::Refused { errno: Errno::INVAL, text });
        }
        self.ask(request, Client::number)
    }

    /// Ends a lease.
    ///
    /// # Errors
    /// The daemon's refusal, or an answer that violates the protocol.
    pub fn unsubscribe(&mut self, slot: u32) -> Result<(), Error> {
        self.ask(Request::Unsubscribe(slot), Client::answer).map(|_| ())
    }

    /// Sends a request and reads its answer.
    ///
    /// After an incomplete answer, the next line could be the rest of this answer. The client therefore refuses all
    /// further requests.
    fn ask<T>(
        &mut self,
        request: Request<'_>,
        read: impl FnOnce(&mut Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if std::mem::replace(&mut self.is_answer_due, true) {
            return Err(Error::Stale);
        }
        self.until_ns = now_ns() + PATIENCE.as_nanos() as u64;
        let sent = self.send(request);
        // A daemon that refuses the connection sends the reason before it closes, even without a request.
        let answer = match (sent, read(self)) {
            (Err(lost), answer) if !matches!(answer, Err(Error::Refused { .. })) => Err(lost),
            (_, answer) => answer,
        };
        self.is_answer_due = !matches!(answer, Ok(_) | Err(Error::Refused { .. }));
        answer
    }

    fn send(&mut self, request: Request<'_>) -> Result<(), Error> {
        let line = format!("{request}\n");
        let mut left = line.as_bytes();
        while !left.is_empty() {
            self.wait_for(PollFlags::OUT)?;
            // `NOSIGNAL`: a closed socket must not kill the program by SIGPIPE.
            match rustix::net::send(&self.socket, left, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => left = &left[sent..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(source) => return Err(lost(source)),
            }
        }
        Ok(())
    }

    /// Waits until the socket is ready, at most until the deadline for the complete answer.
    fn wait_for(&self, what: PollFlags) -> Result<(), Error> {
        loop {
            let left = Duration::from_nanos(self.until_ns.saturating_sub(now_ns()));
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(&self.socket, what)], Some(&left)) {
                Ok(0) => return Err(Error::TimedOut),
                Ok(_) if self.until_ns > now_ns() => return Ok(()),
                Ok(_) => return Err(Error::TimedOut),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(lost(errno)),
            }
        }
    }

    /// Reads an answer that must contain a number.
    fn number(&mut self) -> Result<u32, Error> {
        self.answer()?.ok_or(Error::Protocol { line: "ok".to_owned() })
    }

    fn answer(&mut self) -> Result<Option<u32>, Error> {
        let line = self.line()?;
        match line.parse() {
            Ok(Answer::Done(number)) => Ok(number),
            Ok(Answer::Refused(refusal)) => Err(Error::Refused { errno: refusal.errno, text: refusal.text }),
            Err(()) => Err(Error::Protocol { line }),
        }
    }

    /// Reads the next line, without its line end.
    fn line(&mut self) -> Result<String, Error> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).take(end).collect();
                let is_plain = |line: &str| !line.contains(is_obeyed);
                return match String::from_utf8(line) {
                    // Reject control characters: a program may print the line on a terminal that interprets them.
                    Ok(line) if is_plain(&line) => Ok(line),
                    Ok(line) => Err(Error::Protocol { line }),
                    Err(error) => {
                        Err(Error::Protocol { line: String::from_utf8_lossy(error.as_bytes()).into() })
                    }
                };
            }
            if self.received.len() > MAX_LINE_BYTES {
                let line = String::from_utf8_lossy(&self.received[..80]).into();
                return Err(Error::Protocol { line });
            }
            self.receive()?;
        }
    }

    /// Receives bytes, and returns a descriptor if one was attached.
    fn receive(&mut self) -> Result<Option<OwnedFd>, Error> {
        let mut bytes = [0; 4_096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            self.wait_for(PollFlags::IN)?;
            let mut into = [IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            match rustix::net::recvmsg(&self.socket, &mut into, &mut control, flags) {
                Ok(message) if message.bytes == 0 => return Err(Error::Stale),
                Ok(message) => break message.bytes,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(source) => return Err(lost(source)),
            }
        };
        self.received.extend_from_slice(&bytes[..received]);
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Ok(descriptor)
    }
}

/// Converts an error of the socket.
fn lost(source: Errno) -> Error {
    match source {
        Errno::PIPE | Errno::CONNRESET => Error::Stale,
        errno => Error::System { doing: "talking to the daemon", errno },
    }
}

/// Whether a terminal interprets the character instead of printing it. This holds for control characters except tabs,
/// and for bidirectional text marks.
fn is_obeyed(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_come_give_an_answer_no_more_time() {
        let flags = SocketFlags::CLOEXEC;
        let (socket, daemon) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .expect("two sockets");
        let mut client = Client { socket, received: Vec::new(), is_answer_due: true, until_ns: u64::MAX };
        rustix::net::send(&daemon, b"ok 1", SendFlags::NOSIGNAL).expect("room for a line");
        client.receive().expect("there is time");
        // The daemon sends byte by byte: data is always available, but the deadline of the answer has passed.
        rustix::net::send(&daemon, b"7", SendFlags::NOSIGNAL).expect("room for a byte");
        client.until_ns = now_ns();
        assert!(matches!(client.line(), Err(Error::TimedOut)));
        rustix::net::send(&daemon, b"\n", SendFlags::NOSIGNAL).expect("room for a byte");
        client.until_ns = u64::MAX;
        assert_eq!(client.line().expect("there is time"), "ok 17");
        for obeyed in ["\u{1b}[2J", "\u{202e}", "\u{2066}", "\r"] {
            let line = format!("lte.rsrp\tdBm\t{obeyed}\n");
            rustix::net::send(&daemon, line.as_bytes(), SendFlags::NOSIGNAL).expect("room for a line");
            assert!(matches!(client.line(), Err(Error::Protocol { .. })), "{obeyed:?}");
        }
    }
}
