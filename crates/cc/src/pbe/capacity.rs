//! The physical capacity of one carrier for this device, averaged over the last RTprop subframes.
//!
//! ```text
//! Cf = Rw · Pcell / N                      fair share
//! Cp = Rw · (Pa + Pidle / N)               what this device may take now
//! Pidle = Pcell − Σ Pa of every user
//! ```
//!
//! Source: PBE-CC §4.1 Eq. 1; PBE-CC §4.1 Eq. 2; PBE-CC §4.2.1 Eq. 3; PBE-CC §4.2.1 Eq. 4

use std::collections::VecDeque;

use airpace_core::Direction;
use airpace_radio::{BitLayer, Dci, OwnRadio, RadioReport};

use crate::nr::TddPattern;

use super::harq::{HarqTiming, Timing};
use super::new_data::NewData;
use super::resources::{self, milli, symbols_of};
use super::unread::{Shared, heard, prbs};
use super::users::{UserFilter, Users, Weights};

/// Maximum averaging window, in subframes. It limits the memory use, whatever RTprop a header contains.
const MAX_WINDOW: u64 = 2_000;

/// Time constant, in subframes, of the long-term share of the carrier.
///
/// Chosen: a scheduler that is fair in the long run gives a new user nearly all PRBs for up to 0.7 s (it averages over
/// 1,000 subframes). With an average over two seconds, the phase after that is not mistaken for a missing queue.
const LONG_TERM_SUBFRAMES: f64 = 2_000.0;

/// Time constant, in subframes, of the average of the PRBs that are idle at present.
///
/// Chosen: 1.5 times the time of Npkt packets.
const RECENT_SUBFRAMES: f64 = 10.0;

/// Number of granted subframes over which retransmissions are counted. On NR, each granted slot counts as its part of a
/// subframe.
///
/// Chosen: if a tenth of the blocks fail, this number is sufficient to measure the block error rate so accurately that
/// the capacity has an error of a few percent.
const ERROR_SUBFRAMES: f64 = 500.0;

/// Weight of the error rate expected from the SINR, relative to the observed errors. The unit is one grant of the full
/// bandwidth.
const PRIOR_SUBFRAMES: f64 = 20.0;

/// Value of [`Averages::pull`] if users have weights.
///
/// Chosen: large enough to outweigh errors of a few percent in Ct, and small enough to leave few PRBs idle.
const PULL: f64 = 1.0 / 4.0;

/// The averages of one carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Averages {
    /// Rw: bits that one PRB carries in a subframe of LTE, or in a slot of NR with 13 data symbols.
    pub bits_per_prb: f64,
    /// Pa: PRBs granted to this device per subframe. All numbers of PRBs in this struct are per subframe. If a carrier
    /// has several slots per subframe, the numbers are sums over the slots. PRBs of NR count by their resource elements
    /// for data ([`resources`]).
    pub own_prbs: f64,
    /// Pidle: PRBs granted to no user.
    pub idle_prbs: f64,
    /// Pidle, averaged over the last few subframes only.
    pub recently_idle_prbs: f64,
    /// Pcell of Eq. 4: number of PRBs of the carrier. For a recorded trace, the number of its delivery opportunities.
    pub carrier_prbs: f64,
    /// N: number of users that share the carrier, this device included. With weights: the sum of all users' weights
    /// divided by this device's weight.
    pub users: f64,
    /// Fraction of the distance to its weighted share by which the device moves per round trip; 0 without weights.
    pub pull: f64,
    /// Size of a transport block, in bits, when the device uses its whole capacity.
    pub block_bits: f64,
    /// Signal to interference and noise ratio; `None` if no report contained it.
    pub sinr_db: Option<f64>,
    /// PRBs granted to this device for new data, averaged over seconds, weighted by the size of the grant.
    pub new_prbs: f64,
    /// PRBs granted to this device for retransmissions, averaged in the same way.
    pub retransmitted_prbs: f64,
    /// Ratio of the PRBs granted to this device to the device's fair share, averaged over seconds.
    pub long_term_share: f64,
    /// The layer whose bits are counted.
    pub layer: BitLayer,
}

