//! Counts the users that share a carrier for data: N of Eq. 1 and Eq. 3.
//!
//! Most users on a control channel only update parameters: they get at most four PRBs, once. Such users take PRBs (Eq.
//! 4 counts every user) but do not count in N.
//!
//! Source: PBE-CC §4.2.1

use std::collections::{BTreeMap, VecDeque};

use airpace_core::Direction;
use airpace_core::tables::nr::{RbgConfig, rbg_size};
use airpace_radio::{PrbSet, RadioReport, Rnti};

use crate::nr;

use super::resources::{milli, symbols_of};
use super::unread::prbs;

/// Threshold of the number of subframes in the window above which a data user is active.
///
/// Source: PBE-CC §4.2.1 (Ta > 1)
const ACTIVE_SUBFRAMES: u32 = 1;

/// Threshold of the mean number of PRBs per active subframe above which a user is a data user.
///
/// Source: PBE-CC §4.2.1 (Pa > 4)
const ACTIVE_PRBS: u32 = 4;

/// Threshold of the mean number of bits per active millisecond above which a user is a data user, on NR.
///
/// Chosen: 150 bytes, more than most control messages of RRC and NAS have, and less than a packet of a download.
const ACTIVE_BITS: u64 = 150 * 8;

/// The thresholds above which a user is a data user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thresholds {
    /// Mean number of PRBs per slot with a grant.
    prbs: u32,
    /// Mean number of bits per active millisecond; 0 on LTE.
    bits: u64,
}

impl Thresholds {
    const LTE: Thresholds = Thresholds { prbs: ACTIVE_PRBS, bits: 0 };

    /// The thresholds of an NR carrier with `carrier_prbs` PRBs.
    ///
    /// Differs: the paper's carriers have at most 100 PRBs. A wide carrier of NR allocates groups of up to 16 PRBs, so
    /// that a control message of some bytes has more than four PRBs.
    fn of_nr(carrier_prbs: u16) -> Thresholds {
        let group_prbs = rbg_size(carrier_prbs, RbgConfig::One).unwrap_or(0);
        Thresholds { prbs: ACTIVE_PRBS.max(group_prbs.into()), bits: ACTIVE_BITS }
    }
}

/// The first RNTI of the range that does not identify a user, but multicast, paging or system information.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
const FIRST_COMMON_RNTI: u16 = 0xFFFD;

/// Thresholds that a user must exceed to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserFilter {
    /// A user must exceed both the threshold of active time and the threshold of PRBs.
    ///
    /// Chosen: the paper's "(Ta > 1, Pa > 4)" is read as "and". Control users return within the window, so active time
    /// alone does not exclude them.
    #[default]
    Both,
    /// A user must exceed the threshold of active time or the threshold of PRBs.
    Either,
    /// A user must exceed the threshold of PRBs.
    Prbs,
    /// A user must exceed the threshold of active time.
    Subframes,
    /// There is no threshold: every user counts.
    Off,
}

/// How a scheduler divides a carrier among users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// All users get equal numbers of PRBs.
    ///
    /// Source: PBE-CC §4.1 Eq. 1
    #[default]
    Equal,
    /// Users get PRBs in inverse proportion to their bits per PRB, so that all users get equal rates.
    ///
    /// Source: PBE-CC §7 (another policy: more bandwidth to users with lower physical data rates)
    Rate,
}

/// Maximum ratio of the weights of two users' PRBs.
///
/// Chosen: with a larger ratio, a user at the cell edge would take the PRBs that all others need.
const MAX_WEIGHT: f64 = 8.0;

/// While messages are missed, a user counts as present for up to this multiple of the mean interval between its decoded
/// grants. Time counts in decoded subframes: each subframe is weighted with its share of decoded messages, because in a
/// fade no user is decoded for a long time.
///
/// Chosen: for a user that is decoded at random times, one interval in 3,000 is longer. With half the value, the p95 of
/// the queue in `decoder-in-the-loop` at 0 dB is an eighth higher; with twice the value, it is the same.
const ABSENT_GAPS: f64 = 8.0;

