//! Estimate of undecoded messages: decodable share of a subframe's messages, and number of PRBs granted in undecoded
//! messages.
//!
//! | question | answer |
//! | --- | --- |
//! | which messages are decodable at this subframe's SNR | [`chance`]: measured with our own encoder and decoder |
//! | in which CCEs something was transmitted | their power, by Bayes' rule ([`is_sent`]) |
//! | grants in undecoded messages | those of similar decoded messages; each represents (1 − chance) / chance undecoded ones |
//! | number of messages of kinds that are never decoded | CCEs with a transmission that no decoded message represents |
//!
//! Source: Horvitz and Thompson, A Generalization of Sampling Without Replacement From a Finite Universe, JASA 1952 (a
//! unit that is sampled with probability p represents 1/p units)

use airpace_core::Direction;
use airpace_radio::Missed;

use crate::found::Found;
use crate::grid::BITS_PER_CCE;
use crate::observation::{CceSet, Observation};
use crate::pdcch::{CceRange, LEVELS};

/// Information at the first column of [`CHANCES`], in bits per bit of a message with its CRC.
const MIN_INFORMATION: f32 = 0.75;

/// Difference of information between two columns of [`CHANCES`].
const STEP: f32 = 0.1;

/// Probability that a message to a known user is decoded. Row: number of CCEs. Column: amount of information. The
/// probability is 1 beyond the last column, and 0 before the first column.
///
/// Source: our measurement. `cargo test -p airpace-phy --test decoder missed -- --nocapture` prints the table; the test
/// compares it
const CHANCES: [[f32; 12]; 4] = [
    [0.13, 0.31, 0.50, 0.71, 0.88, 0.96, 0.99, 1.0, 1.0, 1.0, 1.0, 1.0],
    [0.14, 0.26, 0.49, 0.68, 0.84, 0.91, 0.94, 0.97, 0.99, 1.0, 1.0, 1.0],
    [0.06, 0.18, 0.34, 0.45, 0.62, 0.77, 0.85, 0.91, 0.96, 0.98, 0.99, 1.0],
    [0.04, 0.08, 0.15, 0.26, 0.40, 0.52, 0.60, 0.75, 0.80, 0.85, 0.90, 0.95],
];

/// Initial prior probability that a CCE contains a message.
const FIRST_OCCUPANCY: f32 = 0.2;

/// Allowed range of the occupancy. Its limits ensure that the received power determines the posterior.
const OCCUPANCIES: std::ops::RangeInclusive<f32> = 0.01..=0.9;

/// Time constant of the cell's statistics (subframes).
///
/// Chosen: long enough to average over fades and bursts, and short enough to follow a rise of the cell's load.
const SUBFRAMES: f32 = 200.0;

/// Minimum decoding probability in the weight of a message, so that a message decoded by luck does not dominate.
const MIN_CHANCE: f32 = 0.05;

/// Minimum number of undecoded messages that a message represents. Without this minimum, messages that are always
/// decoded would have no weight, and the grants of undecoded messages could not be estimated from them.
const MIN_WEIGHT: f32 = 0.02;

/// Maximum recall in the prior for undecoded CCEs.
///
/// Chosen: 0.99. With a recall of 1, the estimate would regard every undecoded CCE as silent, however strong its signal
/// is. A limit below 1 prevents this. With 0.99, `tests/missed.rs` counts 142 of 166 messages of a kind that is almost
/// never decoded; without the limit, it counts none.
const MAX_RECALL: f32 = 0.99;

/// Assumed powers of messages relative to the reference signals, all equally likely: a cell may transmit messages some
/// dB weaker or stronger.
const POWERS: [f32; 3] = [0.5, 1.0, 2.0];

/// Minimum power of a CCE relative to the noise; lower values are replaced by this minimum.
const MIN_POWER: f32 = 0.01;

/// Minimum exponent: the exponential of anything less is zero as `f32`, because its smallest positive number is 2 to the
/// power of −149.
const MIN_EXPONENT: f32 = -104.0;

/// Relative error of the noise estimate.
const NOISE_ERROR: f32 = 0.05;

/// Probability that a message of `cces` CCEs to a known user is decoded. `information` is the information of its coded
/// bits per bit of the message with its CRC (see [`information`]).
pub fn chance(cces: u8, information: f32) -> f32 {
    let row = &CHANCES[LEVELS.iter().position(|level| *level == cces).unwrap_or(0)];
    let at = (information - MIN_INFORMATION) / STEP;
    if at.is_nan() || at < 0.0 {
        return 0.0;
    }
    let column = at as usize;
    let of = |column: usize| row.get(column).copied().unwrap_or(1.0);
    of(column) + (of(column + 1) - of(column)) * (at - column as f32)
}

