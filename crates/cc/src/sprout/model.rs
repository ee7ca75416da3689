//! The receiver's estimate of the link's rate: a probability for each of 256 rates.
//!
//! Source: Sprout §3.1, §3.2

use std::time::Duration;

/// Length of a tick.
///
/// Source: Sprout §3.2 (τ)
pub const TICK: Duration = Duration::from_millis(20);

/// Number of rates in the model.
///
/// Source: Sprout §3.1
pub const BINS: usize = 256;

/// The highest rate of the model, packets per second.
///
/// Source: Sprout §3.1
const MAX_RATE: f64 = 1_000.0;

/// Width of a bin, packets per second. A bin stands for the rate at its middle.
///
/// Chosen: the paper does not specify the position of the rate within its bin. The program uses the middle too, except
/// for the lowest bin ([`Outage::Discounted`]).
const WIDTH: f64 = MAX_RATE / BINS as f64;

/// Rate (1/s) of the random process that ends an outage. An outage lasts one second on average.
///
/// Source: Sprout §3.1 (λz)
const OUTAGE_ESCAPE: f64 = 1.0;

/// Maximum number of packets per tick that is counted: twice the delivery of the highest rate. Larger counts have the
/// same effect.
const MAX_COUNTED: u32 = 2 * (MAX_RATE as u32 / 50);

/// Maximum number of standard deviations by which the rate moves in one tick. The probability of larger moves is added
/// to the probability of this move.
///
/// Source: keithw/sprout src/sprout/process.cc
const REACH_SIGMAS: f64 = 5.0;

/// Number of ticks that the program's model has processed when the first packet arrives.
///
/// Source: keithw/sprout src/util/timestamp.cc (its clock begins at one second, and the model at zero)
const TICKS_BEFORE: usize = 49;

/// Motion of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// Standard deviation of the rate's change in one second, in packets per second. The rate follows a Brownian
    /// motion.
    ///
    /// Source: Sprout §3.1 (σ)
    pub sigma: f64,
    /// Motion of the lowest rate.
    pub outage: Outage,
}

/// How an outage, which is the lowest rate, continues or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// The outage continues with probability `exp(−λz τ)` per tick; otherwise the rate moves up.
    ///
    /// Source: Sprout §3.1
    Kept,
    /// Brownian motion in which the outage continues with weight `exp(−λz τ)` and the rate moves up with weight `1 −
    /// exp(−λz τ)`. The weights do not sum to one, so all probabilities are scaled afterwards. Half of the outage's
    /// probability goes to all other rates in each tick. The lowest bin stands for the rate zero: one packet shows that
    /// there is no outage.
    ///
    /// Source: keithw/sprout src/sprout/process.cc, src/sprout/sampledfunction.hh
    Discounted,
}

impl Motion {
    /// Mean number of packets that the rate of bin `bin` delivers in a tick.
    pub fn mean_count(&self, bin: usize) -> f64 {
        let middle = if self.outage == Outage::Discounted && bin == 0 { 0.0 } else { bin as f64 + 0.5 };
        middle * WIDTH * TICK.as_secs_f64()
    }
}

/// The motion of the rate in one tick, as weights of the moves from a bin to its neighbours.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Weights of moving by −reach … +reach bins.
    weights: Vec<f64>,
    reach: usize,
    /// Weight of an outage that continues.
    stays: f64,
    /// Factor for the weights of leaving an outage.
    leaves: f64,
    /// Weights of moving from an outage up by 1 … reach bins.
    up: Vec<f64>,
}

