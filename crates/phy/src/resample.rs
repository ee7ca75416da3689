//! Samples at one rate to samples at another, by a polyphase filter.
//!
//! Output 0 is at the time of input 0; output n at that of input n · from / to.

use num_complex::Complex32;

/// By how much the filter attenuates what would fold onto the passband.
///
/// Chosen: a window for 70 dB leaves 60 dB at the very edge of the passband, well below the noise of an eight-bit
/// receiver.
const ATTENUATION_DB: f64 = 70.0;

/// Phases that are kept at most; beyond that the nearest is taken, which is wrong by 1/2048 of a sample.
const MAX_PHASES: u64 = 1024;

/// Turns samples at one rate to samples at another.
#[derive(Clone, Debug)]
pub struct Resampler {
    /// Of each phase, `len` taps, each twice: for the real and for the imaginary part.
    taps: Vec<[f32; 2]>,
    len: usize,
    phases: u64,
    /// Rates by their greatest common divisor.
    from: u64,
    to: u64,
    /// Inputs that later outputs need.
    history: Vec<Complex32>,
    /// Of the next output: time since the first input of `history`, less what the filter looks back; in `to`ths of an input.
    next: u64,
}

impl Resampler {
    /// From `from_hz` to `to_hz` samples per second. What lies within `passband_hz` of the centre comes through, within
    /// 0.1 %; what would fold onto it is attenuated by 60 dB. `None` if a rate is zero or the passband does not fit
    /// into both rates.
    pub fn new(from_hz: u64, to_hz: u64, passband_hz: u64) -> Option<Resampler> {
        let narrow = from_hz.min(to_hz);
        if narrow == 0 || 2 * passband_hz >= narrow {
            return None;
        }
        let divisor = gcd(from_hz, to_hz);
        let (from, to) = (from_hz / divisor, to_hz / divisor);
        let transition_hz = (narrow - 2 * passband_hz) as f64;
        // Source: J. F. Kaiser, "Nonrecursive digital filter design using the I0-sinh window function", 1974
        let len = (ATTENUATION_DB - 7.95) / 14.36 * from_hz as f64 / transition_hz;
        let len = (libm::ceil(len) as usize + 1).next_multiple_of(LANES);
        let phases = to.min(MAX_PHASES);
        let cutoff = narrow as f64 / from_hz as f64;
        let half = len as f64 / 2.0;
        let mut taps = Vec::with_capacity(len * phases as usize);
        for phase in 0..phases {
            let fraction = phase as f64 / phases as f64;
            let tap = |tap: usize| lowpass(tap as f64 - half + 1.0 - fraction, cutoff, half);
            // Exactly one at the centre, whatever the phase.
            let sum: f64 = (0..len).map(tap).sum();
            taps.extend((0..len).map(|at| [(tap(at) / sum) as f32; 2]));
        }
        let history = vec![Complex32::default(); len / 2 - 1];
        Some(Resampler { taps, len, phases, from, to, history, next: 0 })
    }

    /// Forgets all samples: the next is the first again.
    pub fn clear(&mut self) {
        self.history.clear();
        self.history.resize(self.len / 2 - 1, Complex32::default());
        self.next = 0;
    }

    /// Takes samples and appends all those that follow from them. The last few wait for what comes after them.
    pub fn push(&mut self, samples: &[Complex32], out: &mut Vec<Complex32>) {
        self.history.extend_from_slice(samples);
        let mut first = (self.next / self.to) as usize;
        while let Some(inputs) = self.history.get(first..first + self.len) {
            let fraction = self.next % self.to;
            let phase = if self.phases == self.to {
                fraction
            } else {
                // Rounded down, so that it stays below one.
                (u128::from(fraction) * u128::from(self.phases) / u128::from(self.to)) as u64
            } as usize;
            out.push(dot(inputs, &self.taps[phase * self.len..][..self.len]));
            self.next += self.from;
            first = (self.next / self.to) as usize;
        }
        let done = first.min(self.history.len());
        self.history.drain(..done);
        self.next -= done as u64 * self.to;
    }
}

