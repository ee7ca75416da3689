//! Aligns the reports of several carriers by subframe, and sums their capacities.
//!
//! Every carrier is averaged over the same subframes. A late carrier delays the others by a few milliseconds at most.
//! A silent carrier counts as missing until its next report, and one that is hardly read until it is read again.
//!
//! Source: PBE-CC §5

use airpace_core::Direction;
use airpace_radio::{BitLayer, CarrierId, OwnRadio, RadioReport};

use super::capacity::{Averages, Carrier};
use super::explained::Explained;
use super::translation::{BlockSize, Translation};
use super::unread::{MILLI, Unread};
use super::users::{UserFilter, Weights};

/// How long the others wait for a late carrier, in subframes.
///
/// Chosen: decoding takes 1–5 ms.
const WAIT_SUBFRAMES: u64 = 10;

/// A carrier without reports for this many subframes is missing.
///
/// Chosen: twice the wait.
const MISSING_SUBFRAMES: u64 = 20;

/// A carrier counts as missing if more than this share of the device's own grants on it was not read, or of its
/// reports was refused.
///
/// Differs: the paper trusts its decoder. But a decoder that reads nothing makes the cell look idle. So does one that
/// can read only the subframes in which little is sent.
///
/// Chosen: far above the share that a working decoder misses.
const UNREAD_SHARE: f64 = 0.5;
/// The same for reports that tell how much they missed: of the messages, the share that could not be read. Above, estimates
/// rest on next to nothing. Of the device's own grants, so much more may be missed than these reports expect.
///
/// Chosen: at that share one message of ten is read, some of each user in a tenth of a second.
const DEAF_SHARE: f64 = 0.9;
/// The number of own grants over which that share is averaged.
const UNREAD_GRANTS: f64 = 16.0;
/// The number of reports over which it is averaged.
///
/// Chosen: a tenth of a second. A burst that hides a few tens of subframes leaves the average over RTprop as it was.
const UNREAD_REPORTS: f64 = 100.0;

/// How the carriers are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Which users count.
    pub filter: UserFilter,
    /// How they share.
    pub weights: Weights,
    /// Whether a carrier counts as missing if most of its reports, or most of the device's own grants, were not read
    /// whole.
    pub unread_test: bool,
    /// Whether reports that lack grants are used if they tell how much they missed.
    pub estimates: bool,
    /// Subframes over which users are counted; `None` for RTprop.
    pub users_window: Option<u64>,
    /// What Eq. 5 is applied to.
    pub block: BlockSize,
    /// Whether retransmissions are counted, instead of expected from SINR.
    pub count_retransmissions: bool,
    /// γ: part of the physical capacity that headers take.
    pub overhead: f64,
    /// A subframe is full if at most this part of its PRBs is idle.
    pub full_idle_share: f64,
}

/// The device's carriers together.
#[derive(Clone, Debug)]
pub struct Carriers {
    measure: Measure,
    translation: Translation,
    /// Sorted by identity.
    carriers: Vec<Listened>,
    newest: u64,
    head: u64,
    /// RTprop, in subframes.
    window: u64,
    activations: u8,
    explained: Explained,
}

#[derive(Clone, Debug)]
struct Listened {
    id: CarrierId,
    active: bool,
    last: u64,
    /// Share of the device's own recent grants that were not read: the device got data without a grant that was read.
    unread_grants: f64,
    /// The share that reports expected to miss.
    expected_unread: f64,
    /// Share of the recent reports that do not hold everyone's grants, less what their messages could be read.
    unread_reports: f64,
    /// The last report that lacked something told how much.
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
            unread_grants: 0.0,
            expected_unread: 0.0,
            unread_reports: 0.0,
            tells: false,
            unread: Unread::default(),
            carrier,
        }
    }

    /// Compares what was read with what was sent to the device. `unread` is the part that the report expects to miss.
    fn compare(&mut self, report: &RadioReport, own: &OwnRadio, unread: f64) {
        if own.decoded.is_none() {
            return;
        }
        let is_read =
            report.dcis.iter().any(|dci| dci.rnti == own.rnti && dci.direction == Direction::Downlink);
        self.unread_grants += (if is_read { 0.0 } else { 1.0 } - self.unread_grants) / UNREAD_GRANTS;
        self.expected_unread += (unread - self.expected_unread) / UNREAD_GRANTS;
    }

    /// Whether so much was not read, or more was not read than reports tell, that the rest says nothing about the
    /// carrier.
    fn is_unread(&self) -> bool {
        let most = if self.tells { DEAF_SHARE } else { UNREAD_SHARE };
        self.unread_reports > most || self.unread_grants > UNREAD_SHARE + self.expected_unread
    }
}

