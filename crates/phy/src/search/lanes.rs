//! Viterbi decoder for many words in parallel, one word per lane of a SIMD vector.
//!
//! Soft values have four bits and a sign. Metrics have eight bits and saturate: a path whose metric is so far below the
//! best metric that it saturates cannot become the best path later. Otherwise this decoder is equal to
//! [`coding::Viterbi`](crate::coding::Viterbi). The loss compared with that decoder is a few hundredths of a decibel,
//! and the parallel decoder takes half the time of a decoder with 16-bit metrics. The code consists of loops over
//! arrays, which the compiler turns into the vector instructions of the processor.

use pulp::{Arch, Simd, WithSimd};

use crate::coding::viterbi::{Decoded, RUNWAY, SIGNS, STATES};
use crate::coding::{MAX_WORD_BITS, RateMatcher};
use crate::modulation::Soft;

/// Number of words that are decoded in parallel.
pub const LANES: usize = 32;

/// One value for each word.
pub type Lane = [i8; LANES];

/// Maximum magnitude of a soft value (`LOUDEST`), and the value to which the mean magnitude is scaled (`TYPICAL`).
///
/// Chosen: a step of the soft values is one eighth of the typical value; the confidence saturates at nearly twice the
/// typical value.
const LOUDEST: i16 = 15;
const TYPICAL: u32 = 8;

/// Number of steps between renormalisations, which raise the best metric to the maximum. One step reduces the best
/// metric by at most 90, and by about three for a word in noise.
const RENORMALISE: usize = 8;

/// Number of states whose decisions are stored in one byte.
const PER_BYTE: usize = 8;

/// For each lane: whether each state came from its odd predecessor, eight states per byte.
type Decisions = [[u8; LANES]; STATES / PER_BYTE];

/// Decoder. Words may differ in length: all lanes process the length of the longest word.
#[derive(Clone, Debug)]
pub struct Lanes {
    arch: Arch,
    /// Word length of each lane (bits).
    lens: [usize; LANES],
    /// Soft values of each step. [`Lanes::set`] writes the first repetition of a word, and [`Lanes::decode`] writes the
    /// other repetitions.
    steps: Vec<[Lane; 3]>,
    decisions: Vec<Decisions>,
}

impl Default for Lanes {
    fn default() -> Self {
        let steps = RUNWAY + MAX_WORD_BITS + RUNWAY;
        Lanes {
            arch: Arch::new(),
            lens: [0; LANES],
            steps: vec![[[0; LANES]; 3]; steps],
            decisions: vec![[[0; LANES]; STATES / PER_BYTE]; steps - RUNWAY],
        }
    }
}

impl Lanes {
    /// Writes the received soft values of a word into a lane (below [`LANES`]); positive values mean 0. Values of
    /// repeated coded bits are added. Only the ratios of the values matter.
    pub fn set(&mut self, lane: usize, matcher: &RateMatcher, soft: &[Soft]) {
        self.lens[lane] = matcher.word_bits();
        self.arch.dispatch(Set { steps: &mut self.steps, lane, matcher, soft });
    }

    /// Decodes the words in the first `count` lanes.
    pub fn decode(&mut self, count: usize) -> [Decoded; LANES] {
        let turns = self.turns(count);
        let arch = turns.arch;
        arch.dispatch(turns)
    }

    fn turns(&mut self, count: usize) -> Turns<'_> {
        let mut lens = [0; LANES];
        let used = &self.lens[..count.min(LANES)];
        lens[..used.len()].copy_from_slice(used);
        let longest = used.iter().copied().max().unwrap_or(0);
        let steps = &mut self.steps[..RUNWAY + longest + RUNWAY];
        Turns { arch: self.arch, steps, lens, decisions: &mut self.decisions }
    }
}

/// Offset between steps and bits of a word of `len` bits, modulo `len`. With this offset, the runway ends where the
/// word starts.
#[inline(always)]
fn lead(len: usize) -> usize {
    RUNWAY % len.max(1)
}

/// Writes the soft values of a word into its lane.
struct Set<'a> {
    steps: &'a mut [[Lane; 3]],
    lane: usize,
    matcher: &'a RateMatcher,
    soft: &'a [Soft],
}

