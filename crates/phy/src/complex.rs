//! Phases, phasors and correlations of complex samples.

use num_complex::{Complex32, Complex64};

/// Phase of a complex number, in radians.
pub(crate) fn angle(of: Complex32) -> f64 {
    libm::atan2(f64::from(of.im), f64::from(of.re))
}

/// Removes a carrier offset of `turns` cycles per sample from `samples`.
pub(crate) fn turn_back(samples: &mut [Complex32], turns: f64) {
    let mut phasors = Vec::new();
    phasors_back(turns, samples.len(), &mut phasors);
    for (sample, phasor) in samples.iter_mut().zip(&phasors) {
        *sample *= phasor;
    }
}

/// Computes the phasors that remove a carrier offset of `turns` cycles per sample from `count` samples.
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

/// Unit phasor with a phase of `turns` cycles.
pub(crate) fn phasor(turns: f64) -> Complex64 {
    let angle = std::f64::consts::TAU * (turns - libm::floor(turns));
    Complex64::new(libm::cos(angle), libm::sin(angle))
}

/// Sum of conj(`a`) · `b` over the shorter length of the two. Four independent lanes accumulate in parallel, so that no
/// addition waits for the previous one.
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
