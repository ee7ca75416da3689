//! Live radio reports of the emulated devices, on Unix sockets, in the line format that all producers of reports use.

use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use airpace_core::{DeviceId, Remedy};
use airpace_event::Source;
use airpace_radio::{RadioReport, line};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::EmuError;
use crate::turn::Told;

/// A socket that sends the reports of one device and source.
#[derive(Debug)]
pub struct ReportSocket {
    device: DeviceId,
    source: Source,
    path: PathBuf,
    /// Device and inode number of the socket's file.
    identity: (u64, u64),
    listener: UnixListener,
    readers: Vec<Reader>,
}

/// A connected program, and the lines that it has not read yet.
#[derive(Debug)]
struct Reader {
    stream: UnixStream,
    waiting: Vec<u8>,
}

/// Maximum number of programs that are connected to a socket at the same time.
///
/// Chosen: more than a device runs. Further connections are closed.
const MAX_READERS: usize = 16;

/// Maximum number of bytes that wait for a program before its connection is closed.
///
/// Chosen: a few seconds of reports of a busy cell.
const MAX_WAITING: usize = 8 << 20;

/// Interval at which connections are accepted while there are no reports.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns the name of a device's socket in the folder of sockets; devices are counted from 1.
///
/// `device-1.control` sends the grants of all users, as a decoder of the control channel reports them. `device-1.modem`
/// sends the device's own grants and signal.
pub fn socket_name(device: DeviceId, source: Source) -> String {
    let what = match source {
        Source::ControlChannel => "control",
        Source::Modem => "modem",
    };
    format!("device-{}.{what}", device.0 + 1)
}

impl ReportSocket {
    /// Opens a device's socket in a folder. A missing folder is created with access for this user only.
    ///
    /// # Errors
    /// The folder cannot be created, the name belongs to something other than a socket, or the path is too long.
    pub fn open(folder: &Path, device: DeviceId, source: Source) -> Result<ReportSocket, EmuError> {
        let path = folder.join(socket_name(device, source));
        let open = || {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            match path.symlink_metadata() {
                Ok(about) if about.file_type().is_socket() && is_served(&path)? => {
                    return Err(io::Error::new(ErrorKind::AddrInUse, "another emulator reports there"));
                }
                // A leftover socket of an emulator that was killed.
                Ok(about) if about.file_type().is_socket() => std::fs::remove_file(&path)?,
                Ok(_) => {
                    return Err(io::Error::new(ErrorKind::AlreadyExists, "something else has that name"));
                }
                Err(_) => {}
            }
            let listener = UnixListener::bind(&path)?;
            listener.set_nonblocking(true)?;
            let about = path.symlink_metadata()?;
            Ok((listener, (about.dev(), about.ino())))
        };
        let (listener, identity) = open().map_err(EmuError::step_or(
            format!("open the socket `{}`", path.display()),
            Remedy::new("choose another folder with").parameter("reports"),
        ))?;
        Ok(ReportSocket { device, source, path, identity, listener, readers: vec![] })
    }

    fn let_in(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.readers.len() < MAX_READERS && stream.set_nonblocking(true).is_ok() {
                self.readers.push(Reader { stream, waiting: vec![] });
            }
        }
    }

    fn tell(&mut self, line: &str) {
        for reader in &mut self.readers {
            if reader.waiting.len() + line.len() < MAX_WAITING {
                reader.waiting.extend_from_slice(line.as_bytes());
                reader.waiting.push(b'\n');
            } else {
                // The program could not detect a missing line, but it detects a closed socket.
                let _ = reader.stream.shutdown(std::net::Shutdown::Both);
            }
        }
        self.readers.retain_mut(Reader::hand_over);
    }
}