impl WithSimd for Set<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let places = self.matcher.places();
        let mut sums = [0i16; 3 * MAX_WORD_BITS];
        let sums = &mut sums[..places.len()];
        for turn in self.soft.chunks(places.len().max(1)) {
            for (sum, soft) in sums.iter_mut().zip(turn) {
                *sum = sum.saturating_add(*soft);
            }
        }
        let scale = Scale::of(sums);
        let mut few_bits = [0i8; 3 * MAX_WORD_BITS];
        for (few_bits, sum) in few_bits.iter_mut().zip(&*sums) {
            *few_bits = scale.few_bits(*sum);
        }
        let (steps, ahead) = (self.steps.as_flattened_mut(), 3 * lead(self.matcher.word_bits()));
        for (place, value) in places.iter().zip(few_bits) {
            let at = usize::from(*place) + ahead;
            steps[if at < places.len() { at } else { at - places.len() }][self.lane] = value;
        }
    }
}

/// Conversion of the soft values of a word to four bits and a sign.
#[derive(Clone, Copy)]
struct Scale {
    /// Magnitude at which the confidence saturates.
    limit: i16,
    /// Shifts that bring the mean magnitude to 256…511. One of the two is zero.
    left: u32,
    right: u32,
    /// Factor after the shifts, in units of 2^−15.
    factor: i16,
}

impl Scale {
    #[inline(always)]
    fn of(values: &[i16]) -> Scale {
        // Bits that were not transmitted must not affect the mean of the other bits.
        let sent: u32 = values.iter().map(|value| u32::from(*value != 0)).sum();
        let sum: u32 = values.iter().map(|value| u32::from(value.unsigned_abs())).sum();
        let mean = sum.div_ceil(sent.max(1)).max(1);
        let magnitude = mean.ilog2();
        let (left, right) = (8u32.saturating_sub(magnitude), magnitude.saturating_sub(8));
        Scale {
            limit: i16::try_from(2 * mean).unwrap_or(i16::MAX),
            left,
            right,
            factor: ((TYPICAL << 15) * sent / (sum << left >> right).max(1)) as i16,
        }
    }

    /// Returns the value, scaled and rounded.
    #[inline(always)]
    fn few_bits(self, value: i16) -> i8 {
        let value = value.clamp(-self.limit, self.limit) << self.left >> self.right;
        let scaled = ((i32::from(value) * i32::from(self.factor) + (1 << 14)) >> 15) as i16;
        scaled.clamp(-LOUDEST, LOUDEST) as i8
    }
}

/// Parameters of a decoding run, independent of the processor's vector instructions.
struct Turns<'a> {
    arch: Arch,
    steps: &'a mut [[Lane; 3]],
    lens: [usize; LANES],
    decisions: &'a mut [Decisions],
}

/// Fills all repetitions of the word after the first: each repetition is a copy of the previous one. Words of the same
/// length are processed together.
#[inline(always)]
fn go_round(steps: &mut [[Lane; 3]], lens: &[usize; LANES]) {
    let mut done = 0;
    while let Some(len) = lens.iter().copied().filter(|len| *len > done).min() {
        let is_new: [i8; LANES] = lanes(|lane| -i8::from(lens[lane] == len));
        for at in len..steps.len() {
            let before = steps[at - len];
            for (now, before) in steps[at].iter_mut().zip(&before) {
                *now = lanes(|lane| before[lane] & is_new[lane] | now[lane] & !is_new[lane]);
            }
        }
        done = len;
    }
}

impl WithSimd for Turns<'_> {
    type Output = [Decoded; LANES];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        go_round(self.steps, &self.lens);
        let mut metrics = [[[i8::MAX; LANES]; STATES]; 2];
        for (at, step) in self.steps.iter().enumerate() {
            let [even, odd] = &mut metrics;
            let (old, new) = if at % 2 == 0 { (even, odd) } else { (odd, even) };
            if at % RENORMALISE == 0 {
                let best = old.iter().fold(old[0], |best, metric| lanes(|lane| best[lane].max(metric[lane])));
                let more: Lane = lanes(|lane| i8::MAX.saturating_sub(best[lane]));
                for metric in old.iter_mut() {
                    *metric = lanes(|lane| metric[lane].saturating_add(more[lane]));
                }
            }
            let decisions = butterflies(step, old, new);
            if let Some(at) = at.checked_sub(RUNWAY) {
                self.decisions[at] = decisions;
            }
        }
        let end = self.steps.len() - RUNWAY;
        trace_back(&self.decisions[..end], &self.lens, &metrics[self.steps.len() % 2])
    }
}