impl Kernel {
    /// Computes the weights for one tick of `motion`.
    pub fn new(motion: Motion) -> Kernel {
        let deviation = motion.sigma * libm::sqrt(TICK.as_secs_f64()) / WIDTH;
        let reach = (libm::ceil(REACH_SIGMAS * deviation) as usize).clamp(1, BINS - 1);
        // Probability that the rate ends less than `bins` bins above the middle of its initial bin.
        let below = |bins: f64| 0.5 * libm::erfc(-bins / (deviation * std::f64::consts::SQRT_2));
        let weights: Vec<f64> = (0..=2 * reach)
            .map(|index| {
                let bins = index as f64 - reach as f64;
                let low = if index == 0 { 0.0 } else { below(bins - 0.5) };
                let high = if index == 2 * reach { 1.0 } else { below(bins + 0.5) };
                high - low
            })
            .collect();
        let goes_on = libm::exp(-OUTAGE_ESCAPE * TICK.as_secs_f64());
        let (stays, leaves, up) = match motion.outage {
            Outage::Kept => {
                let up = weights[reach + 1..].to_vec();
                (goes_on, (1.0 - goes_on) / up.iter().sum::<f64>(), up)
            }
            // Here the outage is the rate zero, which is the lower edge of the lowest bin, not the middle.
            Outage::Discounted => {
                let up = (1..=reach).map(|bin| below(bin as f64 + 1.0) - below(bin as f64)).collect();
                (goes_on * below(1.0), 1.0 - goes_on, up)
            }
        };
        Kernel { weights, reach, stays, leaves, up }
    }

    /// Computes the probabilities after a tick from the probabilities `from` before it. A move beyond the range of
    /// rates ends at the edge of the range.
    fn forward(&self, from: &[f64; BINS], padded: &mut [f64], to: &mut [f64; BINS]) {
        let reach = self.reach;
        padded.fill(0.0);
        for (bin, &probability) in from.iter().enumerate().skip(1) {
            for (slot, weight) in padded[bin..].iter_mut().zip(&self.weights) {
                *slot += probability * weight;
            }
        }
        to.copy_from_slice(&padded[reach..reach + BINS]);
        to[0] += padded[..reach].iter().sum::<f64>() + from[0] * self.stays;
        to[BINS - 1] += padded[reach + BINS..].iter().sum::<f64>();
        for (slot, weight) in to[1..].iter_mut().zip(&self.up) {
            *slot += from[0] * self.leaves * weight;
        }
    }

    /// The expected value of `values` a tick later, for each starting bin. `values` has one row of `width` per bin.
    pub fn backward(&self, values: &[f64], width: usize) -> Vec<f64> {
        let row = |bin: usize| &values[bin * width..(bin + 1) * width];
        let mut expected = vec![0.0; BINS * width];
        for (bin, out) in expected.chunks_exact_mut(width).enumerate() {
            let mut add = |weight: f64, row: &[f64]| {
                for (slot, value) in out.iter_mut().zip(row) {
                    *slot += weight * value;
                }
            };
            if bin == 0 {
                add(self.stays, row(0));
                for (index, weight) in self.up.iter().enumerate() {
                    add(self.leaves * weight, row((index + 1).min(BINS - 1)));
                }
                continue;
            }
            for (index, &weight) in self.weights.iter().enumerate() {
                add(weight, row((bin + index).saturating_sub(self.reach).min(BINS - 1)));
            }
        }
        expected
    }
}

/// The probabilities of the rates.
#[derive(Clone, Debug)]
pub struct Model {
    kernel: Kernel,
    probabilities: [f64; BINS],
    /// Mean number of packets per tick of each bin.
    means: [f64; BINS],
    /// Logarithm of `means`.
    log_means: [f64; BINS],
    /// Memory for intermediate results.
    padded: Vec<f64>,
}

impl Model {
    /// The initial model, in which all rates are equally likely.
    ///
    /// Source: Sprout §3.2
    pub fn new(motion: Motion) -> Model {
        let kernel = Kernel::new(motion);
        let means = std::array::from_fn(|bin| motion.mean_count(bin));
        let mut model = Model {
            padded: vec![0.0; BINS + 2 * kernel.reach],
            kernel,
            probabilities: [1.0 / BINS as f64; BINS],
            means,
            // A count of zero at the rate zero has the likelihood one.
            log_means: means.map(|mean| libm::log(mean).max(f64::MIN)),
        };
        if motion.outage == Outage::Discounted {
            (0..TICKS_BEFORE).for_each(|_| model.evolve());
        }
        model
    }

