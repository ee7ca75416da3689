//! Removal of tones and other narrow-band interference that is far stronger than a cell, before the cell search.
//!
//! The search knows a cell's signal only in the six centre PRBs. A tone with a tenth of a wide cell's power is stronger
//! than the whole signal in these PRBs. Constant power within a few kilohertz does not come from a cell.

use std::sync::Arc;

use num_complex::Complex32;
use rustfft::{Fft, FftDirection};

use super::VIEW_HZ;
use crate::ofdm::Transform;

/// Length of a block (samples): 0.5 ms, so that a bin is 1.9 kHz wide.
const BLOCK: usize = 1024;
const HALF: usize = BLOCK / 2;

/// Number of bins on each side of the carrier that six PRBs occupy.
const CELL: usize = BLOCK * 540 / (VIEW_HZ as usize / 1000);

/// Minimum power of a bin, relative to a typical bin, that cannot come from a cell.
///
/// Chosen: 12 dB. The value is calculated, not tuned: the reference signals of a cell without data are 5 dB stronger
/// than the resource elements between them, and an echo adds 6 dB.
const LOUD: f32 = 16.0;

/// Detects and removes narrow-band interference.
pub struct Notch {
    forward: Arc<dyn Fft<f32>>,
    backward: Arc<dyn Fft<f32>>,
    /// Window applied to half-overlapping blocks before and after the transform. The squares of overlapping values add up
    /// to one.
    window: Vec<f32>,
    /// Spectra of all blocks.
    spectra: Vec<Complex32>,
    powers: Vec<f32>,
    scratch: Vec<Complex32>,
}

impl Notch {
    pub fn new(transform: Transform) -> Notch {
        let forward = transform.plan(BLOCK, FftDirection::Forward);
        let backward = transform.plan(BLOCK, FftDirection::Inverse);
        let len = forward.get_inplace_scratch_len().max(backward.get_inplace_scratch_len());
        let at = |n: usize| libm::sin(std::f64::consts::PI * (n as f64 + 0.5) / BLOCK as f64) as f32;
        Notch {
            forward,
            backward,
            window: (0..BLOCK).map(at).collect(),
            spectra: Vec::new(),
            powers: Vec::new(),
            scratch: vec![Complex32::default(); len],
        }
    }

    /// Returns `samples` (at [`VIEW_HZ`]) with too strong narrow bands attenuated to the typical level. Returns `None` if
    /// there are none.
    pub fn clean(&mut self, samples: &[Complex32]) -> Option<Vec<Complex32>> {
        self.measure(samples);
        let typical = self.typical();
        let is_loud = |power: &f32| typical > 0.0 && *power > LOUD * typical;
        if !self.powers.iter().any(is_loud) {
            return None;
        }
        let scale = 1.0 / BLOCK as f32;
        let factors: Vec<f32> = self
            .powers
            .iter()
            .map(|power| if is_loud(power) { scale * (typical / power).sqrt() } else { scale })
            .collect();
        let mut out = vec![Complex32::default(); samples.len()];
        for (at, block) in self.spectra.chunks_exact_mut(BLOCK).enumerate() {
            block.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= factor);
            self.backward.process_with_scratch(block, &mut self.scratch);
            // The first block starts half a block before the first sample.
            let skipped = HALF.saturating_sub(HALF * at);
            let first = (HALF * at).saturating_sub(HALF);
            let values = block.iter().zip(&self.window).skip(skipped);
            out[first..].iter_mut().zip(values).for_each(|(out, (value, window))| *out += value * window);
        }
        Some(out)
    }

    /// Computes the spectra of all blocks, and the power per bin summed over the blocks.
    fn measure(&mut self, samples: &[Complex32]) {
        let blocks = samples.len().div_ceil(HALF) + 1;
        self.spectra.clear();
        for at in 0..blocks {
            let skipped = HALF.saturating_sub(HALF * at);
            let first = (HALF * at).saturating_sub(HALF);
            let here = samples[first..].iter().take(BLOCK - skipped);
            let begin = self.spectra.len();
            self.spectra.resize(begin + skipped, Complex32::default());
            let windowed = here.zip(&self.window[skipped..]).map(|(sample, window)| sample * window);
            self.spectra.extend(windowed);
            self.spectra.resize(begin + BLOCK, Complex32::default());
        }
        self.forward.process_with_scratch(&mut self.spectra, &mut self.scratch);
        self.powers.clear();
        self.powers.resize(BLOCK, 0.0);
        for block in self.spectra.chunks_exact(BLOCK) {
            self.powers.iter_mut().zip(block).for_each(|(sum, value)| *sum += value.norm_sqr());
        }
    }

    /// Returns the median power of the bins that a cell may occupy.
    fn typical(&self) -> f32 {
        let mut bins = [&self.powers[1..=CELL], &self.powers[BLOCK - CELL..]].concat();
        let middle = bins.len() / 2;
        *bins.select_nth_unstable_by(middle, f32::total_cmp).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpace_core::Streams;

    fn noise(count: usize) -> Vec<Complex32> {
        let mut rng = Streams::new(3).stream("phy.notch");
        (0..count).map(|_| Complex32::new(rng.normal() as f32, rng.normal() as f32)).collect()
    }

    #[test]
    fn a_tone_goes_and_all_else_stays() {
        for count in [1, 511, 9_600, 76_801] {
            let alone = noise(count);
            let mut notch = Notch::new(Transform::Reproducible);
            assert!(count < 9_600 || notch.clean(&alone).is_none());
            for (size, hz) in [(3.0, 123_456.0), (10.0, -18_000.0), (10.0, 600_000.0)] {
                let turn = |n: usize| std::f64::consts::TAU * hz * n as f64 / VIEW_HZ as f64;
                let tone = |n: usize| Complex32::new(turn(n).cos() as f32, turn(n).sin() as f32) * size;
                let with: Vec<Complex32> = alone.iter().enumerate().map(|(n, x)| x + tone(n)).collect();
                let clean = notch.clean(&with);
                assert!(count < 9_600 || clean.is_some(), "a tone of {size} at {hz} Hz is not seen");
                let Some(clean) = clean else { continue };
                assert_eq!(clean.len(), count);
                let off: f32 = clean.iter().zip(&alone).map(|(a, b)| (a - b).norm_sqr()).sum();
                let power: f32 = alone.iter().map(|x| x.norm_sqr()).sum();
                if count >= 9_600 {
                    assert!(
                        off < 0.1 * power,
                        "a tone of {size} at {hz} Hz leaves {} of {count}",
                        off / power
                    );
                }
            }
        }
    }

    #[test]
    fn silence_and_what_is_no_number_are_left_alone() {
        let mut notch = Notch::new(Transform::Reproducible);
        assert!(notch.clean(&[]).is_none());
        assert!(notch.clean(&[Complex32::default(); 5000]).is_none());
        let odd = [Complex32::new(f32::NAN, f32::INFINITY); 5000];
        assert!(notch.clean(&odd).is_none_or(|clean| clean.len() == odd.len()));
    }
}
