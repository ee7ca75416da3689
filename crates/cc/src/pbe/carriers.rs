//! Aligns the reports of several carriers by subframe, and sums their capacities.
//!
//! All carriers are averaged over the same subframes. A late carrier delays the others by a few milliseconds at most. A
//! carrier without reports counts as missing until its next report. A carrier on which most grants are not decoded
//! counts as missing until most grants are decoded again.
//!
//! Source: PBE-CC §5

use airpace_core::Direction;
use airpace_radio::{BitLayer, CarrierId, OwnRadio, RadioReport, Scope};

use crate::nr::{TddPattern, aligned, common_alignment};

use super::capacity::{Averages, Carrier};
use super::explained::Explained;
use super::harq::Timing;
use super::legs::Legs;
use super::resources::{self, MILLI};
use super::translation::{BlockSize, Coding, Translation};
use super::unread::{Unread, prbs};
use super::users::{UserFilter, Weights};

/// Maximum number of subframes for which the other carriers wait for a late carrier.
///
/// Chosen: decoding takes 1–5 ms.
const WAIT_SUBFRAMES: u64 = 10;

/// Number of subframes without a report after which a carrier is missing.
///
/// Chosen: twice the wait.
const MISSING_SUBFRAMES: u64 = 20;

/// Maximum share of the device's own grants that were not decoded, and maximum share of reports that were refused.
/// Above this share, the carrier counts as missing.
///
/// Differs: the paper trusts its decoder. But a decoder that decodes nothing makes the cell look idle. So does a
/// decoder that decodes only the subframes with few messages.
///
/// Chosen: far above the share that a working decoder misses.
const UNREAD_SHARE: f64 = 0.5;
/// The corresponding limit for reports that state how many messages they missed: maximum share of messages that could
/// not be decoded. Above this share, estimates have almost no basis. For the device's own grants, the limit
/// [`UNREAD_SHARE`] rises by the share that these reports expect to miss.
///
/// Chosen: at this share, one message in ten is decoded. Some messages of each user are then decoded within a tenth of
/// a second.
const DEAF_SHARE: f64 = 0.9;
/// Number of own grants over which the share of missed grants is averaged, for each slot of a subframe.
const UNREAD_GRANTS: f64 = 16.0;
/// Number of subframes over which the share of missed messages is averaged.
///
/// Chosen: a tenth of a second. If a burst makes a few tens of subframes unreadable, the carrier does not count as
/// missing.
const UNREAD_SUBFRAMES: f64 = 100.0;

/// Settings of the carrier measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Criteria for a user to be counted.
    pub filter: UserFilter,
    /// How the scheduler divides the carrier among the users.
    pub weights: Weights,
    /// Whether a carrier counts as missing if most of its reports, or most of the device's own grants, were not
    /// completely decoded.
    pub unread_test: bool,
    /// Whether reports that lack grants are used if they state how much they missed.
    pub estimates: bool,
    /// Number of subframes over which users are counted; `None` for RTprop.
    pub users_window: Option<u64>,
    /// The block size used in Eq. 5.
    pub block: BlockSize,
    /// Whether retransmissions are counted, instead of predicted from the SINR.
    pub count_retransmissions: bool,
    /// γ: fraction of the physical capacity used by headers.
    pub overhead: f64,
    /// A subframe is full if at most this fraction of its PRBs is idle.
    pub full_idle_share: f64,
}

/// All carriers of the device.
#[derive(Clone, Debug)]
pub struct Carriers {
    measure: Measure,
    translation: Translation,
    /// The carriers with at least one report, sorted by the carrier's identifier.
    carriers: Vec<Listened>,
    newest: u64,
    head: u64,
    /// Averaging window (RTprop), in subframes. It is rounded up to whole TDD periods.
    window: u64,
    activations: u8,
    explained: Explained,
    legs: Legs,
}

#[derive(Clone, Debug)]
struct Listened {
    id: CarrierId,
    active: bool,
    last: u64,
    /// The last subframe whose last slot was reported, as far as the last report shows it.
    complete: u64,
    pattern: TddPattern,
    /// Share of the device's recent grants that were not decoded: the device received data without a decoded grant.
    unread_grants: f64,
    /// Share of the device's grants that the reports expect to have missed.
    expected_unread: f64,
    /// Average over the recent reports of the share of messages that could not be decoded; a report that cannot be used
    /// counts as 1.
    unread_reports: f64,
    /// Whether the last incomplete report stated how much it missed.
    tells: bool,
    unread: Unread,
    carrier: Carrier,
}