    /// Advances the model by a tick, in which the rate moves.
    ///
    /// Source: Sprout §3.2
    pub fn evolve(&mut self) {
        let from = self.probabilities;
        self.kernel.forward(&from, &mut self.padded, &mut self.probabilities);
        normalize(&mut self.probabilities);
    }

    /// Processes the arrival of `count` packets in the tick, by Bayes' rule with a Poisson process.
    ///
    /// Source: Sprout §3.2
    pub fn observe(&mut self, count: u32) {
        let count = f64::from(count);
        let (means, log_means) = (&self.means, &self.log_means);
        let log_likelihood = |bin: usize| count * log_means[bin] - means[bin];
        // Likelihoods are computed relative to the most likely bin, so that they do not underflow for any count.
        let likeliest = libm::floor(count / (WIDTH * TICK.as_secs_f64())).min((BINS - 1) as f64) as usize;
        let scale = log_likelihood(likeliest);
        for (bin, probability) in self.probabilities.iter_mut().enumerate() {
            *probability *= libm::exp(log_likelihood(bin) - scale);
        }
        normalize(&mut self.probabilities);
    }

    /// Updates the model with a tick in which at least `count` packets could have arrived.
    pub fn observe_at_least(&mut self, count: u32) {
        for (bin, probability) in self.probabilities.iter_mut().enumerate() {
            let mean = self.means[bin];
            let mut of_fewer = libm::exp(-mean);
            let mut at_least = 1.0;
            for fewer in 0..count.min(MAX_COUNTED) {
                at_least -= of_fewer;
                of_fewer *= mean / f64::from(fewer + 1);
            }
            // After many subtractions from one, the remaining probability can be as low as the rounding error, so it
            // has a minimum.
            *probability *= at_least.max(f64::EPSILON);
        }
        normalize(&mut self.probabilities);
    }

    /// Probability of each bin.
    pub fn probabilities(&self) -> &[f64; BINS] {
        &self.probabilities
    }

    /// The mean rate, packets per second.
    pub fn mean_rate(&self) -> f64 {
        let per_tick: f64 = self.probabilities.iter().enumerate().map(|(bin, p)| p * self.means[bin]).sum();
        per_tick / TICK.as_secs_f64()
    }

    /// Probability that the link is in an outage.
    pub fn outage_probability(&self) -> f64 {
        self.probabilities[0]
    }
}

