//! Radio reports of several cells, brought together by subframe, in a file that controllers can read.

use std::io::Write;
use std::path::Path;

use airpace_core::Time;
use airpace_files::Growing;
use airpace_phy::decoder::Reading;
use airpace_phy::follow::OwnSide;
use airpace_phy::found::Found;
use airpace_radio::fusion::{Fused, Fusion};
use airpace_radio::line;
use airpace_radio::{CarrierId, Rnti};
use anyhow::Context;

use crate::cmd::outputs;
use crate::terminal::{self, count};

/// Subframes that one live cell may be behind another.
///
/// Chosen: what receivers buffer differs by tens of milliseconds; who controls a rate by reports needs them soon.
const LIVE_PATIENCE: u64 = 100;

/// A file of reports.
pub struct Reports {
    /// Controllers follow it while it grows; what it held before goes when a cell is found.
    file: Growing,
    /// What the recordings are called.
    names: Vec<String>,
    fusion: Fusion,
    /// The side of who is followed, per carrier.
    own: Vec<Option<OwnSide>>,
}

impl Reports {
    /// Of the cells of these recordings; `own` is who is followed. Recordings wait for each other, live cells do not for long.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(
        path: &Path,
        names: Vec<String>,
        own: Option<Rnti>,
        are_live: bool,
    ) -> anyhow::Result<Reports> {
        let cells = names.len();
        let file = outputs::growing("--reports", path)?;
        let patience = if are_live { LIVE_PATIENCE } else { Fusion::WITHOUT_END };
        Ok(Reports {
            file,
            names,
            fusion: Fusion::new((0..cells).map(|carrier| CarrierId(carrier as u8)), patience),
            own: vec![own.map(OwnSide::new); cells],
        })
    }

    /// A cell is found: what was in the file before is of another time.
    ///
    /// # Errors
    /// If the file cannot be emptied.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.file.begin().with_context(|| format!("cannot write `{}`", self.file.path().display()))
    }

    /// Adds `subframes` to the numbers of a cell, from its subframe `from` on.
    pub fn shift(&mut self, carrier: usize, from: u64, subframes: i64) {
        self.fusion.align(CarrierId(carrier as u8), from, subframes);
    }

    /// A message is believed, whose subframe may come later.
    pub fn hear(&mut self, carrier: usize, found: &Found) {
        if let Some(own) = &mut self.own[carrier] {
            own.hear(found);
        }
    }

    /// Takes a whole subframe. It began `at_ms` after the first sample. `name` says how users are called.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(
        &mut self,
        carrier: usize,
        reading: &Reading,
        at_ms: f64,
        name: &mut dyn FnMut(Rnti) -> Rnti,
    ) -> anyhow::Result<()> {
        let time = Time::from_secs_f64(at_ms.max(0.0) / 1e3);
        let own = self.own[carrier].as_mut().and_then(|own| own.radio(reading.index, reading.snr_db));
        let mut report = reading.report(CarrierId(carrier as u8), time);
        report.own = own;
        for dci in &mut report.dcis {
            dci.rnti = name(dci.rnti);
        }
        if let Some(own) = &mut report.own {
            own.rnti = name(own.rnti);
        }
        self.fusion.push(report);
        self.write_all(Fusion::pop)
    }

    /// A cell is silent, and not waited for.
    pub fn stall(&mut self, carrier: usize) {
        self.fusion.stall(CarrierId(carrier as u8));
    }

    /// A recording is over, but for the subframes that waited for messages.
    pub fn leave(&mut self, carrier: usize) {
        self.fusion.leave(CarrierId(carrier as u8));
    }

    /// A recording is over.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end(&mut self, carrier: usize) -> anyhow::Result<()> {
        self.fusion.end(CarrierId(carrier as u8));
        self.write_all(Fusion::pop)
    }

    /// What was written so far is in the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.file.flush().with_context(|| format!("cannot write `{}`", self.file.path().display()))
    }

    /// Writes what is left; says what came too late to be written.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.write_all(Fusion::flush)?;
        for (carrier, name) in self.names.iter().enumerate() {
            let late = self.fusion.too_late(CarrierId(carrier as u8));
            if late > 0 {
                terminal::say(format_args!(
                    "airpace: {} of {name} came after theirs had been written to `{}`, and are not in it",
                    count(late, "subframe"),
                    self.file.path().display()
                ));
            }
        }
        self.flush()
    }

    fn write_all(&mut self, next: impl Fn(&mut Fusion) -> Option<Fused>) -> anyhow::Result<()> {
        while let Some(fused) = next(&mut self.fusion) {
            match fused {
                Fused::Subframe { index, reports } => {
                    writeln!(self.file, "{}", line::to_line(index, &reports))
                        .with_context(|| format!("cannot write `{}`", self.file.path().display()))?;
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
