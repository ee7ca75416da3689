//! Many words through the trellis, side by side in the lanes of a vector.
//!
//! Soft values have four bits and a sign. Metrics have eight bits and saturate: a path so far behind the best that its
//! metric does not fit never catches up. Against [`coding::Viterbi`](crate::coding::Viterbi), to which this decoder is
//! otherwise equal, it loses a few hundredths of a decibel, and it takes half of the time that sixteen bits take. It is
//! written as loops over arrays, which the compiler turns into the vectors that the processor has.

use pulp::{Arch, Simd, WithSimd};

use crate::coding::MAX_WORD_BITS;
use crate::coding::viterbi::{Decoded, RUNWAY, SIGNS, STATES, before};

/// Words that are decoded side by side.
pub const LANES: usize = 32;

/// One value of each word.
pub type Lane = [i8; LANES];

/// The largest soft value, and the value to which their mean is scaled.
///
/// Chosen: steps of an eighth of a typical value; a value nearly twice as large counts as fully sure.
const LOUDEST: f32 = 15.0;
const TYPICAL: f32 = 8.0;

/// After this many steps, the best metric is raised to the largest number. A step takes at most 90 from the best
/// metric, and about three from that of a word in noise.
const RENORMALISE: usize = 8;

/// States whose decisions lie in one number.
const PER_BYTE: usize = 8;

/// Which states came from their odd predecessor, eight in each number, in each lane.
type Decisions = [[u8; LANES]; STATES / PER_BYTE];

/// The decoder. Words may differ in length: every lane runs as long as the longest word.
#[derive(Clone, Debug)]
pub struct Lanes {
    arch: Arch,
    words: [Vec<[i16; 3]>; LANES],
    steps: Vec<[Lane; 3]>,
    decisions: Vec<Decisions>,
}

impl Default for Lanes {
    fn default() -> Self {
        let steps = RUNWAY + MAX_WORD_BITS + RUNWAY;
        Lanes {
            arch: Arch::new(),
            words: Default::default(),
            steps: vec![[[0; LANES]; 3]; steps],
            decisions: vec![[[0; LANES]; STATES / PER_BYTE]; steps - RUNWAY],
        }
    }
}

impl Lanes {
    /// The place for the soft values of a lane's word: three per bit, positive for 0, 1…128 bits.
    pub fn word(&mut self, lane: usize) -> &mut Vec<[i16; 3]> {
        &mut self.words[lane]
    }

    /// Decodes the words of the first `count` lanes. Longer ones are cut. Only ratios of a word's soft values matter.
    pub fn decode(&mut self, count: usize) -> [Decoded; LANES] {
        let turns = self.turns(count);
        let arch = turns.arch;
        arch.dispatch(turns)
    }

    fn turns(&mut self, count: usize) -> Turns<'_> {
        let used = &mut self.words[..count.min(LANES)];
        used.iter_mut().for_each(|word| word.truncate(MAX_WORD_BITS));
        let longest = used.iter().map(Vec::len).max().unwrap_or(0);
        let steps = &mut self.steps[..RUNWAY + longest + RUNWAY];
        let mut lens = [0; LANES];
        for (lane, word) in used.iter().enumerate().filter(|(_, word)| !word.is_empty()) {
            let len = word.len();
            lens[lane] = len;
            let mut values = [0i8; 3 * MAX_WORD_BITS];
            self.arch.dispatch(Quantise { word: word.as_flattened(), out: &mut values });
            let (values, _) = values.as_chunks::<3>();
            let lead = (len - RUNWAY % len) % len;
            for (step, from) in steps.iter_mut().zip(values[..len].iter().cycle().skip(lead)).take(len) {
                for (to, value) in step.iter_mut().zip(from) {
                    to[lane] = *value;
                }
            }
        }
        // All other turns repeat the first. Words of one length do so together.
        let shortest = lens[..used.len()].iter().copied().filter(|len| *len > 0).min().unwrap_or(longest);
        if shortest == longest {
            for at in if longest > 0 { longest..steps.len() } else { 0..0 } {
                steps[at] = steps[at - longest];
            }
        } else {
            for (lane, &len) in lens.iter().enumerate().filter(|(_, len)| **len > 0) {
                for at in len..steps.len() {
                    let (done, rest) = steps.split_at_mut(at);
                    for (to, from) in rest[0].iter_mut().zip(&done[at - len]) {
                        to[lane] = from[lane];
                    }
                }
            }
        }
        Turns { arch: self.arch, steps, lens, decisions: &mut self.decisions }
    }
}

