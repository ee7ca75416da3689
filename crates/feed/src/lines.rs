//! Reports as lines of [`airpace_radio::line`], from a file, a FIFO, standard input, a Unix socket or a TCP socket.
//!
//! The writer is not trusted: the length of a line and the bytes per read are limited, and invalid lines are counted.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use airpace_core::{Refused, Time};
use airpace_radio::{RadioReport, line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::{Heard, Mapping, Numbers, Radio};

/// Maximum length of a line (bytes).
///
/// Chosen: a busy subframe of five carriers needs a twentieth of this.
const MAX_LINE_BYTES: usize = 256 << 10;

/// Maximum number of bytes that one call of [`Radio::take`] reads.
///
/// Chosen: parsing this many bytes takes a millisecond.
const AT_ONCE: usize = 64 << 10;

/// Interval between attempts to open a source that has disappeared.
const AGAIN: Duration = Duration::from_millis(200);

/// Interval between checks for data appended to a file, because a file cannot be polled.
const LOOK: Duration = Duration::from_millis(2);

/// Location of a source of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Standard input.
    Input,
    /// A FIFO, a Unix socket, or a growing file. Only data appended to a file after its opening are read.
    Path(PathBuf),
    /// A TCP socket of another machine.
    Tcp(SocketAddr),
}

impl FromStr for Place {
    type Err = Refused;

    /// Parses `-`, a path, or `tcp:HOST:PORT`.
    fn from_str(text: &str) -> Result<Place, Refused> {
        match text.strip_prefix("tcp:") {
            _ if text == "-" => Ok(Place::Input),
            _ if text.is_empty() => Err("name a file, a FIFO or a socket, `tcp:HOST:PORT`, or `-`".into()),
            None => Ok(Place::Path(PathBuf::from(text))),
            Some(at) => {
                let mut found =
                    at.to_socket_addrs().map_err(|error| format!("`{at}`: {error}; give HOST:PORT"))?;
                found
                    .next()
                    .map(Place::Tcp)
                    .ok_or_else(|| format!("`{at}` has no address; give HOST:PORT").into())
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Input => f.write_str("the standard input"),
            Place::Path(path) => write!(f, "`{}`", path.display()),
            Place::Tcp(at) => write!(f, "tcp:{at}"),
        }
    }
}

/// An open source.
#[derive(Debug)]
enum Open {
    /// A descriptor that can be polled.
    Stream(File),
    /// A regular file, which cannot be polled.
    Growing(File),
    /// A TCP connection that is being established.
    Connecting(OwnedFd),
}

/// A source of reports in lines.
#[derive(Debug)]
pub struct Lines {
    place: Place,
    open: Option<Open>,
    /// Deadline of the next attempt to open the source, or of the next check for new data.
    next: Option<Time>,
    /// The bytes of an incomplete line.
    line: Vec<u8>,
    /// Whether the rest of a line that is too long must be skipped.
    is_skipping: bool,
    room: Box<[u8]>,
    mapping: Mapping,
    numbers: Numbers,
    heard: Arc<Heard>,
}

impl Lines {
    /// Creates a source at this location. The location need not exist yet.
    pub fn new(place: Place) -> Lines {
        let heard = Heard::of(format!("radio reports from {place}"));
        Lines {
            place,
            open: None,
            next: Some(Time::ZERO),
            line: vec![],
            is_skipping: false,
            room: vec![0; AT_ONCE].into(),
            mapping: Mapping::default(),
            numbers: Numbers::default(),
            heard: Arc::new(heard),
        }
    }

    fn look_for_it(&mut self, now: Time) {
        match open(&self.place) {
            Ok(open) => {
                if !matches!(open, Open::Connecting(_)) {
                    self.heard.open();
                }
                self.next = matches!(open, Open::Growing(_)).then(|| now + LOOK);
                self.open = Some(open);
            }
            Err(error) => self.lose(now, error.to_string()),
        }
    }

    /// Closes a source that has disappeared. A source that is opened again starts without an incomplete line.
    fn lose(&mut self, now: Time, why: String) {
        self.open = None;
        self.heard.close(why);
        // Standard input cannot be opened again, so there is no next attempt.
        self.next = (self.place != Place::Input || self.heard.opened() == 0).then(|| now + AGAIN);
        self.line.clear();
        self.is_skipping = false;
        self.mapping = Mapping::default();
        self.numbers.begin_anew();
    }