impl Averages {
    /// Cp of this carrier, in bits per subframe.
    ///
    /// ```text
    /// Cp = Rw · (x + pull · (Pexp − x)),  x = Pa + Pidle / N
    /// ```
    ///
    /// Source: PBE-CC §4.2.1 Eq. 3
    /// Differs: with weights, the term with `pull` is added. If no PRBs are idle, any division of the PRBs is an
    /// equilibrium of Eq. 3: users would keep the equal shares that the scheduler assigned initially.
    pub fn capacity_bits(&self) -> f64 {
        let prbs = self.own_prbs + self.idle_prbs / self.users;
        self.bits_per_prb * (prbs + self.pull * (self.fair_share_prbs() - prbs))
    }

    /// Cf of this carrier, in bits per subframe.
    ///
    /// Source: PBE-CC §4.1 Eq. 2
    pub fn fair_share_bits(&self) -> f64 {
        self.bits_per_prb * self.fair_share_prbs()
    }

    /// PRBs for retransmissions per PRB of new data: the observed ratio, combined with `expected` as a prior until
    /// enough grants were observed.
    pub fn retransmissions(&self, expected: f64) -> f64 {
        let prior = PRIOR_SUBFRAMES * self.carrier_prbs;
        (self.retransmitted_prbs + expected * prior) / (self.new_prbs + prior)
    }

    /// Pexp: the expected fair share, in PRBs.
    ///
    /// Source: PBE-CC §4.1 Eq. 1
    pub fn fair_share_prbs(&self) -> f64 {
        self.carrier_prbs / self.users
    }
}

/// The part of one slot's report from which this device's capacity is computed. PRBs are in thousandths
/// ([`resources`]).
#[derive(Clone, Copy, Debug)]
struct Sample {
    subframe: u64,
    /// Whether the slot has downlink symbols.
    is_downlink: bool,
    carrier_prbs: u64,
    /// PRBs of the device's decoded grants, in this sample's slot.
    read_prbs: u64,
    /// PRBs of decoded grants for retransmissions. `unsure_prbs`: PRBs of grants for blocks that may be new or
    /// retransmissions.
    retransmitted_prbs: u64,
    unsure_prbs: u64,
    shared: Shared,
    /// Total PRBs of the own grants whose block size is known. The next fields are the bits, the blocks and the number
    /// of these grants.
    rated_prbs: u64,
    rated_bits: u64,
    rated_blocks: u64,
    rated_grants: u64,
    /// Bits per PRB at the current channel quality, in thousandths of a bit; 0 in an uplink slot, where no data can be
    /// sent to the device.
    promised_millibits: u64,
    sinr_millidb: Option<i64>,
}

/// Sums of the samples in the window. They are integers, so adding and removing a sample leaves no rounding error.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    carrier_prbs: u64,
    shared: Shared,
    rated_prbs: u64,
    rated_bits: u64,
    rated_blocks: u64,
    rated_grants: u64,
    promised_millibits: u64,
    /// Number of slots with downlink symbols.
    downlink_slots: u64,
    sinr_millidb: i64,
    /// Number of samples with a SINR.
    sinr_samples: u64,
}

/// One carrier as measured by this device. The computation takes constant time per subframe.
#[derive(Clone, Debug)]
pub struct Carrier {
    weights: Weights,
    users: Users,
    /// Samples that are not yet aligned with the other carriers.
    pending: VecDeque<Sample>,
    window: VecDeque<Sample>,
    sums: Sums,
    long_term_share: f64,
    recently_idle_prbs: f64,
    new_data: NewData,
    harq: HarqTiming,
    new_prbs: f64,
    retransmitted_prbs: f64,
    layer: BitLayer,
    /// Slots per subframe.
    slots: f64,
    /// PRBs per subframe in grants to other users that could not be decoded.
    unnamed_prbs: f64,
}

