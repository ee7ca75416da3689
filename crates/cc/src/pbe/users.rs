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
const ACTIVE_PRBS: u32 = 4;

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

/// The users of one carrier in the last few subframes.
#[derive(Clone, Debug)]
pub struct Users {
    filter: UserFilter,
    /// (subframe, user, PRBs), oldest first.
    grants: VecDeque<(u64, Rnti, u16)>,
    tally: BTreeMap<Rnti, Tally>,
    others: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    subframes: u32,
    prbs: u32,
}

impl Users {
    /// No user seen yet.
    pub fn new(filter: UserFilter) -> Users {
        Users { filter, grants: VecDeque::new(), tally: BTreeMap::new(), others: 0 }
    }

    /// Takes in one subframe, and forgets what is `window` subframes old. `own` is not counted among the others.
    pub fn on_subframe(&mut self, report: &RadioReport, own: Rnti, window: u64) {
        let now = report.slot.subframe();
        for (at, dci) in report.dcis.iter().enumerate() {
            let counts =
                dci.direction == Direction::Downlink && dci.rnti != own && dci.rnti.0 < FIRST_COMMON_RNTI;
            let same =
                |other: &airpace_radio::Dci| other.rnti == dci.rnti && other.direction == dci.direction;
            if !counts || report.dcis[..at].iter().any(same) {
                continue;
            }
            let prbs = report.dcis[at..].iter().filter(|other| same(other)).map(|other| other.prbs);
            self.add(now, dci.rnti, prbs.fold(PrbSet::EMPTY, PrbSet::union).len());
        }
        while let Some(&(seen, rnti, prbs)) = self.grants.front() {
            if seen + window > now {
                break;
            }
            self.grants.pop_front();
            self.remove(rnti, prbs);
        }
        self.others = self.tally.values().filter(|tally| self.filter.passes(tally)).count() as u32;
    }

    /// Users that share the carrier. The device itself always counts.
    ///
    /// Chosen: the device itself always counts. Otherwise two users would both claim the whole cell.
    ///
    /// Source: PBE-CC §4.1 Eq. 1
    pub fn count(&self) -> u32 {
        1 + self.others
    }

    fn add(&mut self, subframe: u64, rnti: Rnti, prbs: u16) {
        self.grants.push_back((subframe, rnti, prbs));
        let tally = self.tally.entry(rnti).or_default();
        tally.subframes += 1;
        tally.prbs += u32::from(prbs);
    }

    fn remove(&mut self, rnti: Rnti, prbs: u16) {
        if let Some(tally) = self.tally.get_mut(&rnti) {
            tally.subframes -= 1;
            tally.prbs -= u32::from(prbs);
            if tally.subframes == 0 {
                self.tally.remove(&rnti);
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