/// Information of a coded bit (bits) if its log-likelihood ratio is `mean` on average (nats).
///
/// Chosen: within 0.02 of the capacity of the binary-input AWGN channel, and cheap to compute.
pub fn information(mean: f32) -> f32 {
    1.0 - libm::expf(-mean.max(0.0) / 3.0)
}

/// Posterior probability that something was transmitted in a CCE. `power` is the power of the CCE over the noise power.
/// `ratio` is the SNR of the reference signals, and `occupancy` is the prior share of CCEs with a message.
///
/// The power is a mean over 72 squares of real amplitudes. At an SNR of r it has mean 1 + r and variance (1 + 2r) / 36.
/// Its distribution is approximated by a gamma distribution with these moments, and this approximation is exact without
/// a signal.
pub fn is_sent(power: f32, ratio: f32, occupancy: f32) -> f32 {
    if power.is_nan() {
        // NaN does not count as silence.
        return 1.0;
    }
    let power = power.max(MIN_POWER);
    let log_density = |signal: f32| {
        let mean = 1.0 + signal;
        let variance = (1.0 + 2.0 * signal) * 2.0 / BITS_PER_CCE as f32 + NOISE_ERROR * NOISE_ERROR;
        let shape = mean * mean / variance;
        let over = power / mean;
        0.5 * libm::logf(shape) + shape * (1.0 + libm::logf(over) - over)
    };
    let silence = log_density(0.0);
    let likelihood = |over_silence: f32| {
        // For most CCEs the exponential would be zero; skip its computation.
        if over_silence < MIN_EXPONENT { 0.0 } else { libm::expf(over_silence.min(60.0)) }
    };
    let likelihoods = POWERS.map(|share| likelihood(log_density(share * ratio) - silence));
    let odds = occupancy / (1.0 - occupancy) * likelihoods.iter().sum::<f32>() / POWERS.len() as f32;
    if odds.is_nan() { 1.0 } else { 1.0 - 1.0 / (1.0 + odds) }
}

/// Statistics of a cell's transmissions, estimated from the decoded messages.
#[derive(Clone, Debug)]
pub struct Account {
    /// Share of CCEs with a transmission.
    occupancy: f32,
    /// Decoded messages, by number of CCEs.
    read: [f32; LEVELS.len()],
    /// Estimated undecoded messages that the decoded messages represent, by number of CCEs.
    unread: [f32; LEVELS.len()],
    /// Bits of the decoded and the estimated undecoded messages, with their CRC.
    bits: f32,
    /// Expected number of undecoded CCEs with a transmission.
    loud_cces: f32,
    /// CCEs of the estimated undecoded messages.
    unread_cces: f32,
    /// Downlink PRB pairs that the estimated undecoded messages grant.
    unread_prbs: f32,
    /// Information in the soft bits of each CCE (bits).
    information: Vec<f32>,
}

impl Default for Account {
    /// Statistics of a cell without decoded messages.
    fn default() -> Account {
        Account {
            occupancy: FIRST_OCCUPANCY,
            // Chosen: close to zero, so that the first decoded message determines the statistics.
            read: [1e-3; LEVELS.len()],
            unread: [0.0; LEVELS.len()],
            bits: 1e-3 * LEVELS.len() as f32 * 48.0,
            loud_cces: 0.0,
            unread_cces: 0.0,
            unread_prbs: 0.0,
            information: Vec::new(),
        }
    }
}

