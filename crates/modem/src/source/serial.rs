//! Serial devices: raw mode, exclusive access, and names that are found again after a device was unplugged.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use airpace_core::remedy::{Refused, Remedy, UserTask};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{self, OptionalActions, QueueSelector};

/// Folder with links to serial ports whose names do not depend on the order in which devices are plugged in.
pub(super) const BY_ID: &str = "/dev/serial/by-id";

/// Opens a serial device, without echo, translation, or access by other programs.
///
/// # Errors
/// The operating system refuses; `InvalidInput` if the path is not a serial device, `ResourceBusy` if another program
/// uses it.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(taken)?;
    if !termios::isatty(&fd) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no serial device"));
    }
    // The exclusive mode and the lock keep other programs from the port: programs that search for modems would
    // otherwise send commands during the session. The exclusive mode does not apply to root. The lock applies to every
    // program that requests it, as serial terminals and Airpace do, and it lasts as long as the guard has the port
    // open.
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(taken)?;
    if !is_pseudo(&fd)? {
        termios::ioctl_tiocexcl(&fd)?;
    }
    let mut attributes = termios::tcgetattr(&fd)?;
    attributes.make_raw();
    termios::tcsetattr(&fd, OptionalActions::Now, &attributes)?;
    // Older bytes in the queue would be interpreted as the modem's current output.
    termios::tcflush(&fd, QueueSelector::IFlush)?;
    Ok(fd)
}

/// Returns whether the device is a pseudo-terminal. A pseudo-terminal is not opened in exclusive mode, because that
/// mode would last until the other end closes, and until then only root could open the terminal again. No program
/// searches for modems at pseudo-terminals.
fn is_pseudo(fd: &OwnedFd) -> io::Result<bool> {
    // Linux, Documentation/admin-guide/devices.txt: Unix98 PTY slaves.
    Ok((136..=143).contains(&rustix::fs::major(rustix::fs::fstat(fd)?.st_rdev)))
}

/// Returns the error for a port that is refused because another program uses it.
fn taken(error: Errno) -> io::Error {
    match error {
        Errno::BUSY | Errno::WOULDBLOCK => io::Error::new(
            io::ErrorKind::ResourceBusy,
            Refused::new("another program has this port").but(
                Remedy::new("end it, or, if it is a daemon of ours, read from it:")
                    .task(UserTask::WatchServed),
            ),
        ),
        other => other.into(),
    }
}

/// Returns the link below `by_id` that leads to `path`, or `path` if there is no such link.
pub(super) fn lasting(path: PathBuf, by_id: &Path) -> PathBuf {
    let (Ok(device), Ok(links)) = (fs::canonicalize(&path), fs::read_dir(by_id)) else { return path };
    let mut links: Vec<_> = links.filter_map(|link| Some(link.ok()?.path())).collect();
    links.sort();
    let leads_there = |link: &PathBuf| fs::canonicalize(link).is_ok_and(|target| target == device);
    links.into_iter().find(leads_there).unwrap_or(path)
}
