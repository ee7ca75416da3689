//! Viterbi decoder of the tail-biting convolutional code of rate 1/3.

use super::MAX_WORD_BITS;
use super::convolutional::{GENERATORS, MEMORY};

pub(crate) const STATES: usize = 1 << MEMORY;

/// Maximum soft value of a decoder. The sums over a trellis then stay within 16 bits.
pub const MAX_SOFT: i16 = 255;

/// Number of steps between renormalisations of the metrics. Two states differ by at most 12 · 3 · 255 = 9180, the change
/// over six steps in both directions. Sixteen steps add at most 16 · 3 · 255 = 12240. The sum is below 2^15.
const RENORMALISE: usize = 16;

/// Number of steps before the word, to find the initial state, and after the word, to find the final state. The number
/// is eight times the encoder's memory, because words may be punctured.
pub(crate) const RUNWAY: usize = 48;

/// Decodes with a fixed number of steps over the circular trellis: one pass over the word plus `RUNWAY` steps before
/// and after. The result is the path in the middle.
///
/// Chosen: a fixed number of steps, instead of iterating until the path is tail-biting, so that many words of one length
/// can be decoded in parallel.
#[derive(Clone, Debug)]
pub struct Viterbi {
    /// Selected predecessor of each state: one bit per state, for each step.
    decisions: [u64; MAX_WORD_BITS + RUNWAY],
}

impl Default for Viterbi {
    fn default() -> Self {
        Viterbi { decisions: [0; MAX_WORD_BITS + RUNWAY] }
    }
}

/// A decoded word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bits of the word, right-aligned; the first transmitted bit is the highest.
    pub word: u128,
    /// Whether the path is tail-biting: its final state equals its initial state, as in every valid codeword.
    pub bites: bool,
}

/// Signs of the three coded bits for even states and a newest bit of 0: +1 for a 0, −1 for a 1.
///
/// All generators have both their highest and lowest tap. So a change of the newest or of the oldest bit inverts all
/// three signs, and one branch metric serves the four edges of a butterfly.
pub(crate) static SIGNS: [[i16; 3]; STATES / 2] = {
    let mut signs = [[0; 3]; STATES / 2];
    let mut half = 0;
    while half < STATES / 2 {
        let mut stream = 0;
        while stream < 3 {
            let odd = ((2 * half as u8) & GENERATORS[stream]).count_ones() % 2;
            signs[half][stream] = 1 - 2 * odd as i16;
            stream += 1;
        }
        half += 1;
    }
    signs
};

impl Viterbi {
    /// Decodes soft values (positive for 0), three per bit of the word. The word has 7…128 bits; more are truncated.
    /// Values beyond ±[`MAX_SOFT`] are clipped.
    pub fn decode(&mut self, steps: &[[i16; 3]]) -> Decoded {
        let steps = &steps[..steps.len().min(MAX_WORD_BITS)];
        let len = steps.len();
        let end = len + RUNWAY;
        if len == 0 {
            return Decoded { word: 0, bites: true };
        }
        let mut metrics = [0i16; STATES];
        let lead = (len - RUNWAY % len) % len;
        let around = steps.iter().cycle().skip(lead).take(RUNWAY + end);
        for (at, step) in around.enumerate() {
            if at % RENORMALISE == 0 {
                let base = metrics[0];
                metrics.iter_mut().for_each(|metric| *metric -= base);
            }
            let step = step.map(|soft| soft.clamp(-MAX_SOFT, MAX_SOFT));
            let decision = butterflies(&step, &mut metrics);
            if let Some(at) = at.checked_sub(RUNWAY) {
                self.decisions[at] = decision;
            }
        }
        self.trace_back(len, end, last_of_max(&metrics))
    }

    /// Traces back from `state` after step `end`, through the steps after the word and then the word itself.
    fn trace_back(&self, len: usize, end: usize, state: usize) -> Decoded {
        let runway = self.decisions[len..end].iter().rev();
        let last = runway.fold(state, |state, &decision| before(state, decision >> state));
        let mut state = last;
        let mut word = 0u128;
        for (at, &decision) in self.decisions[..len].iter().rev().enumerate() {
            word |= ((state >> (MEMORY - 1)) as u128) << at;
            state = before(state, decision >> state);
        }
        Decoded { word, bites: state == last }
    }
}

