//! Reconstruction of a tracked cell's signal at each antenna, for subtraction from the samples.

use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex32;
use rustfft::{Fft, FftDirection};

use super::{FramePosition, Tracker};
use crate::complex::{correlate, phasor, phasors_back};
use crate::grid::Grid;
use crate::numerology::Numerology;
use crate::ofdm::Transform;
use crate::sync::stream::Stream;
use crate::sync::tuning::Ramp;

/// Reception state of a subframe: timing, carrier, channel and noise.
#[derive(Clone, Debug)]
pub struct Reception {
    place: FramePosition,
    /// Carrier phase at `place.start`, in cycles.
    turns: f64,
    /// Gain of each port on every subcarrier of the control region, by antenna. `None` for an antenna that does not receive
    /// the cell.
    gains: Vec<Option<Vec<Vec<Complex32>>>>,
    /// Noise power on a resource element, by antenna.
    noises: Vec<f32>,
    is_clear: bool,
}

/// Samples of one antenna, by number.
#[derive(Clone, Debug, Default)]
pub struct Signal {
    /// Number of the first sample.
    pub first: i64,
    /// Samples from `first` on.
    pub samples: Vec<Complex32>,
}

/// Converts transmitted grids to received samples, using the estimated channel.
pub struct Rebuilder {
    numerology: Numerology,
    fft: Arc<dyn Fft<f32>>,
    buffer: Vec<Complex32>,
    scratch: Vec<Complex32>,
    row: Vec<Complex32>,
    gains: Vec<Vec<Vec<Complex32>>>,
    ramp: Ramp,
    /// Phasors that apply the carrier offset to the samples of a symbol, and the offset in Hz for which they were computed.
    phasors: Vec<Complex32>,
    cfo_hz: f64,
}

/// Minimum correlation of the channels of two subframes for interpolation between them. A lower correlation means that
/// the cell was lost or displaced in between.
const ALIKE: f32 = 0.7;

impl Tracker {
    /// Returns the reception state of the last subframe.
    pub fn reception(&self) -> Reception {
        let (place, turns) = self.received;
        let gains = self.antennas.gains().map(|gains| gains.map(<[_]>::to_vec)).collect();
        Reception { place, turns, gains, noises: self.antennas.noises().collect(), is_clear: self.is_clear }
    }

    /// Demodulates a symbol of an earlier subframe with the timing and carrier of that subframe.
    pub fn receive_again(&mut self, stream: &Stream<'_>, reception: &Reception, symbol: usize) {
        let now = (self.place, self.turns);
        (self.place, self.turns) = (reception.place, reception.turns);
        self.demodulate(stream, symbol);
        (self.place, self.turns) = now;
    }

    /// Returns, per antenna, the symbols received last.
    pub fn grids(&self) -> impl Iterator<Item = &Grid> {
        self.antennas.grids()
    }

    /// Returns the numerology used to receive the cell.
    pub fn numerology(&self) -> Numerology {
        self.numerology
    }
}

impl Reception {
    /// First sample of the subframe.
    pub fn start(&self) -> f64 {
        self.place.start
    }

    /// Returns whether the reference signals are clear enough to estimate other symbols.
    pub fn is_clear(&self) -> bool {
        self.is_clear
    }

    /// Noise power on a resource element, by antenna.
    pub fn noises(&self) -> &[f32] {
        &self.noises
    }

    /// Computes the gain of each antenna and port on every subcarrier of a symbol, by linear interpolation to the channel
    /// of `next`. The list of ports is empty for an antenna that does not receive the cell.
    pub fn gains_at(
        &self,
        symbol: usize,
        symbols: usize,
        next: Option<&Reception>,
        out: &mut Vec<Vec<Vec<Complex32>>>,
    ) {
        out.resize(self.gains.len(), Vec::new());
        // The channel estimate applies to the middle of the control region.
        let share = symbol.saturating_sub(1) as f32 / symbols as f32;
        for (antenna, (out, gains)) in out.iter_mut().zip(&self.gains).enumerate() {
            let gains = gains.as_deref().unwrap_or_default();
            let later = next.and_then(|next| next.gains.get(antenna)?.as_deref());
            out.resize(gains.len(), Vec::new());
            for (port, (out, gains)) in out.iter_mut().zip(gains).enumerate() {
                out.clear();
                match later {
                    None => out.extend_from_slice(gains),
                    Some(later) => {
                        let both = gains.iter().zip(&later[port]);
                        out.extend(both.map(|(gain, later)| gain + (later - gain) * share));
                    }
                }
            }
        }
    }

    /// Returns `next` if the channel changes steadily from this subframe to it.
    pub fn steady<'r>(&self, next: Option<&'r Reception>, samples: usize) -> Option<&'r Reception> {
        next.filter(|next| self.leads_to(next, samples))
    }

    /// Returns whether the channel changes steadily from this subframe to `next`.
    fn leads_to(&self, next: &Reception, samples: usize) -> bool {
        let expected = self.place.start + samples as f64;
        if (next.place.start - expected).abs() > 0.5 {
            return false;
        }
        let (mut both, mut powers) = (0.0, [0.0; 2]);
        for (now, next) in self.gains.iter().flatten().flatten().zip(next.gains.iter().flatten().flatten()) {
            both += correlate(now, next).re;
            powers[0] += correlate(now, now).re;
            powers[1] += correlate(next, next).re;
        }
        both > ALIKE * (powers[0] * powers[1]).sqrt()
    }
}

impl Signal {
    /// Creates an empty signal.
    pub fn new(first: i64) -> Signal {
        Signal { first, samples: Vec::new() }
    }

