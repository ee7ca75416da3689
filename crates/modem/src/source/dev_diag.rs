//! The device `/dev/diag`. Its driver gives data only to the process that opened it, blocks reads in any mode, and
//! reports the device as readable when it is not. A separate thread therefore reads the device and forwards the stream
//! through a pipe.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use airpace_diag::Buffering;
use airpace_diag::char_device::{self, Merge};
use rustix::fs::{Mode, OFlags};

use crate::sys;

/// The open device, configured so that the driver delivers its data to this process.
#[derive(Debug)]
pub(super) struct DevDiag {
    device: Arc<OwnedFd>,
    /// The frames that the thread has read.
    stream: UnixStream,
    /// Whether the modem is on a separate chip.
    is_remote: bool,
    /// Whether the driver accepted the buffering mode of the modem; if not, drains are not possible.
    buffers: bool,
    /// Flag that makes the thread end when it wakes up.
    is_over: Arc<AtomicBool>,
}

impl DevDiag {
    /// Opens the device, and makes the driver give its data to this process without delay.
    ///
    /// # Errors
    /// The driver refuses.
    pub(super) fn open(path: &Path) -> io::Result<DevDiag> {
        let device: OwnedFd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let fd = device.as_fd();
        let mode = char_device::MEMORY_DEVICE_MODE;
        let switched =
            sys::ioctl(fd, char_device::IOCTL_SWITCH_LOGGING, &mut char_device::switch_logging(mode));
        // Drivers before Android 7 take the mode number itself as argument.
        switched.or_else(|_| sys::ioctl_number(fd, char_device::IOCTL_SWITCH_LOGGING, mode))?;
        let mut remote = [0; 2];
        let is_remote =
            sys::ioctl(fd, char_device::IOCTL_REMOTE_DEVICES, &mut remote).is_ok() && remote != [0, 0];
        vote(fd, true);
        let streaming = char_device::buffering(Buffering::Streaming);
        let buffers = sys::ioctl(fd, char_device::IOCTL_BUFFERING, &mut { streaming }).is_ok();
        let (stream, pump) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        let device = Arc::new(device);
        let is_over = Arc::new(AtomicBool::new(false));
        let (read_from, ends) = (Arc::clone(&device), Arc::clone(&is_over));
        thread::Builder::new()
            .name("dev-diag".to_owned())
            .spawn(move || pump_stream(&read_from, &ends, pump))?;
        Ok(DevDiag { device, stream, is_remote, buffers, is_over })
    }

    pub(super) fn stream(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Writes whole frames: the driver accepts all frames of a write or none.
    pub(super) fn write(&self, frames: &[u8]) -> io::Result<usize> {
        rustix::io::write(&*self.device, &char_device::write(frames, self.is_remote))?;
        Ok(frames.len())
    }

    /// Source: BISCAY §3.2.3
    pub(super) fn drain(&self) -> io::Result<()> {
        if !self.buffers {
            return Err(io::ErrorKind::Unsupported.into());
        }
        sys::ioctl(self.device.as_fd(), char_device::IOCTL_DRAIN, &mut [char_device::MODEM])
    }
}

/// Restores the phone's default handling of diagnostic data without a reading process.
impl Drop for DevDiag {
    fn drop(&mut self) {
        // Errors cannot be returned from here. The driver restores itself when the last descriptor closes.
        let fd = self.device.as_fd();
        let threshold = char_device::buffering(Buffering::THRESHOLD);
        let _ = sys::ioctl(fd, char_device::IOCTL_BUFFERING, &mut { threshold });
        vote(fd, false);
        let usb = char_device::USB_MODE;
        let switched =
            sys::ioctl(fd, char_device::IOCTL_SWITCH_LOGGING, &mut char_device::switch_logging(usb));
        let _ = switched.or_else(|_| sys::ioctl_number(fd, char_device::IOCTL_SWITCH_LOGGING, usb));
        self.is_over.store(true, Ordering::Relaxed);
        let _ = sys::ioctl_number(fd, char_device::IOCTL_END_READING, 0);
    }
}

fn vote(device: BorrowedFd<'_>, wants: bool) {
    for mut vote in char_device::real_time_votes(wants) {
        // A driver without real-time votes returns an error, which is ignored.
        let _ = sys::ioctl(device, char_device::IOCTL_VOTE_REAL_TIME, &mut vote);
    }
}

/// Reads until the device is gone or the pipe's reader closes the pipe. At the end, closing the pipe notifies the
/// reader.
fn pump_stream(device: &OwnedFd, is_over: &AtomicBool, mut pipe: UnixStream) {
    let (mut buffer, mut stream, mut merge) = (vec![0; char_device::READ_SIZE], Vec::new(), Merge::default());
    loop {
        let count = match rustix::io::read(device, &mut buffer) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return,
        };
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        stream.clear();
        // Blocks after a malformed block cannot be read. The frame that is truncated as a result is counted later as a
        // fault.
        for (origin, bytes) in char_device::blocks(&buffer[..count]).map_while(Result::ok) {
            merge.push(origin, bytes, &mut stream);
        }
        if pipe.write_all(&stream).is_err() {
            return;
        }
    }
}
