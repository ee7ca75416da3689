//! Decoder of the control channel of an LTE cell, from radio samples in an array.

use airpace_phy::decoder::{Decoder, Options, Output};
use airpace_phy::evidence::Caution;
use airpace_phy::found::Found;
use airpace_radio::CarrierId;
use airpace_tables::decoded::{Message, messages};
use numpy::{Complex32, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::raise;
use crate::table::Table;

/// Number of samples between checks of Python's signals: some milliseconds of a cell.
const PIECE: usize = 1 << 17;

/// Decodes samples: see `airpace.decode`. If no cell was decoded, also returns a sentence on the fault of the samples.
#[pyfunction]
#[pyo3(signature = (samples, rate_hz, *, pci, patience_ms))]
pub fn decode(
    py: Python<'_>,
    samples: PyReadonlyArray1<'_, Complex32>,
    rate_hz: f64,
    pci: Option<u16>,
    patience_ms: u64,
) -> PyResult<(Table, Option<String>)> {
    let samples = samples.as_slice()?;
    let mut options = Options::new(rate_hz.round() as u64);
    options.listen.pci = pci;
    options.caution = Caution { patience: patience_ms, ..Caution::default() };
    let mut decoder = Decoder::new(options).map_err(raise::value)?;
    let mut heard = Heard { rate_hz, last: (0, 0.0), rows: vec![] };
    for piece in samples.chunks(PIECE) {
        py.check_signals()?;
        py.detach(|| {
            decoder.push(piece);
            heard.drain(&mut decoder);
        });
    }
    py.detach(|| {
        decoder.finish();
        heard.drain(&mut decoder);
    });
    let broken = decoder.ladder().broken().filter(|_| heard.rows.is_empty());
    Ok((Table::new(messages(heard.rows)), broken.map(|(_, hint)| hint)))
}

/// Collector of the decoded messages.
struct Heard {
    rate_hz: f64,
    /// Index of the last subframe, and its start in ms from the first sample.
    last: (u64, f64),
    rows: Vec<Message>,
}

impl Heard {
    fn drain(&mut self, decoder: &mut Decoder) {
        while let Some(output) = decoder.pop() {
            match output {
                Output::Subframe(reading) => {
                    self.last = (reading.index, reading.sample as f64 * 1e3 / self.rate_hz);
                    reading.found.iter().chain(&reading.late).for_each(|found| self.hear(found));
                }
                Output::Late(late) => late.iter().for_each(|found| self.hear(found)),
                Output::Locked(_) | Output::Lost | Output::Moved(_) => {}
            }
        }
    }

    fn hear(&mut self, found: &Found) {
        let (last, last_ms) = self.last;
        let time_ms = last_ms + found.index as f64 - last as f64;
        self.rows.push(Message::of(found, CarrierId(0), time_ms, None));
    }
}
