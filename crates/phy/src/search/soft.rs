//! What a receiver heard of one subframe's control region, and how strongly it speaks for given bits.

use crate::grid::BITS_PER_CCE;
use crate::modulation::{LOUDEST, Soft};
use crate::observation::Observation;

use super::code::CceBits;

/// Evidence is counted in these parts of a bit.
pub const PARTS: f32 = 64.0;

/// Soft bits per nat.
const SOFT_PER_NAT: f32 = 8.0;

/// From this soft value on a bit is as sure as it gets: 16 nats.
const SURE: usize = 128;

/// How often a bit is wrong for a reason that its log-likelihood ratio does not know: an impulse, a neighbouring cell,
/// a channel that moved. This keeps one such bit from overruling a hundred others.
const SURPRISE: f64 = 1.0 / 256.0;

/// A CCE is called empty only if this many nats are expected of a bit, which is at about 10 dB …
const LOUD_NATS: f32 = 20.0;

/// … and if not even this share of them was heard. The share is twice that of noise alone, and half of that of a
/// message sent 6 dB below the reference signals.
const EMPTY_SHARE: f32 = 0.25;

/// Where nothing is sent, the mean size of a bit's log-likelihood ratio is 0.8 nats times the root of four signal to
/// noise ratios. The mean over the 72 bits of a CCE is hardly ever more than one nat times that root. As a share of
/// what is expected, this limit is the following number over the root of the ratio …
const NOISE_SHARE: f32 = 1.0;

/// … and is not used if the share is above this: messages may fade.
const MOST_SHARE: f32 = 0.6;

/// Messages are sent with amplitudes between these, relative to the reference signals: 6 dB below to 6 dB above.
const FAINTEST: f32 = 0.5;
const LOUDEST_SENT: f32 = 2.0;

/// The amplitudes with which messages are looked for in noise, relative to the reference signals.
const AMPLITUDES: [f32; 2] = [1.0, FAINTEST];

/// What was heard in a place must not be less likely with a message of any of these amplitudes than with noise alone by
/// more than this factor, e^6.
const LEAST_PRESENCE: f32 = -6.0;

/// At most this many bits of a clear CCE are wrong on average.
const CLEAR_WRONG: f32 = 0.002;

/// Evidence of bits by the size of their soft values.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// For a bit of the sign that was heard: its evidence in parts of a bit, against not knowing.
    agrees: [i16; SURE + 1],
    /// How much smaller the evidence is for a bit of the other sign.
    loss: [i16; SURE + 1],
    /// How likely the sign that was heard is wrong.
    wrong: [f32; SURE + 1],
    /// How much a bit of this size tells, in bits: 1 less the entropy of its sign.
    information: [f32; SURE + 1],
    /// ln cosh of half the ratio, times the amplitudes of [`AMPLITUDES`].
    present: [[f32; 2]; SURE + 1],
}