/// Predecessor of `state`, selected by the lowest bit of `decision`. The newest bit of a state is its highest; the oldest
/// bit of the predecessor is its lowest.
#[inline(always)]
pub(crate) const fn before(state: usize, decision: u64) -> usize {
    state << 1 & (STATES - 1) | (decision & 1) as usize
}

/// One step of the trellis: updates the metrics of all states. Returns a bit for each state, set if its odd predecessor
/// won.
#[inline]
fn butterflies(step: &[i16; 3], metrics: &mut [i16; STATES]) -> u64 {
    let old = *metrics;
    let mut decision = 0u64;
    for half in 0..STATES / 2 {
        let signs = &SIGNS[half];
        let branch = step[0] * signs[0] + step[1] * signs[1] + step[2] * signs[2];
        let (even, odd) = (old[2 * half], old[2 * half + 1]);
        let (zero_even, zero_odd) = (even + branch, odd - branch);
        let (one_even, one_odd) = (even - branch, odd + branch);
        metrics[half] = zero_even.max(zero_odd);
        metrics[half + STATES / 2] = one_even.max(one_odd);
        decision |= u64::from(zero_odd > zero_even) << half;
        decision |= u64::from(one_odd > one_even) << (half + STATES / 2);
    }
    decision
}

fn last_of_max(metrics: &[i16; STATES]) -> usize {
    (0..STATES).max_by_key(|&state| metrics[state]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::Codeword;
    use super::*;
    use airpace_core::Streams;
    use proptest::prelude::*;

    fn clean(word: u128, len: usize, size: i16) -> Vec<[i16; 3]> {
        let codeword = Codeword::encode(word, len);
        codeword.steps().iter().map(|step| step.map(|bit| if bit == 0 { size } else { -size })).collect()
    }

    proptest! {
        #[test]
        fn a_word_without_noise_comes_back(word in any::<u128>(), len in 24usize..=80, size in 1i16..=2000) {
            let word = word & ((1 << len) - 1);
            let decoded = Viterbi::default().decode(&clean(word, len, size));
            prop_assert_eq!(decoded, Decoded { word, bites: true });
        }

        #[test]
        fn any_soft_values_are_survived(
            steps in prop::collection::vec(prop::array::uniform3(any::<i16>()), 0..200),
        ) {
            Viterbi::default().decode(&steps);
        }
    }

    #[test]
    fn six_flipped_bits_far_apart_do_no_harm() {
        let word = 0x0123_4567_89AB;
        let mut steps = clean(word, 48, 100);
        for at in (0..48).step_by(8) {
            steps[at][at / 8 % 3] *= -1;
        }
        assert_eq!(Viterbi::default().decode(&steps).word, word);
    }

    /// Noise tolerance of the decoder. According to the union bound of the code (free distance 15), the word error rate
    /// of 40 bits at 3 dB is below 10^-4.
    #[test]
    fn noise_of_three_db_hardly_ever_wins() {
        let mut rng = Streams::new(7).stream("phy.viterbi");
        let mut viterbi = Viterbi::default();
        // Noise standard deviation for E_b/N_0 = 3 dB at rate 1/3, per real symbol of unit power.
        let sigma = (0.5 * 3.0 / libm::pow(10.0, 0.3)).sqrt();
        let mut wrong = 0;
        for _ in 0..2000 {
            let word = u128::from(rng.next_u64() & ((1 << 40) - 1));
            let mut steps = clean(word, 40, 1);
            for soft in steps.iter_mut().flatten() {
                *soft = (32.0 * (f64::from(*soft) + sigma * rng.normal())) as i16;
            }
            wrong += u32::from(viterbi.decode(&steps).word != word);
        }
        assert!(wrong <= 5, "{wrong} of 2000 words were wrong at 3 dB");
    }
}