impl Carrier {
    /// A carrier that was just activated; earlier data is discarded.
    pub fn new(filter: UserFilter, weights: Weights) -> Carrier {
        Carrier {
            weights,
            users: Users::new(filter),
            pending: VecDeque::new(),
            window: VecDeque::new(),
            sums: Sums::default(),
            long_term_share: 1.0,
            recently_idle_prbs: 0.0,
            new_data: NewData::default(),
            harq: HarqTiming::default(),
            new_prbs: 0.0,
            retransmitted_prbs: 0.0,
            layer: BitLayer::Physical,
            slots: 1.0,
            unnamed_prbs: 0.0,
        }
    }

    /// Processes the report of one slot whose PRBs are divided as in `shared`. Users are counted over the last
    /// `users_window` decoded subframes.
    pub fn on_report(&mut self, report: &RadioReport, shared: Shared, own: &OwnRadio, users_window: u64) {
        self.layer = report.layer;
        self.slots = report.slot.numerology.slots_per_subframe() as f64;
        let is_downlink = report.symbols != Some(0);
        if is_downlink {
            self.users.on_subframe(report, own.rnti, users_window.clamp(1, MAX_WINDOW), heard(report));
        } else {
            self.users.on_uplink_slot(report);
        }
        let sample = Sample::new(report, shared, own, &mut self.new_data, &mut self.harq);
        let carrier_prbs = sample.carrier_prbs;
        if carrier_prbs > 0 {
            let share = prbs(shared.own) * self.claimants() / prbs(carrier_prbs);
            self.long_term_share += (share - self.long_term_share) / (LONG_TERM_SUBFRAMES * self.slots);
        }
        if is_downlink {
            let downlink = report.dcis.iter().filter(|dci| dci.direction == Direction::Downlink);
            let read = resources::granted(report, downlink).saturating_sub(sample.read_prbs);
            let unnamed =
                (prbs(carrier_prbs.saturating_sub(read)) - prbs(shared.own) - prbs(shared.idle)).max(0.0);
            self.unnamed_prbs +=
                (unnamed * self.slots - self.unnamed_prbs) / (users_window.max(1) as f64 * self.slots);
        }
        let recent = RECENT_SUBFRAMES * self.slots;
        self.recently_idle_prbs += (prbs(shared.idle) * self.slots - self.recently_idle_prbs) / recent;
        if sample.read_prbs > sample.unsure_prbs {
            // Each grant is weighted by its size. A device that uses its whole capacity gets large blocks, which fail
            // more often. The weight is the size of the whole grant, even if only one of its codewords is a
            // retransmission.
            let band = if carrier_prbs > 0 { prbs(carrier_prbs) } else { 1.0 };
            let weight = prbs(sample.read_prbs) / band;
            let keep = 1.0 - 1.0 / (ERROR_SUBFRAMES * self.slots);
            let (again, own) = (prbs(sample.retransmitted_prbs), prbs(sample.read_prbs - sample.unsure_prbs));
            self.new_prbs = self.new_prbs * keep + weight * (own - again);
            self.retransmitted_prbs = self.retransmitted_prbs * keep + weight * again;
        }
        self.pending.push_back(sample);
        if self.pending.len() as u64 > MAX_WINDOW * report.slot.numerology.slots_per_subframe() {
            self.pending.pop_front();
        }
    }

    /// Moves the averaging window to the last `subframes` subframes up to `head`.
    pub fn advance(&mut self, head: u64, subframes: u64) {
        while let Some(&sample) = self.pending.front()
            && sample.subframe <= head
        {
            self.pending.pop_front();
            self.window.push_back(sample);
            self.sums.add(&sample);
        }
        let subframes = subframes.clamp(1, MAX_WINDOW);
        while let Some(&sample) = self.window.front()
            && sample.subframe + subframes <= head
        {
            self.window.pop_front();
            self.sums.remove(&sample);
        }
    }

