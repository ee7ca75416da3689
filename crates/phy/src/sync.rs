//! From unknown samples to a cell that is followed.
//!
//! | module | from | to |
//! | --- | --- | --- |
//! | [`search`] | samples at 1.92 million per second | cells: identity, prefix, duplex, timing, carrier offset |
//! | [`broadcast`] | a cell of the search | bandwidth, ports, PHICH, frame number |
//! | [`stream`] | samples as they came, around gaps | the same at the rate of an FFT, where they are needed |
//! | [`track`] | a cell that is known, samples at its own rate | subframe after subframe, as it was heard |

mod antennas;
pub mod broadcast;
mod company;
mod health;
pub(crate) mod lookout;
mod notch;
mod prefix;
mod ring;
pub mod search;
pub mod stream;
pub mod track;
mod tuning;

pub use ring::Ring;

use num_complex::{Complex32, Complex64};

/// Samples per second at which cells are searched: enough for the six PRBs in the middle that every cell has.
pub const VIEW_HZ: u64 = 1_920_000;

/// How far from the centre the search looks: enough for the synchronisation signals, the PBCH and a carrier offset.
pub const VIEW_PASSBAND_HZ: u64 = 600_000;

/// The angle of a number, in radians.
pub(crate) fn angle(of: Complex32) -> f64 {
    libm::atan2(f64::from(of.im), f64::from(of.re))
}

/// Turns `samples` back by a carrier offset of `turns` per sample.
pub(crate) fn turn_back(samples: &mut [Complex32], turns: f64) {
    let mut phasors = Vec::new();
    phasors_back(turns, samples.len(), &mut phasors);
    for (sample, phasor) in samples.iter_mut().zip(&phasors) {
        *sample *= phasor;
    }
}

/// The factors that turn `count` samples back by a carrier offset of `turns` per sample.
pub(crate) fn phasors_back(turns: f64, count: usize, out: &mut Vec<Complex32>) {
    let step = phasor(-turns);
    let mut now = Complex64::new(1.0, 0.0);
    out.clear();
    out.extend((0..count).map(|_| {
        let narrow = Complex32::new(now.re as f32, now.im as f32);
        now *= step;
        narrow
    }));
}

/// The factor that turns a number by `turns` turns.
pub(crate) fn phasor(turns: f64) -> Complex64 {
    let angle = std::f64::consts::TAU * (turns - libm::floor(turns));
    Complex64::new(libm::cos(angle), libm::sin(angle))
}

/// The sum of the products of `a`, conjugated, with `b`, over the shorter of the two. Lanes add side by side, so that
/// no addition waits for the one before.
pub(crate) fn correlate(a: &[Complex32], b: &[Complex32]) -> Complex32 {
    const LANES: usize = 4;
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (mut re, mut im) = ([0.0f32; LANES], [0.0f32; LANES]);
    let (fours_a, fours_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = fours_a.remainder().iter().zip(fours_b.remainder());
    let rest: Complex32 = rest.map(|(a, b)| a.conj() * b).sum();
    for (a, b) in fours_a.zip(fours_b) {
        for lane in 0..LANES {
            re[lane] += a[lane].re * b[lane].re + a[lane].im * b[lane].im;
            im[lane] += a[lane].re * b[lane].im - a[lane].im * b[lane].re;
        }
    }
    rest + Complex32::new(re.iter().sum(), im.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_back_undoes_a_carrier_offset() {
        let turns = 0.012_345;
        let mut samples: Vec<Complex32> = (0..2048)
            .map(|n| phasor(turns * f64::from(n)))
            .map(|value| Complex32::new(value.re as f32, value.im as f32))
            .collect();
        turn_back(&mut samples, turns);
        for sample in samples {
            assert!((sample - Complex32::new(1.0, 0.0)).norm() < 1e-4, "{sample}");
        }
    }

    #[test]
    fn lanes_add_up() {
        let a: Vec<_> = (0..11).map(|n| Complex32::new(n as f32, 1.0)).collect();
        let b: Vec<_> = (0..11).map(|n| Complex32::new(2.0, n as f32)).collect();
        for len in 0..a.len() {
            let expected: Complex32 = a[..len].iter().zip(&b).map(|(a, b)| a.conj() * b).sum();
            assert_eq!(correlate(&a[..len], &b[..len]), expected);
        }
    }
}
