//! Named random streams: an additional user of random numbers does not change the random numbers of other users.
//!
//! | source | a number is bound to | used for |
//! | --- | --- | --- |
//! | [`Rng`], a stream | its position in the stream | quantities drawn equally often in every run |
//! | [`Draws`] | an address from the caller | quantities whose number of draws depends on the traffic |
//!
//! If a packet arrived a millisecond later, a caller might take a number from a stream at another time, and all later
//! numbers of the stream would belong to other events. Two runs with equal starts would then diverge completely. A
//! number of [`Draws`] is bound to its event: the transport block of a subframe gets the same random number,
//! independent of the number of earlier blocks.
//!
//! The run's seed and a name form the key of every source. Transcendental functions come from `libm`. The same seed
//! gives the same numbers on any machine.

use rand_chacha::ChaCha8Rng;
/// The traits of random number generators, in the version that [`Rng::from_rand`] accepts.
pub use rand_chacha::rand_core;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// The run's seed; creates streams and draws by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Creates the streams of a run with the seed `seed`.
    pub const fn new(seed: u64) -> Streams {
        Streams { seed }
    }

    /// The stream named `name`, from its start. Names are paths: `cell.0.fading`, `flow.2.start`.
    pub fn stream(&self, name: &str) -> Rng {
        let mut key = [0; 32];
        let mut state = self.seed;
        for chunk in key.chunks_exact_mut(8) {
            state = split_mix(state ^ fnv1a(name));
            chunk.copy_from_slice(&state.to_le_bytes());
        }
        Rng { bits: ChaCha8Rng::from_seed(key) }
    }

    /// The addressed numbers named `name`. They are independent of the stream with this name.
    pub fn draws(&self, name: &str) -> Draws {
        Draws { key: split_mix(split_mix(self.seed) ^ fnv1a(name)) }
    }
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    bits: ChaCha8Rng,
}

impl Rng {
    /// The stream of the seed `seed`, for a program that needs one stream and no [`Streams`].
    pub fn seeded(seed: u64) -> Rng {
        Streams::new(seed).stream("")
    }

    /// A stream whose key consists of the next 32 bytes of the generator `source`.
    pub fn from_rand(source: &mut impl rand_core::Rng) -> Rng {
        let mut key = [0; 32];
        source.fill_bytes(&mut key);
        Rng { bits: ChaCha8Rng::from_seed(key) }
    }

    /// Returns 64 uniformly random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.bits.next_u64()
    }

    /// Returns a number that is uniform in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// Returns a number that is uniform in [low, high).
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Returns an integer that is uniform in 0..n; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        scaled(self.next_u64(), n)
    }

    /// Returns true with the probability `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Returns an exponentially distributed number with the mean `mean`.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        exponential(mean, self.uniform())
    }

    /// Returns a normally distributed number with mean 0 and standard deviation 1 (Box–Muller; the second value is
    /// discarded).
    pub fn normal(&mut self) -> f64 {
        let first = self.uniform();
        box_muller(first, self.uniform())
    }

    /// Returns a Poisson-distributed number with the mean `mean` (Knuth's product; meant for means below about 30).
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

/// Random numbers with addresses. An address is a pair of integers, for example subframe and codeword.
///
/// Numbers of different addresses are independent. An address always returns the same number, so an address must belong
/// to only one event.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: u64,
}

impl Draws {
    /// The random number at an address.
    #[inline]
    pub fn at(&self, first: u64, second: u64) -> Draw {
        Draw { bits: philox([first, second], self.key) }
    }
}

/// One random number. It can be read once, as a sample of one distribution.
#[derive(Debug)]
#[must_use]
pub struct Draw {
    bits: [u64; 2],
}

impl Draw {
    /// Returns a number that is uniform in [0, 1), with 53 random bits.
    #[inline]
    pub fn uniform(self) -> f64 {
        unit(self.bits[0])
    }

    /// Returns an integer that is uniform in 0..n; 0 if `n` is 0.
    pub fn below(self, n: u64) -> u64 {
        scaled(self.bits[0], n)
    }

