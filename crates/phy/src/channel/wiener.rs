//! Wiener filter: the best linear combination of neighbouring reference signals.

use num_complex::Complex32;

/// Number of pairs of positions in an estimate. A pair is one reference signal position of the lower comb and one of
/// the upper comb, three subcarriers above it.
pub(super) const PAIRS: usize = 8;

/// Number of reference signal positions in an estimate.
const PLACES: usize = 2 * PAIRS;

/// Distance between neighbouring positions (subcarriers).
pub(super) const STEP: usize = 3;

/// Parameters of the weights, quantised on coarse scales so that the weights are seldom recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Noise over channel power of the lower and of the upper comb, in steps of 2 dB.
    noise: [i32; 2],
    /// Root-mean-square delay spread, in steps of factor √2.
    spread: i32,
}

impl Key {
    /// Creates a key from the noise relative to the channel power and a step of the delay spread.
    pub(super) fn new(noise: [f32; 2], spread: i32) -> Key {
        let step = |ratio: f32| {
            let clamped = ratio.clamp(MIN_NOISE, MAX_NOISE);
            libm::roundf(5.0 * libm::log10f(clamped)) as i32
        };
        Key { noise: noise.map(step), spread }
    }
}

/// Steps of the delay spread: from 0.1 µs (almost no echo) to 2.3 µs (more than the cyclic prefix allows).
pub(super) const SPREADS: std::ops::RangeInclusive<i32> = 0..=9;

/// Root-mean-square delay spread of a step (s).
pub(super) fn spread_s(step: i32) -> f64 {
    0.1e-6 * libm::exp2(f64::from(step) / 2.0)
}

/// Minimum ratio of noise to channel power.
///
/// Chosen: with less noise the inverse of the correlation matrix would lose its precision.
const MIN_NOISE: f32 = 1e-5;

/// Maximum ratio of noise to channel power.
///
/// Chosen: a comb with this much noise contributes nothing.
const MAX_NOISE: f32 = 1e6;

/// Weights that turn measurements at sixteen positions into the best estimate at each of these positions.
///
/// Source: O. Edfors et al., "OFDM channel estimation by singular value decomposition", IEEE Trans. Commun. 46(7), 1998, Eq. 4
///
/// Chosen: the model has echoes with exponentially decaying power on both sides of the mean delay. Only the delay
/// spread is measured.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Index: position of the estimate, then pair. Value: weights of the lower and the upper position of the pair.
    rows: [[[f32; 2]; PAIRS]; PLACES],
}

impl Weights {
    pub(super) fn new(key: Key) -> Weights {
        let spread_s = spread_s(key.spread);
        let noise = key.noise.map(|step| libm::pow(10.0, f64::from(step) / 5.0));
        let correlation = |a: usize, b: usize| {
            let turn = std::f64::consts::TAU * 15e3 * (STEP * a.abs_diff(b)) as f64 * spread_s;
            1.0 / (1.0 + turn * turn / 2.0)
        };
        let measured: [[f64; PLACES]; PLACES] = std::array::from_fn(|a| {
            std::array::from_fn(|b| correlation(a, b) + if a == b { noise[a % 2] } else { 0.0 })
        });
        let triangle = cholesky(&measured);
        let rows = std::array::from_fn(|place| {
            let weights = solve(&triangle, std::array::from_fn(|other| correlation(place, other)));
            std::array::from_fn(|pair| [weights[2 * pair] as f32, weights[2 * pair + 1] as f32])
        });
        Weights { rows }
    }

    /// Weight of a position's own measurement in an estimate in the middle of the band. This weight is also the share
    /// of the noise that remains in the estimate.
    pub(super) fn own(&self, comb: usize) -> f32 {
        let pair = Self::middle(comb);
        self.rows[2 * pair + comb][pair][comb]
    }

    /// Index of the estimate's own pair among the pairs of the filter, in the middle of the band.
    const fn middle(comb: usize) -> usize {
        PAIRS / 2 - comb
    }

