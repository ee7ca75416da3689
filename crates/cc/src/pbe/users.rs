//! The other users that use a carrier for data: the N of Eq. 1 and Eq. 3.
//!
//! Most users that a control channel shows only update parameters: they get four PRBs or fewer, once. They take PRBs
//! (Eq. 4 counts every user) but claim no share.
//!
//! Source: PBE-CC §4.2.1

use std::collections::{BTreeMap, VecDeque};

use airpace_core::Direction;
use airpace_radio::{PrbSet, RadioReport, Rnti};

/// A data user is active for more subframes of the window than this.
///
/// Source: PBE-CC §4.2.1 (Ta > 1)
const ACTIVE_SUBFRAMES: u32 = 1;

/// A data user gets more PRBs per active subframe than this, on average.
///
/// Source: PBE-CC §4.2.1 (Pa > 4)
pub(super) const ACTIVE_PRBS: u32 = 4;

/// RNTIs from this one on belong to no user: multicast, paging, system information.
///
/// Source: TS 36.321 §7.1 Table 7.1-1
const FIRST_COMMON_RNTI: u16 = 0xFFFD;

/// Which thresholds a user must pass to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserFilter {
    /// Active time and PRBs.
    ///
    /// Chosen: the paper's "(Ta > 1, Pa > 4)" is read as "and": control users come back within the window, so
    /// active time alone lets them pass.
    #[default]
    Both,
    /// Active time or PRBs.
    Either,
    /// PRBs alone.
    Prbs,
    /// Active time alone.
    Subframes,
    /// None: every user counts.
    Off,
}

/// How users share a carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Equal numbers of PRBs.
    ///
    /// Source: PBE-CC §4.1 Eq. 1
    #[default]
    Equal,
    /// PRBs in inverse proportion to what a PRB carries to the user, so that users get equal rates.
    ///
    /// Source: PBE-CC §7 (another policy: more bandwidth to users with lower physical data rates)
    Rate,
}

/// The most by which one user's PRB may count more than another's.
///
/// Chosen: beyond that, a user at the edge of the cell would take what all others need.
const MOST_WEIGHT: f64 = 8.0;

/// In a cell that is heard badly, a user is still there for so many times the mean time between two readings of it. Only the
/// part of each subframe counts that was heard: in a fade, nobody is read for long.
///
/// Chosen: of a user that is read by chance, one absence in 3,000 is longer. With half of it, the p95 of the queue that
/// `decoder-in-the-loop` makes at 0 dB is an eighth higher; with twice, it is the same.
const ABSENT_GAPS: f64 = 8.0;

/// But no longer than this, in subframes.
///
/// Chosen: a second; whoever is served in turn comes more often.
const ABSENT_MOST: u64 = 1_000;

/// A subframe was heard badly if less than this part of its messages could be read.
///
/// Chosen: as of which reports are doubted ([`doubt`](super::doubt)).
const HEARD_WELL: f64 = 0.98;

/// Readings over which the mean time between two is taken. A user that was read less often is not known.
const KNOWN_READINGS: u32 = 8;

/// The users of one carrier in the last few subframes.
#[derive(Clone, Debug)]
pub struct Users {
    filter: UserFilter,
    /// Oldest first.
    grants: VecDeque<Grant>,
    tally: BTreeMap<Rnti, Tally>,
    others: u32,
    /// The last subframe, and how much of it was heard.
    last: Option<(u64, f64)>,
    /// Subframes that were not heard so far.
    unheard: f64,
    /// The last subframe that was heard badly.
    deaf: Option<u64>,
    /// Those that were read within [`ABSENT_MOST`].
    known: BTreeMap<Rnti, Known>,
}

/// How a user was read.
#[derive(Clone, Copy, Debug)]
struct Known {
    last: u64,
    /// The same, less the subframes before it that were not heard.
    last_heard: f64,
    /// Mean subframes that were heard from one reading to the next, and PRBs of a reading.
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

    /// Whether it has data for all that is known, and may have been there unread since: not everything was heard well.
    fn may_be_there(&self, heard: f64, deaf: u64) -> bool {
        self.readings > KNOWN_READINGS
            && self.prbs > f64::from(ACTIVE_PRBS)
            && deaf > self.last
            && heard - self.last_heard < ABSENT_GAPS * self.gap
    }
}

/// What one user got in one subframe.
#[derive(Clone, Copy, Debug)]
struct Grant {
    /// Its subframe, less those before it that were not heard.
    at: f64,
    rnti: Rnti,
    prbs: u16,
    /// PRBs of grants whose bits are known, and those bits.
    rated: (u16, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    subframes: u32,
    prbs: u32,
    rated_prbs: u32,
    bits: u64,
}

impl Users {
    /// No user seen yet.
    pub fn new(filter: UserFilter) -> Users {
        let (grants, tally, known) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        Users { filter, grants, tally, others: 0, last: None, unheard: 0.0, deaf: None, known }
    }

