//! Forecasts of the link's deliveries in the next eight ticks: a cautious forecast, and a forecast by a moving average.

use super::model::{BINS, Kernel, Motion};

/// Number of ticks that a forecast covers.
///
/// Source: Sprout §3.3
pub const HORIZONS: usize = 8;

/// Packets that the link delivers within 1 … 8 ticks.
pub type Forecast = [u16; HORIZONS];

/// Maximum packet count per tick. Larger counts have the same effect.
///
/// Source: keithw/sprout src/sprout/receiver.hh
const MAX_PER_TICK: usize = 30;

/// The tables of the cautious forecast: for each rate and horizon, the probability that at most a given number of
/// packets is delivered.
///
/// For each tick, the distribution of the packet count is averaged over the rates to which the present rate may have
/// moved by that tick. The counts of several ticks are added as if they were independent.
///
/// Source: Sprout §3.3; keithw/sprout src/sprout/processforecaster.cc
#[derive(Clone, Debug)]
pub struct Cautious {
    quantile: f64,
    horizons: Vec<Horizon>,
}

/// The table of one horizon. A horizon is a number of ticks from now.
#[derive(Clone, Debug)]
struct Horizon {
    /// Probability of at most `count` packets, `BINS` numbers per count, for counts up to the forecast of the highest
    /// rate, which is the maximum forecast.
    at_most: Vec<f32>,
}

impl Cautious {
    /// Prepares forecasts that come true with a probability of one minus `quantile`.
    pub fn new(motion: Motion, quantile: f64) -> Cautious {
        let ticks = counts_per_tick(motion);
        let highest = cumulative(&ticks, BINS - 1, usize::MAX);
        let reached = |counts: &[f64]| quantile_of(counts, quantile).unwrap_or(counts.len() - 1);
        let limits: Vec<usize> = highest.iter().map(|counts| reached(counts)).collect();
        let most = limits[HORIZONS - 1];
        let mut horizons: Vec<Horizon> =
            limits.iter().map(|limit| Horizon { at_most: vec![0.0; (limit + 1) * BINS] }).collect();
        for bin in 0..BINS {
            for (horizon, counts) in horizons.iter_mut().zip(cumulative(&ticks, bin, most)) {
                let mut sum = 0.0;
                for (row, probability) in horizon.at_most.chunks_exact_mut(BINS).zip(counts) {
                    sum += probability;
                    row[bin] = sum as f32;
                }
            }
        }
        Cautious { quantile, horizons }
    }

    /// The forecast, given the probability of each rate.
    pub fn forecast(&self, probabilities: &[f64; BINS]) -> Forecast {
        let mut counts = [0; HORIZONS];
        // Deliveries only grow, so each horizon's search starts where the last one ended.
        let mut low = 0;
        for (count, horizon) in counts.iter_mut().zip(&self.horizons) {
            let mut high = horizon.at_most.len() / BINS - 1;
            while low < high {
                let middle = (low + high) / 2;
                if mixed(probabilities, &horizon.at_most[middle * BINS..][..BINS]) >= self.quantile {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            low = high;
            *count = low as u16;
        }
        counts
    }
}

/// A moving average of the packets per tick.
///
/// Source: Sprout §5.3 (Sprout-EWMA)
#[derive(Clone, Copy, Debug, Default)]
pub struct Ewma {
    /// Mean number of packets per tick.
    rate: f64,
}

impl Ewma {
    /// Weight of the newest tick.
    ///
    /// Source: keithw/sprout src/sprout/receiver.cc
    const GAIN: f64 = 1.0 / 8.0;

    /// Processes the packets of a tick.
    pub fn observe(&mut self, packets: f64) {
        self.rate = (1.0 - Ewma::GAIN) * self.rate + Ewma::GAIN * packets;
    }

    /// The forecast if the link continues at the same rate.
    pub fn forecast(&self) -> Forecast {
        // The cast with `as` maps values above the range to the maximum.
        std::array::from_fn(|index| (self.rate * (index + 1) as f64) as u16)
    }

    /// Mean number of packets per tick.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Mean number of packets per second.
    pub fn mean_rate(&self) -> f64 {
        self.rate / super::model::TICK.as_secs_f64()
    }
}

/// For each tick ahead and for each present bin of the rate, the probabilities of 0 … 30 packets in that tick.
fn counts_per_tick(motion: Motion) -> Vec<Vec<f64>> {
    let kernel = Kernel::new(motion);
    let width = MAX_PER_TICK + 1;
    let mut counts = Vec::with_capacity(BINS * width);
    for bin in 0..BINS {
        let mean = motion.mean_count(bin);
        let mut probability = libm::exp(-mean);
        let mut rest = 1.0;
        for count in 0..MAX_PER_TICK {
            counts.push(probability);
            rest -= probability;
            probability *= mean / (count + 1) as f64;
        }
        counts.push(rest.max(0.0));
    }
    let mut ticks = vec![counts];
    for tick in 1..HORIZONS {
        let mut later = kernel.backward(&ticks[tick - 1], width);
        // The probabilities are scaled so that their sum is one, because some motions change the sum.
        for row in later.chunks_exact_mut(width) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|probability| *probability /= sum);
        }
        ticks.push(later);
    }
    ticks
}

