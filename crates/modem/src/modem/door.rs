//! Front ends at which hosts connect to the modem: a pseudo-terminal, or a TCP port.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, OptionalActions};

/// A front end of a modem, at which hosts connect. One host at a time can be connected.
#[derive(Debug)]
pub enum Door {
    /// A pseudo-terminal: a host opens it like a modem's serial device.
    Terminal {
        /// Descriptor of the modem's end of the terminal.
        modem: OwnedFd,
        /// Path of the host's end of the terminal.
        path: String,
        /// Whether a host has opened the terminal.
        has_host: bool,
    },
    /// A TCP port.
    Tcp {
        /// Accepts hosts.
        listener: TcpListener,
        /// The connected host.
        host: Option<TcpStream>,
    },
}

/// Interval between checks whether a host has opened the terminal. The system does not report this event.
const LOOKS_EVERY: Duration = Duration::from_millis(5);

impl Door {
    /// Creates a pseudo-terminal.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn terminal() -> io::Result<Door> {
        let modem = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        pty::grantpt(&modem)?;
        pty::unlockpt(&modem)?;
        let path = pty::ptsname(&modem, Vec::new())?.into_string().map_err(io::Error::other)?;
        // Both ends share their settings: no echo and no translation, even if the host changes its settings.
        let mut attributes = termios::tcgetattr(&modem)?;
        attributes.make_raw();
        termios::tcsetattr(&modem, OptionalActions::Now, &attributes)?;
        // After the host's end was opened and closed once, the terminal reports the absence of a host as a hang-up.
        drop(rustix::fs::open(
            path.as_str(),
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        rustix::io::ioctl_fionbio(&modem, true)?;
        Ok(Door::Terminal { modem, path, has_host: false })
    }

    /// Listens on a TCP port at `address`; port 0 selects any free port.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn listen(address: impl ToSocketAddrs) -> io::Result<Door> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Door::Tcp { listener, host: None })
    }

    /// Returns whether a host is connected.
    pub fn has_host(&self) -> bool {
        match self {
            Door::Terminal { has_host, .. } => *has_host,
            Door::Tcp { host, .. } => host.is_some(),
        }
    }

    /// Accepts a host, if one is waiting. Returns the host's address, if known.
    ///
    /// # Errors
    /// The front end failed.
    pub(super) fn try_open(&mut self) -> io::Result<Option<Option<String>>> {
        match self {
            Door::Terminal { modem, has_host, .. } => {
                let mut fds = [PollFd::new(modem, PollFlags::IN)];
                poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
                *has_host = !fds[0].revents().contains(PollFlags::HUP);
                Ok(has_host.then_some(None))
            }
            Door::Tcp { listener, host } => match listener.accept() {
                Ok((stream, from)) => {
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                    *host = Some(stream);
                    Ok(Some(Some(from.to_string())))
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted => Ok(None),
                    _ => Err(error),
                },
            },
        }
    }

    /// Waits until the host has sent bytes, can accept bytes (if `for_room`), or another host connects. Waits at most
    /// `most`.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(super) fn wait(&self, most: Duration, for_room: bool) -> io::Result<()> {
        let flags = if for_room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = match self {
            Door::Terminal { modem, has_host: true, .. } => vec![PollFd::new(modem, flags)],
            Door::Terminal { .. } => vec![],
            Door::Tcp { host: Some(host), .. } => vec![PollFd::new(host, flags)],
            Door::Tcp { listener, host: None } => vec![PollFd::new(listener, PollFlags::IN)],
        };
        let most = if fds.is_empty() { most.min(LOOKS_EVERY) } else { most };
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        match poll(&mut fds, Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the host's bytes; `None` if there are none, 0 bytes if the host is gone.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let result = match self {
            Door::Terminal { modem, .. } => rustix::io::read(&*modem, buffer).map_err(io::Error::from),
            Door::Tcp { host: Some(host), .. } => host.read(buffer),
            Door::Tcp { host: None, .. } => Ok(0),
        };
        match result {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Writes as many bytes as the host accepts now; returns their number.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = match self {
            Door::Terminal { modem, .. } => rustix::io::write(&*modem, bytes).map_err(io::Error::from),
            Door::Tcp { host: Some(host), .. } => host.write(bytes),
            Door::Tcp { host: None, .. } => Ok(0),
        };
        match result {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            result => result,
        }
    }

    /// Closes the port for output, and waits until the host has read all bytes or is gone, but at most `most`. Without
    /// this wait, closing a port discards the bytes that the host has not read: a TCP connection with an unread request
    /// is reset, and a terminal is emptied.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(super) fn hand_over(&mut self, most: Duration) -> io::Result<()> {
        let until = Instant::now() + most;
        match self {
            Door::Terminal { modem, path, has_host: true } => {
                // A descriptor of the host's end returns the number of unread bytes at that end. If the host has
                // exclusive access, only root can open it; then the host must close its end first.
                let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let host = rustix::fs::open(path.as_str(), flags, Mode::empty()).ok();
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                while Instant::now() < until {
                    let is_done = match &host {
                        Some(host) => poll(&mut [PollFd::new(host, PollFlags::IN)], Some(&now))? == 0,
                        None => {
                            let mut fds = [PollFd::new(&*modem, PollFlags::IN)];
                            poll(&mut fds, Some(&now))?;
                            fds[0].revents().contains(PollFlags::HUP)
                        }
                    };
                    if is_done {
                        break;
                    }
                    // Read and discard the host's requests: a host that continues to send requests must not block
                    // because nobody reads them.
                    let _ = rustix::io::read(&*modem, &mut [0; 256]);
                    std::thread::sleep(LOOKS_EVERY);
                }
            }
            Door::Tcp { host: Some(host), .. } => {
                host.shutdown(Shutdown::Write)?;
                host.set_nonblocking(false)?;
                let mut left = most;
                while !left.is_zero() {
                    host.set_read_timeout(Some(left))?;
                    match host.read(&mut [0; 256]) {
                        Ok(0) => break,
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                    left = until.saturating_duration_since(Instant::now());
                }
            }
            Door::Terminal { .. } | Door::Tcp { .. } => {}
        }
        Ok(())
    }

    /// Disconnects the host.
    pub(super) fn close(&mut self) {
        match self {
            Door::Terminal { modem, has_host, .. } => {
                *has_host = false;
                // Discard the bytes that the host did not read: the next host starts in another framing.
                let _ = termios::tcflush(&*modem, termios::QueueSelector::IOFlush);
            }
            Door::Tcp { host, .. } => *host = None,
        }
    }
}

/// Shows the path, or `HOST:PORT`, at which a host can connect.
impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Door::Terminal { path, .. } => f.write_str(path),
            Door::Tcp { listener, .. } => match listener.local_addr() {
                Ok(address) => write!(f, "{address}"),
                Err(error) => write!(f, "an unknown address ({error})"),
            },
        }
    }
}
