//! Ports of modems: a serial device, `/dev/diag`, or a TCP connection, opened, read and written alike.
//!
//! ```text
//! Source ──open──▶ Port ──read──▶ bytes of the diagnostic stream
//!                          ▲  └─ drain: the device's own way, where it has one
//!                          └─write── frames
//! ```

mod dev_diag;
mod serial;

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use dev_diag::DevDiag;

/// How long a TCP connection may take to come about.
///
/// Chosen: what people wait without doubt; a modem's port is on this host or one hop away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a port that another program has is waited for at first: the guard of a daemon that was killed has it until it
/// has given the modem back.
///
/// Chosen: several times what a modem takes to answer the guard.
const LETS_GO_WITHIN: Duration = Duration::from_secs(2);

/// Where a modem's diagnostic port is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A serial device: the DM port of a USB modem, or a pseudo-terminal.
    Serial(PathBuf),
    /// The character device of a phone's own kernel.
    DevDiag(PathBuf),
    /// A TCP server that passes the stream on, `HOST:PORT`.
    Tcp(String),
}

/// An open port. Reading and writing never wait.
#[derive(Debug)]
pub struct Port {
    device: Device,
}

#[derive(Debug)]
enum Device {
    /// Anything that is read and written by one descriptor.
    Plain(OwnedFd),
    DevDiag(DevDiag),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Serial(path) | Source::DevDiag(path) => write!(f, "{}", path.display()),
            Source::Tcp(address) => f.write_str(address),
        }
    }
}

impl Source {
    /// The same port by a name that it keeps when it is plugged in again: of a USB modem's port the link below
    /// `/dev/serial/by-id`, which has the modem's serial number and the port's place in the modem.
    pub fn lasting(self) -> Source {
        match self {
            Source::Serial(path) => Source::Serial(serial::lasting(path, serial::BY_ID.as_ref())),
            other => other,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// A port that is not there, that belongs to somebody else, or that is not what it was said to be.
    pub fn open(&self) -> io::Result<Port> {
        let device = match self {
            Source::Serial(path) => Device::Plain(serial::open(path)?),
            Source::DevDiag(path) => Device::DevDiag(DevDiag::open(path)?),
            Source::Tcp(address) => Device::Plain(connect(address)?),
        };
        Ok(Port { device })
    }

    /// Tells what can never work from what may come: opens a serial device if it is there; other ports are opened later.
    ///
    /// # Errors
    /// `InvalidInput` for what can be no port, `ResourceBusy` for one that another program has, and does not let go soon.
    pub(crate) fn open_first(&self) -> io::Result<Option<Port>> {
        self.open_first_within(LETS_GO_WITHIN)
    }

    fn open_first_within(&self, patience: Duration) -> io::Result<Option<Port>> {
        let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        match self {
            Source::Tcp(address) => match address.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(None),
                _ => invalid("it is not HOST:PORT with a port from 0 to 65535, such as localhost:9000"),
            },
            Source::DevDiag(path) => match path.metadata() {
                Ok(file) if !file.file_type().is_char_device() => invalid("it is no character device"),
                _ => Ok(None),
            },
            Source::Serial(_) => {
                let asked = Instant::now();
                loop {
                    match self.open() {
                        Ok(port) => return Ok(Some(port)),
                        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
                        Err(error) if error.kind() != io::ErrorKind::ResourceBusy => return Ok(None),
                        Err(error) if asked.elapsed() > patience => return Err(error),
                        Err(_) => std::thread::sleep(Duration::from_millis(50)),
                    }
                }
            }
        }
    }
}

impl Port {
    /// A port by a descriptor that is open already, such as one that was inherited.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Port> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Port { device: Device::Plain(fd) })
    }

    /// Reads what has come; `None` if nothing has.
    ///
    /// # Errors
    /// A port that is gone; at the end of a stream `UnexpectedEof`.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(self.as_fd(), buffer) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other end has closed the port")),
            Ok(count) => Ok(Some(count)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes bytes of frames, as many as the port takes now; `None` if it takes none.
    ///
    /// # Errors
    /// A port that is gone.
    pub fn write(&self, frames: &[u8]) -> io::Result<Option<usize>> {
        match &self.device {
            Device::DevDiag(device) => device.write(frames).map(Some),
            Device::Plain(fd) => match rustix::io::write(fd, frames) {
                Ok(count) => Ok(Some(count)),
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Whether this port passes on frames that it has told apart, for which they must be HDLC.
    pub fn is_framed(&self) -> bool {
        matches!(self.device, Device::DevDiag(_))
    }

    /// Whether this port has its own way of draining the modem's buffer.
    pub fn can_drain(&self) -> bool {
        matches!(self.device, Device::DevDiag(_))
    }

    /// Has the modem send what its buffer holds, by the device's own way.
    ///
    /// # Errors
    /// `Unsupported` from a device that has none, and what the driver refuses.
    pub fn drain(&self) -> io::Result<()> {
        match &self.device {
            Device::DevDiag(device) => device.drain(),
            Device::Plain(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// A second descriptor of the same port, for a process that is to outlive this one; `None` where the driver would
    /// not serve another process by it.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn inheritable(&self) -> io::Result<Option<OwnedFd>> {
        match &self.device {
            Device::Plain(fd) => fd.try_clone().map(Some),
            Device::DevDiag(_) => Ok(None),
        }
    }
}

/// The descriptor to wait on for bytes.
impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Plain(fd) => fd.as_fd(),
            Device::DevDiag(device) => device.stream(),
        }
    }
}

fn connect(address: &str) -> io::Result<OwnedFd> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                // A peer whose host died says nothing; without this its silence would last for ever.
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, Duration::from_secs(5))?;
                sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(2))?;
                sockopt::set_tcp_keepcnt(&stream, 3)?;
                return Ok(stream.into());
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// `tcp:HOST:PORT`, `diag:PATH`, or the path of a serial device: how a source is written where there is room for one
/// word.
impl FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Source, Self::Err> {
        Ok(match text.split_once(':') {
            Some(("tcp", address)) => Source::Tcp(address.to_owned()),
            Some(("diag", path)) => Source::DevDiag(path.into()),
            _ => Source::Serial(text.into()),
        })
    }
}

#[cfg(test)]
mod tests;