impl Listened {
    fn new(id: CarrierId, carrier: Carrier) -> Listened {
        Listened {
            id,
            active: false,
            last: 0,
            complete: 0,
            pattern: TddPattern::default(),
            unread_grants: 0.0,
            expected_unread: 0.0,
            unread_reports: 0.0,
            tells: false,
            unread: Unread::default(),
            carrier,
        }
    }

    /// Compares decoded grants with the data that the modem received. `unread` is the share of messages that the report
    /// expects to have missed.
    fn compare(&mut self, report: &RadioReport, own: &OwnRadio, unread: f64) {
        if own.decoded.is_none() {
            return;
        }
        let is_read =
            report.dcis.iter().any(|dci| dci.rnti == own.rnti && dci.direction == Direction::Downlink);
        let grants = UNREAD_GRANTS * report.slot.numerology.slots_per_subframe() as f64;
        self.unread_grants += (if is_read { 0.0 } else { 1.0 } - self.unread_grants) / grants;
        self.expected_unread += (unread - self.expected_unread) / grants;
    }

    /// Whether the carrier has no recent report. `newest` is the newest subframe of all carriers.
    fn is_missing(&self, newest: u64) -> bool {
        self.last + MISSING_SUBFRAMES < newest
    }

    /// Whether the carrier's reports must be ignored: too many messages were not decoded, or more own grants were
    /// missed than the reports expect.
    fn is_unread(&self) -> bool {
        let most = if self.tells { DEAF_SHARE } else { UNREAD_SHARE };
        self.unread_reports > most || self.unread_grants > UNREAD_SHARE + self.expected_unread
    }
}

/// Transport-layer rates over all active carriers, in bits per subframe, and the values from which they are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellState {
    /// Cp: physical capacity.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 3
    pub physical_bits: f64,
    /// The part of Cp that is granted to this device: Rw · Pa.
    pub own_bits: f64,
    /// Ct: the capacity for the transport layer, which is Cp without headers and retransmissions.
    pub capacity_bits: f64,
    /// Cf: the fair share for the transport layer.
    pub fair_share_bits: f64,
    /// PRBs granted to no user.
    pub idle_prbs: f64,
    /// Minimum share of idle PRBs over the carriers. For each carrier, the lower of the averages over RTprop and over
    /// the last few subframes counts.
    pub idle_share: f64,
    /// PRBs granted to this device.
    pub own_prbs: f64,
    /// PRBs of all counted carriers.
    pub carrier_prbs: f64,
    /// Ratio of the PRBs granted to this device to the device's fair share, averaged over seconds. It is one if there
    /// are no PRBs in the window, as in an outage.
    pub long_term_share: f64,
    /// Number of users per carrier, averaged with the carriers' PRBs as weights.
    pub users: f64,
    /// Number of carriers that are counted. Carriers of a leg of EN-DC that the network does not use are neither counted
    /// nor missing.
    pub carriers: u8,
    /// Number of active carriers without recent reports or with mostly undecoded messages.
    pub missing: u8,
    /// Maximum over the carriers of the share of messages that recently could not be decoded.
    pub lacking: f64,
    /// Delays that the radio adds without a queue: the maximum over the counted carriers; those of LTE if there is no
    /// counted carrier.
    pub timing: Timing,
}

/// Threshold of the long-term share below which the device has no queue in the cell.
///
/// Chosen: a backlogged device gets its fair share in the long run.
const BACKLOGGED_SHARE: f64 = 0.6;

impl CellState {
    /// The part of Ct that corresponds to the PRBs already granted to the device. This part depends neither on idle
    /// PRBs nor on other users.
    pub fn own_capacity_bits(&self) -> f64 {
        if self.physical_bits > 0.0 {
            self.capacity_bits * (self.own_bits / self.physical_bits).min(1.0)
        } else {
            0.0
        }
    }

    /// Whether the cell has given the device so little over seconds that the cell cannot have a queue for it.
    pub fn is_passed_over(&self) -> bool {
        self.long_term_share < BACKLOGGED_SHARE
    }
}

impl Carriers {
    /// The state before the first report.
    pub fn new(measure: Measure) -> Carriers {
        Carriers {
            measure,
            translation: Translation::new(measure.block, measure.overhead),
            carriers: Vec::new(),
            newest: 0,
            head: 0,
            // Chosen: 40 subframes, the paper's example, until the sender reports RTprop.
            window: 40,
            activations: 0,
            explained: Explained::new(measure.full_idle_share),
            legs: Legs::default(),
        }
    }

    /// Sets the averaging window, in subframes.
    pub fn set_window(&mut self, subframes: u64) {
        self.window = subframes.max(1);
    }

