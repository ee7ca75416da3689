//! Channel and receiver impairments: fading, noise, and an imperfect radio.
//!
//! ```text
//! ports ─▶ fading of each ─▶ sum ─▶ sample clock ─▶ carrier offset ─▶ noise ─▶ DC ─▶ clipping
//! ```

pub use airpace_core::tables::delay::DelayProfile;
use airpace_core::{Rng, Streams};
use num_complex::Complex32;

use crate::resample::{Parts, lowpass};

/// Parameters of the channel and the receiver. [`Conditions::perfect`] has no impairments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// Sample rate (samples per second).
    pub sample_rate_hz: f64,
    /// Power delay profile; [`DelayProfile::Flat`] is a single path without fading.
    pub profile: DelayProfile,
    /// Maximum Doppler shift of a path (Hz). At 0, the channel keeps its random initial state.
    pub doppler_hz: f64,
    /// Mean noise power per sample: see [`noise_power`].
    pub noise_power: f64,
    /// Carrier frequency offset: by how much the receiver is tuned below the cell's carrier (Hz).
    pub cfo_hz: f64,
    /// Error of the receiver's sample clock (ppm). A positive value means a slow clock: fewer samples per second.
    pub drift_ppm: f64,
    /// DC offset, added to every sample.
    pub dc: Complex32,
    /// Maximum magnitude of the real and the imaginary part.
    pub clip: f32,
}

impl Conditions {
    /// Conditions of a perfect radio directly at the transmit antenna.
    pub const fn perfect(sample_rate_hz: f64) -> Conditions {
        Conditions {
            sample_rate_hz,
            profile: DelayProfile::Flat,
            doppler_hz: 0.0,
            noise_power: 0.0,
            cfo_hz: 0.0,
            drift_ppm: 0.0,
            dc: Complex32::new(0.0, 0.0),
            clip: f32::INFINITY,
        }
    }
}

/// Noise power per sample for an SNR of `snr_db` per resource element. A resource element of unit power (sum over all
/// ports) is a tone of `amplitude`; the FFT has `fft_size` points.
pub fn noise_power(snr_db: f64, fft_size: usize, amplitude: f32) -> f64 {
    fft_size as f64 * f64::from(amplitude) * f64::from(amplitude) / libm::pow(10.0, snr_db / 10.0)
}

/// Converts the samples that antenna ports transmit to the samples that one antenna receives.
#[derive(Clone, Debug)]
pub struct Impair {
    conditions: Conditions,
    ports: Vec<Fading>,
    clock: Option<Clock>,
    noise: Rng,
    /// Phase of the carrier offset (turns).
    turns: f64,
    sum: Vec<Complex32>,
}

impl Impair {
    /// Creates impairments for a cell with `ports` antenna ports. Fading of port N uses the random stream
    /// `phy.fading.N`, noise uses `phy.noise`.
    pub fn new(conditions: Conditions, ports: usize, streams: &Streams) -> Impair {
        Impair::of_antenna(0, conditions, ports, streams)
    }

    /// Creates impairments for antenna number `antenna` of a receiver. Antenna 0 equals [`Impair::new`]. Every other
    /// antenna A uses its own random streams: `phy.antenna.A.fading.N` and `phy.antenna.A.noise`.
    pub fn of_antenna(antenna: usize, conditions: Conditions, ports: usize, streams: &Streams) -> Impair {
        let name = |what: String| match antenna {
            0 => format!("phy.{what}"),
            _ => format!("phy.antenna.{antenna}.{what}"),
        };
        let fading = |port| Fading::new(&conditions, &mut streams.stream(&name(format!("fading.{port}"))));
        Impair {
            ports: (0..ports).map(fading).collect(),
            clock: (conditions.drift_ppm != 0.0).then(|| Clock::new(conditions.drift_ppm)),
            noise: streams.stream(&name("noise".to_owned())),
            turns: 0.0,
            sum: Vec::new(),
            conditions,
        }
    }

