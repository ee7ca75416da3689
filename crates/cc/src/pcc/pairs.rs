//! Randomised controlled trials: pairs of a slightly higher and a slightly lower rate. Each pair is in random order, so
//! that changes of the path favour neither rate.
//!
//! Source: Dong et al., NSDI 2015, §3.2 (decision making)

use airpace_core::Rng;

/// Maximum number of pairs in a series.
pub const MAX_PAIRS: usize = 3;

/// A series of trials and the results available.
#[derive(Clone, Copy, Debug)]
pub struct Pairs {
    /// Relative difference between the rate of a trial and the base rate.
    epsilon: f64,
    pairs: usize,
    /// Whether the higher rate of a pair is first.
    higher_first: [bool; MAX_PAIRS],
    /// Number of trials started.
    begun: usize,
    utility: [Option<f64>; 2 * MAX_PAIRS],
}

/// The result of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Votes {
    /// Number of pairs whose higher rate had the higher utility.
    pub higher: usize,
    /// Number of pairs whose lower rate had the higher utility.
    pub lower: usize,
}

impl Pairs {
    /// A new series of 1 to [`MAX_PAIRS`] pairs.
    pub fn new(rng: &mut Rng, pairs: usize, epsilon: f64) -> Pairs {
        let mut higher_first = [false; MAX_PAIRS];
        higher_first.iter_mut().take(pairs).for_each(|first| *first = rng.chance(0.5));
        Pairs { epsilon, pairs, higher_first, begun: 0, utility: [None; 2 * MAX_PAIRS] }
    }

    /// The next trial, as its index and the factor of the rate; `None` when all have started.
    pub fn begin(&mut self) -> Option<(u8, f64)> {
        if self.begun == 2 * self.pairs {
            return None;
        }
        let place = self.begun;
        self.begun += 1;
        let sign = if self.is_higher(place) { 1.0 } else { -1.0 };
        Some((place as u8, 1.0 + sign * self.epsilon))
    }

    /// Processes a trial's utility. Returns the votes once all utilities are known.
    pub fn learn(&mut self, place: u8, utility: f64) -> Option<Votes> {
        if let Some(slot) = self.utility.get_mut(usize::from(place)) {
            *slot = Some(utility);
        }
        let mut votes = Votes { higher: 0, lower: 0 };
        for pair in 0..self.pairs {
            let (higher, lower) = self.pair(pair)?;
            votes.higher += usize::from(higher > lower);
            votes.lower += usize::from(lower > higher);
        }
        Some(votes)
    }

    /// The mean utility of the trials with the higher rate, and the mean utility of the trials with the lower rate,
    /// over the pairs for which `agree` holds.
    pub fn means(&self, agree: impl Fn(f64, f64) -> bool) -> Option<(f64, f64)> {
        let mut sums = (0.0, 0.0);
        let mut count = 0.0;
        for pair in 0..self.pairs {
            let (higher, lower) = self.pair(pair)?;
            if agree(higher, lower) {
                sums = (sums.0 + higher, sums.1 + lower);
                count += 1.0;
            }
        }
        (count > 0.0).then(|| (sums.0 / count, sums.1 / count))
    }

    /// The number of trials in the series.
    pub fn trials(&self) -> usize {
        2 * self.pairs
    }

    /// Relative difference between the rate of a trial and the base rate.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn is_higher(&self, place: usize) -> bool {
        self.higher_first[place / 2] == place.is_multiple_of(2)
    }

    /// The utilities of one pair: first the utility of the higher rate.
    fn pair(&self, pair: usize) -> Option<(f64, f64)> {
        let (first, second) = (self.utility[2 * pair]?, self.utility[2 * pair + 1]?);
        Some(if self.higher_first[pair] { (first, second) } else { (second, first) })
    }
}