impl Account {
    /// Updates the statistics with a subframe and its decoded messages. Returns the estimate of undecoded messages.
    pub fn take(&mut self, observation: &Observation, found: &[Found]) -> Missed {
        self.information.clear();
        self.information
            .extend(observation.expected.iter().map(|&mean| BITS_PER_CCE as f32 * information(mean)));
        let recall = self.recall();
        // Bayes' rule: without a decoded message, either nothing was transmitted, or the transmission was not decodable.
        let believed = recall.min(MAX_RECALL);
        let occupancy = self.occupancy * (1.0 - believed) / (1.0 - self.occupancy * believed);
        self.learn(found);
        let read: CceSet = found.iter().flat_map(|found| found.place.range()).collect();
        let loud = observation.loud();
        let heard = observation.powers.iter().zip(&observation.expected).enumerate();
        let (mut unread, mut sent) = (0.0, 0.0);
        for (cce, (&power, &mean)) in heard.clone() {
            if read.contains(cce) {
                sent += 1.0;
                continue;
            }
            let chance = is_sent(power, mean / 2.0, occupancy);
            sent += chance;
            unread += if loud.contains(cce) { chance } else { 0.0 };
        }
        self.loud_cces += unread;
        if heard.len() > 0 {
            let occupancy = self.occupancy + (sent / heard.len() as f32 - self.occupancy) / SUBFRAMES;
            self.occupancy = occupancy.clamp(*OCCUPANCIES.start(), *OCCUPANCIES.end());
        }
        let (like_read, never_read) = (self.unread.iter().sum::<f32>(), self.never_read());
        let prbs_of_one = self.unread_prbs / like_read.max(f32::MIN_POSITIVE);
        let messages = like_read + never_read;
        // Undecoded CCEs of this subframe, per CCE of the undecoded messages in the statistics.
        let per_cce = unread / (self.unread_cces + never_read).max(f32::MIN_POSITIVE);
        let (messages, prbs) = (per_cce * messages, per_cce * messages * prbs_of_one);
        // Round to a thousandth: the estimate is not more precise.
        let rounded = |amount: f32| f64::from(libm::roundf(amount * 1e3)) / 1e3;
        Missed {
            recall: rounded(recall),
            messages: rounded(messages),
            cces: rounded(unread),
            prbs: rounded(prbs),
        }
    }

    /// Estimated share of the cell's messages that are decodable at the information `self.information` of the CCEs.
    ///
    /// If the number of undecoded CCEs with power is lower than the decoded messages predict, the prediction is scaled
    /// down. If the number is higher, the additional messages are of kinds that are never decoded.
    fn recall(&self) -> f32 {
        let cces = self.information.len();
        let bits = self.bits / (self.read.iter().sum::<f32>() + self.unread.iter().sum::<f32>());
        let factor = if self.unread_cces > 0.0 { (self.loud_cces / self.unread_cces).min(1.0) } else { 1.0 };
        let (mut read, mut messages) = (0.0, 0.0);
        for (at, &level) in LEVELS.iter().enumerate() {
            let places = cces / usize::from(level);
            let places = (0..places).map(|at| CceRange { cce: at as u16 * u16::from(level), cces: level });
            // Mean decoding probability at this aggregation level over all start CCEs.
            let of = places.clone().map(|place| self.chance_at(place, bits)).sum::<f32>();
            let count = self.read[at] + factor * self.unread[at];
            read += count * of / places.len().max(1) as f32;
            messages += count;
        }
        (read / (messages + self.never_read())).clamp(0.0, 1.0)
    }

    /// Number of messages of kinds that are never decoded, so no decoded message represents them.
    ///
    /// Chosen: each of these messages takes one CCE, because such messages carry the least information, and grants as
    /// many PRBs as a message that is almost never decoded.
    fn never_read(&self) -> f32 {
        (self.loud_cces - self.unread_cces).max(0.0)
    }

    fn chance_at(&self, place: CceRange, bits: f32) -> f32 {
        let information: f32 = self.information.get(place.range()).map_or(0.0, |cces| cces.iter().sum());
        chance(place.cces, information / bits)
    }

    /// Updates the statistics with decoded messages.
    fn learn(&mut self, found: &[Found]) {
        let keep = 1.0 - 1.0 / SUBFRAMES;
        self.read.iter_mut().chain(&mut self.unread).for_each(|count| *count *= keep);
        self.bits *= keep;
        self.loud_cces *= keep;
        self.unread_cces *= keep;
        self.unread_prbs *= keep;
        for found in found {
            let bits = f32::from(found.payload.len()) + 16.0;
            let chance = self.chance_at(found.place, bits).max(MIN_CHANCE);
            let level = LEVELS.iter().position(|level| *level == found.place.cces).unwrap_or(0);
            let unread = ((1.0 - chance) / chance).max(MIN_WEIGHT);
            self.read[level] += 1.0;
            self.unread[level] += unread;
            self.bits += bits * (1.0 + unread);
            let downlink = found.dci.filter(|dci| dci.direction == Direction::Downlink);
            self.unread_cces += unread * f32::from(found.place.cces);
            self.unread_prbs += unread * downlink.map_or(0.0, |dci| f32::from(dci.prbs.len()));
        }
    }
}
