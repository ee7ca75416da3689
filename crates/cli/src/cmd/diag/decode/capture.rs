//! RRC and NAS messages in a capture file for Wireshark.

use std::io::Write;
use std::path::Path;

use airpace_diag::LogPacket;
use airpace_diag::export::capture::Capture;
use airpace_diag::export::gsmtap;

use super::packets::ENOUGH;
use super::{Kind, Writer};
use crate::cmd::NothingFound;
use crate::cmd::outputs::{self, OutFile};
use crate::terminal::thousands;

/// Writes a capture file.
pub struct CaptureFile<'o> {
    name: String,
    out: Out<'o>,
    capture: Capture,
    /// Data that is not written yet.
    buffer: Vec<u8>,
    messages: u64,
    /// Number of messages that the capture's format cannot represent.
    left_out: u64,
}

/// The output.
enum Out<'o> {
    Standard(&'o mut dyn Write),
    /// A file; `None` after the output has ended.
    File(Option<OutFile>),
}

impl<'o> CaptureFile<'o> {
    /// Writes to standard output.
    pub fn new(capture: Capture, out: &'o mut dyn Write) -> CaptureFile<'o> {
        CaptureFile::to(capture, Out::Standard(out), "-".to_owned())
    }

    /// Writes a file, which either grows while other programs read it, or gets its name when it is complete.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(capture: Capture, path: &Path, is_followed: bool) -> anyhow::Result<CaptureFile<'o>> {
        let file = OutFile::create("--pcap", path, is_followed)?;
        Ok(CaptureFile::to(capture, Out::File(Some(file)), path.display().to_string()))
    }

    fn to(mut capture: Capture, out: Out<'o>, name: String) -> CaptureFile<'o> {
        let mut buffer = vec![];
        capture.begin(&mut buffer);
        CaptureFile { name, out, capture, buffer, messages: 0, left_out: 0 }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let out: &mut dyn Write = match &mut self.out {
            Out::Standard(out) => out,
            Out::File(Some(file)) => file,
            Out::File(None) => return Ok(()),
        };
        let written = out.write_all(&self.buffer).and_then(|()| out.flush());
        written.map_err(outputs::refused("--pcap", Path::new(&self.name)))?;
        self.buffer.clear();
        Ok(())
    }
}

impl Writer for CaptureFile<'_> {
    fn packet(&mut self, packet: &LogPacket<'_>) -> anyhow::Result<Option<Kind>> {
        match gsmtap::message(packet) {
            Ok(Some(message)) => {
                if self.capture.message(packet.radio, packet.stamp, &message, &mut self.buffer) {
                    self.messages += 1;
                } else {
                    self.left_out += 1;
                }
            }
            Ok(None) => self.left_out += u64::from(gsmtap::is_message(packet.code)),
            Err(unreadable) => return Ok(Kind::of(packet.code, &Err(unreadable))),
        }
        if self.buffer.len() >= ENOUGH {
            self.write()?;
        }
        Ok(None)
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        // Keep the file's earlier content until it is certain that the input is a log.
        if self.messages > 0 { self.write() } else { Ok(()) }
    }

    fn finish(&mut self) -> anyhow::Result<Option<NothingFound>> {
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!("; {} of a kind that no form of captures has are left out", thousands(count)),
        };
        if self.messages == 0 {
            let stays = if let Out::File(file) = &mut self.out {
                // Keep existing files.
                *file = None;
                ": nothing is written"
            } else {
                self.write()?;
                ""
            };
            return Ok(Some(NothingFound(format!("{}: no RRC or NAS message{left_out}{stays}", self.name))));
        }
        self.write()?;
        if let Out::File(file) = &mut self.out
            && let Some(file) = file.take()
        {
            file.finish().map_err(outputs::refused("--pcap", Path::new(&self.name)))?;
        }
        crate::terminal::say(format_args!(
            "airpace: {}: {} RRC and NAS messages{left_out}",
            self.name,
            thousands(self.messages)
        ));
        Ok(None)
    }
}
