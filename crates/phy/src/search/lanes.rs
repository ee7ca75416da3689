//! Many words of one length through the trellis, side by side in the lanes of a vector.
//!
//! The arithmetic is that of [`coding::Viterbi`](crate::coding::Viterbi), its scalar twin, lane by lane and bit by bit.
//! It is written as loops over arrays, which the compiler turns into whatever vectors the processor is found to have.

use pulp::{Arch, Simd, WithSimd};

use crate::coding::MAX_WORD_BITS;
use crate::coding::viterbi::{Decoded, MAX_SOFT, RENORMALISE, RUNWAY, SIGNS, STATES, before};

/// Words that are decoded side by side.
pub const LANES: usize = 16;

/// One value of each word.
pub type Lane = [i16; LANES];

/// Which states came from their odd predecessor, sixteen in each number, in each lane.
type Decisions = [[u16; LANES]; STATES / 16];

/// The decoder. Words may differ in length: all go as far as the longest.
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
            decisions: vec![[[0; LANES]; STATES / 16]; steps - RUNWAY],
        }
    }
}

impl Lanes {
    /// Where the soft values of a lane's word go: three per bit, positive for 0, 1…128 bits.
    pub fn word(&mut self, lane: usize) -> &mut Vec<[i16; 3]> {
        &mut self.words[lane]
    }

    /// Decodes the words of the first `count` lanes. Longer ones are cut, values beyond ±[`MAX_SOFT`] clipped.
    pub fn decode(&mut self, count: usize) -> [Decoded; LANES] {
        let used = &mut self.words[..count.min(LANES)];
        used.iter_mut().for_each(|word| word.truncate(MAX_WORD_BITS));
        let longest = used.iter().map(Vec::len).max().unwrap_or(0);
        let steps = &mut self.steps[..RUNWAY + longest + RUNWAY];
        let mut lens = [0; LANES];
        for (lane, word) in used.iter().enumerate().filter(|(_, word)| !word.is_empty()) {
            let len = word.len();
            lens[lane] = len;
            let clipped = word.iter().cycle().skip((len - RUNWAY % len) % len);
            for (step, from) in steps.iter_mut().zip(clipped) {
                for (values, value) in step.iter_mut().zip(from) {
                    values[lane] = (*value).clamp(-MAX_SOFT, MAX_SOFT);
                }
            }
        }
        self.arch.dispatch(Turns { steps, lens, decisions: &mut self.decisions })
    }
}

/// The work, apart from the processor that does it.
struct Turns<'a> {
    steps: &'a [[Lane; 3]],
    lens: [usize; LANES],
    decisions: &'a mut [Decisions],
}

impl WithSimd for Turns<'_> {
    type Output = [Decoded; LANES];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let mut metrics = [[[0i16; LANES]; STATES]; 2];
        for (at, step) in self.steps.iter().enumerate() {
            let [even, odd] = &mut metrics;
            let (old, new) = if at % 2 == 0 { (even, odd) } else { (odd, even) };
            if at % RENORMALISE == 0 {
                let base = old[0];
                for metric in old.iter_mut() {
                    *metric = lanes(|lane| metric[lane] - base[lane]);
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
    // The first sign is that of the others or not: four sums and their negatives are all that there are.
    let mut sums = [[0i16; LANES]; 8];
    for (pattern, sum) in sums.iter_mut().enumerate() {
        for (stream, values) in step.iter().enumerate() {
            let sign = if pattern >> stream & 1 == 1 { -1 } else { 1 };
            *sum = lanes(|lane| sum[lane] + sign * values[lane]);
        }
    }
    let mut decisions = [[0u16; LANES]; STATES / 16];
    for half in 0..STATES / 2 {
        let branch = &sums[PATTERNS[half]];
        let (even, odd) = (&old[2 * half], &old[2 * half + 1]);
        let zero_even: Lane = lanes(|lane| even[lane] + branch[lane]);
        let zero_odd: Lane = lanes(|lane| odd[lane] - branch[lane]);
        let one_even: Lane = lanes(|lane| even[lane] - branch[lane]);
        let one_odd: Lane = lanes(|lane| odd[lane] + branch[lane]);
        new[half] = lanes(|lane| zero_even[lane].max(zero_odd[lane]));
        new[half + STATES / 2] = lanes(|lane| one_even[lane].max(one_odd[lane]));
        let bit = 1u16 << (half % 16);
        let zero = &mut decisions[half / 16];
        *zero = lanes(|lane| zero[lane] | if zero_odd[lane] > zero_even[lane] { bit } else { 0 });
        let one = &mut decisions[half / 16 + STATES / 32];
        *one = lanes(|lane| one[lane] | if one_odd[lane] > one_even[lane] { bit } else { 0 });
    }
    decisions
}

/// Of each butterfly: which of the three streams are taken with a minus, as bits.
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
    let mut best = [0u16; LANES];
    let mut largest = metrics[0];
    for (state, metric) in metrics.iter().enumerate().skip(1) {
        // Of equals the last, as the scalar decoder has it.
        best = lanes(|lane| if metric[lane] >= largest[lane] { state as u16 } else { best[lane] });
        largest = lanes(|lane| largest[lane].max(metric[lane]));
    }
    let mut states = best.map(usize::from);
    let mut last = states;
    let mut words = [0u128; LANES];
    for (at, decisions) in decisions.iter().enumerate().rev() {
        for lane in 0..LANES {
            let state = states[lane];
            if at < lens[lane] {
                if at + 1 == lens[lane] {
                    last[lane] = state;
                }
                words[lane] |= ((state * 2 / STATES) as u128) << (lens[lane] - 1 - at);
            }
            states[lane] = before(state, u64::from(decisions[state / 16][lane] >> (state % 16)));
        }
    }
    std::array::from_fn(|lane| Decoded { word: words[lane], bites: states[lane] == last[lane] })
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
    use crate::coding::Viterbi;
    use airpace_core::Streams;

    #[test]
    fn every_lane_decodes_as_the_scalar_decoder() {
        let mut rng = Streams::new(3).stream("phy.lanes");
        let mut lanes = Lanes::default();
        let mut scalar = Viterbi::default();
        for count in [0, 1, 5, LANES] {
            for loudest in [1, 40, 255, 4000] {
                for lane in 0..count {
                    let len = [44, 7, 24, 38, 67, 48, 130, 1][rng.below(8) as usize];
                    let mut value = || rng.below(2 * loudest + 1) as i16 - loudest as i16;
                    *lanes.word(lane) = (0..len).map(|_| std::array::from_fn(|_| value())).collect();
                }
                let all = lanes.decode(count);
                let longest = lanes.words[..count].iter().map(Vec::len).max().unwrap_or(0);
                for (lane, decoded) in all.into_iter().enumerate().take(count) {
                    let word = &lanes.words[lane];
                    assert_eq!(decoded, scalar.decode_as_among(word, longest), "lane {lane} up to {loudest}");
                }
            }
        }
    }

    #[test]
    fn lanes_that_are_not_used_say_nothing() {
        let mut lanes = Lanes::default();
        *lanes.word(0) = vec![[100; 3]; 40];
        assert_eq!(lanes.decode(1)[0], Decoded { word: 0, bites: true });
        assert_eq!(lanes.decode(0)[5].word, 0);
    }
}