/// One step of the trellis in all lanes.
#[inline(always)]
fn butterflies(step: &[Lane; 3], old: &[Lane; STATES], new: &mut [Lane; STATES]) -> Decisions {
    // Branch metrics of the eight outputs, relative to the maximum, which is the sum of the magnitudes. Output `7 ^
    // pattern` is the complement of output `pattern`.
    let heard: Lane = lanes(|lane| step[0][lane].abs() + step[1][lane].abs() + step[2][lane].abs());
    let mut costs = [[0i8; LANES]; 8];
    for (pattern, cost) in costs.iter_mut().enumerate() {
        let sign = |stream: usize| if pattern >> stream & 1 == 1 { -1 } else { 1 };
        *cost = lanes(|lane| {
            sign(0) * step[0][lane] + sign(1) * step[1][lane] + sign(2) * step[2][lane] - heard[lane]
        });
    }
    let mut decisions = [[0u8; LANES]; STATES / PER_BYTE];
    for block in 0..STATES / 2 / PER_BYTE {
        // The decisions of a block stay in registers until all of its butterflies are done. The decision of the last
        // butterfly is in the highest bit.
        let (mut of_zero, mut of_one) = ([0u8; LANES], [0u8; LANES]);
        for half in (block * PER_BYTE..(block + 1) * PER_BYTE).rev() {
            let (zero, one) = (&costs[PATTERNS[half]], &costs[7 ^ PATTERNS[half]]);
            let (even, odd) = (&old[2 * half], &old[2 * half + 1]);
            let zero_even: Lane = lanes(|lane| even[lane].saturating_add(zero[lane]));
            let zero_odd: Lane = lanes(|lane| odd[lane].saturating_add(one[lane]));
            let one_even: Lane = lanes(|lane| even[lane].saturating_add(one[lane]));
            let one_odd: Lane = lanes(|lane| odd[lane].saturating_add(zero[lane]));
            new[half] = lanes(|lane| zero_even[lane].max(zero_odd[lane]));
            new[half + STATES / 2] = lanes(|lane| one_even[lane].max(one_odd[lane]));
            of_zero = lanes(|lane| of_zero[lane] << 1 | u8::from(zero_odd[lane] > zero_even[lane]));
            of_one = lanes(|lane| of_one[lane] << 1 | u8::from(one_odd[lane] > one_even[lane]));
        }
        decisions[block] = of_zero;
        decisions[block + STATES / 2 / PER_BYTE] = of_one;
    }
    decisions
}

/// For each butterfly: bit mask of the streams with a minus sign.
static PATTERNS: [usize; STATES / 2] = {
    let mut patterns = [0; STATES / 2];
    let mut half = 0;
    while half < STATES / 2 {
        let mut stream = 0;
        while stream < 3 {
            if SIGNS[half][stream] < 0 {
                patterns[half] |= 1 << stream;
            }
            stream += 1;
        }
        half += 1;
    }
    patterns
};

/// Traces the decisions of all lanes back from their best final states through their words.
#[inline(always)]
fn trace_back(decisions: &[Decisions], lens: &[usize; LANES], metrics: &[Lane; STATES]) -> [Decoded; LANES] {
    let mut best = [0u8; LANES];
    let mut largest = metrics[0];
    for (state, metric) in metrics.iter().enumerate().skip(1) {
        // The last of several equal metrics wins, as in the scalar decoder.
        best = lanes(|lane| if metric[lane] >= largest[lane] { state as u8 } else { best[lane] });
        largest = lanes(|lane| largest[lane].max(metric[lane]));
    }
    let longest = lens.iter().copied().max().unwrap_or(0);
    let mut states = best;
    let mut last = states;
    // Newest bit of the state after each step.
    let mut newest = [[0u8; LANES]; MAX_WORD_BITS];
    for (at, decisions) in decisions.iter().enumerate().rev() {
        if at < longest {
            last = lanes(|lane| if at + 1 == lens[lane] { states[lane] } else { last[lane] });
            newest[at] = lanes(|lane| states[lane] / (STATES / 2) as u8);
        }
        let odd = odd_predecessors(decisions, &states);
        states = lanes(|lane| states[lane] % (STATES / 2) as u8 * 2 + odd[lane]);
    }
    std::array::from_fn(|lane| {
        let bits = newest[..lens[lane]].iter().map(|step| u128::from(step[lane]));
        Decoded { word: bits.fold(0, |word, bit| word << 1 | bit), bites: states[lane] == last[lane] }
    })
}

/// For each lane's state: 1 if it came from its odd predecessor, otherwise 0.
///
/// Chosen: vector instructions neither look up a byte nor shift by a different number in each lane. So the index of
/// every byte of decisions is compared with the state, and the shift is done in three fixed steps.
#[inline(always)]
fn odd_predecessors(decisions: &Decisions, states: &[u8; LANES]) -> [u8; LANES] {
    let mut eight = [0u8; LANES];
    for (at, of_group) in decisions.iter().enumerate() {
        let is_there = lanes(|lane| all_ones_if(states[lane] / PER_BYTE as u8 == at as u8));
        eight = lanes(|lane| eight[lane] | of_group[lane] & is_there[lane]);
    }
    for places in [4u8, 2, 1] {
        let is_higher = lanes(|lane| all_ones_if(states[lane] & places != 0));
        eight = lanes(|lane| eight[lane] >> places & is_higher[lane] | eight[lane] & !is_higher[lane]);
    }
    lanes(|lane| eight[lane] & 1)
}

