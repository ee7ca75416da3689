//! Soft bits of one subframe's control region, and the evidence in them for given bits.

use crate::grid::BITS_PER_CCE;
use crate::modulation::{LOUDEST, Soft};
use crate::observation::Observation;

use super::code::CceBits;

/// Units of evidence per bit.
pub const PARTS: f32 = 64.0;

/// Soft-value units per nat.
const SOFT_PER_NAT: f32 = 8.0;

/// Soft value at which the confidence in a bit saturates: 16 nats.
const SURE: usize = 128;

/// Probability that a bit is wrong for a reason that its log-likelihood ratio does not contain: an impulse, a
/// neighbouring cell, or a change of the channel. Because of this probability, a single wrong bit cannot outweigh a
/// hundred correct bits.
const SURPRISE: f64 = 1.0 / 256.0;

/// Minimum expected magnitude of a log-likelihood ratio (nats) for classifying a CCE as empty. This magnitude
/// corresponds to an SNR of about 10 dB.
const LOUD_NATS: f32 = 20.0;

/// Maximum ratio of received to expected magnitude of the log-likelihood ratios of an empty CCE. Noise alone has this
/// ratio at 10 dB and half of it at 16 dB. A message 6 dB below the reference signals has twice this ratio.
const EMPTY_SHARE: f32 = 0.25;

/// Upper limit of the mean magnitude of the log-likelihood ratios of noise, over the 72 bits of a CCE, in units of √(4
/// · SNR) nats. Noise has 0.8 units on average and rarely exceeds 1. Relative to the expected magnitude of a message,
/// the limit is this number divided by √SNR.
const NOISE_SHARE: f32 = 1.0;

/// Maximum of the limit from [`NOISE_SHARE`] relative to the expected magnitude of a message. If the limit is higher,
/// the test is not used, because messages may fade.
const MAX_SHARE: f32 = 0.6;

/// Minimum and maximum amplitude of messages relative to the reference signals: 6 dB below to 6 dB above.
const FAINTEST: f32 = 0.5;
const LOUDEST_SENT: f32 = 2.0;

/// Amplitudes of messages, relative to the reference signals, for which the test against noise is computed.
const AMPLITUDES: [f32; 2] = [1.0, FAINTEST];

/// Minimum log-likelihood ratio (nats) of a message to noise alone at a place. The larger ratio of the two amplitudes
/// in [`AMPLITUDES`] counts.
const MIN_PRESENCE: f32 = -6.0;

/// Maximum expected number of bit errors in a CCE that counts as free of errors.
const CLEAR_WRONG: f32 = 0.002;

/// Evidence of a bit, by the magnitude of its soft value.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Evidence for a bit that equals the hard decision, against an unknown bit (units of 1/[`PARTS`] bit).
    agrees: [i16; SURE + 1],
    /// Difference in evidence between a bit that equals the hard decision and a bit that does not (units of 1/[`PARTS`]
    /// bit).
    loss: [i16; SURE + 1],
    /// Probability that the hard decision is wrong.
    wrong: [f32; SURE + 1],
    /// Information in a soft value (bits): 1 minus the entropy of its sign.
    information: [f32; SURE + 1],
    /// ln cosh(a · L/2) for a log-likelihood ratio L and each amplitude a of [`AMPLITUDES`].
    present: [[f32; 2]; SURE + 1],
}

impl Default for Weights {
    fn default() -> Self {
        let bits = |soft: usize, sign: f64| {
            // Probability of the sign, mixed with unrelated errors, against a probability of one half.
            let right = 1.0 / (1.0 + libm::exp(-sign * soft as f64 / f64::from(SOFT_PER_NAT)));
            let likely = (1.0 - SURPRISE) * right + SURPRISE * (1.0 - right);
            (f64::from(PARTS) * libm::log2(2.0 * likely)).round() as i16
        };
        let agrees = std::array::from_fn(|soft| bits(soft, 1.0));
        Weights {
            agrees,
            loss: std::array::from_fn(|soft| bits(soft, 1.0) - bits(soft, -1.0)),
            wrong: std::array::from_fn(|soft| {
                (1.0 / (1.0 + libm::exp(soft as f64 / f64::from(SOFT_PER_NAT)))) as f32
            }),
            information: std::array::from_fn(|soft| {
                let wrong = 1.0 / (1.0 + libm::exp(soft as f64 / f64::from(SOFT_PER_NAT)));
                let entropy = |p: f64| if p > 0.0 { -p * libm::log2(p) } else { 0.0 };
                (1.0 - entropy(wrong) - entropy(1.0 - wrong)) as f32
            }),
            present: std::array::from_fn(|soft| {
                let half = soft as f64 / f64::from(SOFT_PER_NAT) / 2.0;
                AMPLITUDES.map(|amplitude| libm::log(libm::cosh(f64::from(amplitude) * half)) as f32)
            }),
        }
    }
}