/// Maximum time without a decoded grant after which a user still counts as present, in subframes.
///
/// Chosen: one second. Users that the scheduler serves in turn get a grant earlier.
const MAX_ABSENT: u64 = 1_000;

/// Minimum share of decoded messages at which a subframe counts as well decoded.
///
/// Chosen: the threshold below which reports are doubted ([`doubt`](super::doubt)).
const HEARD_WELL: f64 = 0.98;

/// Number of decoded grants over which the mean interval between them is averaged. A user with fewer decoded grants
/// does not count as present without being decoded.
const KNOWN_READINGS: u32 = 8;

/// The users of one carrier in the last few subframes.
#[derive(Clone, Debug)]
pub struct Users {
    filter: UserFilter,
    thresholds: Thresholds,
    /// The grants in the window, oldest first.
    grants: VecDeque<Grant>,
    tally: BTreeMap<Rnti, Tally>,
    others: u32,
    /// The last subframe, and its share of decoded messages.
    last: Option<(u64, f64)>,
    /// Number of undecoded subframes up to now (fractions included).
    unheard: f64,
    /// The last subframe in which less than [`HEARD_WELL`] of the messages was decoded.
    deaf: Option<u64>,
    /// Users that were decoded within the last [`MAX_ABSENT`] subframes.
    known: BTreeMap<Rnti, Known>,
}

/// Statistics of a user's decoded grants.
#[derive(Clone, Copy, Debug)]
struct Known {
    last: u64,
    /// `last`, minus the number of undecoded subframes before that subframe.
    last_heard: f64,
    /// Mean number of decoded subframes between two grants of the user. `prbs` is the mean number of PRBs of a grant.
    gap: f64,
    prbs: f64,
    readings: u32,
}

impl Known {
    fn read(&mut self, subframe: u64, heard: f64, prbs: u16) {
        let keep = f64::from(KNOWN_READINGS);
        self.gap += (heard - self.last_heard - self.gap) / keep;
        self.prbs += (f64::from(prbs) - self.prbs) / keep;
        self.readings = self.readings.saturating_add(1);
        (self.last, self.last_heard) = (subframe, heard);
    }

    /// Whether the user is probably still present with data: it is a known data user, and a badly decoded subframe
    /// since its last grant may have hidden another grant.
    fn may_be_there(&self, heard: f64, deaf: u64, thresholds: &Thresholds) -> bool {
        self.readings > KNOWN_READINGS
            && self.prbs > f64::from(thresholds.prbs)
            && deaf > self.last
            && heard - self.last_heard < ABSENT_GAPS * self.gap
    }
}

/// The PRBs of one user in one subframe.
#[derive(Clone, Copy, Debug)]
struct Grant {
    subframe: u64,
    /// Number of slots with a grant.
    slots: u32,
    /// Number of the grant's subframe, minus the number of undecoded subframes before it.
    at: f64,
    rnti: Rnti,
    /// Sum over the slots.
    prbs: u32,
    /// Thousandths of PRBs ([`resources`](super::resources)) and number of bits of the grants whose size in bits is
    /// known.
    rated: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Number of subframes with a grant. `slots` is the number of slots, and `rated_subframes` the number of subframes
    /// with a grant of known size in bits.
    subframes: u32,
    slots: u32,
    rated_subframes: u32,
    prbs: u32,
    rated_milliprbs: u64,
    bits: u64,
}

impl Users {
    /// State without any user.
    pub fn new(filter: UserFilter) -> Users {
        let (grants, tally, known) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        let thresholds = Thresholds::LTE;
        Users { filter, thresholds, grants, tally, others: 0, last: None, unheard: 0.0, deaf: None, known }
    }

