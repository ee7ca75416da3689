//! Frames in and out of a connection's stream, with bounded memory.

use airpace_core::Time;

use super::message::{self, Fault, Frame, HEAD, MOST_MESSAGE, Message};
use crate::transport::{Connection, Read};

/// Bytes that are read at a time.
const READ: usize = 32 * 1024;

/// Bytes that wait to be written, at most, before nothing more is taken in or produced.
const MOST_WAITING: usize = 32 * 1024;

/// What reading gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// More bytes.
    Bytes,
    /// Nothing yet.
    Nothing,
    /// The other side has said all.
    End,
}

/// The frames of one connection.
#[derive(Default)]
pub struct Channel {
    input: Vec<u8>,
    taken: usize,
    output: Vec<u8>,
    sent: usize,
}

impl Channel {
    /// Writes what the connection takes.
    ///
    /// # Errors
    /// The connection is over.
    pub fn flush(&mut self, now: Time, connection: &mut dyn Connection) -> Result<(), String> {
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

    /// Whether more may be put into the channel.
    pub fn has_room(&self) -> bool {
        self.output.len() - self.sent < MOST_WAITING
    }

    /// Whether the connection took everything.
    pub fn is_flushed(&self) -> bool {
        self.output.is_empty()
    }

    /// Reads once.
    ///
    /// # Errors
    /// The connection is over.
    pub fn fill(&mut self, now: Time, connection: &mut dyn Connection) -> Result<Fill, String> {
        self.input.drain(..self.taken);
        self.taken = 0;
        let before = self.input.len();
        debug_assert!(before <= HEAD + MOST_MESSAGE, "a frame that is whole is taken first");
        self.input.resize(before + READ, 0);
        let read = connection.read(now, &mut self.input[before..]);
        self.input.truncate(before + if let Ok(Read::Bytes(count)) = read { count } else { 0 });
        Ok(match read? {
            Read::Bytes(_) => Fill::Bytes,
            Read::Nothing => Fill::Nothing,
            Read::End => Fill::End,
        })
    }

    /// The next frame, if it is there in whole, and what to [`Channel::consume`] when it has been dealt with.
    ///
    /// # Errors
    /// It is none of this protocol.
    pub fn peek(&self) -> Result<Option<(Frame<'_>, usize)>, Fault> {
        message::parse(&self.input[self.taken..]).map_err(Fault::protocol)
    }

    /// The frame that was seen has been dealt with.
    pub fn consume(&mut self, length: usize) {
        self.taken += length;
    }

    /// Puts the first frame of a side.
    pub fn put_hello(&mut self, proof: &[u8; 32]) {
        message::put_hello(&mut self.output, proof);
    }

    /// Puts a message.
    pub fn put(&mut self, message: &Message) {
        message::put(&mut self.output, message);
    }

    /// Puts bytes of a file, as [`message::put_data`].
    ///
    /// # Errors
    /// That of `read`.
    pub fn put_data<E>(&mut self, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<usize, E> {
        message::put_data(&mut self.output, read)
    }
}
