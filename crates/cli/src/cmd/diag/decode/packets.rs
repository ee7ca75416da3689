//! Packets as JSON or as text.

use std::io::Write;

use airpace_diag::LogPacket;
use airpace_diag::export::{json, text};
use airpace_diag::log;

use super::{Kind, Writer};
use crate::cmd::NothingFound;

/// Output format of packets.
#[derive(Clone, Copy)]
pub enum Form {
    /// One object per line.
    Json {
        /// Whether to include the payload bytes of every packet.
        with_payload: bool,
    },
    /// Lines of text for the user.
    Text,
}

/// Prints packets.
pub struct Packets<'o> {
    form: Form,
    out: &'o mut dyn Write,
    /// Data that is not written yet.
    buffer: Vec<u8>,
}

/// Number of bytes that are collected before a write.
pub const ENOUGH: usize = 1 << 16;

impl<'o> Packets<'o> {
    /// A printer that writes to `out`.
    pub fn new(form: Form, out: &'o mut dyn Write) -> Packets<'o> {
        Packets { form, out, buffer: Vec::with_capacity(2 * ENOUGH) }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Writer for Packets<'_> {
    fn packet(&mut self, packet: &LogPacket<'_>) -> anyhow::Result<Option<Kind>> {
        let reading = log::read(packet);
        match self.form {
            Form::Json { with_payload } => {
                json::packet(packet, &reading, with_payload, &mut self.buffer);
                self.buffer.push(b'\n');
            }
            Form::Text => text::packet(packet, &reading, &mut self.buffer),
        }
        if self.buffer.len() >= ENOUGH {
            self.write()?;
        }
        Ok(Kind::of(packet.code, &reading))
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        self.write()?;
        Ok(self.out.flush()?)
    }

    fn finish(&mut self) -> anyhow::Result<Option<NothingFound>> {
        self.write()?;
        Ok(None)
    }
}
