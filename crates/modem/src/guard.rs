//! The guard: a separate process that restores the modem if the process that changed the modem dies.
//!
//! The guard inherits the port, and reads from a pipe the frames that restore the modem. A daemon that ends regularly
//! restores the modem itself and reports this on the pipe. If the pipe ends without this report, the daemon was killed,
//! and the guard sends the frames.
//!
//! ```text
//! daemon ──pipe──▶ guard      'R' length frames: to send at the end; each message replaces the previous one
//!    └────port─────┘          'L': the daemon has ended regularly, no action needed
//! ```

use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::source::{Port, Source};

/// Kind byte of a message with the frames that restore the modem.
const RESTORE: u8 = b'R';
/// Kind byte of the message that the daemon has ended regularly.
const LEFT: u8 = b'L';
/// Kind byte of a message with the driver to open, if the guard cannot inherit the port itself.
const OPEN: u8 = b'O';

/// Time for which the guard waits for the modem's responses.
///
/// Chosen: modems respond within some milliseconds. If a process closes a TCP connection with unread responses, the bytes
/// that it wrote may be discarded, so the guard has to read the responses.
const ANSWERS: Duration = Duration::from_millis(500);
/// Maximum time for which the guard tries to send.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum time for which the daemon waits until the guard has ended. The daemon is blocked during this time.
///
/// Chosen: less than the time without heartbeats after which readers consider a daemon dead.
const ENDS_WITHIN: Duration = Duration::from_millis(50);
/// Maximum length of a message on the pipe, in bytes.
const MAX_WORD: usize = 1 << 20;

/// The daemon's end of the pipe. When this value is dropped without dismissal, the guard restores the modem.
#[derive(Debug)]
pub struct Guard {
    process: Child,
    pipe: Option<PipeWriter>,
    /// Whether the guard has failed to accept a complete message. After an incomplete message, the guard could not
    /// parse another message.
    has_write_failed: bool,
    is_dismissed: bool,
}

impl Guard {
    /// Starts a guard for `port`, which was opened from `source`. `command` is a program that calls [`stand`].
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(mut command: Command, source: &Source, port: &Port) -> io::Result<Guard> {
        let (reader, mut pipe) = io::pipe()?;
        let inherited = port.inheritable()?;
        let is_inherited = inherited.is_some();
        let process = command
            // A terminal key that ends the daemon must not end the guard.
            .process_group(0)
            .stdin(Stdio::from(reader))
            .stdout(inherited.map_or(Stdio::null(), Stdio::from))
            .spawn()?;
        if !is_inherited && let Source::DevDiag(path) = source {
            send(&mut pipe, OPEN, path.as_os_str().as_encoded_bytes())?;
        }
        // A stopped guard does not read the pipe, and the daemon must not block on it.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Guard { process, pipe: Some(pipe), has_write_failed: false, is_dismissed: false })
    }

    /// Sends the frames that restore the modem to the guard.
    ///
    /// # Errors
    /// The guard is gone or does not read the pipe.
    pub fn set_restore(&mut self, frames: &[u8]) -> io::Result<()> {
        self.say(RESTORE, frames)
    }

    /// Dismisses the guard, because the modem is restored or gone.
    ///
    /// # Errors
    /// The guard was already gone.
    pub fn dismiss(mut self) -> io::Result<()> {
        self.is_dismissed = true;
        self.say(LEFT, &[])
    }

    fn say(&mut self, kind: u8, text: &[u8]) -> io::Result<()> {
        let Some(pipe) = self.pipe.as_mut().filter(|_| !self.has_write_failed) else {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the guard does not listen"));
        };
        let said = send(pipe, kind, text);
        self.has_write_failed = said.is_err();
        said
    }