/// Soft bits of a subframe, by CCE.
#[derive(Clone, Debug, Default)]
pub(super) struct SoftRegion {
    weights: Weights,
    soft: Vec<Soft>,
    cces: Vec<SoftCce>,
}

#[derive(Clone, Copy, Debug)]
struct SoftCce {
    hard: CceBits,
    /// Evidence for the hard decisions of all bits, which is the maximum (units of 1/[`PARTS`] bit).
    most: i32,
    is_active: bool,
    is_clear: bool,
    /// Sum of the magnitudes of the log-likelihood ratios (nats). Infinite if a value is NaN.
    heard: f32,
    /// Expected value of `heard` for a message with the power of the reference signals (nats).
    expected: f32,
    /// Upper limit of `heard` for noise (nats).
    least: f32,
    /// Expected number of bit errors in the hard decisions.
    wrong: f32,
    /// Information in the soft values (bits).
    information: f32,
    /// Log-likelihood ratio of a message to noise alone (nats), for each amplitude of [`AMPLITUDES`]. Zero if the test
    /// with `least` is used instead.
    presence: [f32; 2],
}

/// Agreement of the soft bits of one or more CCEs with given bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Agreement {
    /// Evidence for the given bits against random bits (units of 1/[`PARTS`] bit).
    pub evidence: i32,
    /// Sum of the magnitudes of the log-likelihood ratios (nats). The magnitudes of values whose sign differs from the
    /// given bit are subtracted.
    pub heard: f32,
    /// Expected value of `heard` for a message with the power of the reference signals (nats).
    pub expected: f32,
}

impl std::ops::AddAssign for Agreement {
    fn add_assign(&mut self, other: Agreement) {
        self.evidence += other.evidence;
        self.heard += other.heard;
        self.expected += other.expected;
    }
}

impl Agreement {
    /// Evidence for the given bits in these CCEs against both other bits and no transmission (bits).
    pub fn worth(&self) -> f32 {
        let amplitude = (self.heard / self.expected).clamp(FAINTEST, LOUDEST_SENT);
        evidence_against_both(self.evidence as f32 / PARTS, self.something(amplitude))
    }

    /// Evidence (bits) that these CCEs continue the message whose first CCEs have the agreement `before`. The
    /// alternatives are that other bits or nothing was transmitted in them. A message has the same amplitude in all of
    /// its CCEs.
    pub fn goes_on(&self, before: &Agreement) -> f32 {
        let amplitude = before.heard.max(0.0) / before.expected.max(f32::MIN_POSITIVE);
        evidence_against_both(self.evidence as f32 / PARTS, self.something(amplitude))
    }

    /// log2 of the likelihood ratio of the given bits at this amplitude to no transmission (bits).
    ///
    /// For amplitude a, and a log-likelihood ratio L whose expectation at amplitude 1 is m, the ratio is e^(a·L/2 −
    /// a²·m/4).
    fn something(&self, amplitude: f32) -> f32 {
        let nats = amplitude * self.heard / 2.0 - amplitude * amplitude * self.expected / 4.0;
        // NaN is no evidence against the bits.
        if nats.is_finite() { std::f32::consts::LOG2_E * nats } else { f32::INFINITY }
    }
}

/// Evidence against two alternatives together, from the evidence against each of them (bits).
fn evidence_against_both(first: f32, second: f32) -> f32 {
    let (least, most) = if first < second { (first, second) } else { (second, first) };
    least - libm::log2f(1.0 + libm::exp2f(least - most))
}

/// Maximum number of wrong bits among the 72 bits of a CCE for an agreement. Random bits have this many wrong bits on
/// average.
const MAX_WRONG: u32 = 36;

