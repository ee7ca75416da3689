//! Named streams of random numbers: if a user is added, the random numbers of the others stay the same.
//!
//! Every stream is ChaCha8, keyed by the run's seed and the stream's name. Transcendental functions come from `libm`.
//! The same seed gives the same numbers on any machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// The run's seed, from which every stream is made by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of a run with this seed.
    pub const fn new(seed: u64) -> Streams {
        Streams { seed }
    }

    /// The stream called `name`, from its beginning. Names are paths: `cell.0.fading`, `flow.2.start`.
    pub fn stream(&self, name: &str) -> Rng {
        let mut key = [0; 32];
        let mut state = self.seed;
        for chunk in key.chunks_exact_mut(8) {
            state = split_mix(state ^ fnv1a(name));
            chunk.copy_from_slice(&state.to_le_bytes());
        }
        Rng { bits: ChaCha8Rng::from_seed(key) }
    }
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    bits: ChaCha8Rng,
}

impl Rng {
    /// 64 uniformly random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.bits.next_u64()
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [low, high).
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform in 0..n; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Normal with mean 0 and standard deviation 1 (Box–Muller; the second value is not kept).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// Poisson with this mean (Knuth's product; meant for means below about 30).
    pub fn poisson(&mut self, mean: f64) -> u32 {
        let limit = libm::exp(-mean);
        let mut product = self.uniform();
        let mut count = 0;
        while product > limit {
            product *= self.uniform();
            count += 1;
        }
        count
    }

    /// Puts `items` into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_and_seed_give_the_same_numbers() {
        let mut a = Streams::new(7).stream("cell.0.fading");
        let mut b = Streams::new(7).stream("cell.0.fading");
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(Streams::new(7).stream("cell.1.fading").next_u64(), a.next_u64());
        assert_ne!(Streams::new(8).stream("cell.0.fading").next_u64(), a.next_u64());
    }

    #[test]
    fn the_bits_never_change_between_machines_or_versions() {
        let mut rng = Streams::new(1).stream("snapshot");
        let seen: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(seen, [13_003_426_129_503_022_643, 4_434_248_013_337_487_449, 2_472_909_498_359_009_079]);
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut rng = Streams::new(3).stream("moments");
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || rng.exponential(2.0)) - 2.0).abs() < 0.03);
        assert!(mean(&mut || rng.normal()).abs() < 0.02);
        assert!((mean(&mut || rng.normal() * rng.normal()) - 0.0).abs() < 0.02);
        assert!((mean(&mut || f64::from(rng.poisson(0.34))) - 0.34).abs() < 0.01);
        assert!((mean(&mut || rng.below(10) as f64) - 4.5).abs() < 0.05);
    }
}