    /// Returns whether the guard ends within [`ENDS_WITHIN`].
    fn has_ended(&mut self) -> bool {
        let asked = Instant::now();
        loop {
            match self.process.try_wait() {
                Ok(None) if asked.elapsed() < ENDS_WITHIN => std::thread::sleep(Duration::from_millis(1)),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // A guard that is not dismissed has to restore the modem, which may take time. A dismissed guard has no work
        // left, and must not block the port for the next program that opens it.
        if !self.has_ended() && self.is_dismissed && self.process.kill().is_ok() {
            self.has_ended();
        }
    }
}

fn send(pipe: &mut PipeWriter, kind: u8, text: &[u8]) -> io::Result<()> {
    let mut word = vec![kind];
    word.extend((text.len() as u32).to_le_bytes());
    word.extend_from_slice(text);
    pipe.write_all(&word)
}

/// Runs the guard: reads `pipe` to its end, and restores the modem at `port` unless the daemon has done so.
///
/// # Errors
/// The port is gone, or does not accept the frames.
pub fn stand(pipe: impl Read, port: OwnedFd) -> io::Result<()> {
    let (restore, source) = listen(pipe)?;
    let Some(frames) = restore else { return Ok(()) };
    let port = match source {
        // The driver identifies clients by their process: the guard registers as a new client, and redirects the data to
        // itself.
        Some(source) => source.open()?,
        None => Port::from_fd(port)?,
    };
    speak(&port, &frames)
}

/// Returns the daemon's last messages when the pipe ends: the restoring frames, and the port to open if the inherited
/// port cannot be used.
fn listen(mut pipe: impl Read) -> io::Result<(Option<Vec<u8>>, Option<Source>)> {
    let (mut restore, mut source) = (None, None);
    loop {
        let mut header = [0; 5];
        if pipe.read_exact(&mut header).is_err() {
            return Ok((restore, source));
        }
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let mut text = vec![0; length.min(MAX_WORD)];
        // An incomplete message of a daemon that died is ignored.
        if pipe.read_exact(&mut text).is_err() {
            return Ok((restore, source));
        }
        match header[0] {
            RESTORE => restore = Some(text).filter(|frames| !frames.is_empty()),
            OPEN => {
                let path = String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData)?;
                source = Some(Source::DevDiag(path.into()));
            }
            LEFT => restore = None,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Sends all frames, and reads until no more responses are expected.
fn speak(port: &Port, frames: &[u8]) -> io::Result<()> {
    let (started, mut sent, mut heard_at) = (Instant::now(), 0, Instant::now());
    let mut buffer = vec![0; 1 << 16];
    while sent < frames.len() || heard_at.elapsed() < ANSWERS {
        if started.elapsed() > PATIENCE {
            let late = io::Error::new(io::ErrorKind::TimedOut, "the modem does not take what is sent");
            return if sent < frames.len() { Err(late) } else { Ok(()) };
        }
        let wants = if sent < frames.len() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        match poll(&mut [PollFd::new(port, wants)], Some(&timeout)) {
            // A service manager that ends a service signals all of its processes, which may interrupt this wait.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if sent < frames.len()
            && let Some(count) = port.write(&frames[sent..])?
        {
            sent += count;
            heard_at = Instant::now();
        }
        match port.read(&mut buffer) {
            Ok(_) => {}
            // The modem has received all frames, and closed the connection.
            Err(_) if sent == frames.len() => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    /// Returns the bytes that the modem receives from a guard that reads these messages.
    fn heard(words: &[(u8, &[u8])], cut: usize) -> Vec<u8> {
        let (reader, mut pipe) = io::pipe().unwrap();
        let (mut modem, port) = UnixStream::pair().unwrap();
        let mut said = vec![];
        for (kind, text) in words {
            said.push(*kind);
            said.extend((text.len() as u32).to_le_bytes());
            said.extend_from_slice(text);
        }
        pipe.write_all(&said[..said.len() - cut]).unwrap();
        drop(pipe);
        stand(reader, port.into()).unwrap();
        let mut heard = vec![];
        modem.read_to_end(&mut heard).unwrap();
        heard
    }

    #[test]
    fn a_daemon_that_dies_is_spoken_for() {
        assert_eq!(heard(&[(RESTORE, &[1, 2, 3])], 0), [1, 2, 3]);
        assert_eq!(heard(&[(RESTORE, &[1, 2, 3]), (RESTORE, &[4, 5])], 0), [4, 5], "the last word counts");
        assert_eq!(
            heard(&[(RESTORE, &[1, 2, 3]), (RESTORE, &[4, 5])], 1),
            [1, 2, 3],
            "it died within a word"
        );
    }

    #[test]
    fn a_daemon_that_left_or_changed_nothing_is_not() {
        assert_eq!(heard(&[(RESTORE, &[1, 2, 3]), (LEFT, &[])], 0), Vec::<u8>::new());
        assert_eq!(heard(&[], 0), Vec::<u8>::new());
    }

    #[test]
    fn a_guard_that_is_stopped_holds_up_nobody() {
        use rustix::process::{Pid, Signal, kill_process, test_kill_process};
        let (_modem, port) = UnixStream::pair().unwrap();
        let port = Port::from_fd(port.into()).unwrap();
        // This guard never reads, because it is another program, and it is also stopped.
        let mut command = Command::new("sleep");
        command.arg("600");
        let mut guard = Guard::start(command, &Source::Serial("port".into()), &port).unwrap();
        let pid = Pid::from_child(&guard.process);
        kill_process(pid, Signal::STOP).unwrap();
        let frames = vec![0; 1 << 15];
        let refused = (0..100).find_map(|_| guard.set_restore(&frames).err());
        assert!(refused.is_some(), "a pipe that is full is told of, not waited for");
        guard.set_restore(&[1]).unwrap_err();
        guard.dismiss().unwrap_err();
        test_kill_process(pid).expect_err("it has nothing left to do, and is gone");
    }

    #[test]
    fn a_modem_that_is_gone_is_told_of() {
        let (modem, port) = UnixStream::pair().unwrap();
        drop(modem);
        let said: &[u8] = &[RESTORE, 1, 0, 0, 0, 9];
        stand(said, port.into()).unwrap_err();
    }
}