/// Brings the soft values of a word to a few bits.
struct Quantise<'a> {
    word: &'a [i16],
    out: &'a mut [i8],
}

impl WithSimd for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let scale = scale(self.word);
        for (out, value) in self.out.iter_mut().zip(self.word) {
            *out = quantised(*value, scale);
        }
    }
}

/// The factor that scales the soft values of a word to a few bits.
#[inline(always)]
fn scale(values: &[i16]) -> f32 {
    // Bits that were not sent say nothing about the others.
    let sent = values.iter().filter(|&&value| value != 0).count();
    let sum: u32 = values.iter().map(|value| u32::from(value.unsigned_abs())).sum();
    TYPICAL * sent as f32 / sum.max(1) as f32
}

#[inline(always)]
fn quantised(value: i16, scale: f32) -> i8 {
    // Half is rounded away from zero; a cast of a float saturates.
    let scaled = (f32::from(value) * scale).clamp(-LOUDEST, LOUDEST);
    (scaled + if scaled < 0.0 { -0.5 } else { 0.5 }) as i8
}

/// The work, apart from the processor that does it.
struct Turns<'a> {
    arch: Arch,
    steps: &'a [[Lane; 3]],
    lens: [usize; LANES],
    decisions: &'a mut [Decisions],
}

impl WithSimd for Turns<'_> {
    type Output = [Decoded; LANES];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
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
    // The cost of each of the eight outputs, measured against what was heard: four take the first value with its own
    // sign, the others are their complements.
    let heard: Lane = lanes(|lane| step[0][lane].abs() + step[1][lane].abs() + step[2][lane].abs());
    let mut costs = [[0i8; LANES]; 8];
    for (pattern, cost) in costs.iter_mut().enumerate() {
        let sign = |stream: usize| if pattern >> stream & 1 == 1 { -1 } else { 1 };
        *cost = lanes(|lane| {
            sign(0) * step[0][lane] + sign(1) * step[1][lane] + sign(2) * step[2][lane] - heard[lane]
        });
    }
    let mut decisions = [[0u8; LANES]; STATES / PER_BYTE];
    for half in 0..STATES / 2 {
        let (zero, one) = (&costs[PATTERNS[half]], &costs[7 ^ PATTERNS[half]]);
        let (even, odd) = (&old[2 * half], &old[2 * half + 1]);
        let zero_even: Lane = lanes(|lane| even[lane].saturating_add(zero[lane]));
        let zero_odd: Lane = lanes(|lane| odd[lane].saturating_add(one[lane]));
        let one_even: Lane = lanes(|lane| even[lane].saturating_add(one[lane]));
        let one_odd: Lane = lanes(|lane| odd[lane].saturating_add(zero[lane]));
        new[half] = lanes(|lane| zero_even[lane].max(zero_odd[lane]));
        new[half + STATES / 2] = lanes(|lane| one_even[lane].max(one_odd[lane]));
        let bit = 1u8 << (half % PER_BYTE);
        let zero = &mut decisions[half / PER_BYTE];
        *zero = lanes(|lane| zero[lane] | if zero_odd[lane] > zero_even[lane] { bit } else { 0 });
        let one = &mut decisions[(half + STATES / 2) / PER_BYTE];
        *one = lanes(|lane| one[lane] | if one_odd[lane] > one_even[lane] { bit } else { 0 });
    }
    decisions
}

/// For each butterfly: which of the three streams have a minus sign, as bits.
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