    /// Processes samples of all ports, the same number for each, and appends the received samples. The last few
    /// received samples are delayed until more samples follow.
    pub fn push(&mut self, ports: &[Vec<Complex32>], out: &mut Vec<Complex32>) {
        self.sum.clear();
        for (fading, samples) in self.ports.iter_mut().zip(ports) {
            fading.add(samples, &mut self.sum);
        }
        let first = out.len();
        match &mut self.clock {
            Some(clock) => clock.push(&self.sum, out),
            None => out.extend_from_slice(&self.sum),
        }
        let step = self.conditions.cfo_hz / self.conditions.sample_rate_hz;
        let deviation = libm::sqrt(self.conditions.noise_power / 2.0);
        let clip = self.conditions.clip;
        for sample in &mut out[first..] {
            if step != 0.0 {
                let angle = std::f64::consts::TAU * self.turns;
                *sample *= Complex32::new(libm::cos(angle) as f32, libm::sin(angle) as f32);
                self.turns += step;
                self.turns -= libm::floor(self.turns);
            }
            if deviation > 0.0 {
                let (re, im) = (self.noise.normal() * deviation, self.noise.normal() * deviation);
                *sample += Complex32::new(re as f32, im as f32);
            }
            *sample += self.conditions.dc;
            *sample = Complex32::new(sample.re.clamp(-clip, clip), sample.im.clamp(-clip, clip));
        }
    }
}

/// Number of samples on each side of an interpolated point.
const HALF: usize = 16;

/// Number of samples with a constant channel. At 300 Hz and 1.92 Msps, the phase of a path rotates by 1.8° over this
/// many samples.
const STILL: usize = 32;

/// Number of rays per path. The sum of the rays is the fading of the path.
const RAYS: usize = 16;

/// Threshold of magnitude below which a response counts as zero (rounding errors).
const SILENCE: f32 = 1e-9;

/// Channel of one port.
#[derive(Clone, Debug)]
struct Fading {
    /// For each path: its response to a single sample of value 1, and its rays.
    paths: Vec<(Vec<f32>, Vec<Ray>)>,
    response: Vec<Complex32>,
    /// Non-zero part of the response: a single sample for a channel without delays.
    heard: std::ops::Range<usize>,
    /// Past samples that still contribute echoes, and samples that are not yet processed.
    history: Vec<Complex32>,
    moves: bool,
}

/// A plane wave.
#[derive(Clone, Copy, Debug)]
struct Ray {
    now: num_complex::Complex64,
    step: num_complex::Complex64,
}

impl Fading {
    /// Source: W. C. Jakes, "Microwave Mobile Communications", 1974, §1.7: a sum of rays from all sides.
    ///
    /// Differs: angles and phases are random for each ray, so that paths and ports fade independently.
    fn new(conditions: &Conditions, rng: &mut Rng) -> Fading {
        let paths = conditions.profile.taps();
        let power = |db: f64| libm::pow(10.0, db / 10.0);
        let total: f64 = paths.iter().map(|path| power(path.1)).sum();
        let per_ns = conditions.sample_rate_hz * 1e-9;
        let longest = paths.iter().map(|path| path.0).fold(0.0, f64::max);
        let len = 2 * HALF + libm::ceil(longest * per_ns) as usize;
        let fades = conditions.profile != DelayProfile::Flat;
        let make = |&(delay_ns, power_db): &(f64, f64)| {
            let response = (0..len).map(|n| {
                let t = n as f64 - HALF as f64 - delay_ns * per_ns;
                lowpass(t, 1.0, HALF as f64) as f32
            });
            let rays = if fades { RAYS } else { 1 };
            let size = libm::sqrt(power(power_db) / total / rays as f64);
            let mut ray = |_| {
                let angle = std::f64::consts::TAU * rng.uniform();
                let shift_hz = conditions.doppler_hz * libm::cos(std::f64::consts::TAU * rng.uniform());
                let step = std::f64::consts::TAU * shift_hz * STILL as f64 / conditions.sample_rate_hz;
                Ray {
                    now: num_complex::Complex64::new(size * libm::cos(angle), size * libm::sin(angle)),
                    step: num_complex::Complex64::new(libm::cos(step), libm::sin(step)),
                }
            };
            (response.collect(), (0..rays).map(&mut ray).collect())
        };
        let paths: Vec<_> = paths.iter().map(make).collect();
        let is_heard =
            |n: &usize| paths.iter().any(|(response, _): &(Vec<f32>, _)| response[*n].abs() > SILENCE);
        let first = (0..len).find(is_heard).unwrap_or(0);
        let heard = first..(first..len).rfind(is_heard).map_or(len, |last| last + 1);
        let history = vec![Complex32::default(); len - 1 - HALF];
        let moves = conditions.doppler_hz > 0.0;
        let mut fading = Fading { paths, response: vec![Complex32::default(); len], heard, history, moves };
        fading.respond();
        fading
    }