impl Reader {
    /// Writes as many bytes as the program accepts. Returns whether the program is still connected.
    fn hand_over(&mut self) -> bool {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return false,
                Ok(taken) => drop(self.waiting.drain(..taken)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// Returns whether a process accepts connections at this socket.
fn is_served(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        // `AGAIN` means that the backlog is full, so a process listens.
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Drop for ReportSocket {
    fn drop(&mut self) {
        // The file may have been replaced; only the own file is removed.
        let is_ours = |about: std::fs::Metadata| (about.dev(), about.ino()) == self.identity;
        if self.path.symlink_metadata().is_ok_and(is_ours) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Sends reports as they arrive, until the emulator drops the channel. `each` receives every batch too.
pub fn tell(sockets: &mut [ReportSocket], reports: &Receiver<Vec<Told>>, mut each: impl FnMut(&[Told])) {
    loop {
        let batch = match reports.recv_timeout(LOOK_EVERY) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => vec![],
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for socket in sockets.iter_mut() {
            socket.let_in();
            if socket.readers.is_empty() {
                continue;
            }
            let own = batch
                .iter()
                .filter(|(device, source, _)| (*device, *source) == (socket.device, socket.source));
            let mut own: Vec<&RadioReport> = own.map(|(_, _, report)| report).collect();
            own.sort_by_key(|report| (report.slot.subframe(), report.carrier, report.slot.index));
            for subframe in own.chunk_by(|a, b| a.slot.subframe() == b.slot.subframe()) {
                let reports: Vec<RadioReport> = subframe.iter().map(|&report| report.clone()).collect();
                socket.tell(&line::to_line(reports[0].slot.subframe(), &reports));
            }
        }
        each(&batch);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::sync::mpsc::sync_channel;

    use airpace_core::Time;
    use airpace_radio::{BitLayer, CarrierId, Scope, Slot};

    use super::*;

    fn report(carrier: u8, subframe: u64) -> RadioReport {
        RadioReport {
            carrier: CarrierId(carrier),
            slot: Slot::subframe_of_lte(subframe),
            time: Time::from_millis(subframe),
            scope: Scope::Own,
            carrier_prbs: Some(50),
            cfi: None,
            symbols: None,
            dcis: vec![],
            own: None,
            layer: BitLayer::Physical,
        }
    }

    #[test]
    fn a_program_reads_one_line_for_each_subframe_of_its_device() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("reports");
        let (device, source) = (DeviceId(1), Source::Modem);
        let mut sockets = [ReportSocket::open(&folder, device, source).unwrap()];
        let stream = UnixStream::connect(folder.join("device-2.modem")).unwrap();
        let (send, receive) = sync_channel(16);
        let batch = vec![
            (device, source, report(1, 7)),
            (device, source, report(0, 7)),
            (DeviceId(0), source, report(0, 7)),
            (device, Source::ControlChannel, report(0, 7)),
            (device, source, report(0, 8)),
        ];
        send.send(batch).unwrap();
        drop(send);
        let mut seen = 0;
        tell(&mut sockets, &receive, |batch| seen += batch.len());
        assert_eq!(seen, 5);
        drop(sockets);
        let lines: Vec<String> = BufReader::new(stream).lines().map(Result::unwrap).collect();
        let read: Vec<Vec<RadioReport>> = lines.iter().map(|text| line::from_line(text).unwrap()).collect();
        let carriers = |reports: &[RadioReport]| reports.iter().map(|it| it.carrier.0).collect::<Vec<_>>();
        assert_eq!(read.iter().map(|it| carriers(it)).collect::<Vec<_>>(), [vec![0, 1], vec![0]]);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the socket is gone");
    }

    #[test]
    fn a_program_that_does_not_read_loses_its_place_and_holds_up_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let (device, source) = (DeviceId(0), Source::ControlChannel);
        let mut socket = ReportSocket::open(folder.path(), device, source).unwrap();
        let mut lazy = UnixStream::connect(folder.path().join("device-1.control")).unwrap();
        socket.let_in();
        let line = "x".repeat(64 << 10);
        let mut told = 0;
        while !socket.readers.is_empty() && told < 10_000 {
            socket.tell(&line);
            told += 1;
        }
        assert!(told < 10_000 && told * line.len() > MAX_WAITING, "{told}");
        let mut rest = vec![];
        let _ = lazy.read_to_end(&mut rest);
        assert!(rest.len() < MAX_WAITING, "its socket has ended");
    }

    #[test]
    fn a_socket_of_a_living_emulator_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (device, source) = (DeviceId(0), Source::ControlChannel);
        let name = folder.path().join("device-1.control");
        let first = ReportSocket::open(folder.path(), device, source).unwrap();
        let refused = ReportSocket::open(folder.path(), device, source).unwrap_err();
        assert!(refused.to_string().contains("another emulator reports there"), "{refused}");
        UnixStream::connect(&name).expect("the first one still has it");
        // A killed emulator leaves its socket.
        std::fs::rename(&name, folder.path().join("kept")).unwrap();
        drop(UnixListener::bind(&name).unwrap());
        let second = ReportSocket::open(folder.path(), device, source).unwrap();
        drop(first);
        assert!(name.exists(), "the first one does not remove what is the second one's");
        drop(second);
        assert!(!name.exists());
    }

    #[test]
    fn nothing_but_a_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("device-1.control");
        std::fs::write(&name, "mine").unwrap();
        let refused = ReportSocket::open(folder.path(), DeviceId(0), Source::ControlChannel).unwrap_err();
        assert!(refused.to_string().contains("something else has that name"), "{refused}");
        assert_eq!(std::fs::read_to_string(name).unwrap(), "mine");
    }
}
