//! Several streams on one connection, by their numbers: for `hq-interop`, where each request is a stream.

use airpace_core::Time;
use noq_proto::{Dir, FinishError, StreamId, VarInt, WriteError};

use super::connection::QuicConnection;
use super::inflow::Inflow;
use crate::endpoint::Read;

/// Bytes that are kept in one piece of memory until they are acknowledged.
///
/// Chosen: small enough for allocators to use the same memory again and again, and large enough for noq, which looks
/// through all pieces that are outstanding for each packet.
const PIECE: usize = 64 << 10;

/// What happened to a stream that is not the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamNews {
    /// The peer opened it.
    Opened(u64),
    /// There may be bytes to read, or its end.
    Readable(u64),
    /// There may be room to write, or the peer wants no more of it.
    Writable(u64),
    /// All that was written has been acknowledged, its end too.
    Flushed(u64),
    /// The peer allows more streams than before.
    MayOpen,
}

impl QuicConnection {
    /// What happened to streams since. Call this until `None`.
    pub fn poll_stream(&mut self) -> Option<StreamNews> {
        self.stream_events.pop_front()
    }

    /// Opens a stream in both directions, and returns its number; `None` while the peer allows no more.
    pub fn open_stream(&mut self) -> Option<u64> {
        let id = self.noq.streams().open(Dir::Bi)?;
        self.streams.insert(id, Inflow::default());
        Some(id.into())
    }

    /// Hands over bytes of a stream. Returns how many were taken.
    ///
    /// # Errors
    /// There is no such stream, it has ended, or the peer wants no more of it.
    pub fn write_stream(&mut self, _now: Time, id: u64, bytes: &[u8]) -> Result<usize, String> {
        let Some(id) = stream(id) else { return Err(format!("there is no stream {id}; open one")) };
        let mut taken = 0;
        while taken < bytes.len() {
            let piece = &bytes[taken..bytes.len().min(taken + PIECE)];
            match self.noq.send_stream(id).write(piece) {
                Ok(count) => taken += count,
                // Only with this answer does noq tell when there is room again.
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(code)) => {
                    return Err(format!(
                        "the other side wants no more of the stream (code {code}); stop writing"
                    ));
                }
                Err(WriteError::ClosedStream) => return Err("the stream has ended; open another".to_owned()),
            }
        }
        if taken > 0 {
            self.on_written(taken);
        }
        Ok(taken)
    }

    /// No more bytes will be written to a stream.
    pub fn finish_stream(&mut self, _now: Time, id: u64) {
        let Some(id) = stream(id) else { return };
        match self.noq.send_stream(id).finish() {
            Ok(()) => self.on_written(0),
            // It has ended already.
            Err(FinishError::ClosedStream | FinishError::Stopped(_)) => {}
        }
    }

    /// Gives a stream up in both directions, with a code for the peer, and forgets it.
    pub fn give_up_stream(&mut self, id: u64, code: u32) {
        let Some(id) = stream(id) else { return };
        // Directions that have ended stay ended.
        let _ = self.noq.send_stream(id).reset(VarInt::from_u32(code));
        let _ = self.noq.recv_stream(id).stop(VarInt::from_u32(code));
        self.forget(id);
    }

    /// Forgets a stream that was read to its end. What was written to it still goes out.
    pub fn forget_stream(&mut self, id: u64) {
        if let Some(id) = stream(id) {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: StreamId) {
        self.streams.remove(&id);
        self.throttle();
    }

    /// Takes bytes of a stream that arrived, in order.
    ///
    /// # Errors
    /// There is no such stream, or it was given up before its end.
    pub fn read_stream(&mut self, _now: Time, id: u64, into: &mut [u8]) -> Result<Read, String> {
        let inflow = stream(id).and_then(|id| self.streams.get_mut(&id));
        let Some(inflow) = inflow else { return Err(format!("there is no stream {id}; open one")) };
        match inflow.read(into)? {
            Read::Nothing if self.is_over() => {
                Err("the connection is over before the stream's end".to_owned())
            }
            read => {
                self.throttle();
                Ok(read)
            }
        }
    }
}

/// noq's name of a stream.
fn stream(id: u64) -> Option<StreamId> {
    VarInt::from_u64(id).ok().map(StreamId::from)
}
