//! RRC and NAS messages in a capture file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use airpace_diag::LogPacket;
use airpace_diag::export::capture::Capture;
use airpace_diag::export::gsmtap;
use anyhow::Context;

use super::packets::ENOUGH;
use super::{Kind, Writer};
use crate::terminal::thousands;

/// Writes a capture file.
pub struct CaptureFile<'o> {
    name: String,
    out: Box<dyn Write + 'o>,
    capture: Capture,
    /// What is not written yet.
    buffer: Vec<u8>,
    messages: u64,
    /// Messages for which a capture has no form.
    left_out: u64,
}

impl<'o> CaptureFile<'o> {
    /// Writes to a file, or to `out` for `-`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(path: &Path, out: &'o mut dyn Write) -> anyhow::Result<CaptureFile<'o>> {
        let name = path.display().to_string();
        let out: Box<dyn Write + 'o> = if path == Path::new("-") {
            Box::new(out)
        } else {
            Box::new(File::create(path).with_context(|| {
                format!(
                    "cannot write `{name}`; give --pcap a file that you may write, or - for standard output"
                )
            })?)
        };
        let (mut capture, mut buffer) = (Capture::default(), vec![]);
        capture.begin(&mut buffer);
        Ok(CaptureFile { name, out, capture, buffer, messages: 0, left_out: 0 })
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.out.write_all(&self.buffer).with_context(|| format!("cannot write `{}`", self.name))?;
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
        self.write()?;
        Ok(self.out.flush()?)
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        self.pause()?;
        let left_out = match self.left_out {
            0 => String::new(),
            count => format!("; {} of a kind that GSMTAP has no number for are left out", thousands(count)),
        };
        eprintln!("airpace: {}: {} RRC and NAS messages{left_out}", self.name, thousands(self.messages));
        Ok(())
    }
}
