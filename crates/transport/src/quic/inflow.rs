//! Puts the pieces of a stream in order, as they are taken from noq.
//!
//! noq aborts a connection with more than 1024 gapped pieces of one stream. So every piece is taken at once, wherever
//! it lies, and waits here. What may wait is bounded by the flow control: see `receive_window` in `config.rs`.
//!
//! Source: noq-proto 1.4 `connection/assembler.rs` (`MAX_CHUNKS`)

use std::collections::BTreeMap;

use airpace_core::Bytes;
use bytes::{Buf, Bytes as Chunk};

use crate::endpoint::Read;

/// The bytes of one stream that have arrived and were not read.
#[derive(Debug, Default)]
pub(super) struct Inflow {
    /// Pieces by where they begin. noq gives no byte twice, so they do not overlap.
    pieces: BTreeMap<u64, Chunk>,
    /// Where the next byte to read lies.
    next: u64,
    /// Where the stream ends, once it is known.
    end: Option<u64>,
    waiting: u64,
    /// The peer gave the stream up, with this code.
    reset: Option<u64>,
}

impl Inflow {
    /// A piece arrived.
    pub(super) fn push(&mut self, offset: u64, bytes: Chunk) {
        if !bytes.is_empty() {
            self.waiting += bytes.len() as u64;
            self.pieces.insert(offset, bytes);
        }
    }

    /// All pieces have arrived.
    pub(super) fn finish(&mut self) {
        let last = self.pieces.last_key_value();
        self.end = Some(last.map_or(self.next, |(offset, bytes)| offset + bytes.len() as u64));
    }

    /// The peer gave the stream up.
    pub(super) fn reset(&mut self, code: u64) {
        self.reset = Some(code);
    }

    /// Takes bytes in order.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<Read, String> {
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
            Some(code) => Err(format!("the other side ended the stream early, with code {code}")),
            None => Ok(Read::Nothing),
        }
    }

    /// Bytes read so far.
    pub(super) fn bytes_read(&self) -> Bytes {
        Bytes(self.next)
    }

    /// Pieces that wait to be read.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes that wait to be read.
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
        assert!(inflow.read(&mut buffer).unwrap_err().contains("code 7"));
    }
}