    /// The averages over the window; `None` if the window contains no subframe.
    ///
    /// Source: PBE-CC §4.2.1
    pub fn averages(&self) -> Option<Averages> {
        let slots = self.window.len() as f64;
        if self.window.is_empty() {
            return None;
        }
        // Subframes are counted, not slots: the PRBs of all slots of a subframe are summed, so that rates are in bits
        // per subframe.
        let count = slots / self.slots;
        let sums = &self.sums;
        let granted = sums.rated_prbs > 0;
        let mut averages = Averages {
            bits_per_prb: self.bits_per_prb(),
            own_prbs: prbs(sums.shared.own) / count,
            idle_prbs: prbs(sums.shared.idle) / count,
            recently_idle_prbs: self.recently_idle_prbs,
            carrier_prbs: prbs(sums.carrier_prbs) / count,
            users: self.claimants(),
            pull: if self.weights == Weights::Rate { PULL } else { 0.0 },
            block_bits: 0.0,
            sinr_db: (sums.sinr_samples > 0)
                .then(|| sums.sinr_millidb as f64 * 1e-3 / sums.sinr_samples as f64),
            new_prbs: self.new_prbs,
            retransmitted_prbs: self.retransmitted_prbs,
            long_term_share: self.long_term_share,
            layer: self.layer,
        };
        // If the scheduler gives whole subframes to one user at a time, blocks are larger than the mean capacity
        // suggests. A grant with two codewords is divided into two blocks.
        let mean_grant = if granted { sums.rated_bits as f64 / sums.rated_grants as f64 } else { 0.0 };
        let codewords = if granted { sums.rated_blocks as f64 / sums.rated_grants as f64 } else { 1.0 };
        averages.block_bits = (averages.capacity_bits() / self.slots).max(mean_grant) / codewords;
        Some(averages)
    }

    /// Rw: bits per PRB in the recent grants or, without grants, according to the channel quality.
    fn bits_per_prb(&self) -> f64 {
        let sums = &self.sums;
        match sums.rated_prbs {
            0 => sums.promised_millibits as f64 * 1e-3 / sums.downlink_slots.max(1) as f64,
            rated => sums.rated_bits as f64 / prbs(rated),
        }
    }

    /// N. With weights, it is the sum of all users' weights divided by this device's weight.
    fn claimants(&self) -> f64 {
        match self.weights {
            Weights::Equal => f64::from(self.users()),
            Weights::Rate => self.users.weighted(self.bits_per_prb()),
        }
    }

    /// Whether at most `most_idle` of the carrier's PRBs were idle in the last few subframes.
    pub fn is_full(&self, most_idle: f64) -> bool {
        let subframes = self.window.len() as f64 / self.slots;
        subframes > 0.0 && self.recently_idle_prbs <= most_idle * prbs(self.sums.carrier_prbs) / subframes
    }

    /// The delays that the radio adds on this carrier, which has the TDD pattern `pattern`.
    pub fn timing(&self, pattern: &TddPattern) -> Timing {
        self.harq.timing(pattern)
    }

    /// Number of users that share the carrier. If no other user was decoded, but undecoded grants take as many PRBs as
    /// the grants of a data user, at least one other user is assumed.
    pub fn users(&self) -> u32 {
        let least = if self.unnamed_prbs > f64::from(self.users.active_prbs()) { 2 } else { 1 };
        self.users.count().max(least)
    }
}