    /// Processes one subframe, and discards grants that are `window` subframes old. `own` is not counted as another
    /// user. `heard` is the share of the subframe's messages that was decoded; the subframe counts as this fraction of
    /// a subframe. Users that were present before a fade therefore still count as present after the fade.
    pub fn on_subframe(&mut self, report: &RadioReport, own: Rnti, window: u64, heard: f64) {
        let now = self.heard_at(report, heard);
        let subframe = report.slot.subframe();
        if self.thresholds != Thresholds::LTE || nr::is_nr(report) {
            self.thresholds = Thresholds::of_nr(report.carrier_prbs.unwrap_or(0));
        }
        for (at, dci) in report.dcis.iter().enumerate() {
            let counts =
                dci.direction == Direction::Downlink && dci.rnti != own && dci.rnti.0 < FIRST_COMMON_RNTI;
            let same =
                |other: &airpace_radio::Dci| other.rnti == dci.rnti && other.direction == dci.direction;
            if !counts || report.dcis[..at].iter().any(same) {
                continue;
            }
            let its = report.dcis[at..].iter().filter(|other| same(other));
            let prbs = its.clone().map(|other| other.prbs).fold(PrbSet::EMPTY, PrbSet::union).len();
            // A reserved MCS of a retransmission does not contain the number of bits.
            let rated = its.filter(|other| other.bits().0 > 0);
            let rated = rated.fold((0, 0), |(prbs, bits), other| {
                let other_prbs = milli(u64::from(other.prbs.len()), symbols_of(other, report));
                (prbs + other_prbs, bits + other.bits().0)
            });
            self.add(Grant { subframe, slots: 1, at: now, rnti: dci.rnti, prbs: prbs.into(), rated });
            let new = Known { last: subframe, last_heard: now, gap: 1.0, prbs: f64::from(prbs), readings: 0 };
            self.known.entry(dci.rnti).or_insert(new).read(subframe, now, prbs);
        }
        while let Some(&grant) = self.grants.front() {
            if grant.at + window as f64 > now {
                break;
            }
            self.grants.pop_front();
            self.remove(&grant);
        }
        let there = self.tally.values().filter(|tally| self.passes(tally)).count() as u32;
        self.others = there + self.absent(subframe, now);
    }

    /// Processes an uplink slot, in which no user can get a downlink grant. The slot counts as decoded to the same share
    /// as the last slot with downlink symbols.
    pub fn on_uplink_slot(&mut self, report: &RadioReport) {
        let heard = self.last.map_or(1.0, |(_, heard)| heard);
        self.pass_to(report, heard);
    }

    /// Number of users that are not counted but may be present without being decoded.
    fn absent(&mut self, subframe: u64, heard: f64) -> u32 {
        let Some(deaf) = self.deaf else { return 0 };
        self.known.retain(|_, known| known.last + MAX_ABSENT > subframe);
        let is_counted = |rnti| self.tally.get(rnti).is_some_and(|tally| self.passes(tally));
        let may_be_there = |known: &Known| known.may_be_there(heard, deaf, &self.thresholds);
        let absent = self.known.iter().filter(|(rnti, known)| may_be_there(known) && !is_counted(rnti));
        absent.count() as u32
    }

    /// Number of the report's subframe, minus the number of undecoded subframes before it. A subframe without a report
    /// counts with the lower share of decoded messages of its two neighbours.
    fn heard_at(&mut self, report: &RadioReport, heard: f64) -> f64 {
        if heard < HEARD_WELL {
            self.deaf = Some(report.slot.subframe());
        }
        self.pass_to(report, heard)
    }

    fn pass_to(&mut self, report: &RadioReport, heard: f64) -> f64 {
        let subframe = report.slot.subframe();
        let (last, heard_last) = self.last.unwrap_or((subframe, 1.0));
        let between = subframe.saturating_sub(last).saturating_sub(1);
        self.unheard += between as f64 * (1.0 - heard.min(heard_last));
        self.unheard += (1.0 - heard) / report.slot.numerology.slots_per_subframe() as f64;
        self.last = Some((subframe, heard));
        subframe as f64 - self.unheard
    }