    /// Returns true with the probability `probability`. A draw that is true for one probability is also true for every
    /// higher probability.
    #[inline]
    pub fn chance(self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Returns an exponentially distributed number with the mean `mean`.
    pub fn exponential(self, mean: f64) -> f64 {
        exponential(mean, self.uniform())
    }

    /// Returns a normally distributed number with mean 0 and standard deviation 1.
    pub fn normal(self) -> f64 {
        box_muller(unit(self.bits[0]), unit(self.bits[1]))
    }

    /// Returns a Poisson-distributed number with the mean `mean` (by inversion; meant for means below about 30).
    pub fn poisson(self, mean: f64) -> u32 {
        let mut rest = self.uniform();
        let mut probability = libm::exp(-mean);
        let mut count = 0;
        while rest >= probability && probability > 0.0 {
            rest -= probability;
            count += 1;
            probability *= mean / f64::from(count);
        }
        count
    }

    /// Returns addressed numbers derived from this number, for an event that needs several numbers.
    pub fn draws(self) -> Draws {
        Draws { key: self.bits[0] }
    }
}

/// Returns a number that is uniform in [0, 1), from 64 random bits.
#[inline]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Returns an integer that is uniform in 0..n, from 64 random bits.
fn scaled(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

fn exponential(mean: f64, uniform: f64) -> f64 {
    -mean * libm::log(1.0 - uniform)
}

fn box_muller(first: f64, second: f64) -> f64 {
    libm::sqrt(-2.0 * libm::log(1.0 - first)) * libm::cos(2.0 * std::f64::consts::PI * second)
}

/// Returns 128 random bits for an address: Philox 2×64 with ten rounds, a bijection of addresses for every key.
///
/// Source: Salmon, Moraes, Dror, Shaw 2011, Parallel random numbers: as easy as 1, 2, 3
#[inline]
fn philox([mut low, mut high]: [u64; 2], mut key: u64) -> [u64; 2] {
    const ROUNDS: u32 = 10;
    for _ in 0..ROUNDS {
        let product = u128::from(low) * 0xd2b7_4407_b1ce_6e93;
        low = (product >> 64) as u64 ^ key ^ high;
        high = product as u64;
        key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    [low, high]
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
    fn a_stream_needs_no_named_streams() {
        let first = |mut rng: Rng| rng.next_u64();
        assert_eq!(first(Rng::seeded(7)), first(Rng::seeded(7)));
        assert_ne!(first(Rng::seeded(7)), first(Rng::seeded(8)));
        let mut source = ChaCha8Rng::from_seed([1; 32]);
        let drawn = [first(Rng::from_rand(&mut source)), first(Rng::from_rand(&mut source))];
        assert_ne!(drawn[0], drawn[1], "each stream gets bytes of its own");
        assert_eq!(drawn[0], first(Rng::from_rand(&mut ChaCha8Rng::from_seed([1; 32]))));
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

    /// Source: Random123 kat_vectors (philox2x64, 10 rounds)
    #[test]
    fn philox_gives_the_numbers_of_its_authors() {
        let pi = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
        assert_eq!(philox([0, 0], 0), [0xca00_a045_9843_d731, 0x66c2_4222_c9a8_45b5]);
        assert_eq!(philox([u64::MAX; 2], u64::MAX), [0x65b0_21d6_0cd8_310f, 0x4d02_f322_2f86_df20]);
        assert_eq!(philox(pi, 0xa409_3822_299f_31d0), [0x0a5e_742c_2997_341c, 0xb0f8_83d3_8000_de5d]);
    }

    #[test]
    fn a_draw_belongs_to_its_address_seed_and_name() {
        let bits = |seed, name, first, second| Streams::new(seed).draws(name).at(first, second).bits;
        let one = bits(1, "errors", 7, 0);
        assert_eq!(one, bits(1, "errors", 7, 0), "an address has one number");
        let others = [
            bits(2, "errors", 7, 0),
            bits(1, "sounding", 7, 0),
            bits(1, "errors", 8, 0),
            bits(1, "errors", 7, 1),
            bits(1, "errors", 0, 7),
            Streams::new(1).draws("errors").at(7, 0).draws().at(7, 0).bits,
        ];
        assert!(!others.contains(&one), "{others:?}");
        assert_eq!(
            Streams::new(1).draws("snapshot").at(3, 1).bits,
            [15_383_817_983_160_504_367, 10_293_529_910_714_629_164],
            "the same on every machine"
        );
    }

    /// Chi-squared statistic of `counts` against a uniform distribution, as deviation from the statistic's mean in
    /// standard deviations.
    fn unevenness(counts: &[u32]) -> f64 {
        let even = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
        let chi2: f64 = counts.iter().map(|&count| (f64::from(count) - even).powi(2) / even).sum();
        let freedom = counts.len() as f64 - 1.0;
        (chi2 - freedom) / (2.0 * freedom).sqrt()
    }

    /// Pairs of uniform numbers of two adjacent events, for 200,000 events.
    fn pairs_of(neighbours: impl Fn(u64) -> [Draw; 2]) -> Vec<(f64, f64)> {
        let pair = |event| {
            let [one, other] = neighbours(event);
            (one.uniform(), other.uniform())
        };
        (0..200_000).map(pair).collect()
    }

    /// Addresses as the cell uses them: subframes in order, few codewords, and names and seeds that differ only
    /// slightly.
    #[test]
    fn draws_are_uniform_and_those_of_neighbours_are_independent() {
        let streams = Streams::new(1);
        let [phone, other, next_seed] = [
            streams.draws("cell.device.0.carrier.0.errors"),
            streams.draws("cell.device.1.carrier.0.errors"),
            Streams::new(2).draws("cell.device.0.carrier.0.errors"),
        ];
        let neighbours: Vec<(String, Vec<(f64, f64)>)> = (1..=16)
            .map(|lag| (format!("{lag} ms later"), pairs_of(|ms| [phone.at(ms, 0), phone.at(ms + lag, 0)])))
            .chain([
                ("another codeword".to_owned(), pairs_of(|ms| [phone.at(ms, 0), phone.at(ms, 1)])),
                ("addresses swapped".to_owned(), pairs_of(|ms| [phone.at(ms, 1), phone.at(1, ms)])),
                ("another phone".to_owned(), pairs_of(|ms| [phone.at(ms, 0), other.at(ms, 0)])),
                ("another seed".to_owned(), pairs_of(|ms| [phone.at(ms, 0), next_seed.at(ms, 0)])),
                ("within an event".to_owned(), {
                    pairs_of(|ms| [phone.at(ms, 0).draws().at(0, 0), phone.at(ms, 0).draws().at(0, 1)])
                }),
                ("an event and its parts".to_owned(), {
                    pairs_of(|ms| [phone.at(ms, 0), phone.at(ms, 0).draws().at(ms, 0)])
                }),
                ("events' parts".to_owned(), {
                    pairs_of(|ms| [phone.at(ms, 0).draws().at(0, 0), phone.at(ms + 1, 0).draws().at(0, 0)])
                }),
            ])
            .collect();
        for (what, pairs) in &neighbours {
            let mut single = [0; 256];
            let mut joint = [0; 1024];
            for &(one, other) in pairs {
                single[(one * 256.0) as usize] += 1;
                joint[(one * 32.0) as usize * 32 + (other * 32.0) as usize] += 1;
            }
            let count = pairs.len() as f64;
            let product: f64 = pairs.iter().map(|(one, other)| (one - 0.5) * (other - 0.5)).sum();
            let correlation = 12.0 * product / count;
            let (single, joint) = (unevenness(&single), unevenness(&joint));
            println!("{what}: {single:.2} sigma alone, {joint:.2} together, correlation {correlation:.4}");
            assert!(single.abs() < 4.0, "{what}: numbers are uneven by {single:.1} standard deviations");
            assert!(joint.abs() < 4.0, "{what}: pairs are uneven by {joint:.1} standard deviations");
            assert!(correlation.abs() * count.sqrt() < 4.0, "{what}: correlation {correlation:.4}");
        }
    }

    #[test]
    fn one_bit_of_an_address_changes_half_of_the_bits() {
        let draws = Streams::new(4).draws("avalanche");
        for bit in 0..128 {
            let flipped = 1_u128 << bit;
            let changed = |ms: u64| {
                let (one, other) =
                    (draws.at(ms, 1), draws.at(ms ^ flipped as u64, 1 ^ (flipped >> 64) as u64));
                (one.bits[0] ^ other.bits[0]).count_ones() + (one.bits[1] ^ other.bits[1]).count_ones()
            };
            let mean = f64::from((0..1000).map(changed).sum::<u32>()) / 1000.0;
            // The standard deviation of the mean number of changed bits is sqrt(128 / 4 / 1000).
            assert!((mean - 64.0).abs() < 5.0 * 0.18, "bit {bit} changes {mean} of 128 bits");
        }
    }

    #[test]
    fn moments_of_draws_are_those_of_the_distributions() {
        let draws = Streams::new(3).draws("moments");
        let n = 100_000;
        let mean = |f: &dyn Fn(Draw) -> f64| (0..n).map(|i| f(draws.at(i, 0))).sum::<f64>() / n as f64;
        assert!((mean(&|draw| draw.exponential(2.0)) - 2.0).abs() < 0.03);
        assert!(mean(&Draw::normal).abs() < 0.02);
        assert!((mean(&|draw| draw.normal().powi(2)) - 1.0).abs() < 0.02);
        assert!((mean(&|draw| draw.normal().powi(4)) - 3.0).abs() < 0.1);
        assert!((mean(&|draw| draw.below(10) as f64) - 4.5).abs() < 0.05);
        assert!((mean(&|draw| f64::from(u8::from(draw.chance(0.1)))) - 0.1).abs() < 0.005);
        for lambda in [0.0, 0.34, 20.0] {
            let first = mean(&|draw| f64::from(draw.poisson(lambda)));
            let variance = mean(&|draw| (f64::from(draw.poisson(lambda)) - lambda).powi(2));
            let tolerance = 0.02 * f64::max(lambda, 0.5);
            assert!((first - lambda).abs() < tolerance, "mean {first} of {lambda}");
            assert!((variance - lambda).abs() < 2.0 * tolerance, "variance {variance} of {lambda}");
        }
    }
}
