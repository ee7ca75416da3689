//! Socket between the emulator and the process that holds its namespaces: whole messages, with open files attached.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One endpoint of the socket.
#[derive(Debug)]
pub(super) struct Channel {
    socket: OwnedFd,
}

/// Maximum size of a message, in bytes.
///
/// Chosen: less than the kernel's usual socket buffer, more than any command line that is typed.
const MAX_BYTES: usize = 128 << 10;

/// Maximum number of open files in one message: an interface per device, and a few more.
const MAX_FILES: usize = 40;

impl Channel {
    /// Creates both endpoints. The caller may let a child process inherit the second one.
    pub(super) fn pair() -> io::Result<(Channel, OwnedFd)> {
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Channel { socket: ours }, theirs))
    }

    pub(super) fn new(socket: OwnedFd) -> Channel {
        Channel { socket }
    }

    /// Sends a message with open files.
    pub(super) fn send(&self, message: &impl Serialize, files: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        if text.len() > MAX_BYTES {
            let what = format!("a command of {} bytes is too long; put it into a script", text.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut room);
        if !files.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(files)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many files for one message"));
        }
        sendmsg(&self.socket, &[IoSlice::new(&text)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for a message; `None` if the other endpoint is closed.
    pub(super) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut text = vec![0; MAX_BYTES];
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut room);
        let received = loop {
            let flags = RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut text)], &mut ancillary, flags) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                other => break other?,
            }
        };
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut files = vec![];
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                files.extend(rights);
            }
        }
        Ok(Some((serde_json::from_slice(&text[..received.bytes])?, files)))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn messages_arrive_whole_with_their_files() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::new(theirs);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"inside").unwrap();
        ours.send(&("first", 1), &[file.as_fd()]).unwrap();
        ours.send(&("second", 2), &[]).unwrap();
        let ((word, number), files): ((String, u8), _) = theirs.receive().unwrap().unwrap();
        assert_eq!((word.as_str(), number, files.len()), ("first", 1, 1));
        let mut same = std::fs::File::from(files.into_iter().next().unwrap());
        same.rewind().unwrap();
        let mut text = String::new();
        same.read_to_string(&mut text).unwrap();
        assert_eq!(text, "inside");
        let ((word, _), files): ((String, u8), _) = theirs.receive().unwrap().unwrap();
        assert_eq!((word.as_str(), files.len()), ("second", 0));
        let long = "x".repeat(MAX_BYTES);
        assert!(ours.send(&long, &[]).unwrap_err().to_string().contains("put it into a script"));
        drop(ours);
        assert!(theirs.receive::<(String, u8)>().unwrap().is_none());
    }
}