    /// Processes bytes, and passes on the reports of the complete lines.
    fn take_bytes(&mut self, now: Time, length: usize, each: &mut dyn FnMut(RadioReport)) {
        let room = std::mem::take(&mut self.room);
        for piece in room[..length].split_inclusive(|byte| *byte == b'\n') {
            let (rest, is_whole) = piece.strip_suffix(b"\n").map_or((piece, false), |rest| (rest, true));
            if self.line.len() + rest.len() > MAX_LINE_BYTES {
                self.line.clear();
                self.is_skipping = true;
                self.heard.count_unreadable();
            } else if !self.is_skipping {
                self.line.extend_from_slice(rest);
            }
            if is_whole {
                if !std::mem::take(&mut self.is_skipping) {
                    self.take_line(now, each);
                }
                self.line.clear();
            }
        }
        self.room = room;
    }

    fn take_line(&mut self, now: Time, each: &mut dyn FnMut(RadioReport)) {
        let text = self.line.trim_ascii();
        if text.is_empty() {
            return;
        }
        let reports = std::str::from_utf8(text).ok().and_then(|text| line::from_line(text).ok());
        let Some(reports) = reports else { return self.heard.count_unreadable() };
        for mut report in reports {
            report.time = self.mapping.instant(now, report.time);
            self.numbers.place(&mut report);
            self.heard.hear(now, &report);
            each(report);
        }
    }
}

impl Radio for Lines {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self.open.as_ref()? {
            Open::Stream(file) => Some(file.as_fd()),
            Open::Connecting(fd) => Some(fd.as_fd()),
            Open::Growing(_) => None,
        }
    }

    fn take(&mut self, now: Time, each: &mut dyn FnMut(RadioReport)) {
        if self.open.is_none() && self.next.is_some_and(|next| next <= now) {
            self.look_for_it(now);
        }
        match &self.open {
            Some(Open::Growing(_)) => self.next = Some(now + LOOK),
            Some(Open::Connecting(fd)) => match connected(fd) {
                None => {
                    // The connection is not readable before it is established: check again later.
                    self.next = Some(now + LOOK);
                    return;
                }
                Some(Err(error)) => return self.lose(now, error.to_string()),
                Some(Ok(stream)) => {
                    self.open = Some(Open::Stream(stream));
                    self.next = None;
                    self.heard.open();
                }
            },
            _ => {}
        }
        let (mut file, is_growing) = match &self.open {
            Some(Open::Stream(file)) => (file, false),
            Some(Open::Growing(file)) => (file, true),
            _ => return,
        };
        // An inherited descriptor may be blocking: read only if it is readable.
        if !is_growing && !is_readable(file) {
            return;
        }
        match file.read(&mut self.room) {
            Ok(0) if is_growing => {
                // If the file became shorter, it was truncated: continue to read at its new end.
                let is_shorter = file
                    .metadata()
                    .is_ok_and(|about| file.stream_position().is_ok_and(|position| about.len() < position));
                if is_shorter {
                    self.lose(now, "it was emptied".to_owned());
                }
            }
            Ok(0) => self.lose(now, "it has ended".to_owned()),
            Ok(length) => self.take_bytes(now, length, each),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => self.lose(now, error.to_string()),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next
    }

    fn heard(&self) -> Arc<Heard> {
        Arc::clone(&self.heard)
    }
}

fn is_readable(file: &File) -> bool {
    let mut waiting = [PollFd::new(file, PollFlags::IN)];
    poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}

/// Opens a location without blocking.
fn open(place: &Place) -> io::Result<Open> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match place {
        Place::Input => Ok(Open::Stream(File::from(io::stdin().as_fd().try_clone_to_owned()?))),
        Place::Path(path) => {
            let kind = std::fs::metadata(path)?.file_type();
            if kind.is_socket() {
                let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
                return Ok(Open::Stream(File::from(socket)));
            }
            let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            let mut file = File::from(rustix::fs::open(path, how, Mode::empty())?);
            if kind.is_file() {
                file.seek(SeekFrom::End(0))?;
                return Ok(Open::Growing(file));
            }
            Ok(Open::Stream(file))
        }
        Place::Tcp(at) => {
            let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
            match rustix::net::connect(&socket, at) {
                Ok(()) => Ok(Open::Stream(File::from(socket))),
                Err(rustix::io::Errno::INPROGRESS) => Ok(Open::Connecting(socket)),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// Returns the outcome of a connection in progress, if there is one.
fn connected(socket: &OwnedFd) -> Option<io::Result<File>> {
    let mut waiting = [PollFd::new(socket, PollFlags::OUT)];
    let count = poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    if !count.is_ok_and(|count| count > 0) {
        return None;
    }
    let outcome = || {
        sockopt::socket_error(socket)??;
        Ok(File::from(socket.try_clone()?))
    };
    Some(outcome())
}

#[cfg(test)]
mod tests;