impl SoftRegion {
    /// Loads the soft bits of a subframe.
    pub fn load(&mut self, observation: &Observation) {
        self.soft.clear();
        self.cces.clear();
        // Expected log-likelihood ratio (nats) of a bit with the power of the reference signals.
        let mean = 2.0 * libm::exp10f(observation.snr_db / 10.0);
        for (at, llrs) in observation.llrs.chunks_exact(BITS_PER_CCE).enumerate() {
            let start = self.soft.len();
            // The cast saturates and converts NaN to zero: an invalid sample has no evidence.
            let soft = |llr: &f32| ((llr * SOFT_PER_NAT) as Soft).clamp(-LOUDEST, LOUDEST);
            self.soft.extend(llrs.iter().map(soft));
            let soft = &self.soft[start..];
            let hard =
                |half: &[Soft]| half.iter().rev().fold(0u64, |bits, value| bits << 1 | u64::from(*value < 0));
            let (low, high) = soft.split_at(64);
            let (mut most, mut wrong, mut information, mut present) = (0, 0.0, 0.0, [0.0; 2]);
            for value in soft {
                let size = usize::from(value.unsigned_abs()).min(SURE);
                most += i32::from(self.weights.agrees[size]);
                wrong += self.weights.wrong[size];
                information += self.weights.information[size];
                for (sum, part) in present.iter_mut().zip(self.weights.present[size]) {
                    *sum += part;
                }
            }
            let heard: f32 = llrs.iter().map(|llr| llr.abs()).sum();
            let expected = observation.expected.get(at).copied().unwrap_or(mean);
            // Received magnitude, and upper limit for noise, both relative to the expected magnitude of a message.
            let share = heard / BITS_PER_CCE as f32 / expected;
            let noise = NOISE_SHARE / (expected / 2.0).sqrt();
            let is_told = noise < MAX_SHARE;
            let least = if is_told { noise * expected } else { 0.0 };
            let presence = std::array::from_fn(|at| {
                // Log-likelihood ratio of QPSK with this amplitude and unknown bits to noise alone.
                let silence = AMPLITUDES[at] * AMPLITUDES[at] * expected / 4.0 * BITS_PER_CCE as f32;
                if is_told || !silence.is_finite() { 0.0 } else { present[at] - silence }
            });
            self.cces.push(SoftCce {
                hard: u128::from(hard(low)) | u128::from(hard(high)) << 64,
                most,
                is_active: !(expected > LOUD_NATS && share < EMPTY_SHARE),
                // NaN does not count as silence.
                heard: if heard >= 0.0 { heard } else { f32::INFINITY },
                expected: expected * BITS_PER_CCE as f32,
                least: least * BITS_PER_CCE as f32,
                is_clear: wrong < CLEAR_WRONG,
                wrong,
                information,
                presence,
            });
        }
    }

    /// Number of CCEs.
    pub fn len(&self) -> usize {
        self.cces.len()
    }

    /// Hard decisions of a CCE's bits.
    pub fn hard(&self, cce: usize) -> CceBits {
        self.cces[cce].hard
    }

    /// Whether a transmission in a CCE is possible.
    pub fn is_active(&self, cce: usize) -> bool {
        self.cces[cce].is_active
    }

    /// Whether CCEs contain more than noise.
    pub fn is_loud(&self, cces: std::ops::Range<usize>) -> bool {
        let cces = &self.cces[cces];
        let presence = |at: usize| cces.iter().map(|cce| cce.presence[at]).sum::<f32>();
        cces.iter().map(|cce| cce.heard - cce.least).sum::<f32>() >= 0.0
            && presence(0).max(presence(1)) >= MIN_PRESENCE
    }

    /// Information in the soft values of CCEs (bits).
    pub fn information(&self, cces: std::ops::Range<usize>) -> f32 {
        self.cces[cces].iter().map(|cce| cce.information).sum()
    }

    /// Expected number of bit errors in the hard decisions of a CCE.
    pub fn expected_wrong(&self, cce: usize) -> f32 {
        self.cces[cce].wrong
    }

    /// Whether the hard decisions of a CCE are almost certainly free of errors.
    pub fn is_clear(&self, cce: usize) -> bool {
        self.cces[cce].is_clear
    }