impl Sample {
    fn new(
        report: &RadioReport,
        shared: Shared,
        own: &OwnRadio,
        new_data: &mut NewData,
        harq: &mut HarqTiming,
    ) -> Sample {
        let is_downlink = report.symbols != Some(0);
        let mut sample = Sample {
            subframe: report.slot.subframe(),
            is_downlink,
            carrier_prbs: resources::carrier(report),
            read_prbs: 0,
            retransmitted_prbs: 0,
            unsure_prbs: 0,
            shared,
            rated_prbs: 0,
            rated_bits: 0,
            rated_blocks: 0,
            rated_grants: 0,
            // The cast with `as` maps NaN and negative values to zero.
            promised_millibits: own
                .bits_per_prb
                .filter(|_| is_downlink)
                .map_or(0, |bits| libm::round(bits * 1e3) as u64),
            sinr_millidb: own.sinr_db.map(|sinr_db| libm::round(sinr_db * 1e3) as i64),
        };
        new_data.on_report(report);
        let is_its = |dci: &&Dci| dci.rnti == own.rnti && dci.direction == Direction::Downlink;
        for dci in report.dcis.iter().filter(is_its) {
            let symbols = symbols_of(dci, report);
            let prbs = u64::from(dci.prbs.len());
            let blocks = new_data.split(dci);
            if let Some(process) = dci.harq {
                harq.on_grant(report.slot, process, blocks.again > 0);
            }
            sample.unsure_prbs += milli(prbs * blocks.unknown / blocks.all().max(1), symbols);
            if blocks.again > 0 || blocks.unknown > 0 && has_reserved_mcs(dci) {
                // Retransmissions use PRBs, but a reserved MCS does not determine the number of bits.
                sample.retransmitted_prbs += milli(prbs * blocks.again / blocks.all(), symbols);
            } else if dci.bits().0 > 0 {
                sample.rated_prbs += milli(prbs, symbols);
                sample.rated_bits += dci.bits().0;
                sample.rated_blocks += dci.tbs.iter().filter(|bits| bits.0 > 0).count() as u64;
                sample.rated_grants += 1;
            }
        }
        sample.read_prbs = resources::granted(report, report.dcis.iter().filter(is_its));
        sample.retransmitted_prbs = sample.retransmitted_prbs.min(sample.read_prbs);
        sample.unsure_prbs = sample.unsure_prbs.min(sample.read_prbs - sample.retransmitted_prbs);
        sample
    }
}

/// Whether the MCS of a block is reserved. A reserved MCS only gives the modulation of a retransmission.
///
/// Source: TS 36.213 §7.1.7.1
fn has_reserved_mcs(dci: &Dci) -> bool {
    dci.mcs.iter().flatten().any(|&mcs| mcs > 28)
}

impl Sums {
    fn add(&mut self, sample: &Sample) {
        self.carrier_prbs += sample.carrier_prbs;
        self.shared.own += sample.shared.own;
        self.shared.idle += sample.shared.idle;
        self.rated_prbs += sample.rated_prbs;
        self.rated_bits += sample.rated_bits;
        self.rated_blocks += sample.rated_blocks;
        self.rated_grants += sample.rated_grants;
        self.promised_millibits += sample.promised_millibits;
        self.downlink_slots += u64::from(sample.is_downlink);
        self.sinr_millidb += sample.sinr_millidb.unwrap_or(0);
        self.sinr_samples += u64::from(sample.sinr_millidb.is_some());
    }

    fn remove(&mut self, sample: &Sample) {
        self.carrier_prbs -= sample.carrier_prbs;
        self.shared.own -= sample.shared.own;
        self.shared.idle -= sample.shared.idle;
        self.rated_prbs -= sample.rated_prbs;
        self.rated_bits -= sample.rated_bits;
        self.rated_blocks -= sample.rated_blocks;
        self.rated_grants -= sample.rated_grants;
        self.promised_millibits -= sample.promised_millibits;
        self.downlink_slots -= u64::from(sample.is_downlink);
        self.sinr_millidb -= sample.sinr_millidb.unwrap_or(0);
        self.sinr_samples -= u64::from(sample.sinr_millidb.is_some());
    }
}
