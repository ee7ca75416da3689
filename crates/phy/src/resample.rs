//! Resampler: converts the sample rate with a polyphase filter.
//!
//! Output 0 is at the time of input 0; output n is at the time of input n · from / to.

use std::ops::Range;

use num_complex::Complex32;
use pulp::{Arch, Simd, WithSimd};

/// Stop-band attenuation of the filter (dB), for frequencies that alias onto the passband.
///
/// Chosen: a window for 70 dB gives 60 dB at the edge of the passband, well below the noise of an eight-bit receiver.
const ATTENUATION_DB: f64 = 70.0;

/// Maximum number of filter phases. If a rate needs more, the nearest phase is used, with an error of at most 1/2048 of a
/// sample.
const MAX_PHASES: u64 = 1024;

/// Converts samples from one rate to another.
#[derive(Clone, Debug)]
pub struct Resampler {
    arch: Arch,
    filter: Filter,
    /// Input samples that later outputs need.
    history: Parts,
    /// Index of the first sample in `history`.
    first: i64,
    next: i64,
}

/// Samples with separate vectors for real and imaginary parts, which is the layout that the filter needs.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    re: Vec<f32>,
    im: Vec<f32>,
}

impl Resampler {
    /// Converts from `from_hz` to `to_hz` samples per second. Signals within `passband_hz` of the centre are preserved
    /// within 0.1 %; signals that alias onto them are attenuated by 60 dB. `None` if a rate is zero or the passband does
    /// not fit into both rates.
    pub fn new(from_hz: u64, to_hz: u64, passband_hz: u64) -> Option<Resampler> {
        let filter = Filter::new(from_hz, to_hz, passband_hz)?;
        let mut resampler =
            Resampler { arch: Arch::new(), filter, history: Parts::default(), first: 0, next: 0 };
        resampler.clear();
        Some(resampler)
    }

    /// Number of inputs per output, which determines the cost. `None` if [`Resampler::new`] returns `None`.
    pub fn taps(from_hz: u64, to_hz: u64, passband_hz: u64) -> Option<usize> {
        let narrow = from_hz.min(to_hz);
        if narrow == 0 || 2 * passband_hz >= narrow {
            return None;
        }
        let transition_hz = (narrow - 2 * passband_hz) as f64;
        // Source: J. F. Kaiser, "Nonrecursive digital filter design using the I0-sinh window function", 1974
        let taps = (ATTENUATION_DB - 7.95) / 14.36 * from_hz as f64 / transition_hz;
        Some((libm::ceil(taps) as usize + 1).next_multiple_of(LANES))
    }

    /// Input samples per output sample.
    pub fn ratio(&self) -> f64 {
        self.filter.from as f64 / self.filter.to as f64
    }

    /// Discards all samples; the next pushed sample is input 0 again.
    pub fn clear(&mut self) {
        let before = self.filter.before();
        self.history.clear();
        self.history.resize(before as usize);
        (self.first, self.next) = (-before, 0);
    }

    /// Processes samples, and appends all outputs for which all inputs have arrived. The last few outputs wait for
    /// later inputs.
    pub fn push(&mut self, samples: &[Complex32], out: &mut Vec<Complex32>) {
        self.history.extend(samples);
        let end = self.first + self.history.len() as i64;
        let count = self.filter.outputs_before(end - self.filter.after()) - self.next;
        if let Ok(count) = usize::try_from(count)
            && count > 0
        {
            let from = out.len();
            out.resize(from + count, Complex32::default());
            let skip = (self.inputs(self.next, count).start - self.first) as usize;
            self.resample_from(self.next, &self.history, skip, &mut out[from..]);
            self.next += count as i64;
        }
        let done = (self.inputs(self.next, 1).start - self.first).clamp(0, self.history.len() as i64);
        self.history.forget(done as usize);
        self.first += done;
    }

    /// Input times of `count` outputs, starting at output `first`: from the last input that is not after the first
    /// output, up to the first input after the last output.
    pub fn times(&self, first: i64, count: usize) -> Range<i64> {
        let last = first + count.max(1) as i64 - 1;
        self.filter.position(first).0..self.filter.position(last).0 + 1
    }

    /// Number of inputs that an output uses after the input at or before its time.
    pub fn ahead(&self) -> usize {
        self.filter.after() as usize
    }

    /// Inputs that `count` outputs use, starting at output `first`.
    pub fn inputs(&self, first: i64, count: usize) -> Range<i64> {
        let times = self.times(first, count);
        times.start - self.filter.before()..times.end + self.filter.after()
    }

