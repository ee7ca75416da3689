//! OFDM modulation and demodulation: resource grids to samples and back.

use std::sync::Arc;

use num_complex::Complex32;
use rustfft::{Fft, FftDirection, FftPlanner, FftPlannerScalar};

use crate::grid::Grid;
use crate::numerology::Numerology;

/// Implementation of the Fourier transform in a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transform {
    /// The fastest implementation on this machine. Rounding may differ in the last bit between machines.
    #[default]
    Fastest,
    /// The scalar implementation: bit-identical results on all machines.
    Reproducible,
}

impl Transform {
    /// Creates a transform of `len` points.
    pub(crate) fn plan(self, len: usize, direction: FftDirection) -> Arc<dyn Fft<f32>> {
        match self {
            Transform::Fastest => FftPlanner::new().plan_fft(len, direction),
            Transform::Reproducible => FftPlannerScalar::new().plan_fft(len, direction),
        }
    }
}

/// Converts resource grids of one antenna port to samples.
pub struct Modulator {
    numerology: Numerology,
    fft: Arc<dyn Fft<f32>>,
    buffer: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl Modulator {
    /// Creates a modulator for the sample rate of `numerology`, with bit-identical results on all machines.
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

/// Converts samples of one receive antenna to resource grids.
pub struct Demodulator {
    numerology: Numerology,
    fft: Arc<dyn Fft<f32>>,
    buffer: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl Demodulator {
    /// Creates a demodulator for the sample rate of `numerology`, with the fastest transform on this machine.
    pub fn new(numerology: Numerology) -> Demodulator {
        Demodulator::by(Transform::Fastest, numerology)
    }

    /// Creates a demodulator for the sample rate of `numerology`.
    pub fn by(transform: Transform, numerology: Numerology) -> Demodulator {
        let fft = transform.plan(numerology.fft_size(), FftDirection::Forward);
        let scratch = vec![Complex32::default(); fft.get_inplace_scratch_len()];
        Demodulator { numerology, fft, buffer: vec![Complex32::default(); numerology.fft_size()], scratch }
    }

    /// Numerology of the demodulator.
    pub fn numerology(&self) -> Numerology {
        self.numerology
    }

    /// Demodulates the first `symbols` symbols of a subframe into `grid`. The first sample must be the start of the
    /// subframe. A tone of amplitude 1 becomes a resource element of 1. `None` if there are too few samples.
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

    /// Demodulates one symbol from the samples of its FFT, given in pieces, and corrects receiver impairments. If a
    /// sample is NaN or infinite, all elements become zero.
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
        // One NaN or infinite sample makes all elements NaN or infinite.
        if !(row[0].re.is_finite() && row[0].im.is_finite()) {
            row.fill(Complex32::default());
        }
    }
}

/// Corrections of receiver impairments for one symbol.
#[derive(Clone, Copy, Debug)]
pub struct Correction<'a> {
    /// DC offset to subtract from every sample.
    pub dc: Complex32,
    /// Factors of the samples, one per FFT point.
    pub phasors: &'a [Complex32],
    /// Factor of each subcarrier; it includes the scaling of the FFT.
    pub ramp: &'a [Complex32],
    /// Additional common factor of all subcarriers.
    pub turn: Complex32,
}
