//! Where hosts reach the modem: a pseudo-terminal, or a TCP port.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{self, OpenptFlags};
use rustix::termios::{self, OptionalActions};

/// A door to a modem. One host at a time can come through it.
#[derive(Debug)]
pub enum Door {
    /// A pseudo-terminal: a host opens it like a modem's serial device.
    Terminal {
        /// The modem's side.
        modem: OwnedFd,
        /// The host's side, by path.
        path: String,
        /// Whether a host has opened it.
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

/// How often a terminal is checked for a host: the system does not report when one opens it.
const LOOKS_EVERY: Duration = Duration::from_millis(5);

impl Door {
    /// A pseudo-terminal.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn terminal() -> io::Result<Door> {
        let modem = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        pty::grantpt(&modem)?;
        pty::unlockpt(&modem)?;
        let path = pty::ptsname(&modem, Vec::new())?.into_string().map_err(io::Error::other)?;
        // Both sides share their settings: no echo, no translation, whatever the host sets.
        let mut attributes = termios::tcgetattr(&modem)?;
        attributes.make_raw();
        termios::tcsetattr(&modem, OptionalActions::Now, &attributes)?;
        // After it was opened and closed once, the terminal reports by a hang-up that no host is there.
        drop(rustix::fs::open(
            path.as_str(),
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?);
        rustix::io::ioctl_fionbio(&modem, true)?;
        Ok(Door::Terminal { modem, path, has_host: false })
    }

    /// A TCP port at `address`; port 0 means any free port.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn listen(address: impl ToSocketAddrs) -> io::Result<Door> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Door::Tcp { listener, host: None })
    }

    /// Whether a host is here.
    pub fn has_host(&self) -> bool {
        match self {
            Door::Terminal { has_host, .. } => *has_host,
            Door::Tcp { host, .. } => host.is_some(),
        }
    }

    /// Lets a host in, if one is there. Returns where it comes from, if that is known.
    ///
    /// # Errors
    /// If the door broke.
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

    /// Waits until the host sent something, has room again if `for_room`, or another host comes; for at most `most`.
    ///
    /// # Errors
    /// If the operating system refuses.
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

    /// Reads what the host sent; `None` if there is nothing, 0 bytes if the host is gone.
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

    /// Writes as much as the host takes now; returns the number of bytes.
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

    /// Hands over what was written: closes the port for output, and waits until the host has read all of it or is gone,
    /// for at most `most`. Without this, closing a port drops what the host has not read: a TCP connection with an
    /// unread request is reset, and a terminal is emptied.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(super) fn hand_over(&mut self, most: Duration) -> io::Result<()> {
        let until = Instant::now() + most;
        match self {
            Door::Terminal { modem, path, has_host: true } => {
                // The host's side tells how much is still to be read there. If the host has exclusive access, only root
                // can open it; then only the host's leaving tells.
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
                    // A host that continues to send requests must not be blocked because nothing reads them.
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

    /// The host is gone.
    pub(super) fn close(&mut self) {
        match self {
            Door::Terminal { modem, has_host, .. } => {
                *has_host = false;
                // Bytes that the host did not read are not for the next host, which begins in another framing.
                let _ = termios::tcflush(&*modem, termios::QueueSelector::IOFlush);
            }
            Door::Tcp { host, .. } => *host = None,
        }
    }
}

/// The path, or `HOST:PORT`, at which a host reaches it.
impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Door::Terminal { path, .. } => f.write_str(path),
            Door::Tcp { listener, .. } => match listener.local_addr() {
                Ok(address) => write!(f, "{address}"),
                Err(error) => write!(f, "an address that cannot be told ({error})"),
            },
        }
    }
}
