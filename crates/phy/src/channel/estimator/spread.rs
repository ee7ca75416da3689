//! Delay spread of the channel, estimated by trial.

use num_complex::Complex32;

use super::Comb;
use crate::channel::wiener::{Key, SPREADS, Weights};

/// Estimate of the delay spread by trial. Among a spread and its two neighbours on the scale, the estimate is the
/// spread with the best prediction of each reference signal from the reference signals around it.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The spread, as a step of [`SPREADS`].
    pub step: i32,
    /// Whether the next trial uses a larger spread; otherwise it uses a smaller spread.
    is_up: bool,
    /// Increase of the prediction error with a smaller and with a larger spread: averaged logarithm of the error ratio.
    worse: [f32; 2],
    /// Filter weights for the smaller and for the larger spread. Trials alternate, and weights take long to compute.
    trials: [(Key, Weights); 2],
    smooth: Vec<Complex32>,
    sums: Vec<Complex32>,
}

/// Initial step of the delay spread: 0.8 µs. Too large a spread only costs some noise; too small a spread distorts the
/// channel.
pub const FIRST_SPREAD: i32 = 6;

impl Spread {
    /// Creates the state at the initial step, with these weights.
    pub fn new(trial: (Key, Weights)) -> Spread {
        Spread {
            step: FIRST_SPREAD,
            is_up: false,
            worse: [0.0; 2],
            trials: [trial.clone(), trial],
            smooth: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Resets the spread to the initial step.
    pub fn restart(&mut self) {
        (self.step, self.worse) = (FIRST_SPREAD, [0.0; 2]);
    }

    /// Weights of the next trial.
    pub fn trial_mut(&mut self) -> &mut (Key, Weights) {
        &mut self.trials[usize::from(self.is_up)]
    }

    /// Step of the next trial.
    pub fn trial_step(&self) -> i32 {
        let step = if self.is_up { self.step + 1 } else { self.step - 1 };
        step.clamp(*SPREADS.start(), *SPREADS.end())
    }

    /// Compares the trial with `error`, the squared error of the current spread, on reference signals `raw` of a comb.
    /// Places in `disturbed` are excluded.
    pub fn compare(
        &mut self,
        raw: &[Complex32],
        combs: &[Comb; 2],
        comb: usize,
        disturbed: &[usize],
        error: f32,
    ) {
        let side = usize::from(self.is_up);
        let (step, weights) = (self.trial_step(), &self.trials[side].1);
        self.is_up = !self.is_up;
        if step == self.step || error <= 0.0 {
            return;
        }
        weights.apply([&combs[0].gains, &combs[1].gains], &mut self.smooth, &mut self.sums);
        // Exclude the part of an estimate that comes from its own measurement.
        let others = (1.0 - (1.0 - combs[comb].older_weight) * weights.own(comb)).max(MIN_OTHERS);
        let trial = distance(raw, &self.smooth, comb, disturbed) / (others * others);
        let worse = libm::logf(trial.max(f32::MIN_POSITIVE) / error);
        if worse.is_finite() {
            self.worse[side] += 0.2 * (worse - self.worse[side]);
        }
        if self.worse[side] < -CLEARLY {
            self.step = step;
            self.worse = [0.0; 2];
        }
    }
}

/// Minimum improvement of the prediction error for a change of the delay spread (nepers).
const CLEARLY: f32 = 0.01;

/// Minimum share of an estimate that counts as coming from other measurements.
///
/// Chosen: a thousandth; rounding errors are a tenth of that. A minimum of 0.05 is too large at a high SNR: an estimate
/// consists almost only of its own measurement, so the residual is small, and the decoder mistakes it for low noise and
/// for a fitting delay spread.
pub const MIN_OTHERS: f32 = 1e-3;

/// Sum of the squared distances between `raw` and every second value of `smooth`, starting at index `first`. Places in
/// `disturbed` are excluded. Summed in four lanes.
pub fn distance(raw: &[Complex32], smooth: &[Complex32], first: usize, disturbed: &[usize]) -> f32 {
    let mut lanes = [0.0f32; 4];
    for (four, eight) in raw.chunks_exact(4).zip(smooth.chunks_exact(8)) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += (four[lane] - eight[2 * lane + first]).norm_sqr();
        }
    }
    let of = |at: usize| (raw[at] - smooth[2 * at + first]).norm_sqr();
    let all = lanes.iter().sum::<f32>() + (raw.len() / 4 * 4..raw.len()).map(of).sum::<f32>();
    let left_out: f32 = disturbed.iter().map(|at| of(*at)).sum();
    // The difference can be negative only by rounding. (`max` would hide NaN.)
    let left = all - left_out;
    if left < 0.0 { 0.0 } else { left }
}