    /// Computes outputs, starting at output `first`, from `inputs`: the samples in the range that [`Resampler::inputs`]
    /// returns. Outputs with missing inputs become zero.
    pub fn resample(&self, first: i64, inputs: &Parts, out: &mut [Complex32]) {
        self.resample_from(first, inputs, 0, out);
    }

    /// As [`Resampler::resample`], but ignores the first `skip` samples of `inputs`.
    fn resample_from(&self, first: i64, inputs: &Parts, skip: usize, out: &mut [Complex32]) {
        let fraction = self.filter.position(first).1;
        let (re, im) = (&inputs.re[skip..], &inputs.im[skip..]);
        self.arch.dispatch(Outputs { filter: &self.filter, fraction, re, im, out });
    }
}

impl Parts {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.re.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.re.is_empty()
    }

    /// Removes all samples.
    pub fn clear(&mut self) {
        self.re.clear();
        self.im.clear();
    }

    /// Appends samples.
    pub fn extend(&mut self, samples: &[Complex32]) {
        self.re.extend(samples.iter().map(|sample| sample.re));
        self.im.extend(samples.iter().map(|sample| sample.im));
    }

    /// Appends zeros up to a length of `len` samples, or truncates to this length.
    pub fn resize(&mut self, len: usize) {
        self.re.resize(len, 0.0);
        self.im.resize(len, 0.0);
    }

    /// Removes the first `count` samples.
    pub fn forget(&mut self, count: usize) {
        self.re.drain(..count);
        self.im.drain(..count);
    }

    /// Sum of products of samples, starting at index `first`, with `taps`. The number of taps is a multiple of [`LANES`].
    pub(crate) fn dot(&self, first: usize, taps: &[f32]) -> Complex32 {
        let range = first..first + taps.len();
        total(&products(&self.re[range.clone()], &self.im[range], taps))
    }
}

/// Polyphase filter, with the timing of its outputs.
#[derive(Clone, Debug)]
struct Filter {
    /// `len` taps for each phase.
    taps: Vec<f32>,
    len: usize,
    phases: u64,
    /// Input rate divided by the greatest common divisor of the rates.
    from: u64,
    to: u64,
}

impl Filter {
    fn new(from_hz: u64, to_hz: u64, passband_hz: u64) -> Option<Filter> {
        let len = Resampler::taps(from_hz, to_hz, passband_hz)?;
        let divisor = gcd(from_hz, to_hz);
        let (from, to) = (from_hz / divisor, to_hz / divisor);
        let phases = to.min(MAX_PHASES);
        let cutoff = from_hz.min(to_hz) as f64 / from_hz as f64;
        let half = len as f64 / 2.0;
        let mut taps = Vec::with_capacity(len * phases as usize);
        for phase in 0..phases {
            let fraction = phase as f64 / phases as f64;
            let tap = |tap: usize| lowpass(tap as f64 - half + 1.0 - fraction, cutoff, half);
            // The gain at the centre frequency is exactly one for every phase.
            let sum: f64 = (0..len).map(tap).sum();
            taps.extend((0..len).map(|at| (tap(at) / sum) as f32));
        }
        Some(Filter { taps, len, phases, from, to })
    }

    /// Number of inputs that an output uses before the input at or before its time.
    fn before(&self) -> i64 {
        self.len as i64 / 2 - 1
    }

    fn after(&self) -> i64 {
        self.len as i64 / 2
    }

    /// Index of the input at or before an output, and the delay of the output after it, in units of 1/`to` of an input.
    fn position(&self, output: i64) -> (i64, u64) {
        let position = i128::from(output) * i128::from(self.from);
        let to = i128::from(self.to);
        (position.div_euclid(to) as i64, position.rem_euclid(to) as u64)
    }

    /// Number of outputs, starting at output 0, before an input.
    fn outputs_before(&self, input: i64) -> i64 {
        (i128::from(input) * i128::from(self.to)).div_euclid(i128::from(self.from)) as i64
            + i64::from((i128::from(input) * i128::from(self.to)).rem_euclid(i128::from(self.from)) > 0)
    }
}

/// The computation, generic over the processor's SIMD instructions. The result is bit-identical for all vector lengths:
/// products and sums are rounded one by one, in a fixed order.
struct Outputs<'a> {
    filter: &'a Filter,
    /// Delay of the first output after its first input, in units of 1/`to` of an input.
    fraction: u64,
    re: &'a [f32],
    im: &'a [f32],
    out: &'a mut [Complex32],
}