/// Transport-layer rates over all active carriers, in bits per subframe, and the numbers that they come from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CellState {
    /// Cp: physical capacity.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 3
    pub physical_bits: f64,
    /// The part of it that is granted to this device: Rw · Pa.
    pub own_bits: f64,
    /// Ct: the part of Cp that is left for the transport.
    pub capacity_bits: f64,
    /// Cf: the transport's fair share.
    pub fair_share_bits: f64,
    /// PRBs granted to nobody.
    pub idle_prbs: f64,
    /// Least share of idle PRBs of any carrier. The share is the lesser of those over RTprop and over the last few
    /// subframes.
    pub idle_share: f64,
    /// PRBs granted to this device.
    pub own_prbs: f64,
    /// PRBs of the carriers.
    pub carrier_prbs: f64,
    /// PRBs given to this device ÷ its fair share, over seconds; one without PRBs in the window, as in an outage.
    pub long_term_share: f64,
    /// Users of the carriers, weighted by PRBs.
    pub users: f64,
    /// Carriers that are counted.
    pub carriers: u8,
    /// Active carriers that are silent or hardly read.
    pub missing: u8,
    /// The greatest part of a carrier's messages that could not be read lately.
    pub lacking: f64,
}

/// If the device gets less than this part of its fair share over seconds, it has no queue in the cell.
///
/// Chosen: a backlogged device gets its fair share in the long run.
const BACKLOGGED_SHARE: f64 = 0.6;

impl CellState {
    /// The part of Ct that the device has already. It does not depend on what is idle, nor on other users.
    pub fn own_capacity_bits(&self) -> f64 {
        if self.physical_bits > 0.0 {
            self.capacity_bits * (self.own_bits / self.physical_bits).min(1.0)
        } else {
            0.0
        }
    }

    /// Whether the cell gives so little to the device, over seconds, that it cannot have a queue for it.
    pub fn is_passed_over(&self) -> bool {
        self.long_term_share < BACKLOGGED_SHARE
    }
}

impl Carriers {
    /// No carrier has reported yet.
    pub fn new(measure: Measure) -> Carriers {
        Carriers {
            measure,
            translation: Translation::new(measure.block, measure.overhead),
            carriers: Vec::new(),
            newest: 0,
            head: 0,
            // Chosen: 40 subframes, the paper's example, until the sender tells RTprop.
            window: 40,
            activations: 0,
            explained: Explained::new(measure.full_idle_share),
        }
    }

    /// Averages over this many subframes from now on.
    pub fn set_window(&mut self, subframes: u64) {
        self.window = subframes.max(1);
    }