    /// Processes the report of one slot of one carrier. Returns false if the report cannot be used, because it lacks
    /// the device's own part, or because it lacks grants of other users and states neither the idle PRBs nor their
    /// possible number.
    pub fn on_report(&mut self, report: &RadioReport) -> bool {
        let Some(own) = &report.own else { return false };
        let at = match self.carriers.binary_search_by_key(&report.carrier, |listened| listened.id) {
            Ok(at) => at,
            Err(at) => {
                let listened =
                    Listened::new(report.carrier, Carrier::new(self.measure.filter, self.measure.weights));
                self.carriers.insert(at, listened);
                at
            }
        };
        let listened = &mut self.carriers[at];
        listened.pattern.on_report(report);
        let slots = report.slot.numerology.slots_per_subframe() as f64;
        let missed = report.missed().filter(|_| self.measure.estimates);
        let expected = missed.map_or(0.0, |missed| 1.0 - missed.recall);
        listened.compare(report, own, expected);
        let is_whole = report.scope == Scope::Everyone && report.idle_prbs().is_some();
        let is_of_use = missed.is_some() || is_whole;
        let unread = if is_of_use { expected } else { 1.0 };
        // An uplink slot has no downlink grants that could be missed.
        if report.symbols != Some(0) {
            listened.unread_reports += (unread - listened.unread_reports) / (UNREAD_SUBFRAMES * slots);
            if unread > 0.0 {
                listened.tells = missed.is_some();
            }
        }
        let shared = listened.unread.share(report, own);
        let Some(shared) = shared.filter(|_| is_of_use) else { return false };
        let subframe = report.slot.subframe();
        if own.active && !self.carriers[at].active {
            self.carriers[at].carrier = Carrier::new(self.measure.filter, self.measure.weights);
            self.legs.on_use(self.carriers[at].pattern.is_nr(), subframe);
            if self.carriers.iter().any(|listened| listened.active) {
                self.activations = self.activations.wrapping_add(1);
            }
        }
        let listened = &mut self.carriers[at];
        listened.active = own.active;
        listened.last = subframe;
        listened.complete = if report.slot.ends_subframe() { subframe } else { subframe.saturating_sub(1) };
        if own.active {
            let users_window = self.measure.users_window.unwrap_or(self.window);
            listened.carrier.on_report(report, shared, own, users_window);
            // If the channel permits no data, idle PRBs are of no use to the device: data waits in the cell although
            // PRBs are idle. Idle PRBs of a leg that the network does not use are of no use either.
            if !self.legs.is_unused(listened.pattern.is_nr()) {
                let can_use = own.bits_per_prb.is_none_or(|bits| bits > 0.0);
                let usable_prbs = if can_use { prbs(shared.idle) } else { 0.0 };
                let carrier_prbs = (resources::carrier(report) + MILLI / 2) / MILLI;
                self.explained.on_report(subframe, usable_prbs, carrier_prbs.try_into().unwrap_or(u16::MAX));
            }
        }
        self.newest = self.newest.max(subframe);
        self.advance();
        if own.active {
            self.update_legs(at, subframe, shared.own > 0);
        }
        true
    }

    /// Processes a slot of carrier `at` for the legs of EN-DC. `is_used`: whether the device has a grant in it.
    fn update_legs(&mut self, at: usize, subframe: u64, is_used: bool) {
        let is_nr = self.carriers[at].pattern.is_nr();
        if is_used {
            self.legs.on_use(is_nr, subframe);
        }
        let is_present = |listened: &&Listened| listened.active && !listened.is_missing(self.newest);
        let its = self.carriers.iter().filter(is_present);
        let most_idle = self.measure.full_idle_share;
        if its.clone().any(|other| other.pattern.is_nr() != is_nr) {
            let mut its = its.filter(|other| other.pattern.is_nr() == is_nr);
            let is_full = its.all(|listened| listened.carrier.is_full(most_idle));
            self.legs.on_state(is_nr, subframe, is_full);
        } else {
            // The leg is the only one.
            self.legs.on_use(is_nr, subframe);
        }
    }

    /// Advances the averages to the last subframe that all carriers have reported.
    fn advance(&mut self) {
        let newest = self.newest;
        let active = self.carriers.iter().filter(|listened| listened.active);
        let heard = active.clone().filter(|listened| listened.last + WAIT_SUBFRAMES >= newest);
        let slowest = heard.map(|listened| listened.complete).min().unwrap_or(newest);
        self.head = self.head.max(slowest);
        // A window with a part of a TDD period would contain too many or too few uplink slots.
        let alignment = common_alignment(active.map(|listened| listened.pattern.alignment()));
        let window = aligned(self.window, alignment);
        for listened in &mut self.carriers {
            listened.carrier.advance(self.head, window);
        }
    }