/// Follows the decisions of all lanes from their best end back through their words.
#[inline(always)]
fn trace_back(decisions: &[Decisions], lens: &[usize; LANES], metrics: &[Lane; STATES]) -> [Decoded; LANES] {
    let mut best = [0u8; LANES];
    let mut largest = metrics[0];
    for (state, metric) in metrics.iter().enumerate().skip(1) {
        // Of equal metrics the last wins, as in the scalar decoder.
        best = lanes(|lane| if metric[lane] >= largest[lane] { state as u8 } else { best[lane] });
        largest = lanes(|lane| largest[lane].max(metric[lane]));
    }
    let longest = lens.iter().copied().max().unwrap_or(0);
    let mut states = best;
    let mut last = states;
    // For each step, the newest bit of the state after it.
    let mut newest = [[0u8; LANES]; MAX_WORD_BITS];
    for (at, decisions) in decisions.iter().enumerate().rev() {
        if at < longest {
            last = lanes(|lane| if at + 1 == lens[lane] { states[lane] } else { last[lane] });
            newest[at] = lanes(|lane| states[lane] / (STATES / 2) as u8);
        }
        for lane in 0..LANES {
            let state = usize::from(states[lane]);
            let decision = decisions[state / PER_BYTE][lane] >> (state % PER_BYTE);
            states[lane] = before(state, u64::from(decision)) as u8;
        }
    }
    std::array::from_fn(|lane| {
        let bits = newest[..lens[lane]].iter().map(|step| u128::from(step[lane]));
        Decoded { word: bits.fold(0, |word, bit| word << 1 | bit), bites: states[lane] == last[lane] }
    })
}

/// One value per lane.
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
    use crate::coding::{Codeword, Viterbi};
    use airpace_core::{Rng, Streams};

    /// The same in plain code: one word after the other, one number after the other.
    fn plain(word: &[[i16; 3]], longest: usize) -> Decoded {
        let len = word.len();
        if len == 0 {
            return Decoded { word: 0, bites: true };
        }
        let scale = scale(word.as_flattened());
        let mut metrics = [i8::MAX; STATES];
        let mut decisions = Vec::new();
        let around = word.iter().cycle().skip((len - RUNWAY % len) % len).take(RUNWAY + longest + RUNWAY);
        for (at, step) in around.enumerate() {
            if at % RENORMALISE == 0 {
                let best = metrics.iter().copied().max().expect("states");
                let more = i8::MAX.saturating_sub(best);
                metrics = metrics.map(|metric| metric.saturating_add(more));
            }
            let step = step.map(|value| quantised(value, scale));
            let old = metrics;
            let mut decision = 0u64;
            for state in 0..STATES {
                // The newest bit turns all outputs around, and so does the oldest.
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
            // Decisions are kept from the end of the first runway on.
            if at < len {
                last = if at + 1 == len { state } else { last };
                bits |= u128::from(state >= STATES / 2) << (len - 1 - at);
            }
            state = before(state, decisions[RUNWAY + at] >> state);
        }
        Decoded { word: bits, bites: state == last }
    }

    fn noise(rng: &mut Rng, len: usize, loudest: u64) -> Vec<[i16; 3]> {
        let mut value = || rng.below(2 * loudest + 1) as i16 - loudest as i16;
        (0..len).map(|_| std::array::from_fn(|_| value())).collect()
    }

    #[test]
    fn every_lane_decodes_as_plain_numbers_do() {
        let mut rng = Streams::new(3).stream("phy.lanes");
        let mut lanes = Lanes::default();
        for count in [0, 1, 5, LANES] {
            for loudest in [1, 40, 255, 4000] {
                for lane in 0..count {
                    let len = [44, 7, 24, 38, 67, 48, 130, 1][rng.below(8) as usize];
                    *lanes.word(lane) = noise(&mut rng, len, loudest);
                }
                let all = lanes.decode(count);
                let longest = lanes.words[..count].iter().map(Vec::len).max().unwrap_or(0);
                for (lane, decoded) in all.into_iter().enumerate().take(count) {
                    assert_eq!(decoded, plain(&lanes.words[lane], longest), "lane {lane} up to {loudest}");
                }
                let without_vectors = lanes.turns(count).with_simd(pulp::Scalar::new());
                assert_eq!(all, without_vectors);
            }
        }
    }

    /// Eight bits are as good as sixteen: at a noise in which every twentieth word is lost.
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
                *lanes.word(lane) = coded.steps().iter().map(|step| step.map(&mut heard)).collect();
                lost_by_scalar += u32::from(scalar.decode(&lanes.words[lane]).word != word);
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
        *lanes.word(0) = vec![[100; 3]; 40];
        assert_eq!(lanes.decode(1)[0], Decoded { word: 0, bites: true });
        assert_eq!(lanes.decode(0)[5].word, 0);
    }
}
