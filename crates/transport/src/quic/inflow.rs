//! Reordering of the pieces of a stream, as noq delivers them.
//!
//! noq aborts a connection with more than 1024 out-of-order pieces of one stream. Therefore every piece is taken from
//! noq at once, regardless of its offset, and waits here. Flow control limits the waiting bytes: see `receive_window`
//! in `config.rs`.
//!
//! Source: noq-proto 1.4 `connection/assembler.rs` (`MAX_CHUNKS`)

use std::collections::BTreeMap;

use airpace_core::{Bytes, Refused};
use bytes::{Buf, Bytes as Chunk};

use crate::endpoint::Read;

/// The received and unread bytes of one stream.
#[derive(Debug, Default)]
pub(super) struct Inflow {
    /// Pieces by their offset. noq delivers no byte twice, so that they do not overlap.
    pieces: BTreeMap<u64, Chunk>,
    /// Offset of the next byte to read.
    next: u64,
    /// Length of the stream, if known.
    end: Option<u64>,
    waiting: u64,
    /// Error code with which the peer reset the stream.
    reset: Option<u64>,
}

impl Inflow {
    /// Inserts a piece.
    pub(super) fn push(&mut self, offset: u64, bytes: Chunk) {
        if !bytes.is_empty() {
            self.waiting += bytes.len() as u64;
            self.pieces.insert(offset, bytes);
        }
    }

    /// Marks the stream as complete: all pieces have been inserted.
    pub(super) fn finish(&mut self) {
        let last = self.pieces.last_key_value();
        self.end = Some(last.map_or(self.next, |(offset, bytes)| offset + bytes.len() as u64));
    }

    /// Notes that the peer reset the stream.
    pub(super) fn reset(&mut self, code: u64) {
        self.reset = Some(code);
    }

    /// Reads bytes in order.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<Read, Refused> {
        let mut taken = 0;
        while taken < into.len() {
            let Some(mut piece) = self.pieces.first_entry().filter(|piece| *piece.key() == self.next) else {
                break;
            };
            let bytes = piece.get_mut();
            let count = bytes.len().min(into.len() - taken);
            bytes.copy_to_slice(&mut into[taken..taken + count]);
            taken += count;
            let rest = piece.remove();
            self.next += count as u64;
            self.waiting -= count as u64;
            if !rest.is_empty() {
                self.pieces.insert(self.next, rest);
            }
        }
        if taken > 0 || into.is_empty() {
            return Ok(if taken > 0 { Read::Bytes(taken) } else { Read::Nothing });
        }
        if self.end == Some(self.next) {
            return Ok(Read::End);
        }
        match self.reset {
            Some(code) => Err(format!("the other side ended the stream early, with code {code}").into()),
            None => Ok(Read::Nothing),
        }
    }

    /// Number of bytes that the application has read.
    pub(super) fn bytes_read(&self) -> Bytes {
        Bytes(self.next)
    }

    /// Number of unread pieces.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Number of unread bytes.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_are_read_in_order() {
        let mut inflow = Inflow::default();
        let mut buffer = [0; 4];
        inflow.push(3, Chunk::from_static(b"defgh"));
        assert_eq!(inflow.read(&mut buffer), Ok(Read::Nothing), "the beginning has not arrived");
        inflow.push(0, Chunk::from_static(b"abc"));
        inflow.finish();
        assert_eq!(inflow.waiting(), 8);
        assert_eq!((inflow.read(&mut buffer), &buffer), (Ok(Read::Bytes(4)), b"abcd"));
        assert_eq!((inflow.read(&mut buffer), &buffer), (Ok(Read::Bytes(4)), b"efgh"));
        assert_eq!(inflow.read(&mut buffer), Ok(Read::End));
        assert_eq!((inflow.waiting(), inflow.bytes_read()), (0, Bytes(8)));
    }

    #[test]
    fn a_stream_that_is_given_up_is_an_error_after_its_last_byte() {
        let mut inflow = Inflow::default();
        inflow.push(0, Chunk::from_static(b"ab"));
        inflow.reset(7);
        let mut buffer = [0; 4];
        assert_eq!(inflow.read(&mut buffer), Ok(Read::Bytes(2)));
        assert!(inflow.read(&mut buffer).unwrap_err().to_string().contains("code 7"));
    }
}