/// For each horizon, the probabilities of 0, 1, …, `most` packets in all ticks up to the horizon.
fn cumulative(ticks: &[Vec<f64>], bin: usize, most: usize) -> Vec<Vec<f64>> {
    let width = MAX_PER_TICK + 1;
    let mut sums = vec![];
    let mut sum = vec![1.0];
    for tick in ticks {
        let counts = &tick[bin * width..(bin + 1) * width];
        let mut next = vec![0.0; (sum.len() + MAX_PER_TICK).min(most.saturating_add(1))];
        for (before, probability) in sum.iter().enumerate() {
            for (slot, count) in next[before.min(most)..].iter_mut().zip(counts) {
                *slot += probability * count;
            }
        }
        sums.push(next.clone());
        sum = next;
    }
    sums
}

/// The smallest count whose cumulative probability is at least `quantile`.
fn quantile_of(counts: &[f64], quantile: f64) -> Option<usize> {
    let mut sum = 0.0;
    counts.iter().position(|probability| {
        sum += probability;
        sum >= quantile
    })
}

/// The mean of `values`, weighted with `probabilities`. It is computed as eight partial sums, so that the order of
/// additions is the same on any machine.
fn mixed(probabilities: &[f64; BINS], values: &[f32]) -> f64 {
    let mut lanes = [0.0; 8];
    for (probabilities, values) in probabilities.chunks_exact(8).zip(values.chunks_exact(8)) {
        for lane in 0..8 {
            lanes[lane] += probabilities[lane] * f64::from(values[lane]);
        }
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::super::model::{Model, Outage};
    use super::*;

    const PAPER: Motion = Motion { sigma: 200.0, outage: Outage::Kept };

    fn learned(count: u32, motion: Motion) -> Model {
        let mut model = Model::new(motion);
        for _ in 0..50 {
            model.evolve();
            model.observe(count);
        }
        model
    }

    #[test]
    fn forecasts_of_the_paper() {
        let cautious = Cautious::new(PAPER, 0.05);
        let told = [0, 1, 3, 10, 20].map(|count| {
            format!("{count:2} per tick: {:?}", cautious.forecast(learned(count, PAPER).probabilities()))
        });
        let uniform = cautious.forecast(Model::new(PAPER).probabilities());
        insta::assert_snapshot!(format!("unknown    : {uniform:?}\n{}", told.join("\n")), @r"
        unknown    : [1, 1, 3, 4, 5, 6, 7, 8]
         0 per tick: [0, 0, 0, 0, 0, 0, 0, 0]
         1 per tick: [0, 0, 0, 0, 1, 1, 2, 2]
         3 per tick: [0, 2, 3, 5, 7, 8, 10, 12]
        10 per tick: [5, 12, 20, 27, 35, 43, 51, 59]
        20 per tick: [12, 28, 44, 60, 77, 94, 110, 127]
        ");
    }

    /// The search must find the same forecast as the definition: the complete distribution of every horizon, averaged
    /// over the probabilities of the rates and summed from the count 0 on.
    #[test]
    fn the_search_finds_what_adding_up_finds() {
        for motion in [PAPER, Motion { sigma: 400.0, outage: Outage::Discounted }] {
            let ticks = counts_per_tick(motion);
            let cautious = Cautious::new(motion, 0.05);
            for count in [0, 2, 7, 15, 25] {
                let model = learned(count, motion);
                let mut mixed = vec![vec![0.0; HORIZONS * MAX_PER_TICK + 1]; HORIZONS];
                for (bin, weight) in model.probabilities().iter().enumerate() {
                    for (sum, counts) in mixed.iter_mut().zip(cumulative(&ticks, bin, usize::MAX)) {
                        for (slot, probability) in sum.iter_mut().zip(counts) {
                            *slot += weight * probability;
                        }
                    }
                }
                let expected: Vec<u16> =
                    mixed.iter().map(|counts| quantile_of(counts, 0.05).unwrap() as u16).collect();
                assert_eq!(cautious.forecast(model.probabilities()).to_vec(), expected, "{count} per tick");
            }
        }
    }

    #[test]
    fn more_confidence_is_more_caution_and_the_average_has_none() {
        let model = learned(10, PAPER);
        let within_100_ms = |quantile: f64| Cautious::new(PAPER, quantile).forecast(model.probabilities())[4];
        assert!(within_100_ms(0.01) < within_100_ms(0.05) && within_100_ms(0.05) < within_100_ms(0.5));
        assert!((48..=50).contains(&within_100_ms(0.5)), "the median is about ten per tick");
        let mut ewma = Ewma::default();
        (0..100).for_each(|_| ewma.observe(10.0));
        assert_eq!(ewma.forecast()[4], 49, "ten per tick, cut to whole packets");
    }
}
