//! Packets as comma-separated values: a wide table for one code, a long table for several.

use std::io::Write;

use airpace_diag::export::csv;
use airpace_diag::export::table::Table;
use airpace_diag::{LogCode, LogPacket, log};

use super::packets::ENOUGH;
use super::{Kind, Writer};
use crate::cmd::NothingFound;

/// Prints a table.
pub struct Csv<'o> {
    /// The columns of a wide table.
    table: Option<Table>,
    out: &'o mut dyn Write,
    /// Data that is not written yet.
    buffer: Vec<u8>,
    packets: u64,
}

impl<'o> Csv<'o> {
    /// Prints the contents of packets of these codes to `out`. An empty list means all codes.
    pub fn new(codes: &[LogCode], out: &'o mut dyn Write) -> Csv<'o> {
        let table = match codes {
            [code] => log::code(*code).map(Table::of),
            _ => None,
        };
        let mut buffer = vec![];
        match &table {
            Some(table) => csv::wide_head(table, &mut buffer),
            None => csv::long_head(&mut buffer),
        }
        Csv { table, out, buffer, packets: 0 }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Writer for Csv<'_> {
    fn packet(&mut self, packet: &LogPacket<'_>) -> anyhow::Result<Option<Kind>> {
        let reading = log::read(packet);
        if let Ok(decoded) = &reading {
            match &self.table {
                Some(table) => csv::wide(packet, self.packets, &decoded.fields, table, &mut self.buffer),
                None => csv::long(packet, self.packets, &decoded.fields, &mut self.buffer),
            }
        }
        self.packets += 1;
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
