//! `--reports`: radio reports of all cells, merged by subframe, in a file that controllers can read.

use std::io::{Error, Write};
use std::path::Path;

use airpace_files::Growing;
use airpace_phy::decoder::Reading;
use airpace_radio::fusion::Fused;
use airpace_radio::{CarrierId, Rnti, line};
use airpace_sdr::decode::Reports;

use crate::cmd::outputs;
use crate::terminal::{self, count};

/// A file of reports.
pub struct ReportFile {
    /// Controllers follow this file while it grows. Its earlier content is removed when a cell is found.
    file: Growing,
    /// The names of the recordings.
    names: Vec<String>,
    /// Reports that are not written yet.
    pub reports: Reports,
}

impl ReportFile {
    /// Creates the file for the cells of these recordings. `own` is the RNTI of the followed user. Recordings wait for
    /// each other; live cells wait only for a short time.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(
        path: &Path,
        names: Vec<String>,
        own: Option<Rnti>,
        are_live: bool,
    ) -> anyhow::Result<ReportFile> {
        let reports = Reports::new(names.len(), own, are_live);
        Ok(ReportFile { file: outputs::growing("--reports", path)?, names, reports })
    }

    /// Called when a cell is found: removes the file's content from an earlier run.
    ///
    /// # Errors
    /// The file cannot be truncated.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.file.begin().map_err(cannot_write(self.file.path()))
    }

    /// Adds a complete subframe, which started `at_ms` after the first sample. `name` returns the RNTI or pseudonym of
    /// a user.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn push(
        &mut self,
        carrier: CarrierId,
        reading: &Reading,
        at_ms: f64,
        name: impl FnMut(Rnti) -> Rnti,
    ) -> anyhow::Result<()> {
        self.reports.push(carrier, reading, at_ms, name);
        self.write_all(Reports::pop)
    }

    /// Called when a recording has ended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn end(&mut self, carrier: CarrierId) -> anyhow::Result<()> {
        self.reports.end(carrier);
        self.write_all(Reports::pop)
    }

    /// Flushes all data written so far to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.file.flush().map_err(cannot_write(self.file.path()))
    }

    /// Writes the remaining reports, and prints the number of reports that arrived too late to be written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.write_all(Reports::flush)?;
        for (carrier, name) in (0..=u8::MAX).map(CarrierId).zip(&self.names) {
            let late = self.reports.too_late(carrier);
            if late > 0 {
                terminal::say(format_args!(
                    "airpace: {} of {name} arrived too late for `{}`, and are missing from it",
                    count(late, "subframe"),
                    self.file.path().display()
                ));
            }
        }
        self.flush()
    }

    fn write_all(&mut self, next: impl Fn(&mut Reports) -> Option<Fused>) -> anyhow::Result<()> {
        while let Some(fused) = next(&mut self.reports) {
            match fused {
                Fused::Subframe { index, reports } => {
                    let written = writeln!(self.file, "{}", line::to_line(index, &reports));
                    written.map_err(cannot_write(self.file.path()))?;
                }
                Fused::Stalled(carrier) => {
                    terminal::say(format_args!(
                        "airpace: {} is behind and not waited for",
                        self.name(carrier)
                    ));
                }
                Fused::Back(carrier) => {
                    terminal::say(format_args!("airpace: {} has caught up", self.name(carrier)));
                }
            }
        }
        Ok(())
    }

    fn name(&self, carrier: CarrierId) -> &str {
        &self.names[usize::from(carrier.0)]
    }
}

/// The error for a file that could not be written, with a remedy.
fn cannot_write(path: &Path) -> impl Fn(Error) -> anyhow::Error {
    outputs::refused("--reports", path)
}
