//! The log of a simulated modem as a file.

use std::io::{self, Write};
use std::time::Duration;

use airpace_diag::compose::Composed;
use airpace_diag::{Framing, LogPacket, Radio, Stamp, frame};
use airpace_files::Whole;

/// Start of the run by the modem's clock: 2026-01-01 00:00:00 UTC, as time since 1980-01-06.
///
/// Chosen: a fixed day, so that the output is always the same, and late enough to be recognised as a time that the
/// modem received from the network.
const BEGIN: Duration = Duration::from_secs(16_797 * 86_400);

/// A log that is being written, with the framing of a diagnostic port. The same packets give the same bytes.
pub struct LogWriter {
    file: Whole,
    written: Written,
    body: Vec<u8>,
    framed: Vec<u8>,
}

/// Contents of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl LogWriter {
    /// Writes into a file that is already open.
    pub fn new(file: Whole) -> LogWriter {
        LogWriter { file, written: Written::default(), body: vec![], framed: vec![] }
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, composed: &Composed) -> io::Result<()> {
        let Composed { at, code, payload } = composed;
        let stamp = Stamp::from_nanos((BEGIN + Duration::from_nanos(at.as_nanos())).as_nanos() as u64);
        self.body.clear();
        self.framed.clear();
        LogPacket { radio: Radio::FIRST, code: *code, stamp, payload }.write(false, &mut self.body);
        frame::encode(Framing::Hdlc, &self.body, &mut self.framed);
        self.written.packets += 1;
        self.written.bytes += self.framed.len() as u64;
        self.file.write_all(&self.framed)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> io::Result<Written> {
        self.file.finish().map(|()| self.written)
    }
}