    /// Sums the current responses of all paths.
    fn respond(&mut self) {
        self.response.fill(Complex32::default());
        for (response, rays) in &self.paths {
            let gain: num_complex::Complex64 = rays.iter().map(|ray| ray.now).sum();
            let gain = Complex32::new(gain.re as f32, gain.im as f32);
            for (sum, value) in self.response.iter_mut().zip(response) {
                *sum += gain * value;
            }
        }
    }

    /// Adds the received signal of `samples` to `out`, which grows if necessary.
    fn add(&mut self, samples: &[Complex32], out: &mut Vec<Complex32>) {
        self.history.extend_from_slice(samples);
        let len = self.response.len();
        let mut at = 0;
        while at + len + STILL <= self.history.len() + 1 {
            let new = at + STILL;
            if out.len() < new {
                out.resize(new, Complex32::default());
            }
            for (n, out) in out[at..new].iter_mut().enumerate() {
                let newest = at + n + len;
                let inputs = self.history[newest - self.heard.end..newest - self.heard.start].iter().rev();
                let (mut re, mut im) = (0.0, 0.0);
                for (x, h) in inputs.zip(&self.response[self.heard.clone()]) {
                    re += x.re * h.re - x.im * h.im;
                    im += x.re * h.im + x.im * h.re;
                }
                *out += Complex32::new(re, im);
            }
            at = new;
            if self.moves {
                for ray in self.paths.iter_mut().flat_map(|(_, rays)| rays) {
                    ray.now *= ray.step;
                }
                self.respond();
            }
        }
        self.history.drain(..at);
    }
}

/// Sample clock with a frequency error.
#[derive(Clone, Debug)]
struct Clock {
    /// Input samples per output sample.
    step: f64,
    /// Time of the next output, in samples after the first input of the history, minus [`HALF`].
    next: f64,
    history: Parts,
}

impl Clock {
    fn new(drift_ppm: f64) -> Clock {
        let mut history = Parts::default();
        history.resize(HALF - 1);
        Clock { step: 1.0 + drift_ppm * 1e-6, next: 0.0, history }
    }