    /// Number of the sample after the last sample of the signal.
    pub fn end(&self) -> i64 {
        self.first + self.samples.len() as i64
    }

    /// Samples from `number` on.
    pub fn samples_from(&self, number: i64) -> &[Complex32] {
        let at = usize::try_from(number - self.first).unwrap_or(0);
        self.samples.get(at..).unwrap_or_default()
    }

    /// Drops the samples before `number`.
    pub fn forget_before(&mut self, number: i64) {
        let count = ((number - self.first).max(0) as usize).min(self.samples.len());
        self.samples.drain(..count);
        self.first += count as i64;
    }

    /// Returns the samples with numbers in `range`, and the number of omitted samples that precede the first sample of
    /// the signal. The signal is extended if necessary.
    fn range_mut(&mut self, range: Range<i64>) -> (usize, &mut [Complex32]) {
        let from = range.start.max(self.first);
        let end = range.end.max(from);
        let (skipped, at) = ((from - range.start) as usize, (from - self.first) as usize);
        let len = (end - self.first) as usize;
        if self.samples.len() < len {
            self.samples.resize(len, Complex32::default());
        }
        (skipped, &mut self.samples[at..len])
    }

    /// Removes and returns the samples before number `end`; samples that were not written are zero.
    pub fn take_before(&mut self, end: i64) -> Vec<Complex32> {
        let count = (end - self.first).max(0) as usize;
        if self.samples.len() < count {
            self.samples.resize(count, Complex32::default());
        }
        self.first += count as i64;
        self.samples.drain(..count).collect()
    }
}

impl Rebuilder {
    /// Creates a rebuilder for samples at the rate of `numerology`.
    pub fn new(transform: Transform, numerology: Numerology) -> Rebuilder {
        let fft = transform.plan(numerology.fft_size(), FftDirection::Inverse);
        Rebuilder {
            numerology,
            buffer: vec![Complex32::default(); numerology.fft_size()],
            scratch: vec![Complex32::default(); fft.get_inplace_scratch_len()],
            row: Vec::new(),
            gains: Vec::new(),
            ramp: Ramp::default(),
            phasors: Vec::new(),
            cfo_hz: 0.0,
            fft,
        }
    }

    /// Adds to `signals` the samples that the antennas received of a subframe whose ports transmitted `grids`. If
    /// `next` is given, the channel is interpolated to the channel of `next`.
    pub fn rebuild(
        &mut self,
        grids: &[Grid],
        now: &Reception,
        next: Option<&Reception>,
        signals: &mut [Signal],
    ) {
        self.tune(now.place.cfo_hz);
        let symbols = grids.first().map_or(0, Grid::symbols);
        let nothing = Complex32::default();
        let mut gains = std::mem::take(&mut self.gains);
        for symbol in 0..symbols {
            if grids.iter().all(|grid| grid.symbol(symbol).iter().all(|value| *value == nothing)) {
                continue;
            }
            now.gains_at(symbol, symbols, next, &mut gains);
            for (gains, signal) in gains.iter().zip(&mut *signals).filter(|(gains, _)| !gains.is_empty()) {
                self.row.clear();
                self.row.resize(self.numerology.bandwidth().subcarriers(), nothing);
                for (grid, gains) in grids.iter().zip(gains) {
                    for ((sum, sent), gain) in self.row.iter_mut().zip(grid.symbol(symbol)).zip(gains) {
                        *sum += sent * gain;
                    }
                }
                self.symbol(symbol, now, signal);
            }
        }
        self.gains = gains;
    }

    /// Computes the phasors for a carrier offset.
    fn tune(&mut self, cfo_hz: f64) {
        let count = self.numerology.fft_size() + self.numerology.prefix_samples(0) + 1;
        if self.phasors.len() != count || (cfo_hz - self.cfo_hz).abs() > 2.0 {
            self.cfo_hz = cfo_hz;
            phasors_back(-self.turns_per_sample(), count, &mut self.phasors);
        }
    }

    fn turns_per_sample(&self) -> f64 {
        self.cfo_hz / f64::from(self.numerology.sample_rate_hz())
    }

    /// Writes the samples of one symbol, prefix and body, from the subcarriers in `row`.
    fn symbol(&mut self, symbol: usize, now: &Reception, signal: &mut Signal) {
        let size = self.numerology.fft_size();
        let per_slot = self.numerology.cp().symbols_per_slot();
        let body = now.place.start + self.numerology.symbol_start(symbol) as f64;
        let prefix = self.numerology.prefix_samples(symbol % per_slot);
        let from = libm::round(body - prefix as f64) as i64;
        let end = libm::round(body + size as f64) as i64;
        // The IFFT yields the samples from `first` on, which precedes the start of the symbol by less than a sample.
        let first = libm::floor(body) as i64;
        self.ramp.make(self.numerology, body - first as f64);
        let turn = now.turns + self.turns_per_sample() * (from as f64 - now.place.start);
        let turn = phasor(turn) * size as f64;
        let turn = Complex32::new(turn.re as f32, turn.im as f32);
        self.buffer.fill(Complex32::default());
        for (k, (value, ramp)) in self.row.iter().zip(&self.ramp.values).enumerate() {
            self.buffer[self.numerology.bin(k)] = value * ramp.conj() * turn;
        }
        self.fft.process_with_scratch(&mut self.buffer, &mut self.scratch);
        let (skipped, out) = signal.range_mut(from..end);
        let mut at = (from - first).rem_euclid(size as i64) as usize + skipped;
        for (out, phasor) in out.iter_mut().zip(&self.phasors[skipped.min(self.phasors.len())..]) {
            if at >= size {
                at -= size;
            }
            *out = self.buffer[at] * phasor;
            at += 1;
        }
    }
}