    /// Computes estimates on both combs, in the order of their subcarriers. Both combs have equal lengths of at least
    /// [`PAIRS`].
    pub(super) fn apply(
        &self,
        combs: [&[Complex32]; 2],
        out: &mut Vec<Complex32>,
        sums: &mut Vec<Complex32>,
    ) {
        let count = combs[0].len();
        out.clear();
        out.resize(2 * count, Complex32::default());
        for comb in 0..2 {
            let before = Self::middle(comb);
            // While all pairs lie within the band, the estimates of a comb use one constant filter.
            let inside = count - PAIRS + 1;
            sums.clear();
            sums.resize(inside, Complex32::default());
            let weights = &self.rows[2 * before + comb];
            for (pair, &[lower, upper]) in weights.iter().enumerate() {
                let lowers = &combs[0][pair..pair + inside];
                let uppers = &combs[1][pair..pair + inside];
                for ((sum, a), b) in sums.iter_mut().zip(lowers).zip(uppers) {
                    sum.re += lower * a.re + upper * b.re;
                    sum.im += lower * a.im + upper * b.im;
                }
            }
            for (at, sum) in sums.iter().enumerate() {
                out[2 * (at + before) + comb] = *sum;
            }
            let edges = (0..before).map(|at| (at, 0));
            let edges = edges.chain((before + inside..count).map(|at| (at, count - PAIRS)));
            for (at, first) in edges {
                let weights = &self.rows[2 * (at - first) + comb];
                out[2 * at + comb] = weights
                    .iter()
                    .enumerate()
                    .map(|(pair, [lower, upper])| {
                        combs[0][first + pair] * lower + combs[1][first + pair] * upper
                    })
                    .sum();
            }
        }
    }
}

/// Lower triangle L of a positive matrix L·Lᵀ.
fn cholesky(of: &[[f64; PLACES]; PLACES]) -> [[f64; PLACES]; PLACES] {
    let mut l = [[0.0; PLACES]; PLACES];
    for i in 0..PLACES {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] =
                if i == j { libm::sqrt((of[i][i] - sum).max(1e-12)) } else { (of[i][j] - sum) / l[j][j] };
        }
    }
    l
}

/// Solves L·Lᵀ·x = b.
fn solve(l: &[[f64; PLACES]; PLACES], mut b: [f64; PLACES]) -> [f64; PLACES] {
    for i in 0..PLACES {
        let sum: f64 = (0..i).map(|k| l[i][k] * b[k]).sum();
        b[i] = (b[i] - sum) / l[i][i];
    }
    for i in (0..PLACES).rev() {
        let sum: f64 = (i + 1..PLACES).map(|k| l[k][i] * b[k]).sum();
        b[i] = (b[i] - sum) / l[i][i];
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_channel_is_kept_and_noise_is_averaged() {
        for count in [PAIRS, 12, 50] {
            let flat = vec![Complex32::new(0.6, -0.8); count];
            let weights = Weights::new(Key::new([1e-3, 1e-3], 0));
            let (mut out, mut sums) = (Vec::new(), Vec::new());
            weights.apply([&flat, &flat], &mut out, &mut sums);
            assert_eq!(out.len(), 2 * count);
            for value in out {
                assert!((value - flat[0]).norm() < 5e-3, "{value}");
            }
        }
        let calm = Weights::new(Key::new([1.0, 1.0], 0));
        assert!(calm.own(0) < 0.12 && calm.own(1) < 0.12, "{} {}", calm.own(0), calm.own(1));
        let steep = Weights::new(Key::new([0.01, 0.01], 9));
        assert!(steep.own(0) > 0.4, "{}", steep.own(0));
    }

    #[test]
    fn a_comb_that_is_missing_is_made_from_the_other() {
        let count = 20;
        // A delay of 0.5 µs.
        let channel = |k: usize| {
            let turn = -std::f32::consts::TAU * 15e3 * 0.5e-6 * k as f32;
            Complex32::new(turn.cos(), turn.sin())
        };
        let lower: Vec<_> = (0..count).map(|i| channel(2 * STEP * i)).collect();
        let silent = vec![Complex32::default(); count];
        let weights = Weights::new(Key::new([1e-4, 1e9], 5));
        let (mut out, mut sums) = (Vec::new(), Vec::new());
        weights.apply([&lower, &silent], &mut out, &mut sums);
        for (at, value) in out.iter().enumerate().take(2 * count - 1) {
            assert!((value - channel(STEP * at)).norm() < 0.05, "place {at}: {value}");
        }
    }
}