    /// Number of users that share the carrier. The device itself always counts.
    ///
    /// Chosen: the device itself always counts, even without grants. Otherwise two users would both claim the whole
    /// cell.
    ///
    /// Source: PBE-CC §4.1 Eq. 1
    pub fn count(&self) -> u32 {
        1 + self.others
    }

    /// Number of users that share the carrier, each weighted relative to the device itself. `own_rate` is the device's
    /// number of bits per PRB.
    ///
    /// ```text
    /// N = Σ wⱼ / w,  w ~ 1 / bits per PRB
    /// ```
    pub fn weighted(&self, own_rate: f64) -> f64 {
        let others = self.tally.values().filter(|tally| self.passes(tally));
        let weight = |tally: &Tally| {
            let ratio = own_rate * prbs(tally.rated_milliprbs) / tally.bits as f64;
            if ratio.is_finite() && ratio > 0.0 { ratio.clamp(1.0 / MAX_WEIGHT, MAX_WEIGHT) } else { 1.0 }
        };
        1.0 + others.map(weight).sum::<f64>()
    }

    /// Minimum mean number of PRBs per subframe that undecoded grants must have to count as grants of a data user.
    pub fn active_prbs(&self) -> u32 {
        self.thresholds.prbs
    }

    fn passes(&self, tally: &Tally) -> bool {
        self.filter.passes(tally, &self.thresholds)
    }

    /// Adds a grant. Grants of several slots of one subframe become one grant of the subframe.
    fn add(&mut self, grant: Grant) {
        let same = |other: &&mut Grant| other.rnti == grant.rnti;
        let in_subframe = self.grants.iter_mut().rev().take_while(|other| other.subframe == grant.subframe);
        let Some(earlier) = in_subframe.into_iter().find(same) else {
            self.grants.push_back(grant);
            self.tally.entry(grant.rnti).or_default().add(&grant);
            return;
        };
        if let Some(tally) = self.tally.get_mut(&grant.rnti) {
            tally.remove(earlier);
            earlier.slots += grant.slots;
            earlier.prbs += grant.prbs;
            earlier.rated = (earlier.rated.0 + grant.rated.0, earlier.rated.1 + grant.rated.1);
            tally.add(earlier);
        }
    }

    fn remove(&mut self, grant: &Grant) {
        if let Some(tally) = self.tally.get_mut(&grant.rnti) {
            tally.remove(grant);
            if tally.subframes == 0 {
                self.tally.remove(&grant.rnti);
            }
        }
    }
}

impl Tally {
    fn add(&mut self, grant: &Grant) {
        self.subframes += 1;
        self.slots += grant.slots;
        self.rated_subframes += u32::from(grant.rated.1 > 0);
        self.prbs += grant.prbs;
        self.rated_milliprbs += grant.rated.0;
        self.bits += grant.rated.1;
    }

    fn remove(&mut self, grant: &Grant) {
        self.subframes -= 1;
        self.slots -= grant.slots;
        self.rated_subframes -= u32::from(grant.rated.1 > 0);
        self.prbs -= grant.prbs;
        self.rated_milliprbs -= grant.rated.0;
        self.bits -= grant.rated.1;
    }
}

impl UserFilter {
    /// Whether a user with this tally counts.
    ///
    /// Chosen: the active time (Ta) counts milliseconds, so that two grants within one millisecond of NR do not make a
    /// data user; the mean number of PRBs (Pa) is per slot with a grant.
    fn passes(self, tally: &Tally, thresholds: &Thresholds) -> bool {
        let subframes = tally.subframes > ACTIVE_SUBFRAMES;
        let is_small = tally.bits > 0 && tally.bits <= thresholds.bits * u64::from(tally.rated_subframes);
        let prbs = tally.prbs > thresholds.prbs * tally.slots && !is_small;
        match self {
            UserFilter::Both => subframes && prbs,
            UserFilter::Either => subframes || prbs,
            UserFilter::Prbs => prbs,
            UserFilter::Subframes => subframes,
            UserFilter::Off => true,
        }
    }
}