#[inline(always)]
fn all_ones_if(condition: bool) -> u8 {
    u8::from(condition).wrapping_neg()
}

/// Computes one value for each lane.
#[inline(always)]
fn lanes<T: Copy + Default>(of: impl Fn(usize) -> T) -> [T; LANES] {
    let mut all = [T::default(); LANES];
    for (lane, value) in all.iter_mut().enumerate() {
        *value = of(lane);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding::viterbi::before;
    use crate::coding::{Codeword, Viterbi};
    use airpace_core::{Rng, Streams};

    /// Reference decoder in scalar code: one word and one value at a time.
    fn plain(word: &[[i16; 3]], longest: usize) -> Decoded {
        let len = word.len();
        if len == 0 {
            return Decoded { word: 0, bites: true };
        }
        let scale = Scale::of(word.as_flattened());
        let mut metrics = [i8::MAX; STATES];
        let mut decisions = Vec::new();
        let around = word.iter().cycle().skip((len - RUNWAY % len) % len).take(RUNWAY + longest + RUNWAY);
        for (at, step) in around.enumerate() {
            if at % RENORMALISE == 0 {
                let best = metrics.iter().copied().max().expect("states");
                let more = i8::MAX.saturating_sub(best);
                metrics = metrics.map(|metric| metric.saturating_add(more));
            }
            let step = step.map(|value| scale.few_bits(value));
            let old = metrics;
            let mut decision = 0u64;
            for state in 0..STATES {
                // A change of the newest bit inverts all outputs, and so does a change of the oldest bit.
                let newest = if state < STATES / 2 { 1 } else { -1 };
                let [even, odd] = [1, -1].map(|oldest: i8| {
                    let signs = SIGNS[state % (STATES / 2)].map(|sign| sign as i8 * newest * oldest);
                    let cost = |at: usize| signs[at] * step[at] - step[at].abs();
                    let from = 2 * (state % (STATES / 2)) + usize::from(oldest < 0);
                    old[from].saturating_add(cost(0) + cost(1) + cost(2))
                });
                metrics[state] = even.max(odd);
                decision |= u64::from(odd > even) << state;
            }
            decisions.push(decision);
        }
        let mut state = (0..STATES).max_by_key(|&state| metrics[state]).expect("states");
        let (mut bits, mut last) = (0u128, state);
        for at in (0..longest + RUNWAY).rev() {
            // The bits of the word are read after the first runway.
            if at < len {
                last = if at + 1 == len { state } else { last };
                bits |= u128::from(state >= STATES / 2) << (len - 1 - at);
            }
            state = before(state, decisions[RUNWAY + at] >> state);
        }
        Decoded { word: bits, bites: state == last }
    }

    fn noise(rng: &mut Rng, len: usize, loudest: u64) -> Vec<[i16; 3]> {
        let mut value = || (rng.below(2 * loudest + 1) as i32 - loudest as i32) as i16;
        (0..len).map(|_| std::array::from_fn(|_| value())).collect()
    }

    /// Writes a word with three soft values per bit into a lane, as if each coded bit had been received once.
    fn set(lanes: &mut Lanes, lane: usize, word: &[[i16; 3]]) {
        let matcher = RateMatcher::new(word.len());
        let soft: Vec<Soft> =
            matcher.places().iter().map(|place| word.as_flattened()[usize::from(*place)]).collect();
        lanes.set(lane, &matcher, &soft);
    }

    #[test]
    fn values_are_scaled_by_their_mean() {
        let mut rng = Streams::new(9).stream("phy.lanes");
        for loudest in [1, 2, 30, 255, 2000, 32_767] {
            let values: Vec<i16> = noise(&mut rng, 44, loudest).into_iter().flatten().collect();
            let sent = values.iter().filter(|value| **value != 0).count() as f64;
            let mean = values.iter().map(|value| f64::from(*value).abs()).sum::<f64>() / sent;
            let scale = Scale::of(&values);
            for value in values {
                let exact = (f64::from(value) / mean * f64::from(TYPICAL)).clamp(-15.0, 15.0);
                let off = (f64::from(scale.few_bits(value)) - exact).abs();
                assert!(off < 0.57, "{value} of up to {loudest}: {exact}");
            }
        }
        assert_eq!(Scale::of(&[0; 9]).few_bits(0), 0);
    }

    /// Repeated soft values are added, for any number of repetitions. Bits that were not transmitted have no effect.
    #[test]
    fn repeated_values_are_added() {
        let mut rng = Streams::new(10).stream("phy.lanes");
        let (mut lanes, mut steps, mut sent) = (Lanes::default(), Vec::new(), Vec::new());
        let mut longest = 0;
        for lane in 0..LANES {
            let matcher = RateMatcher::new([44, 24, 67, 48][rng.below(4) as usize]);
            let bits = 24 << rng.below(4);
            let soft: Vec<Soft> = noise(&mut rng, bits, 80).into_iter().flatten().collect();
            lanes.set(lane, &matcher, &soft);
            let mut sums = vec![[0i16; 3]; matcher.word_bits()];
            for (at, soft) in soft.iter().enumerate() {
                let place = usize::from(matcher.places()[at % matcher.places().len()]);
                sums.as_flattened_mut()[place] += soft;
            }
            longest = longest.max(sums.len());
            sent.push(soft.len() < 3 * sums.len());
            steps.push(sums);
        }
        assert!(sent.contains(&true) && sent.contains(&false), "both more and less than a turn");
        let expected: Vec<Decoded> = steps.iter().map(|steps| plain(steps, longest)).collect();
        assert_eq!(lanes.decode(LANES).to_vec(), expected);
    }

    #[test]
    fn every_lane_decodes_as_plain_numbers_do() {
        let mut rng = Streams::new(3).stream("phy.lanes");
        let mut lanes = Lanes::default();
        for count in [0, 1, 5, LANES] {
            for loudest in [1, 40, 255, 4000] {
                let mut words = vec![];
                for lane in 0..count {
                    let len = [44, 7, 24, 38, 67, 48, 128, 1][rng.below(8) as usize];
                    words.push(noise(&mut rng, len, loudest));
                    set(&mut lanes, lane, &words[lane]);
                }
                let all = lanes.decode(count);
                let longest = words.iter().map(Vec::len).max().unwrap_or(0);
                for (lane, word) in words.iter().enumerate() {
                    assert_eq!(all[lane], plain(word, longest), "lane {lane} up to {loudest}");
                }
                let without_vectors = lanes.turns(count).with_simd(pulp::Scalar::new());
                assert_eq!(all, without_vectors);
            }
        }
    }

    /// A decoder with eight-bit metrics loses hardly more words than a decoder with sixteen bits, at a noise level at
    /// which one in twenty words is lost.
    #[test]
    fn few_bits_lose_hardly_a_word() {
        let mut rng = Streams::new(7).stream("phy.lanes");
        let (mut lanes, mut scalar) = (Lanes::default(), Viterbi::default());
        let (mut lost, mut lost_by_scalar, len) = (0, 0, 44);
        for _ in 0..100 {
            let sent: Vec<u128> = (0..LANES).map(|_| u128::from(rng.next_u64()) & ((1 << len) - 1)).collect();
            for (lane, &word) in sent.iter().enumerate() {
                let coded = Codeword::encode(word, len);
                let mut heard = |bit: u8| {
                    let value = 1.0 - 2.0 * f64::from(bit) + 1.02 * rng.normal();
                    (80.0 * value).clamp(-255.0, 255.0) as i16
                };
                let heard: Vec<[i16; 3]> = coded.steps().iter().map(|step| step.map(&mut heard)).collect();
                set(&mut lanes, lane, &heard);
                lost_by_scalar += u32::from(scalar.decode(&heard).word != word);
            }
            let decoded = lanes.decode(LANES);
            lost += decoded
                .iter()
                .zip(&sent)
                .map(|(decoded, &word)| u32::from(decoded.word != word))
                .sum::<u32>();
        }
        println!("{lost} of 3200 words are lost, {lost_by_scalar} with sixteen bits");
        assert!((60..400).contains(&lost_by_scalar), "{lost_by_scalar}");
        assert!(lost <= lost_by_scalar + lost_by_scalar / 8, "{lost} against {lost_by_scalar}");
    }

    #[test]
    fn lanes_that_are_not_used_say_nothing() {
        let mut lanes = Lanes::default();
        set(&mut lanes, 0, &[[100; 3]; 40]);
        assert_eq!(lanes.decode(1)[0], Decoded { word: 0, bites: true });
        assert_eq!(lanes.decode(0)[5].word, 0);
    }
}
