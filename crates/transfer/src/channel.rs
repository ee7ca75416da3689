//! Reads and writes frames on a connection's stream with bounded memory.

use airpace_core::{Refused, Time};

use super::message::{self, Fault, Frame, HEAD, MAX_MESSAGE, Message};
use airpace_transport::endpoint::{Connection, Read};

/// Maximum number of bytes per read.
const READ: usize = 32 * 1024;

/// Maximum number of unwritten bytes. At this limit no further frames are processed or produced.
const MAX_WAITING: usize = 32 * 1024;

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Bytes were received.
    Bytes,
    /// No bytes are available yet.
    Nothing,
    /// The peer has ended its stream.
    End,
}

/// Input and output buffers of one connection's frames.
#[derive(Default)]
pub struct Channel {
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
}

impl Channel {
    /// Writes as many buffered bytes as the connection accepts.
    ///
    /// # Errors
    /// The connection is over.
    pub fn flush(&mut self, now: Time, connection: &mut dyn Connection) -> Result<(), Refused> {
        while self.sent < self.output.len() {
            let count = connection.write(now, &self.output[self.sent..])?;
            if count == 0 {
                return Ok(());
            }
            self.sent += count;
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }

    /// Whether the output buffer has room for another frame.
    pub fn has_room(&self) -> bool {
        self.output.len() - self.sent < MAX_WAITING
    }

    /// Whether the connection has accepted all bytes.
    pub fn is_flushed(&self) -> bool {
        self.output.is_empty()
    }

    /// Reads from the connection once.
    ///
    /// # Errors
    /// The connection is over.
    pub fn fill(&mut self, now: Time, connection: &mut dyn Connection) -> Result<Fill, Refused> {
        self.input.drain(..self.taken);
        self.taken = 0;
        let before = self.input.len();
        debug_assert!(before <= HEAD + MAX_MESSAGE, "a frame that is whole is taken first");
        self.input.resize(before + READ, 0);
        let read = connection.read(now, &mut self.input[before..]);
        self.input.truncate(before + if let Ok(Read::Bytes(count)) = read { count } else { 0 });
        Ok(match read? {
            Read::Bytes(_) => Fill::Bytes,
            Read::Nothing => Fill::Nothing,
            Read::End => Fill::End,
        })
    }

    /// Returns the next frame if it is complete, and the length to pass to [`Channel::consume`] once it is processed.
    ///
    /// # Errors
    /// The frame violates the protocol.
    pub fn peek(&self) -> Result<Option<(Frame<'_>, usize)>, Fault> {
        message::parse(&self.input[self.taken..]).map_err(Fault::protocol)
    }

    /// Removes a processed frame from the input.
    pub fn consume(&mut self, length: usize) {
        self.taken += length;
    }

    /// Appends the first frame of an endpoint.
    pub fn put_hello(&mut self, proof: &[u8; 32]) {
        message::put_hello(&mut self.output, proof);
    }

    /// Appends a message.
    pub fn put(&mut self, message: &Message) {
        message::put(&mut self.output, message);
    }

    /// Appends a frame with file data, as [`message::put_data`].
    ///
    /// # Errors
    /// The error of `read`.
    pub fn put_data<E>(&mut self, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
        message::put_data(&mut self.output, read)
    }
}