impl Default for Weights {
    fn default() -> Self {
        let bits = |soft: usize, sign: f64| {
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

/// The soft bits of a subframe, by CCE.
#[derive(Clone, Debug, Default)]
pub(super) struct SoftRegion {
    weights: Weights,
    soft: Vec<Soft>,
    cces: Vec<SoftCce>,
}

#[derive(Clone, Copy, Debug)]
struct SoftCce {
    hard: CceBits,
    /// Evidence for exactly the bits that were heard.
    most: i32,
    is_active: bool,
    is_clear: bool,
    /// Sum of the sizes of its soft values, in nats; infinite if they are not numbers.
    heard: f32,
    /// The sum that is expected of a message as strong as the reference signals.
    expected: f32,
    /// A smaller sum is no more than noise.
    least: f32,
    /// How many of its bits are wrong on average.
    wrong: f32,
    /// How many bits its soft values tell.
    information: f32,
    /// By how many nats a message of each of [`AMPLITUDES`] explains it better than noise does. Zero where `least` is
    /// used instead.
    presence: [f32; 2],
}

/// How a CCE agrees with the bits that it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Agreement {
    /// How much better these bits explain the CCE than random bits do, in parts of a bit.
    pub evidence: i32,
    /// Sum of the soft values in nats; values of the other sign are subtracted.
    pub heard: f32,
    /// The sum that is expected of a message as strong as the reference signals.
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
    /// How much better the bits explain these CCEs than other bits or nothing at all, in bits.
    pub fn worth(&self) -> f32 {
        let amplitude = (self.heard / self.expected).clamp(FAINTEST, LOUDEST_SENT);
        evidence_against_both(self.evidence as f32 / PARTS, self.something(amplitude))
    }

    /// By how many bits it is likelier that the bits of these CCEs were sent too, behind those of `before`, than that
    /// they were not. If they were not, other bits were sent there, or nothing. A message is equally strong in all of
    /// its CCEs.
    pub fn goes_on(&self, before: &Agreement) -> f32 {
        let amplitude = before.heard.max(0.0) / before.expected.max(f32::MIN_POSITIVE);
        evidence_against_both(self.evidence as f32 / PARTS, self.something(amplitude))
    }

    /// By how many bits what was heard is likelier if the bits were sent with this amplitude than if nothing was sent.
    ///
    /// A log-likelihood ratio L that is expected to be m is e^(a·L/2 − a²·m/4) times as likely with amplitude a as with none.
    fn something(&self, amplitude: f32) -> f32 {
        let nats = amplitude * self.heard / 2.0 - amplitude * amplitude * self.expected / 4.0;
        // A value that is not a number says nothing against the bits.
        if nats.is_finite() { std::f32::consts::LOG2_E * nats } else { f32::INFINITY }
    }
}

/// By how many bits something is likelier than two alternatives together; the arguments say by how many it is likelier
/// than each.
fn evidence_against_both(first: f32, second: f32) -> f32 {
    let (least, most) = if first < second { (first, second) } else { (second, first) };
    least - libm::log2f(1.0 + libm::exp2f(least - most))
}

/// At the weakest signal with which any message is found, this many of the 72 bits of a CCE may be wrong. Of random
/// bits, half are wrong.
const MOST_WRONG: u32 = 36;

impl SoftRegion {
    /// Loads a subframe.
    pub fn load(&mut self, observation: &Observation) {
        self.soft.clear();
        self.cces.clear();
        // For a bit that is sent at the power of the reference signals.
        let mean = 2.0 * libm::exp10f(observation.snr_db / 10.0);
        for (at, llrs) in observation.llrs.chunks_exact(BITS_PER_CCE).enumerate() {
            let start = self.soft.len();
            // A cast of a float saturates and makes NaN zero: a sample that cannot be read says nothing.
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
            let share = heard / BITS_PER_CCE as f32 / expected;
            let noise = NOISE_SHARE / (expected / 2.0).sqrt();
            let is_told = noise < MOST_SHARE;
            let least = if is_told { noise * expected } else { 0.0 };
            let presence = std::array::from_fn(|at| {
                let silence = AMPLITUDES[at] * AMPLITUDES[at] * expected / 4.0 * BITS_PER_CCE as f32;
                if is_told || !silence.is_finite() { 0.0 } else { present[at] - silence }
            });
            self.cces.push(SoftCce {
                hard: u128::from(hard(low)) | u128::from(hard(high)) << 64,
                most,
                is_active: !(expected > LOUD_NATS && share < EMPTY_SHARE),
                // A value that is not a number does not count as silence.
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

    /// CCEs.
    pub fn len(&self) -> usize {
        self.cces.len()
    }

    /// The signs of a CCE's bits.
    pub fn hard(&self, cce: usize) -> CceBits {
        self.cces[cce].hard
    }

    /// Whether anything seems to have been sent in a CCE.
    pub fn is_active(&self, cce: usize) -> bool {
        self.cces[cce].is_active
    }

    /// Whether more was heard in CCEs than noise.
    pub fn is_loud(&self, cces: std::ops::Range<usize>) -> bool {
        let cces = &self.cces[cces];
        let presence = |at: usize| cces.iter().map(|cce| cce.presence[at]).sum::<f32>();
        cces.iter().map(|cce| cce.heard - cce.least).sum::<f32>() >= 0.0
            && presence(0).max(presence(1)) >= LEAST_PRESENCE
    }

    /// How many bits the soft values of CCEs tell.
    pub fn information(&self, cces: std::ops::Range<usize>) -> f32 {
        self.cces[cces].iter().map(|cce| cce.information).sum()
    }

    /// How many bits of a CCE are wrong on average.
    pub fn expected_wrong(&self, cce: usize) -> f32 {
        self.cces[cce].wrong
    }

    /// Whether hardly any bit of a CCE can be wrong.
    pub fn is_clear(&self, cce: usize) -> bool {
        self.cces[cce].is_clear
    }

    /// The bits of a CCE, the surest first, and those that are surer than so many nats.
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

    /// Soft bits of a range.
    pub fn soft(&self, bits: std::ops::Range<usize>) -> &[Soft] {
        &self.soft[bits]
    }

    /// How well `bits` explain a CCE; `None` if hardly more bits are right than by chance.
    #[inline]
    pub fn agreement(&self, cce: usize, bits: CceBits) -> Option<Agreement> {
        let of = &self.cces[cce];
        let mut wrong = of.hard ^ bits;
        if wrong.count_ones() > MOST_WRONG {
            return None;
        }
        let soft = &self.soft[cce * BITS_PER_CCE..];
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

    /// How many bits of a CCE were heard with the other sign.
    pub fn wrong(&self, cce: usize, bits: CceBits) -> u32 {
        (self.cces[cce].hard ^ bits).count_ones()
    }

    /// By how many bits a soft value speaks for `bit` rather than the other.
    pub fn loss(&self, soft: Soft, bit: u8) -> f32 {
        let size = usize::from(soft.unsigned_abs()).min(SURE);
        let loss = f32::from(self.weights.loss[size]) / PARTS;
        if (soft < 0) == (bit == 1) { loss } else { -loss }
    }

    /// How well soft bits agree that stand for the same coded bit, `period` bits apart: 1 without noise, around 0 if
    /// they do not stand for the same bit.
    pub fn repeats(&self, bits: std::ops::Range<usize>, period: usize) -> f32 {
        let soft = &self.soft[bits];
        let (mut sum, mut all) = (0i32, 0i32);
        // No place has more than 576 bits: no sum is above 2^30.
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
    fn a_bit_that_may_be_either_says_nothing() {
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

    /// A single CCE may hold a message of half the amplitude, which sounds like noise. Several tell more.
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
    fn a_message_goes_on_where_it_is_heard_as_well() {
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
    fn silence_is_known_by_what_should_have_been_heard() {
        assert!(region(&[99.0], 17.0).is_active(0));
        assert!(region(&[50.0], 17.0).is_active(0), "a message 6 dB below the reference signals");
        assert!(!region(&[12.0, -8.0], 17.0).is_active(0));
        assert!(region(&[f32::NAN, f32::INFINITY], 17.0).is_active(0));
    }
}