    fn push(&mut self, samples: &[Complex32], out: &mut Vec<Complex32>) {
        self.history.extend(samples);
        loop {
            let whole = libm::floor(self.next);
            let first = whole as usize;
            if first + 2 * HALF + STILL > self.history.len() {
                self.history.forget(first);
                self.next -= whole;
                return;
            }
            // Over [`STILL`] samples the fraction is nearly constant.
            let fraction = self.next - whole;
            let taps: [f32; 2 * HALF] = std::array::from_fn(|tap| {
                lowpass(tap as f64 + 1.0 - HALF as f64 - fraction, 1.0, HALF as f64) as f32
            });
            out.extend((first..first + STILL).map(|first| self.history.dot(first, &taps)));
            self.next += STILL as f64 * self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: u64 = 5_760_000;

    fn tone(hz: f64, count: usize) -> Vec<Complex32> {
        let turn = std::f64::consts::TAU * hz / RATE_HZ as f64;
        (0..count)
            .map(|n| Complex32::new(libm::cos(turn * n as f64) as f32, libm::sin(turn * n as f64) as f32))
            .collect()
    }

    fn received(conditions: Conditions, samples: &[Complex32]) -> Vec<Complex32> {
        let mut impair = Impair::new(conditions, 1, &Streams::new(5));
        let mut out = Vec::new();
        for part in samples.chunks(1000) {
            impair.push(&[part.to_vec()], &mut out);
        }
        assert!(out.len() + 200 > samples.len(), "{} of {} samples came", out.len(), samples.len());
        out
    }

    fn power(samples: &[Complex32]) -> f32 {
        samples.iter().map(Complex32::norm_sqr).sum::<f32>() / samples.len() as f32
    }

    #[test]
    fn perfect_conditions_only_turn_the_phase() {
        let sent = tone(1e6, 20_000);
        let got = received(Conditions::perfect(RATE_HZ as f64), &sent);
        let phase = got[500] / sent[500];
        assert!((phase.norm() - 1.0).abs() < 1e-3);
        let worst = got
            .iter()
            .zip(&sent)
            .skip(100)
            .map(|(got, sent)| (got - sent * phase).norm())
            .fold(0.0, f32::max);
        assert!(worst < 2e-3, "{worst}");
    }

    #[test]
    fn offsets_are_as_large_as_they_say() {
        let sent = tone(1e6, 400_000);
        let conditions =
            Conditions { cfo_hz: 3000.0, drift_ppm: 20.0, ..Conditions::perfect(RATE_HZ as f64) };
        let got = received(conditions, &sent);
        // A slow clock measures a higher frequency.
        let expected = tone(1e6 * (1.0 + 20e-6) + 3000.0, got.len());
        let early: Complex32 = (1000..2000).map(|n| got[n] * expected[n].conj()).sum();
        let late: Complex32 = (300_000..301_000).map(|n| got[n] * expected[n].conj()).sum();
        assert!((early * late.conj()).arg().abs() < 0.05, "{}", (early * late.conj()).arg());
        assert!(late.norm() > 995.0);
    }

    #[test]
    fn fading_keeps_power_in_the_mean_and_moves_with_doppler() {
        let sent = tone(0.0, 1_500_000);
        for profile in [DelayProfile::Epa, DelayProfile::Eva, DelayProfile::Etu] {
            let conditions = Conditions { profile, doppler_hz: 300.0, ..Conditions::perfect(RATE_HZ as f64) };
            let got = received(conditions, &sent);
            let mean = power(&got[1000..]);
            assert!((0.6..1.5).contains(&mean), "{profile:?}: {mean}");
            // Correlation over 0.5 ms: J0(2π · 300 · 0.0005) = 0.79.
            let lag = RATE_HZ as usize / 2000;
            let kept: Complex32 = (1000..got.len() - lag).map(|n| got[n].conj() * got[n + lag]).sum();
            let kept = kept.re / (got.len() - lag - 1000) as f32 / mean;
            assert!((0.5..0.97).contains(&kept), "{profile:?}: {kept}");
        }
    }

    #[test]
    fn noise_has_the_power_asked_for_and_clipping_cuts() {
        let power_of_noise = noise_power(3.0, 384, 0.02);
        let conditions = Conditions {
            noise_power: power_of_noise,
            dc: Complex32::new(0.5, 0.0),
            clip: 0.6,
            ..Conditions::perfect(RATE_HZ as f64)
        };
        let got = received(conditions, &vec![Complex32::default(); 50_000]);
        assert!(got.iter().all(|sample| sample.re <= 0.6 && sample.im.abs() <= 0.6));
        let of_imaginary = got.iter().map(|sample| sample.im * sample.im).sum::<f32>() / got.len() as f32;
        assert!((f64::from(of_imaginary) * 2.0 / power_of_noise - 1.0).abs() < 0.05);
    }
}