/// Value at `t` samples of a low-pass filter of `cutoff` (in half sample rates), `half` samples long on each side.
pub(crate) fn lowpass(t: f64, cutoff: f64, half: f64) -> f64 {
    let x = std::f64::consts::PI * cutoff * t;
    let sinc = if x == 0.0 { 1.0 } else { libm::sin(x) / x };
    let share = t / half;
    if share.abs() >= 1.0 { 0.0 } else { cutoff * sinc * kaiser(share) }
}

/// The Kaiser window for [`ATTENUATION_DB`], from −1 to 1.
fn kaiser(share: f64) -> f64 {
    let beta = 0.1102 * (ATTENUATION_DB - 8.7);
    bessel(beta * libm::sqrt(1.0 - share * share)) / bessel(beta)
}

/// The modified Bessel function I0, by its series.
fn bessel(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..32 {
        term *= quarter / f64::from(k * k);
        sum += term;
    }
    sum
}

/// Sums that are kept side by side, so that no addition waits for the one before.
const LANES: usize = 8;

/// Sum of products of a multiple of [`LANES`].
#[inline]
pub(crate) fn dot(samples: &[Complex32], taps: &[[f32; 2]]) -> Complex32 {
    let mut lanes = [[0.0f32; 2]; LANES];
    for (samples, taps) in samples.chunks_exact(LANES).zip(taps.chunks_exact(LANES)) {
        for ((lane, sample), tap) in lanes.iter_mut().zip(samples).zip(taps) {
            lane[0] += sample.re * tap[0];
            lane[1] += sample.im * tap[1];
        }
    }
    Complex32::new(lanes.iter().map(|lane| lane[0]).sum(), lanes.iter().map(|lane| lane[1]).sum())
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, rate_hz: u64, count: usize) -> Vec<Complex32> {
        let turn = std::f64::consts::TAU * hz / rate_hz as f64;
        (0..count)
            .map(|n| Complex32::new(libm::cos(turn * n as f64) as f32, libm::sin(turn * n as f64) as f32))
            .collect()
    }

    /// Of the samples in the middle: the worst distance to what the same tone is at the other rate.
    fn worst(hz: f64, from: u64, to: u64, passband: u64) -> f32 {
        let mut resampler = Resampler::new(from, to, passband).expect("rates that fit");
        let mut out = Vec::new();
        for part in tone(hz, from, 20_000).chunks(777) {
            resampler.push(part, &mut out);
        }
        let expected = tone(hz, to, out.len());
        let expected_count = (20_000 - 200) as u64 * to / from;
        assert!(out.len() as u64 >= expected_count, "{} of {expected_count} samples came", out.len());
        let edge = 200;
        out[edge..].iter().zip(&expected[edge..]).map(|(got, sent)| (got - sent).norm()).fold(0.0, f32::max)
    }

    #[test]
    fn tones_of_the_passband_come_through_in_time() {
        for (from, to, passband) in [
            (20_000_000, 19_200_000, 9_000_000),
            (2_400_000, 1_920_000, 550_000),
            (30_720_000, 1_920_000, 550_000),
            (15_360_000, 23_040_000, 6_800_000),
        ] {
            for share in [-1.0, -0.6, 0.1, 1.0] {
                let error = worst(share * passband as f64, from, to, passband);
                assert!(error < 2e-3, "{from} to {to}: {error} at {share} of the passband");
            }
        }
        // A rate without a common divisor takes the nearest of 1024 phases.
        let error = worst(500_000.0, 2_000_003, 1_920_000, 550_000);
        assert!(error < 4e-3, "{error}");
    }

    #[test]
    fn what_would_fold_onto_the_passband_is_gone() {
        let mut resampler = Resampler::new(30_720_000, 1_920_000, 550_000).expect("rates that fit");
        let mut out = Vec::new();
        resampler.push(&tone(1_920_000.0 + 300_000.0, 30_720_000, 30_720), &mut out);
        let loudest = out[100..].iter().map(|sample| sample.norm()).fold(0.0, f32::max);
        assert!(loudest < 1.5e-3, "{loudest}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Resampler::new(1_000_000, 1_920_000, 550_000).is_none());
        assert!(Resampler::new(0, 1_920_000, 550_000).is_none());
    }
}
