//! Correction factors for carrier offset (per sample) and timing offset (per subcarrier).

use num_complex::{Complex32, Complex64};

use crate::complex::{phasor, phasors_back};
use crate::numerology::Numerology;

/// Phasors that remove the carrier offset from the samples of a symbol.
#[derive(Clone, Debug, Default)]
pub struct Tuning {
    cfo_hz: f64,
    /// One phasor per sample.
    pub phasors: Vec<Complex32>,
}

impl Tuning {
    /// Sets the carrier offset. Changes of up to two hertz are ignored: they rotate the samples of a symbol by less than
    /// 0.05°.
    pub fn tune(&mut self, cfo_hz: f64, numerology: Numerology) {
        if self.phasors.is_empty() || (cfo_hz - self.cfo_hz).abs() > 2.0 {
            self.cfo_hz = cfo_hz;
            let turns = cfo_hz / f64::from(numerology.sample_rate_hz());
            phasors_back(turns, numerology.fft_size(), &mut self.phasors);
        }
    }
}

/// Sum of samples, accumulated in eight independent partial sums.
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

/// Phase correction per subcarrier for an FFT window that starts before its symbol.
#[derive(Clone, Debug, Default)]
pub struct Ramp {
    late: f64,
    /// One factor per subcarrier.
    pub values: Vec<Complex32>,
}

impl Ramp {
    /// Computes the factors for a symbol that starts `late` samples after its FFT window. The factors also include a
    /// scale: a tone of amplitude 1 becomes a resource element of 1.
    pub fn make(&mut self, numerology: Numerology, late: f64) {
        // A 64th of a sample rotates the outermost subcarriers by less than 2°.
        if !self.values.is_empty() && (late - self.late).abs() < 1.0 / 64.0 {
            return;
        }
        self.late = late;
        let size = numerology.fft_size() as f64;
        let count = numerology.bandwidth().subcarriers();
        let half = count / 2;
        // Skip the centre subcarrier: nothing is transmitted there.
        let (below, above) = (-(half as f64), 1.0);
        self.values.clear();
        for (first, count) in [(below, half), (above, count - half)] {
            self.turned(late / size, first, count, size);
        }
    }

    /// Appends the factors of `count` subcarriers; the first of them is `first` subcarriers above the centre. Four
    /// independent chains of products run in parallel, so that a product does not wait for the previous one.
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
