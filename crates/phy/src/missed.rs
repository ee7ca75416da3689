//! How much of a subframe could be read, and what its unread messages may grant.
//!
//! | what is asked | what answers |
//! | --- | --- |
//! | which messages can be read in a subframe that was heard like this one | [`chance`]: a table that our own encoder and decoder made |
//! | in which CCEs something was sent | their power, by Bayes' rule ([`is_sent`]) |
//! | what unread messages grant | what like messages grant that were read; each of these stands for (1 − chance) / chance unread ones |
//! | how many are of kinds that are never read | CCEs in which something was sent, and for which no read message stands |
//!
//! Source: Horvitz and Thompson, A Generalization of Sampling Without Replacement From a Finite Universe, JASA 1952 (a unit
//! that is sampled with chance p stands for 1/p units)

use airpace_core::Direction;
use airpace_radio::Missed;

use crate::found::Found;
use crate::grid::BITS_PER_CCE;
use crate::observation::{CceSet, Observation};
use crate::pdcch::{LEVELS, Place};

/// The least information of [`CHANCES`], in bits per bit of a message and its CRC.
const LEAST_INFORMATION: f32 = 0.75;

/// From one column of [`CHANCES`] to the next.
const STEP: f32 = 0.1;

/// The chance that a message to a known user is read: a row for each number of CCEs, a column for each amount of
/// information. Above the last it is one, below the first none.
///
/// Source: our measurement. `cargo test -p airpace-phy --test missed -- --nocapture` prints it; the test holds it
const CHANCES: [[f32; 12]; 4] = [
    [0.13, 0.31, 0.50, 0.71, 0.88, 0.96, 0.99, 1.0, 1.0, 1.0, 1.0, 1.0],
    [0.14, 0.26, 0.49, 0.68, 0.84, 0.91, 0.94, 0.97, 0.99, 1.0, 1.0, 1.0],
    [0.06, 0.18, 0.34, 0.45, 0.62, 0.77, 0.85, 0.91, 0.96, 0.98, 0.99, 1.0],
    [0.04, 0.08, 0.15, 0.26, 0.40, 0.52, 0.60, 0.75, 0.80, 0.85, 0.90, 0.95],
];

/// What is assumed of a CCE before it is heard, at first: that many have a message.
const FIRST_OCCUPANCY: f32 = 0.2;

/// Occupancy stays between these, so that what is heard decides.
const OCCUPANCIES: std::ops::RangeInclusive<f32> = 0.01..=0.9;

/// Subframes over which the cell's ways are averaged.
///
/// Chosen: fades and bursts average out, and a cell that fills up is soon known as such.
const SUBFRAMES: f32 = 200.0;

/// A message stands for unread ones as if its chance were at least this: one that is read by luck must not decide alone.
const LEAST_CHANCE: f32 = 0.05;

/// A message that is always read stands for so many unread ones all the same: without others, they are like it.
const LEAST_WEIGHT: f32 = 0.02;

/// At most this part of what was sent is taken for read, when the power of unread CCEs is judged.
///
/// Chosen: with a part of one, what is loud and unread would be silence, however loud. Any value below one will do where
/// messages are heard well enough for such a part; with 0.99, 142 messages of 166 are counted in
/// `tests/missed.rs` of a kind that is hardly read, without it none.
const MOST_RECALL: f32 = 0.99;

/// The power of messages as multiples of that of the reference signals, all as likely: a cell may send them by some dB
/// weaker or stronger.
const POWERS: [f32; 3] = [0.5, 1.0, 2.0];

/// A CCE of less power than this times the noise's is as silent as one of this power.
const LEAST_POWER: f32 = 0.01;

/// The exponential of anything below is zero as `f32`: the least number above zero is 2 to the power of −149.
const LEAST_EXPONENT: f32 = -104.0;

/// By this share the noise may be taken for weaker or stronger than it is.
const NOISE_ERROR: f32 = 0.05;

/// The chance that a message of `cces` CCEs to a known user is read. `information` is that of its coded bits over the bits
/// of the message and its CRC (see [`information`]).
pub fn chance(cces: u8, information: f32) -> f32 {
    let row = &CHANCES[LEVELS.iter().position(|level| *level == cces).unwrap_or(0)];
    let at = (information - LEAST_INFORMATION) / STEP;
    if at.is_nan() || at < 0.0 {
        return 0.0;
    }
    let column = at as usize;
    let of = |column: usize| row.get(column).copied().unwrap_or(1.0);
    of(column) + (of(column + 1) - of(column)) * (at - column as f32)
}

/// Bits of information that a coded bit carries whose log-likelihood ratio is `mean` on average, in nats.
///
/// Chosen: within 0.02 of the capacity of a channel with two inputs and white noise, and cheap.
pub fn information(mean: f32) -> f32 {
    1.0 - libm::expf(-mean.max(0.0) / 3.0)
}

