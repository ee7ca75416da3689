//! Access to several streams of one connection by their IDs: for `hq-interop`, where each request is a stream.

use airpace_core::{Refused, Time};
use noq_proto::{Dir, FinishError, StreamId, VarInt, WriteError};

use super::QuicConnection;
use crate::endpoint::Read;
use crate::quic::inflow::Inflow;

/// Size of the pieces in which written data are stored until they are acknowledged (bytes).
///
/// Chosen: small enough that allocators reuse the memory, and large enough for noq, which searches all outstanding
/// pieces for each packet.
const PIECE: usize = 64 << 10;

/// An event of a stream other than the main one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamNews {
    /// The peer opened the stream.
    Opened(u64),
    /// There may be bytes to read, or the end of the stream.
    Readable(u64),
    /// There may be room to write, or the peer has stopped the stream.
    Writable(u64),
    /// The peer has acknowledged all written bytes and the end of the stream.
    Flushed(u64),
    /// The peer permits more streams than before.
    MayOpen,
}

impl QuicConnection {
    /// Returns the next event of a stream. Call this until it returns `None`.
    pub fn poll_stream(&mut self) -> Option<StreamNews> {
        self.stream_events.pop_front()
    }

    /// Opens a bidirectional stream and returns its ID; `None` while the peer permits no more streams.
    pub fn open_stream(&mut self) -> Option<u64> {
        let id = self.noq.streams().open(Dir::Bi)?;
        self.streams.insert(id, Inflow::default());
        Some(id.into())
    }

    /// Writes bytes to a stream. Returns the number of bytes accepted.
    ///
    /// # Errors
    /// The stream does not exist or has ended, or the peer has stopped it.
    pub fn write_stream(&mut self, _now: Time, id: u64, bytes: &[u8]) -> Result<usize, Refused> {
        let Some(id) = stream(id) else { return Err(format!("there is no stream {id}; open one").into()) };
        let mut taken = 0;
        while taken < bytes.len() {
            let piece = &bytes[taken..bytes.len().min(taken + PIECE)];
            match self.noq.send_stream(id).write(piece) {
                Ok(count) => taken += count,
                // noq reports new room only after it has returned `Blocked`.
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(code)) => {
                    return Err(format!(
                        "the other side wants no more of the stream (code {code}); stop writing"
                    )
                    .into());
                }
                Err(WriteError::ClosedStream) => return Err("the stream has ended; open another".into()),
            }
        }
        if taken > 0 {
            self.on_written(taken);
        }
        Ok(taken)
    }

    /// Finishes a stream: the application will write no more bytes.
    pub fn finish_stream(&mut self, _now: Time, id: u64) {
        let Some(id) = stream(id) else { return };
        match self.noq.send_stream(id).finish() {
            Ok(()) => self.on_written(0),
            // The stream has ended already.
            Err(FinishError::ClosedStream | FinishError::Stopped(_)) => {}
        }
    }

    /// Aborts a stream in both directions with an error code, and removes it.
    pub fn give_up_stream(&mut self, id: u64, code: u32) {
        let Some(id) = stream(id) else { return };
        // Directions that have ended are unaffected.
        let _ = self.noq.send_stream(id).reset(VarInt::from_u32(code));
        let _ = self.noq.recv_stream(id).stop(VarInt::from_u32(code));
        self.forget(id);
    }

    /// Removes a stream that was read to its end. Written bytes are still sent.
    pub fn forget_stream(&mut self, id: u64) {
        if let Some(id) = stream(id) {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: StreamId) {
        self.streams.remove(&id);
        self.throttle();
    }

    /// Reads received bytes of a stream, in order.
    ///
    /// # Errors
    /// The stream does not exist, or was aborted before its end.
    pub fn read_stream(&mut self, _now: Time, id: u64, into: &mut [u8]) -> Result<Read, Refused> {
        let inflow = stream(id).and_then(|id| self.streams.get_mut(&id));
        let Some(inflow) = inflow else { return Err(format!("there is no stream {id}; open one").into()) };
        match inflow.read(into)? {
            Read::Nothing if self.is_over() => Err("the connection is over before the stream's end".into()),
            read => {
                self.throttle();
                Ok(read)
            }
        }
    }
}

/// Converts a stream's ID to noq's type.
fn stream(id: u64) -> Option<StreamId> {
    VarInt::from_u64(id).ok().map(StreamId::from)
}