/// Makes probabilities sum to one.
///
/// Chosen: if all rates were excluded, the estimate restarts. The program would divide by zero.
fn normalize(probabilities: &mut [f64; BINS]) {
    let sum: f64 = probabilities.iter().sum();
    if sum.is_normal() {
        probabilities.iter_mut().for_each(|probability| *probability /= sum);
    } else {
        *probabilities = [1.0 / BINS as f64; BINS];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: Motion = Motion { sigma: 200.0, outage: Outage::Kept };

    fn deviation(model: &Model) -> f64 {
        let mean = model.mean_rate() * TICK.as_secs_f64();
        let variance: f64 = model
            .probabilities
            .iter()
            .enumerate()
            .map(|(bin, p)| p * (model.means[bin] - mean) * (model.means[bin] - mean))
            .sum();
        libm::sqrt(variance) / TICK.as_secs_f64()
    }

    /// A model in which one rate has the probability one.
    fn certain(bin: usize, motion: Motion) -> Model {
        let mut model = Model::new(motion);
        model.probabilities = [0.0; BINS];
        model.probabilities[bin] = 1.0;
        model
    }

    #[test]
    fn a_known_rate_wanders_by_sigma_in_a_second() {
        let mut model = certain(128, Motion { sigma: 50.0, ..PAPER });
        for _ in 0..50 {
            model.evolve();
        }
        // The width of the bins adds a variance of width²/12 per tick.
        assert!((deviation(&model) / 50.0 - 1.0).abs() < 0.02, "{} packets/s", deviation(&model));
        assert!((model.mean_rate() - 502.0).abs() < 1.0);
    }

    #[test]
    fn probability_is_neither_made_nor_lost_at_the_edges() {
        let model = Model::new(PAPER);
        let mut moved = [0.0; BINS];
        let mut padded = vec![0.0; BINS + 2 * model.kernel.reach];
        model.kernel.forward(model.probabilities(), &mut padded, &mut moved);
        assert!((moved.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let ones = model.kernel.backward(&[1.0; BINS], 1);
        assert!(ones.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "both directions are the same motion");
    }

    #[test]
    fn an_outage_ends_after_a_second_on_average() {
        let mut model = certain(0, PAPER);
        model.evolve();
        assert!((model.outage_probability() - libm::exp(-0.02)).abs() < 1e-12);
        let mut program = certain(0, Motion { outage: Outage::Discounted, ..PAPER });
        program.evolve();
        assert!(
            (program.outage_probability() - 0.98).abs() < 0.005,
            "the program's outage lasts as long if it is certain at first"
        );
    }

    #[test]
    fn observations_find_the_rate() {
        let mut model = Model::new(PAPER);
        for _ in 0..50 {
            model.evolve();
            model.observe(10);
        }
        assert!(
            (model.mean_rate() - 500.0).abs() < 15.0,
            "ten per tick are {} per second",
            model.mean_rate()
        );
        assert!(deviation(&model) < 80.0);
        model.evolve();
        model.observe(u32::MAX);
        assert!(model.mean_rate() > 700.0, "a count beyond the model is its highest rate");
    }

    #[test]
    fn at_least_so_many_excludes_lower_rates_only() {
        let mut model = Model::new(PAPER);
        model.observe_at_least(0);
        assert_eq!(
            model.probabilities,
            Model::new(PAPER).probabilities,
            "at least zero packets says nothing"
        );
        for _ in 0..50 {
            model.evolve();
            model.observe_at_least(5);
        }
        let (below, above): (Vec<_>, Vec<_>) = (0..BINS).partition(|bin| PAPER.mean_count(*bin) < 4.0);
        let mass = |bins: Vec<usize>| bins.iter().map(|bin| model.probabilities[*bin]).sum::<f64>();
        assert!(
            mass(below) < 0.05 && mass(above) > 0.95,
            "at least five per tick means at least 250 per second"
        );
        assert!(model.mean_rate() > 500.0, "any higher rate is possible");
        model.observe_at_least(u32::MAX);
        assert!(model.mean_rate() > 700.0, "a count beyond the model is its highest rate");
    }

    #[test]
    fn nothing_for_a_while_is_an_outage_and_a_burst_ends_it() {
        let mut model = Model::new(PAPER);
        for count in [10; 20].into_iter().chain([0; 20]) {
            model.evolve();
            model.observe(count);
        }
        assert!(model.outage_probability() > 0.9, "{}", model.outage_probability());
        for _ in 0..5 {
            model.evolve();
            model.observe(10);
        }
        assert!(model.outage_probability() < 1e-6 && model.mean_rate() > 300.0);
    }

    #[test]
    fn one_packet_ends_the_programs_outage() {
        let after_a_packet = |outage: Outage| {
            let mut model = Model::new(Motion { sigma: 200.0, outage });
            (0..50).for_each(|_| {
                model.evolve();
                model.observe(0);
            });
            assert!(model.outage_probability() > 0.3);
            model.observe(1);
            model.outage_probability()
        };
        assert!(after_a_packet(Outage::Kept) > 0.05, "in the paper's, the lowest rate is not quite zero");
        assert_eq!(after_a_packet(Outage::Discounted), 0.0);
    }

    #[test]
    fn the_impossible_makes_a_new_belief_instead_of_a_nan() {
        let mut model = certain(0, PAPER);
        model.observe(u32::MAX);
        assert!((model.mean_rate() - 500.0).abs() < 1.0, "any rate is as likely as any other");
    }
}
