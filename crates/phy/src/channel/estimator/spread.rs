//! How long echoes are, found by trial.

use num_complex::Complex32;

use super::Comb;
use crate::channel::wiener::{Key, SPREADS, Weights};

/// The delay spread, found by trial: of a spread and its neighbours, the one with which the other reference signals
/// around a reference signal predict it best.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The spread, as a step of [`SPREADS`].
    pub step: i32,
    /// Whether the next trial is of more spread; otherwise it is of less.
    is_up: bool,
    /// How much worse less spread and more spread predict: logarithms of ratios, averaged.
    worse: [f32; 2],
    /// Weights of less spread and of more: trials take turns, and weights take long to make.
    trials: [(Key, Weights); 2],
    smooth: Vec<Complex32>,
    sums: Vec<Complex32>,
}

/// Where trials begin: 0.8 µs. Too much spread only costs some noise, too little costs the channel.
pub const FIRST_SPREAD: i32 = 6;

impl Spread {
    /// Where trials begin, with these weights.
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

    /// Begins anew.
    pub fn restart(&mut self) {
        (self.step, self.worse) = (FIRST_SPREAD, [0.0; 2]);
    }

    /// The weights of the trial that is next.
    pub fn trial_mut(&mut self) -> &mut (Key, Weights) {
        &mut self.trials[usize::from(self.is_up)]
    }

    /// The spread that is tried next.
    pub fn trial_step(&self) -> i32 {
        let step = if self.is_up { self.step + 1 } else { self.step - 1 };
        step.clamp(*SPREADS.start(), *SPREADS.end())
    }

    /// Compares the trial with `error`, the squared error of what is used now, by reference signals `raw` of a comb. Those of
    /// `disturbed` do not count.
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
        // The part that a measurement has in its own estimate does not count.
        let others = (1.0 - (1.0 - combs[comb].older_weight) * weights.own(comb)).max(LEAST_OTHERS);
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

/// How much better another delay spread must predict, in nepers, to be taken.
const CLEARLY: f32 = 0.01;

/// The least part of an estimate that counts as of other measurements than the one that it is compared with.
///
/// Chosen: a thousandth; rounding leaves a tenth of that. Where a twentieth was the least, a clear cell's own
/// measurements passed for a delay spread that fits, and what was left for all of its noise.
pub const LEAST_OTHERS: f32 = 1e-3;

/// The sum of the squared distances of `raw` from every second of `smooth`, from number `first` on, but for the places in
/// `disturbed`; in lanes.
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
    // What is left is not negative but for rounding. (`max` would hide what is not a number.)
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

    /// Of the paths of ETU, as timing finds it.
    const MEAN_DELAY_S: f64 = 0.98e-6;

    /// Where the channel is clear and its echoes are long, an estimate is almost its own measurement, and what is left is
    /// little. It must neither pass for little noise nor for a delay spread that fits.
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
