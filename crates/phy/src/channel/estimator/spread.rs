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
        let others = (1.0 - (1.0 - combs[comb].older_weight) * weights.own(comb)).max(1e-3);
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