    /// Bit indices of a CCE in descending order of confidence, and the set of bits with at least `nats` nats.
    pub fn surest(&self, cce: usize, nats: f32) -> ([u8; BITS_PER_CCE], CceBits) {
        let soft = &self.soft[cce * BITS_PER_CCE..][..BITS_PER_CCE];
        let mut sorted: [u32; BITS_PER_CCE] =
            std::array::from_fn(|at| u32::from(u16::MAX - soft[at].unsigned_abs()) << 8 | at as u32);
        sorted.sort_unstable();
        let order = sorted.map(|key| key as u8);
        let least = (nats * SOFT_PER_NAT) as u16;
        let is_sure = |&(_, soft): &(usize, &Soft)| soft.unsigned_abs() >= least;
        let sure = soft.iter().enumerate().filter(is_sure).fold(0, |sure, (at, _)| sure | 1 << at);
        (order, sure)
    }

    /// Soft bits in a range of bit indices.
    pub fn soft(&self, bits: std::ops::Range<usize>) -> &[Soft] {
        &self.soft[bits]
    }

    /// Agreement of a CCE with `bits`. `None` if more than half of the bits are wrong.
    #[inline]
    pub fn agreement(&self, cce: usize, bits: CceBits) -> Option<Agreement> {
        let of = &self.cces[cce];
        let mut wrong = of.hard ^ bits;
        if wrong.count_ones() > MAX_WRONG {
            return None;
        }
        let soft = &self.soft[cce * BITS_PER_CCE..];
        // Start with the evidence for the hard decisions, and correct it for each bit that differs.
        let (mut evidence, mut against) = (of.most, 0);
        while wrong != 0 {
            let size = soft[wrong.trailing_zeros() as usize].unsigned_abs();
            evidence -= i32::from(self.weights.loss[usize::from(size).min(SURE)]);
            against += i32::from(size);
            wrong &= wrong - 1;
        }
        let heard = of.heard - 2.0 * against as f32 / SOFT_PER_NAT;
        Some(Agreement { evidence, heard, expected: of.expected })
    }

    /// Number of hard decisions of a CCE that differ from `bits`.
    pub fn wrong(&self, cce: usize, bits: CceBits) -> u32 {
        (self.cces[cce].hard ^ bits).count_ones()
    }

    /// Evidence of a soft value for `bit` against the opposite bit (bits).
    pub fn loss(&self, soft: Soft, bit: u8) -> f32 {
        let size = usize::from(soft.unsigned_abs()).min(SURE);
        let loss = f32::from(self.weights.loss[size]) / PARTS;
        if (soft < 0) == (bit == 1) { loss } else { -loss }
    }

