//! Ports of modems: a serial device, `/dev/diag`, or a TCP connection. All ports are opened, read and written in the
//! same way.
//!
//! ```text
//! Source ──open──▶ Port ──read──▶ bytes of the diagnostic stream
//!                          ▲  └─ drain: the device's own method, if it has one
//!                          └─write── frames
//! ```

mod dev_diag;
mod serial;

use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use dev_diag::DevDiag;

/// Timeout for opening a TCP connection.
///
/// Chosen: a time that users accept to wait. A modem's port is on this host or one hop away.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum wait at the start for a port that another program uses: the guard of a killed daemon keeps the port until it
/// has restored the modem.
///
/// Chosen: several times a modem's response time to the guard.
const BUSY_PORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Location of a modem's diagnostic port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A serial device: the DM port of a USB modem, or a pseudo-terminal.
    Serial(PathBuf),
    /// The character device of a phone's own kernel.
    DevDiag(PathBuf),
    /// A TCP server, `HOST:PORT`, that forwards the modem's stream.
    Tcp(String),
}

/// An open port. Reading and writing never block.
#[derive(Debug)]
pub struct Port {
    device: Device,
}

#[derive(Debug)]
enum Device {
    /// A port that is read and written through one descriptor.
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
    /// The port that a text among other sources names: `modem:PORT`, where `PORT` is a port as [`Source::from_str`] reads it,
    /// or the path of a device. `None` if the text names no port.
    pub fn named(text: &str) -> Option<Source> {
        if let Some(port) = text.strip_prefix("modem:").filter(|port| !port.is_empty()) {
            return port.parse().ok();
        }
        let path = Path::new(text);
        let is_device = std::fs::metadata(path).is_ok_and(|there| there.file_type().is_char_device());
        // A device that is not plugged in yet.
        let is_named_so = ["/dev/tty", "/dev/serial/", "/dev/diag"].iter().any(|name| text.starts_with(name));
        if !is_device && !is_named_so {
            return None;
        }
        Some(match text {
            "/dev/diag" => Source::DevDiag(path.to_owned()),
            _ => Source::Serial(path.to_owned()),
        })
    }

    /// Returns the same port under a name that does not change when the modem is plugged in again. For a USB modem's
    /// port, this is the link below `/dev/serial/by-id`, which contains the modem's serial number and the port's index in
    /// the modem.
    pub fn lasting(self) -> Source {
        match self {
            Source::Serial(path) => Source::Serial(serial::lasting(path, serial::BY_ID.as_ref())),
            other => other,
        }
    }

    /// Opens the port.
    ///
    /// # Errors
    /// The port does not exist, belongs to another program, or is not of the given kind.
    pub fn open(&self) -> io::Result<Port> {
        let device = match self {
            Source::Serial(path) => Device::Plain(serial::open(path)?),
            Source::DevDiag(path) => Device::DevDiag(DevDiag::open(path)?),
            Source::Tcp(address) => Device::Plain(connect(address)?),
        };
        Ok(Port { device })
    }

    /// Distinguishes a port that can never work from a port that may still appear: opens a serial device if it exists.
    /// Other ports are opened later.
    ///
    /// # Errors
    /// `InvalidInput` for a name that cannot be a port, `ResourceBusy` for a port that another program uses and does not
    /// release soon.
    pub(crate) fn open_first(&self) -> io::Result<Option<Port>> {
        self.open_first_within(BUSY_PORT_TIMEOUT)
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
    /// Creates a port from an open descriptor, for example an inherited one.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Port> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Port { device: Device::Plain(fd) })
    }

    /// Reads the received bytes; `None` if there are none.
    ///
    /// # Errors
    /// The port is gone; `UnexpectedEof` at the end of a stream.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(self.as_fd(), buffer) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other end has closed the port")),
            Ok(count) => Ok(Some(count)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as many bytes of the frames as the port accepts now; `None` if it accepts none.
    ///
    /// # Errors
    /// The port is gone.
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

    /// Returns whether this port splits the stream into frames itself, which must then be HDLC.
    pub fn is_framed(&self) -> bool {
        matches!(self.device, Device::DevDiag(_))
    }

    /// Returns whether this port has its own method for draining the modem's buffer.
    pub fn can_drain(&self) -> bool {
        matches!(self.device, Device::DevDiag(_))
    }

    /// Makes the modem send the content of its buffer, with the device's own method.
    ///
    /// # Errors
    /// Returns `Unsupported` for a device without such a method, or an error of the driver.
    pub fn drain(&self) -> io::Result<()> {
        match &self.device {
            Device::DevDiag(device) => device.drain(),
            Device::Plain(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns a second descriptor of the port, for a process that outlives this process; `None` if the driver does not
    /// serve another process through the descriptor.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn inheritable(&self) -> io::Result<Option<OwnedFd>> {
        match &self.device {
            Device::Plain(fd) => fd.try_clone().map(Some),
            Device::DevDiag(_) => Ok(None),
        }
    }
}

/// The descriptor that becomes readable when bytes arrive.
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
                // A peer whose host died sends nothing; keep-alive packets detect this.
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

/// Parses `tcp:HOST:PORT`, `diag:PATH`, or the path of a serial device.
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