    /// The sum over the active carriers.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 3; PBE-CC §4.1
    pub fn state(&mut self) -> CellState {
        // If there are no PRBs in the window, as in an outage, the long-term share is one.
        let mut state = CellState { long_term_share: 1.0, ..CellState::default() };
        let mut long_term_prbs = 0.0;
        let mut users_prbs = 0.0;
        let mut idle_share = f64::INFINITY;
        let mut timing: Option<Timing> = None;
        let (mut capacity_sum, mut fair_share_sum) = (0.0, 0.0);
        let (mut sinr_sum, mut sinr_prbs) = (0.0, 0.0);
        let Carriers { carriers, translation, measure, newest, legs, .. } = self;
        let as_one = measure.block == BlockSize::Capacity && !measure.count_retransmissions;
        for listened in carriers.iter().filter(|listened| listened.active) {
            state.lacking = state.lacking.max(listened.unread_reports);
            let is_unread = measure.unread_test && listened.is_unread();
            if listened.is_missing(*newest) || is_unread {
                state.missing += 1;
                continue;
            }
            if legs.is_unused(listened.pattern.is_nr()) {
                continue;
            }
            let Some(averages) = listened.carrier.averages() else { continue };
            state.carriers += 1;
            let its = listened.carrier.timing(&listened.pattern);
            timing = Some(timing.map_or(its, |timing| timing.max(its)));
            state.physical_bits += averages.capacity_bits();
            state.own_bits += averages.bits_per_prb * averages.own_prbs;
            state.idle_prbs += averages.idle_prbs;
            // A carrier without PRBs (a gap in a trace) has no idle PRBs.
            let idle_prbs = averages.idle_prbs.min(averages.recently_idle_prbs);
            idle_share =
                idle_share.min(if idle_prbs > 0.0 { idle_prbs / averages.carrier_prbs } else { 0.0 });
            state.own_prbs += averages.own_prbs;
            state.carrier_prbs += averages.carrier_prbs;
            long_term_prbs += averages.long_term_share * averages.carrier_prbs;
            users_prbs += averages.users * averages.carrier_prbs;
            if as_one && averages.layer == BitLayer::Physical {
                capacity_sum += averages.capacity_bits();
                fair_share_sum += averages.fair_share_bits();
                if let Some(sinr_db) = averages.sinr_db {
                    sinr_sum += sinr_db * averages.carrier_prbs;
                    sinr_prbs += averages.carrier_prbs;
                }
            } else {
                let coding = if listened.pattern.is_nr() { Coding::Nr } else { Coding::Lte };
                let (capacity, fair_share) = translate(translation, &averages, measure, coding);
                state.capacity_bits += capacity;
                state.fair_share_bits += fair_share;
            }
        }
        if capacity_sum > 0.0 || fair_share_sum > 0.0 {
            // The paper applies Eq. 5 once to the sum of the carriers.
            let sinr_db = (sinr_prbs > 0.0).then(|| sinr_sum / sinr_prbs);
            state.capacity_bits += translation.goodput(capacity_sum, 0.0, sinr_db);
            state.fair_share_bits += translation.goodput(fair_share_sum, 0.0, sinr_db);
        }
        if state.carrier_prbs > 0.0 {
            state.long_term_share = long_term_prbs / state.carrier_prbs;
            state.users = users_prbs / state.carrier_prbs;
            state.idle_share = idle_share;
        }
        state.timing = timing.unwrap_or_default();
        state
    }

    /// The record of full subframes that explain a delay.
    pub fn explained(&self) -> &Explained {
        &self.explained
    }

    /// Number of activations of a carrier while another carrier was active, modulo 256.
    pub fn activations(&self) -> u8 {
        self.activations
    }
}

/// Ct and Cf of one carrier.
fn translate(
    translation: &mut Translation,
    averages: &Averages,
    measure: &Measure,
    coding: Coding,
) -> (f64, f64) {
    let (capacity, fair_share) = (averages.capacity_bits(), averages.fair_share_bits());
    match averages.layer {
        BitLayer::Transport => (capacity, fair_share),
        BitLayer::Physical if measure.count_retransmissions => {
            // Differs: Eq. 5 with the observed error rate. The error rate that the paper computes from the SINR was
            // measured in the paper's cells. If blocks are sent in pairs, the retransmission of one failed block takes
            // the PRBs of two blocks.
            let expected = translation.coded_block_error(averages.block_bits, averages.sinr_db, coding);
            let share = (1.0 - measure.overhead) / (1.0 + averages.retransmissions(expected));
            (capacity * share, fair_share * share)
        }
        BitLayer::Physical => {
            let (block_bits, sinr_db) = (averages.block_bits, averages.sinr_db);
            let mut goodput = |bits| translation.coded_goodput(bits, block_bits, sinr_db, coding);
            (goodput(capacity), goodput(fair_share))
        }
    }
}