    /// Takes in one slot of one carrier. Returns false for a report that is of no use: one without the device's own
    /// side, or one that does not hold everyone's grants, and neither tells which PRBs are idle nor how many may be.
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
        let missed = report.missed().filter(|_| self.measure.estimates);
        let expected = missed.map_or(0.0, |missed| 1.0 - missed.recall);
        listened.compare(report, own, expected);
        let is_of_use = missed.is_some() || report.idle_prbs().is_some();
        let unread = if is_of_use { expected } else { 1.0 };
        listened.unread_reports += (unread - listened.unread_reports) / UNREAD_REPORTS;
        if unread > 0.0 {
            listened.tells = missed.is_some();
        }
        let shared = listened.unread.share(report, own);
        let Some(shared) = shared.filter(|_| is_of_use) else { return false };
        let subframe = report.slot.subframe();
        if own.active && !self.carriers[at].active {
            self.carriers[at].carrier = Carrier::new(self.measure.filter, self.measure.weights);
            if self.carriers.iter().any(|listened| listened.active) {
                self.activations = self.activations.wrapping_add(1);
            }
        }
        let listened = &mut self.carriers[at];
        listened.active = own.active;
        listened.last = subframe;
        if own.active {
            let users_window = self.measure.users_window.unwrap_or(self.window);
            listened.carrier.on_report(report, shared, own, users_window);
            // PRBs in which the device could receive nothing are of no use to it: it waits, although they are idle.
            let can_use = own.bits_per_prb.is_none_or(|bits| bits > 0.0);
            let usable_prbs = if can_use { shared.idle as f64 / MILLI as f64 } else { 0.0 };
            self.explained.on_report(subframe, usable_prbs, report.carrier_prbs.unwrap_or(0));
        }
        self.newest = self.newest.max(subframe);
        self.advance();
        true
    }

    /// Moves the averages, which then end with the last subframe that every carrier has reported.
    fn advance(&mut self) {
        let newest = self.newest;
        let heard = self.carriers.iter().filter(|listened| listened.active).map(|listened| listened.last);
        let slowest = heard.filter(|last| last + WAIT_SUBFRAMES >= newest).min().unwrap_or(newest);
        self.head = self.head.max(slowest);
        for listened in &mut self.carriers {
            listened.carrier.advance(self.head, self.window);
        }
    }

    /// The sum over the active carriers.
    ///
    /// Source: PBE-CC §4.2.1 Eq. 3; PBE-CC §4.1
    pub fn state(&mut self) -> CellState {
        // Without PRBs in the window, as in an outage, the scheduler passes over nobody.
        let mut state = CellState { long_term_share: 1.0, ..CellState::default() };
        let mut long_term_prbs = 0.0;
        let mut users_prbs = 0.0;
        let mut idle_share = f64::INFINITY;
        let (mut capacity_sum, mut fair_share_sum) = (0.0, 0.0);
        let (mut sinr_sum, mut sinr_prbs) = (0.0, 0.0);
        let Carriers { carriers, translation, measure, newest, .. } = self;
        let as_one = measure.block == BlockSize::Capacity && !measure.count_retransmissions;
        for listened in carriers.iter().filter(|listened| listened.active) {
            state.lacking = state.lacking.max(listened.unread_reports);
            let is_unread = measure.unread_test && listened.is_unread();
            if listened.last + MISSING_SUBFRAMES < *newest || is_unread {
                state.missing += 1;
                continue;
            }
            let Some(averages) = listened.carrier.averages() else { continue };
            state.carriers += 1;
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
                let (capacity, fair_share) = translate(translation, &averages, measure);
                state.capacity_bits += capacity;
                state.fair_share_bits += fair_share;
            }
        }
        if capacity_sum > 0.0 || fair_share_sum > 0.0 {
            // The paper translates the sum as one capacity.
            let sinr_db = (sinr_prbs > 0.0).then(|| sinr_sum / sinr_prbs);
            state.capacity_bits += translation.goodput(capacity_sum, 0.0, sinr_db);
            state.fair_share_bits += translation.goodput(fair_share_sum, 0.0, sinr_db);
        }
        if state.carrier_prbs > 0.0 {
            state.long_term_share = long_term_prbs / state.carrier_prbs;
            state.users = users_prbs / state.carrier_prbs;
            state.idle_share = idle_share;
        }
        state
    }

    /// The subframes that explain a delay.
    pub fn explained(&self) -> &Explained {
        &self.explained
    }

    /// Carriers activated so far while another one was active, modulo 256.
    pub fn activations(&self) -> u8 {
        self.activations
    }
}

/// Ct and Cf of one carrier.
fn translate(translation: &mut Translation, averages: &Averages, measure: &Measure) -> (f64, f64) {
    let (capacity, fair_share) = (averages.capacity_bits(), averages.fair_share_bits());
    match averages.layer {
        BitLayer::Transport => (capacity, fair_share),
        BitLayer::Physical if measure.count_retransmissions => {
            // Differs: Eq. 5 with the error rate that is seen. The rate that the paper expects from SINR is that of
            // its own cells. If blocks are sent in pairs, one that fails takes the PRBs of two.
            let expected = translation.block_error(averages.block_bits, averages.sinr_db);
            let share = (1.0 - measure.overhead) / (1.0 + averages.retransmissions(expected));
            (capacity * share, fair_share * share)
        }
        BitLayer::Physical => {
            let mut goodput = |bits| translation.goodput(bits, averages.block_bits, averages.sinr_db);
            (goodput(capacity), goodput(fair_share))
        }
    }
}