/// How probable it is that something was sent in a CCE whose power is `power` times that of the noise, where messages are
/// as strong as the reference signals at the signal to noise ratio `ratio`, and a share `occupancy` of CCEs has one.
///
/// The power is a mean over 72 squares of real amplitudes. With a signal of ratio r it is 1 + r on average, with a variance
/// of (1 + 2r) / 36. It is taken for a gamma distribution with these, which without a signal it has.
pub fn is_sent(power: f32, ratio: f32, occupancy: f32) -> f32 {
    if power.is_nan() {
        // What is no number is no silence.
        return 1.0;
    }
    let power = power.max(LEAST_POWER);
    let log_density = |signal: f32| {
        let mean = 1.0 + signal;
        let variance = (1.0 + 2.0 * signal) * 2.0 / BITS_PER_CCE as f32 + NOISE_ERROR * NOISE_ERROR;
        let shape = mean * mean / variance;
        let over = power / mean;
        0.5 * libm::logf(shape) + shape * (1.0 + libm::logf(over) - over)
    };
    let silence = log_density(0.0);
    let likelihood = |over_silence: f32| {
        // Most CCEs are so silent that the exponential would be zero, which needs no exponential.
        if over_silence < LEAST_EXPONENT { 0.0 } else { libm::expf(over_silence.min(60.0)) }
    };
    let likelihoods = POWERS.map(|share| likelihood(log_density(share * ratio) - silence));
    let odds = occupancy / (1.0 - occupancy) * likelihoods.iter().sum::<f32>() / POWERS.len() as f32;
    if odds.is_nan() { 1.0 } else { 1.0 - 1.0 / (1.0 + odds) }
}

/// What one cell sends, as far as it was read.
#[derive(Clone, Debug)]
pub struct Account {
    /// Part of the CCEs in which something is sent.
    occupancy: f32,
    /// Messages that were read, by their number of CCEs.
    read: [f32; LEVELS.len()],
    /// Unread messages for which those stand.
    unread: [f32; LEVELS.len()],
    /// Bits of both with their CRC.
    bits: f32,
    /// CCEs in which something seemed to be sent that was not read.
    loud_cces: f32,
    /// CCEs of the unread messages for which the read ones stand.
    unread_cces: f32,
    /// PRB pairs that they grant in the downlink.
    unread_prbs: f32,
    /// By CCE: bits of information.
    information: Vec<f32>,
}

impl Default for Account {
    /// Of a cell of which nothing was read yet.
    fn default() -> Account {
        Account {
            occupancy: FIRST_OCCUPANCY,
            // Chosen: as good as nothing, so that the first message decides.
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
    /// Takes a subframe and the messages that were read in it. Returns what was missed.
    pub fn take(&mut self, observation: &Observation, found: &[Found]) -> Missed {
        self.information.clear();
        self.information
            .extend(observation.expected.iter().map(|&mean| BITS_PER_CCE as f32 * information(mean)));
        let recall = self.recall();
        // Bayes' rule: where nothing was read, nothing was sent, or what was sent could not be read.
        let believed = recall.min(MOST_RECALL);
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
        let per_cce = unread / (self.unread_cces + never_read).max(f32::MIN_POSITIVE);
        let (messages, prbs) = (per_cce * messages, per_cce * messages * prbs_of_one);
        // What is not sure to a thousandth need not be told to a billionth.
        let rounded = |amount: f32| f64::from(libm::roundf(amount * 1e3)) / 1e3;
        Missed {
            recall: rounded(recall),
            messages: rounded(messages),
            cces: rounded(unread),
            prbs: rounded(prbs),
        }
    }

    /// The part of this cell's messages that can be read where CCEs have `self.information`.
    ///
    /// If fewer CCEs were loud and unread than the read messages stand for, there are fewer unread messages; if more, some
    /// are of kinds that are never read.
    fn recall(&self) -> f32 {
        let cces = self.information.len();
        let bits = self.bits / (self.read.iter().sum::<f32>() + self.unread.iter().sum::<f32>());
        let factor = if self.unread_cces > 0.0 { (self.loud_cces / self.unread_cces).min(1.0) } else { 1.0 };
        let (mut read, mut messages) = (0.0, 0.0);
        for (at, &level) in LEVELS.iter().enumerate() {
            let places = cces / usize::from(level);
            let places = (0..places).map(|at| Place { cce: at as u16 * u16::from(level), cces: level });
            let of = places.clone().map(|place| self.chance_at(place, bits)).sum::<f32>();
            let count = self.read[at] + factor * self.unread[at];
            read += count * of / places.len().max(1) as f32;
            messages += count;
        }
        (read / (messages + self.never_read())).clamp(0.0, 1.0)
    }

    /// Messages of kinds of which none is read, so that no read message stands for them.
    ///
    /// Chosen: each takes one CCE, as these have the least information; it grants what those grant that are hardly read.
    fn never_read(&self) -> f32 {
        (self.loud_cces - self.unread_cces).max(0.0)
    }

    fn chance_at(&self, place: Place, bits: f32) -> f32 {
        let information: f32 = self.information.get(place.range()).map_or(0.0, |cces| cces.iter().sum());
        chance(place.cces, information / bits)
    }

    /// Learns from messages that were read.
    fn learn(&mut self, found: &[Found]) {
        let keep = 1.0 - 1.0 / SUBFRAMES;
        self.read.iter_mut().chain(&mut self.unread).for_each(|count| *count *= keep);
        self.bits *= keep;
        self.loud_cces *= keep;
        self.unread_cces *= keep;
        self.unread_prbs *= keep;
        for found in found {
            let bits = f32::from(found.payload.len()) + 16.0;
            let chance = self.chance_at(found.place, bits).max(LEAST_CHANCE);
            let level = LEVELS.iter().position(|level| *level == found.place.cces).unwrap_or(0);
            let unread = ((1.0 - chance) / chance).max(LEAST_WEIGHT);
            self.read[level] += 1.0;
            self.unread[level] += unread;
            self.bits += bits * (1.0 + unread);
            let downlink = found.dci.filter(|dci| dci.direction == Direction::Downlink);
            self.unread_cces += unread * f32::from(found.place.cces);
            self.unread_prbs += unread * downlink.map_or(0.0, |dci| f32::from(dci.prbs.len()));
        }
    }
}