#[cfg(test)]
mod tests {
    use super::super::Estimator;
    use super::*;
    use crate::grid::Grid;
    use crate::impair::DelayProfile;
    use crate::sequence::crs;
    use crate::{Bandwidth, Cell, CyclicPrefix, PhichDuration, PhichResource, Ports};
    use airpace_core::Streams;

    /// Mean delay of the ETU paths: the timing estimate converges to this delay.
    const MEAN_DELAY_S: f64 = 0.98e-6;

    /// At a high SNR with long echoes, an estimate consists almost only of its own measurement, and the residual is
    /// small. This residual must pass neither for low noise nor for a fitting delay spread.
    #[test]
    fn a_clear_cell_with_long_echoes_keeps_its_noise() {
        let cell = Cell {
            pci: 7,
            bandwidth: Bandwidth::from_prbs(100).expect("a bandwidth of LTE"),
            ports: Ports::One,
            cp: CyclicPrefix::Normal,
            phich_duration: PhichDuration::Normal,
            phich_resource: PhichResource::One,
        };
        let noise = 5e-4_f32;
        for seed in 1..5 {
            let mut rng = Streams::new(seed).stream("phy.spread");
            let taps: Vec<_> = DelayProfile::Etu
                .taps()
                .iter()
                .map(|(delay_ns, power_db)| {
                    let amplitude = libm::pow(10.0, power_db / 20.0) / 2.0;
                    let gain = Complex32::new(rng.normal() as f32, rng.normal() as f32) * amplitude as f32;
                    (delay_ns * 1e-9 - MEAN_DELAY_S, rng.range(-20.0, 20.0), gain)
                })
                .collect();
            let mut estimator = Estimator::new(&cell);
            let (mut told, mut grid) = (Vec::new(), Grid::new(&cell));
            for index in 0..600 {
                let number = index % 10;
                for symbol in [4, 0] {
                    let time_s = 1e-3 * (index as f64 + symbol as f64 / 14.0);
                    let pilots = crs::pilots(&cell, 0, number, symbol).expect("reference signals");
                    for (at, value) in pilots.values.iter().enumerate() {
                        let subcarrier = pilots.first + at * crs::Pilots::SPACING;
                        let gain = taps.iter().map(|&(delay_s, moves_hz, gain)| {
                            let turns = moves_hz * time_s - 15e3 * subcarrier as f64 * delay_s;
                            gain * Complex32::cis((std::f64::consts::TAU * turns.fract()) as f32)
                        });
                        let mut part = || (0.5 * noise).sqrt() * rng.normal() as f32;
                        let disturbed = gain.sum::<Complex32>() * value + Complex32::new(part(), part());
                        grid.symbol_mut(symbol)[subcarrier] = disturbed;
                    }
                }
                estimator.begin();
                [4, 0].into_iter().for_each(|symbol| estimator.add(number, symbol, &grid));
                told.push(estimator.finish(number).noise() / noise);
            }
            let last = &told[200..];
            let mean = last.iter().sum::<f32>() / last.len() as f32;
            println!("{seed}: noise {mean} times what it is, spread {} s", estimator.spread_s());
            assert!((0.3..5.0).contains(&mean), "seed {seed}: {mean} times the noise");
        }
    }
}
