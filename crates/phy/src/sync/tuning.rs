//! The factors that turn samples and subcarriers to where they belong.

use num_complex::{Complex32, Complex64};

use super::{phasor, phasors_back};
use crate::numerology::Numerology;

/// The factors that turn the samples of a symbol back by the carrier offset.
#[derive(Clone, Debug, Default)]
pub struct Tuning {
    cfo_hz: f64,
    /// One for each sample.
    pub phasors: Vec<Complex32>,
}

impl Tuning {
    /// Sets the carrier offset. Smaller changes than two hertz are ignored: they turn the samples of a symbol by less
    /// than 0.05°.
    pub fn tune(&mut self, cfo_hz: f64, numerology: Numerology) {
        if self.phasors.is_empty() || (cfo_hz - self.cfo_hz).abs() > 2.0 {
            self.cfo_hz = cfo_hz;
            let turns = cfo_hz / f64::from(numerology.sample_rate_hz());
            phasors_back(turns, numerology.fft_size(), &mut self.phasors);
        }
    }
}

/// The sum of samples, in lanes.
pub fn sum(samples: &[Complex32]) -> Complex32 {
    let mut lanes = [Complex32::default(); 8];
    let eights = samples.chunks_exact(8);
    let rest: Complex32 = eights.remainder().iter().sum();
    for eight in eights {
        for (lane, sample) in lanes.iter_mut().zip(eight) {
            *lane += sample;
        }
    }
    rest + lanes.iter().sum::<Complex32>()
}

/// The correction for an FFT that begins before its symbol.
#[derive(Clone, Debug, Default)]
pub struct Ramp {
    late: f64,
    /// One for each subcarrier.
    pub values: Vec<Complex32>,
}

impl Ramp {
    /// For a symbol that begins `late` samples after its FFT. A tone of amplitude 1 becomes a resource element of 1.
    pub fn make(&mut self, numerology: Numerology, late: f64) {
        // A 64th of a sample turns the outermost subcarriers by less than 2°.
        if !self.values.is_empty() && (late - self.late).abs() < 1.0 / 64.0 {
            return;
        }
        self.late = late;
        let size = numerology.fft_size() as f64;
        let count = numerology.bandwidth().subcarriers();
        let half = count / 2;
        // Nothing is sent at the centre.
        let (below, above) = (-(half as f64), 1.0);
        self.values.clear();
        for (first, count) in [(below, half), (above, count - half)] {
            self.turned(late / size, first, count, size);
        }
    }

    /// Adds the factors of `count` subcarriers, the first of them `first` above the centre. Several chains of products run
    /// side by side, so that not every product waits for the one before.
    fn turned(&mut self, turns: f64, first: f64, count: usize, size: f64) {
        const CHAINS: usize = 4;
        let mut chains: [Complex64; CHAINS] =
            std::array::from_fn(|at| phasor((first + at as f64) * turns) / size);
        let step = phasor(CHAINS as f64 * turns);
        let start = self.values.len();
        self.values.resize(start + count, Complex32::default());
        for values in self.values[start..].chunks_mut(CHAINS) {
            for (value, chain) in values.iter_mut().zip(&mut chains) {
                *value = Complex32::new(chain.re as f32, chain.im as f32);
                *chain *= step;
            }
        }
    }
}