    /// Agreement of soft bits at a distance of `period` bits: 1 if they repeat the same coded bits without noise,
    /// around 0 if they are different coded bits.
    pub fn repeats(&self, bits: std::ops::Range<usize>, period: usize) -> f32 {
        let soft = &self.soft[bits];
        let (mut sum, mut all) = (0i32, 0i32);
        // A place has at most 576 bits, so no sum exceeds 2^30.
        let size = |soft: &Soft| i32::from(*soft).clamp(-1023, 1023);
        for (a, b) in soft.iter().zip(&soft[period.min(soft.len())..]) {
            let product = size(a) * size(b);
            sum += product;
            all += product.abs();
        }
        if all == 0 { 0.0 } else { sum as f32 / all as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(llrs: &[f32], snr_db: f32) -> SoftRegion {
        let mut region = SoftRegion::default();
        let llrs = llrs.iter().copied().cycle().take(BITS_PER_CCE).collect();
        region.load(&Observation { cfi: 1, llrs, snr_db, ..Observation::default() });
        region
    }

    #[test]
    fn a_sure_bit_is_worth_a_bit_and_a_wrong_one_costs_seven() {
        let region = region(&[100.0, -100.0], 17.0);
        let pattern = (u128::MAX / 3) << 1 & ((1 << BITS_PER_CCE) - 1);
        assert_eq!(region.hard(0), pattern);
        let evidence = |pattern: CceBits| {
            let agreement = region.agreement(0, pattern).expect("nearly all are right");
            agreement.evidence as f32 / PARTS
        };
        assert!((evidence(pattern) - 72.0).abs() < 1.5);
        let lost = evidence(pattern) - evidence(pattern ^ 1);
        assert!((lost - 8.0).abs() < 0.1, "one that is worth and one that costs: {lost}");
        assert_eq!(region.agreement(0, !pattern & ((1 << BITS_PER_CCE) - 1)), None);
    }

    #[test]
    fn a_bit_of_even_odds_adds_no_evidence() {
        let region = region(&[0.01], -3.0);
        let evidence = |bits| region.agreement(0, bits).map(|agreement| agreement.evidence);
        assert_eq!(evidence(0), evidence(1));
        assert!(region.is_active(0), "where little can be heard, silence proves nothing");
    }

    #[test]
    fn noise_is_known_where_messages_are_louder() {
        let mut rng = airpace_core::Streams::new(1).stream("phy.noise");
        let mut cce = |amplitude: f32, ratio: f32| -> Vec<f32> {
            let bit = |_| 2.0 * ratio * amplitude + 2.0 * ratio.sqrt() * rng.normal() as f32;
            (0..BITS_PER_CCE).map(bit).collect()
        };
        let mut loud = |amplitude: f32, snr_db: f32| {
            let of = |_| region(&cce(amplitude, libm::exp10f(snr_db / 10.0)), snr_db).is_loud(0..1);
            (0..200).map(of).filter(|&is_loud| is_loud).count()
        };
        assert!(loud(0.0, 9.0) <= 10, "noise is told from messages");
        assert_eq!([loud(0.6, 9.0), loud(1.0, 9.0), loud(0.6, 14.0)], [200; 3], "messages are heard");
        assert_eq!(loud(0.7, 5.0), 200, "also half as strong as they are");
        assert_eq!(loud(0.0, -4.0), 200, "where noise is louder than messages nothing is told");
    }

    /// In a single CCE, a message of half the amplitude resembles noise. Several CCEs distinguish the two.
    #[test]
    fn loud_noise_is_known_over_several_cces() {
        let mut rng = airpace_core::Streams::new(2).stream("phy.noise");
        let mut loud = |amplitude: f32, snr_db: f32, cces: usize| {
            let ratio = libm::exp10f(snr_db / 10.0);
            let mut is_loud = |_: &usize| {
                let bit = |_| 2.0 * ratio * amplitude + 2.0 * ratio.sqrt() * rng.normal() as f32;
                let llrs = (0..cces * BITS_PER_CCE).map(bit).collect();
                let mut region = SoftRegion::default();
                region.load(&Observation { cfi: 1, llrs, snr_db, ..Observation::default() });
                region.is_loud(0..cces)
            };
            (0..200).filter(&mut is_loud).count()
        };
        for (snr_db, cces, most) in [(4.0, 2, 50), (4.0, 4, 10), (2.0, 4, 60), (2.0, 8, 10)] {
            let noise = loud(0.0, snr_db, cces);
            assert!(noise <= most, "noise of {cces} CCEs at {snr_db} dB: {noise} of 200");
            assert_eq!([0.6, 1.0].map(|amplitude| loud(amplitude, snr_db, cces)), [200; 2]);
        }
    }

    #[test]
    fn noise_that_agrees_is_fainter_than_a_message() {
        let of = |heard| Agreement { evidence: 60 * PARTS as i32, heard, expected: 360.0 }.worth();
        assert!(of(360.0) > 59.0 && of(270.0) > 59.0 && of(700.0) > 59.0);
        assert!(
            of(180.0) < 40.0,
            "half as loud as a message, as the words are that a trellis finds in noise at 1 dB"
        );
        assert!(of(0.0) < 0.0);
    }

    #[test]
    fn a_message_extends_to_cces_that_agree_with_it() {
        let of =
            |evidence: i32, heard, expected| Agreement { evidence: evidence * PARTS as i32, heard, expected };
        let before = of(60, 800.0, 1000.0);
        assert!(of(50, 700.0, 900.0).goes_on(&before) > 40.0);
        assert!(of(50, 70.0, 90.0).goes_on(&before) > 15.0, "where the channel fades");
        assert!(of(3, 30.0, 900.0).goes_on(&before) < -100.0, "noise that happens to agree is too faint");
        assert!(of(-90, -300.0, 900.0).goes_on(&before) < -80.0, "another message");
        let doubtful = of(2, 2.0, 4.0).goes_on(&before).abs();
        assert!(doubtful < 3.0, "where next to nothing can be heard nothing is sure: {doubtful}");
    }

    #[test]
    fn silence_is_detected_by_the_expected_power() {
        assert!(region(&[99.0], 17.0).is_active(0));
        assert!(region(&[50.0], 17.0).is_active(0), "a message 6 dB below the reference signals");
        assert!(!region(&[12.0, -8.0], 17.0).is_active(0));
        assert!(region(&[f32::NAN, f32::INFINITY], 17.0).is_active(0));
    }
}