impl WithSimd for Outputs<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Filter { taps, len, phases, from, to } = self.filter;
        let (whole, part) = ((from / to) as usize, from % to);
        let (mut at, mut fraction) = (0, self.fraction);
        // Phases per 1/`to`, rounded down, so that no index exceeds the last phase. Exact if `phases` equals `to`.
        let phase_of = (phases << PHASE_BITS) / to;
        for out in self.out.chunks_mut(BLOCK) {
            let mut sums = [[[0.0; LANES]; 2]; BLOCK];
            for sums in &mut sums[..out.len()] {
                let phase = ((fraction * phase_of) >> PHASE_BITS) as usize;
                if let (Some(re), Some(im)) = (self.re.get(at..at + len), self.im.get(at..at + len)) {
                    *sums = products(re, im, &taps[phase * len..][..*len]);
                }
                (at, fraction) = (at + whole, fraction + part);
                if fraction >= *to {
                    (at, fraction) = (at + 1, fraction - to);
                }
            }
            for (out, sums) in out.iter_mut().zip(&sums) {
                *out = total(sums);
            }
        }
    }
}

/// Value of a low-pass filter's impulse response at time `t` (samples), with `cutoff` (in units of half the sample
/// rate) and `half` samples on each side.
pub(crate) fn lowpass(t: f64, cutoff: f64, half: f64) -> f64 {
    let x = std::f64::consts::PI * cutoff * t;
    let sinc = if x == 0.0 { 1.0 } else { libm::sin(x) / x };
    let share = t / half;
    if share.abs() >= 1.0 { 0.0 } else { cutoff * sinc * kaiser(share) }
}

/// Kaiser window for [`ATTENUATION_DB`]; `share` is −1 to 1.
fn kaiser(share: f64) -> f64 {
    let beta = 0.1102 * (ATTENUATION_DB - 8.7);
    bessel(beta * libm::sqrt(1.0 - share * share)) / bessel(beta)
}

/// Modified Bessel function I0, from its power series.
fn bessel(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 1..32 {
        term *= quarter / f64::from(k * k);
        sum += term;
    }
    sum
}

/// Number of partial sums that are accumulated in parallel, so that no addition waits for the previous one.
const LANES: usize = 8;

/// Number of fractional bits of a phase. At all sample rates, the products of phase computations stay below 2^62.
const PHASE_BITS: u32 = 52;

/// Number of outputs whose lane sums are added together at the end, so that the compiler vectorises the products.
const BLOCK: usize = 16;

/// Products of samples (a multiple of [`LANES`], in two parts) and taps, summed per lane.
#[inline(always)]
fn products(re: &[f32], im: &[f32], taps: &[f32]) -> [[f32; LANES]; 2] {
    let mut sums = [[0.0; LANES]; 2];
    let parts = re.chunks_exact(LANES).zip(im.chunks_exact(LANES));
    for ((re, im), taps) in parts.zip(taps.chunks_exact(LANES)) {
        for lane in 0..LANES {
            sums[0][lane] += re[lane] * taps[lane];
        }
        for lane in 0..LANES {
            sums[1][lane] += im[lane] * taps[lane];
        }
    }
    sums
}

/// Sums over all lanes, for both parts.
#[inline(always)]
fn total([re, im]: &[[f32; LANES]; 2]) -> Complex32 {
    let halves = |[a, b, c, d, e, f, g, h]: [f32; LANES]| ((a + e) + (c + g)) + ((b + f) + (d + h));
    Complex32::new(halves(*re), halves(*im))
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

    /// Maximum error of the resampled tone in the middle of the samples, relative to the same tone generated at the
    /// other rate.
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
        // Two rates without a common divisor use the nearest of 1024 phases.
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
    fn vectors_give_the_bits_that_plain_numbers_give() {
        let resampler = Resampler::new(20_000_000, 21_120_000, 9_015_000).expect("rates that fit");
        let mut inputs = Parts::default();
        inputs.extend(&tone(3_000_000.0, 20_000_000, 3000));
        let first = 12_345;
        let mut out = [vec![Complex32::default(); 2500], vec![Complex32::default(); 2500]];
        resampler.resample(first, &inputs, &mut out[0]);
        let fraction = resampler.filter.position(first).1;
        let Parts { re, im } = &inputs;
        let plain = Outputs { filter: &resampler.filter, fraction, re, im, out: &mut out[1] };
        plain.with_simd(pulp::Scalar::new());
        assert_eq!(out[0], out[1]);
        assert!(out[0].iter().all(|sample| *sample != Complex32::default()));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(Resampler::new(1_000_000, 1_920_000, 550_000).is_none());
        assert!(Resampler::new(0, 1_920_000, 550_000).is_none());
    }
}
