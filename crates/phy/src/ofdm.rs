//! Grids to samples and back.

use std::sync::Arc;

use num_complex::Complex32;
use rustfft::{Fft, FftDirection, FftPlanner, FftPlannerScalar};

use crate::grid::Grid;
use crate::numerology::Numerology;

/// Which implementation of the same Fourier transform a receiver takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transform {
    /// The fastest that the machine has. Another machine may round the last bit differently.
    #[default]
    Fastest,
    /// The plain one: every machine makes the same bits of the same samples.
    Reproducible,
}

impl Transform {
    /// A transform of `len` points.
    pub(crate) fn plan(self, len: usize, direction: FftDirection) -> Arc<dyn Fft<f32>> {
        match self {
            Transform::Fastest => FftPlanner::new().plan_fft(len, direction),
            Transform::Reproducible => FftPlannerScalar::new().plan_fft(len, direction),
        }
    }
}

/// Turns grids of one antenna port to samples.
pub struct Modulator {
    numerology: Numerology,
    fft: Arc<dyn Fft<f32>>,
    buffer: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl Modulator {
    /// At the sample rate of `numerology`, by the transform that gives the same bits on every machine.
    pub fn new(numerology: Numerology) -> Modulator {
        let fft = Transform::Reproducible.plan(numerology.fft_size(), FftDirection::Inverse);
        let scratch = vec![Complex32::default(); fft.get_inplace_scratch_len()];
        Modulator { numerology, fft, buffer: vec![Complex32::default(); numerology.fft_size()], scratch }
    }

    /// Appends the samples of a subframe. A resource element of 1 becomes a tone of `amplitude`.
    ///
    /// Source: TS 36.211 §6.12
    pub fn modulate(&mut self, grid: &Grid, amplitude: f32, out: &mut Vec<Complex32>) {
        let per_slot = self.numerology.cp().symbols_per_slot();
        for symbol in 0..grid.symbols() {
            self.buffer.fill(Complex32::default());
            for (k, &value) in grid.symbol(symbol).iter().enumerate() {
                self.buffer[self.numerology.bin(k)] = value * amplitude;
            }
            self.fft.process_with_scratch(&mut self.buffer, &mut self.scratch);
            let prefix = self.numerology.prefix_samples(symbol % per_slot);
            out.extend_from_slice(&self.buffer[self.buffer.len() - prefix..]);
            out.extend_from_slice(&self.buffer);
        }
    }
}

/// Turns samples of one receive antenna to grids.
pub struct Demodulator {
    numerology: Numerology,
    fft: Arc<dyn Fft<f32>>,
    buffer: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl Demodulator {
    /// At the sample rate of `numerology`, by the fastest transform that the machine has.
    pub fn new(numerology: Numerology) -> Demodulator {
        Demodulator::by(Transform::Fastest, numerology)
    }

    /// At the sample rate of `numerology`.
    pub fn by(transform: Transform, numerology: Numerology) -> Demodulator {
        let fft = transform.plan(numerology.fft_size(), FftDirection::Forward);
        let scratch = vec![Complex32::default(); fft.get_inplace_scratch_len()];
        Demodulator { numerology, fft, buffer: vec![Complex32::default(); numerology.fft_size()], scratch }
    }

    /// The numerology.
    pub fn numerology(&self) -> Numerology {
        self.numerology
    }

    /// Reads the first `symbols` symbols of a subframe into `grid`, from samples that begin with the subframe. A tone
    /// of amplitude 1 becomes a resource element of 1. `None` if there are too few samples.
    ///
    /// Source: TS 36.211 §6.12
    pub fn demodulate(&mut self, samples: &[Complex32], symbols: usize, grid: &mut Grid) -> Option<()> {
        let size = self.numerology.fft_size();
        let scale = 1.0 / size as f32;
        for symbol in 0..symbols.min(grid.symbols()) {
            let start = self.numerology.symbol_start(symbol);
            self.buffer.copy_from_slice(samples.get(start..start + size)?);
            self.fft.process_with_scratch(&mut self.buffer, &mut self.scratch);
            for (k, element) in grid.symbol_mut(symbol).iter_mut().enumerate() {
                *element = self.buffer[self.numerology.bin(k)] * scale;
            }
        }
        Some(())
    }

    /// Reads one symbol from the samples of its FFT, which come in pieces, and undoes what a receiver did to them. If a
    /// sample is not a number, the whole symbol becomes zero.
    pub fn symbol<'a>(
        &mut self,
        samples: impl Iterator<Item = &'a [Complex32]>,
        correction: &Correction<'_>,
        row: &mut [Complex32],
    ) {
        let mut rest = &mut self.buffer[..];
        let mut phasors = correction.phasors;
        for piece in samples {
            let (here, later) = rest.split_at_mut(piece.len().min(rest.len()));
            let (turn_here, turn_later) = phasors.split_at(here.len().min(phasors.len()));
            for ((value, sample), phasor) in here.iter_mut().zip(piece).zip(turn_here) {
                *value = (sample - correction.dc) * phasor;
            }
            (rest, phasors) = (later, turn_later);
        }
        rest.fill(Complex32::default());
        self.fft.process_with_scratch(&mut self.buffer, &mut self.scratch);
        let half = row.len() / 2;
        let (below, above) = row.split_at_mut(half);
        let (ramp_below, ramp_above) = correction.ramp.split_at(half);
        let (low, high) = (&self.buffer[self.buffer.len() - half..], &self.buffer[1..]);
        let turn = correction.turn;
        for ((element, value), ramp) in below.iter_mut().zip(low).zip(ramp_below) {
            *element = *value * *ramp * turn;
        }
        for ((element, value), ramp) in above.iter_mut().zip(high).zip(ramp_above) {
            *element = *value * *ramp * turn;
        }
        // One sample that is not a number makes all elements so.
        if !(row[0].re.is_finite() && row[0].im.is_finite()) {
            row.fill(Complex32::default());
        }
    }
}

/// What a receiver did to the samples of a symbol, to be undone.
#[derive(Clone, Copy, Debug)]
pub struct Correction<'a> {
    /// What was added to every sample.
    pub dc: Complex32,
    /// What samples are multiplied by: as many factors as the FFT has points.
    pub phasors: &'a [Complex32],
    /// What each subcarrier is multiplied by; this includes the scale.
    pub ramp: &'a [Complex32],
    /// What all subcarriers are multiplied by in addition.
    pub turn: Complex32,
}