    /// Takes in one subframe, and forgets what is `window` subframes old. `own` is not counted among the others. If only
    /// a part of the subframe's messages could be read, `heard`, it counts as that part of a subframe: who was there
    /// before a fade is still there after it.
    pub fn on_subframe(&mut self, report: &RadioReport, own: Rnti, window: u64, heard: f64) {
        let now = self.heard_at(report, heard);
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
            // A retransmission's reserved MCS does not tell the number of bits.
            let rated = its.filter(|other| other.bits().0 > 0);
            let rated = rated.fold((0u16, 0), |(prbs, bits), other| {
                (prbs.saturating_add(other.prbs.len()), bits + other.bits().0)
            });
            self.add(Grant { at: now, rnti: dci.rnti, prbs, rated });
            let subframe = report.slot.subframe();
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
        let there = self.tally.values().filter(|tally| self.filter.passes(tally)).count() as u32;
        self.others = there + self.absent(report.slot.subframe(), now);
    }

    /// Users that are not counted, and may be there unread.
    fn absent(&mut self, subframe: u64, heard: f64) -> u32 {
        let Some(deaf) = self.deaf else { return 0 };
        self.known.retain(|_, known| known.last + ABSENT_MOST > subframe);
        let is_counted = |rnti| self.tally.get(rnti).is_some_and(|tally| self.filter.passes(tally));
        let absent =
            self.known.iter().filter(|(rnti, known)| known.may_be_there(heard, deaf) && !is_counted(rnti));
        absent.count() as u32
    }

    /// The report's subframe, less those that were not heard. Subframes without a report were heard as the worse of those
    /// around them.
    fn heard_at(&mut self, report: &RadioReport, heard: f64) -> f64 {
        let subframe = report.slot.subframe();
        let (last, heard_last) = self.last.unwrap_or((subframe, 1.0));
        let between = subframe.saturating_sub(last).saturating_sub(1);
        self.unheard += between as f64 * (1.0 - heard.min(heard_last));
        self.unheard += (1.0 - heard) / report.slot.numerology.slots_per_subframe() as f64;
        self.last = Some((subframe, heard));
        if heard < HEARD_WELL {
            self.deaf = Some(subframe);
        }
        subframe as f64 - self.unheard
    }

    /// Users that share the carrier. The device itself always counts.
    ///
    /// Chosen: the device itself always counts. Otherwise two users would both claim the whole cell.
    ///
    /// Source: PBE-CC §4.1 Eq. 1
    pub fn count(&self) -> u32 {
        1 + self.others
    }

    /// Users that share the carrier, each by its weight against that of the device itself. A PRB carries `own_rate` bits
    /// to the device.
    ///
    /// ```text
    /// N = Σ wⱼ / w,  w ~ 1 / bits per PRB
    /// ```
    pub fn weighted(&self, own_rate: f64) -> f64 {
        let others = self.tally.values().filter(|tally| self.filter.passes(tally));
        let weight = |tally: &Tally| {
            let ratio = own_rate * f64::from(tally.rated_prbs) / tally.bits as f64;
            if ratio.is_finite() && ratio > 0.0 { ratio.clamp(1.0 / MOST_WEIGHT, MOST_WEIGHT) } else { 1.0 }
        };
        1.0 + others.map(weight).sum::<f64>()
    }

    fn add(&mut self, grant: Grant) {
        self.grants.push_back(grant);
        let tally = self.tally.entry(grant.rnti).or_default();
        tally.subframes += 1;
        tally.prbs += u32::from(grant.prbs);
        tally.rated_prbs += u32::from(grant.rated.0);
        tally.bits += grant.rated.1;
    }

    fn remove(&mut self, grant: &Grant) {
        if let Some(tally) = self.tally.get_mut(&grant.rnti) {
            tally.subframes -= 1;
            tally.prbs -= u32::from(grant.prbs);
            tally.rated_prbs -= u32::from(grant.rated.0);
            tally.bits -= grant.rated.1;
            if tally.subframes == 0 {
                self.tally.remove(&grant.rnti);
            }
        }
    }
}

impl UserFilter {
    fn passes(self, tally: &Tally) -> bool {
        let subframes = tally.subframes > ACTIVE_SUBFRAMES;
        let prbs = tally.prbs > ACTIVE_PRBS * tally.subframes;
        match self {
            UserFilter::Both => subframes && prbs,
            UserFilter::Either => subframes || prbs,
            UserFilter::Prbs => prbs,
            UserFilter::Subframes => subframes,
            UserFilter::Off => true,
        }
    }
}
