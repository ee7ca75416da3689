//! Search for a sample format or rate with which a cell is detected, for a recording in which no cell was detected.

use std::path::Path;
use std::sync::Arc;

use airpace_phy::{Cell, Listener, ListenerEvent, listen};

use crate::iq::{Format, Piece, Reader, Source, Until};

/// Usual sample rates of LTE receivers, in Hz.
const RATES_HZ: [f64; 12] =
    [1.92e6, 2.4e6, 3.84e6, 5.76e6, 7.68e6, 10e6, 11.52e6, 15.36e6, 19.2e6, 20e6, 23.04e6, 30.72e6];

/// Duration of the part of the recording that each attempt decodes (s).
///
/// Chosen: a cell at an SNR of 20 dB is found within 0.02 s.
const SPAN_S: f64 = 0.04;

/// A reading of a file in which a cell is detected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherReading {
    /// The cell.
    pub cell: Cell,
    /// Samples per second.
    pub rate_hz: f64,
    /// Format of the samples.
    pub format: Format,
    /// Whether the recording's description contains this rate and this format.
    pub is_described: bool,
}

/// Tries other formats and other rates, one change at a time, and the values of the recording's description, for a file in
/// which no cell is detected with `rate_hz` and `format`. Returns `None` if no other format or rate helps, or if the input
/// is not a regular file.
pub fn other_reading(path: &Path, rate_hz: Option<f64>, format: Option<Format>) -> Option<OtherReading> {
    let reader = Reader::open(path, (rate_hz, format)).ok()?;
    // The bytes of a pipe cannot be read again.
    if path == Path::new("-") || reader.is_live() {
        return None;
    }
    let meta = reader.meta();
    let formats = Format::ALL.into_iter().filter(|format| *format != meta.format);
    let rates = RATES_HZ.into_iter().filter(|rate| *rate != meta.sample_rate_hz);
    let by_format = formats.map(|format| (meta.sample_rate_hz, format));
    // The given rate and format replace those of the description.
    let described = Reader::open(path, (None, None)).ok();
    let described = described.map(|reader| (reader.meta().sample_rate_hz, reader.meta().format));
    let overruled = described.filter(|reading| *reading != (meta.sample_rate_hz, meta.format));
    let others = by_format.chain(rates.map(|rate| (rate, meta.format))).chain(overruled);
    // If wide samples are read as two narrow ones, the cell may also be found, but with more noise.
    let best = others
        .filter_map(|(rate_hz, format)| Some((listen(path, rate_hz, format)?, rate_hz, format)))
        .max_by(|((_, one), ..), ((_, other), ..)| one.total_cmp(other));
    let ((cell, _), rate_hz, format) = best?;
    Some(OtherReading { cell, rate_hz, format, is_described: overruled == Some((rate_hz, format)) })
}

/// Searches for a cell at the start of a file with this rate and format; returns the cell and its signal-to-noise ratio
/// in dB.
fn listen(path: &Path, rate_hz: f64, format: Format) -> Option<(Cell, f32)> {
    let reader = Reader::open(path, (Some(rate_hz), Some(format))).ok()?;
    let mut source = Until::new(Box::new(reader), Some(SPAN_S), Arc::default());
    let antennas = source.antennas();
    let mut options = listen::Options::new(rate_hz as u64);
    options.antennas = antennas;
    let mut listener = Listener::new(options).ok()?;
    let mut samples = vec![];
    let (mut snr_db, mut subframes) = (0.0, 0.0);
    loop {
        let piece = source.read(&mut samples).ok()?;
        listener.push(&samples);
        samples.clear();
        if piece == Piece::End {
            listener.finish();
        }
        while let Some(heard) = listener.pop() {
            if let ListenerEvent::Subframe(observation) = heard {
                snr_db += observation.snr_db;
                subframes += 1.0;
            }
        }
        if piece == Piece::End {
            let cell = listener.cell().filter(|_| subframes > 0.0)?;
            return Some((*cell, snr_db / subframes));
        }
    }
}
