//! Scheduler: assigns the RBGs of one carrier in one slot (in LTE, a subframe) that remain after retransmissions and control users.
//!
//! It has two steps, as in base stations: it selects at most `max_users` users for the subframe, then assigns the RBGs
//! to them one by one. A user whose block can carry all its queued data gets no more RBGs.
//!
//! | policy | RBG k is assigned to the user with |
//! | --- | --- |
//! | round robin | the fewest RBGs so far; the first user rotates |
//! | max C/I | the highest rate on k |
//! | proportional fair | the highest ratio of its rate on k to its average rate, which includes the RBGs of this subframe |
//!
//! If all RBGs of a user have equal quality, its rate is one number and its RBGs are contiguous.

use airpace_core::tables::{CodeRate, Modulation, lte, nr};
use airpace_core::{Bits, Draws};
use airpace_radio::PrbSet;

use super::channel::Grid;
use super::config::Policy;

/// Maximum number of RBGs of a carrier (110 PRBs in groups of 4).
pub(super) const MAX_RBGS: usize = 28;

/// A set of RBGs, one bit each.
pub(super) type RbgMask = u32;

/// The RBGs of a carrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct RbgGrid {
    pub prbs: u16,
    pub rbg_prbs: u16,
    pub rbgs: u16,
}

impl RbgGrid {
    /// The grid of a carrier of LTE; LENA leaves out the last RBG if it is smaller than the others.
    ///
    /// Source: TS 36.213 §7.1.6.1; our measurement of ns-3.37
    pub(super) fn new(prbs: u16, lena_compat: bool) -> RbgGrid {
        let rbg_prbs = lte::rbg_size(prbs);
        let rbgs = if lena_compat { prbs / rbg_prbs } else { lte::rbg_count(prbs) };
        RbgGrid { prbs, rbg_prbs, rbgs }
    }

    /// The RBGs of this grid of a carrier.
    pub(super) fn of(grid: Grid) -> RbgGrid {
        RbgGrid { prbs: grid.prbs, rbg_prbs: grid.rbg_prbs, rbgs: grid.rbgs() }
    }

    /// All RBGs.
    pub(super) fn all(&self) -> RbgMask {
        ((1u64 << self.rbgs) - 1) as RbgMask
    }

    /// Number of PRBs of one RBG.
    pub(super) fn prbs_of(&self, rbg: u32) -> u16 {
        self.rbg_prbs.min(self.prbs - rbg as u16 * self.rbg_prbs)
    }

    /// Number of PRBs of a set of RBGs.
    pub(super) fn prbs_in(&self, rbgs: RbgMask) -> u16 {
        let last = u32::from(self.rbgs) - 1;
        let missing = if rbgs >> last & 1 == 1 { self.rbg_prbs - self.prbs_of(last) } else { 0 };
        rbgs.count_ones() as u16 * self.rbg_prbs - missing
    }

    /// The lowest RBGs of `free` that together can carry `wanted` bits. If `free` cannot carry `wanted` bits, all RBGs
    /// of `free`.
    fn lowest_for(&self, free: RbgMask, size: BlockSize, wanted: u64) -> RbgMask {
        if size.bits(self.prbs_in(free)) <= wanted {
            return free;
        }
        let mut count = 1;
        while size.bits(self.rbg_prbs * count) < wanted && u32::from(count) < free.count_ones() {
            count += 1;
        }
        lowest(free, count.into())
    }

    /// The PRBs of a set of RBGs.
    pub(super) fn prb_set(&self, mut rbgs: RbgMask) -> PrbSet {
        let mut set = PrbSet::EMPTY;
        while rbgs != 0 {
            let start = rbgs.trailing_zeros();
            let len = (rbgs >> start).trailing_ones();
            let run = (((1u64 << len) - 1) << start) as RbgMask;
            set = set.union(PrbSet::run(start as u16 * self.rbg_prbs, self.prbs_in(run)));
            rbgs &= !run;
        }
        set
    }

    /// The RBGs that overlap `prbs`.
    pub(super) fn touched(&self, prbs: PrbSet) -> RbgMask {
        prbs.runs().fold(0, |mask, (start, len)| {
            let (first, last) = (start / self.rbg_prbs, (start + len - 1) / self.rbg_prbs);
            mask | (first..=last.min(self.rbgs - 1)).fold(0, |mask, rbg| mask | 1 << rbg)
        })
    }
}

/// Total block size of all codewords for a user at its current MCS, as a function of the number of PRBs.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockSize {
    /// Sizes of an LTE carrier. Each codeword has one layer.
    Lte {
        /// TBS index.
        i_tbs: u8,
        /// Number of codewords.
        codewords: u8,
    },
    /// Sizes of an NR carrier. One codeword has all layers.
    Nr {
        /// Modulation of the MCS.
        modulation: Modulation,
        /// Code rate of the MCS.
        rate: CodeRate,
        /// Number of layers.
        layers: u8,
        /// Resource elements for data per PRB.
        res_per_prb: u16,
    },
}

impl BlockSize {
    /// The size of no block.
    pub(super) const NONE: BlockSize = BlockSize::Lte { i_tbs: 0, codewords: 0 };

    /// Total number of bits of all codewords on `prbs` PRB pairs.
    pub(super) fn bits(&self, prbs: u16) -> u64 {
        match *self {
            BlockSize::Lte { i_tbs, codewords } => {
                let one = lte::tbs(i_tbs, prbs, 1).map_or(0, |bits| bits.0);
                one * u64::from(codewords)
            }
            BlockSize::Nr { modulation, rate, layers, res_per_prb } => {
                nr::tbs(u32::from(res_per_prb) * u32::from(prbs), modulation, rate, layers).0
            }
        }
    }
}

/// A user with queued data, and the RBGs assigned to the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Index of the user. `link` is the index of the user's link to this carrier.
    pub user: u16,
    pub link: u8,
    /// Mean number of bits per RBG for this user.
    pub rate: f64,
    /// Index of the row with the user's rates per RBG; `None` if all RBGs have the same rate.
    pub rates: Option<u16>,
    /// Recent average rate, in bits per subframe.
    pub average: f64,
    /// Whether the user had no data in the previous subframe.
    pub is_newcomer: bool,
    /// Number of bits queued for the user.
    pub wanted: u64,
    pub size: BlockSize,
    /// RBGs assigned to the user.
    pub given: RbgMask,
    prbs: u16,
    metric: f64,
}

impl Candidate {
    /// A candidate without a rate yet.
    pub(super) fn new(user: u16, link: u8, wanted: u64, average: f64, is_newcomer: bool) -> Candidate {
        Candidate {
            user,
            link,
            rate: 0.0,
            rates: None,
            average,
            is_newcomer,
            wanted,
            size: BlockSize::NONE,
            given: 0,
            prbs: 0,
            metric: 0.0,
        }
    }
}

/// The scheduler of one carrier.
#[derive(Debug)]
pub(super) struct Scheduler {
    policy: Policy,
    time_constant: f64,
    max_users: usize,
    lena_compat: bool,
    /// Round robin: the first user of the next subframe.
    first: u16,
    /// The candidates' metrics during the assignment; [`SERVED`] for candidates that need no more RBGs. The vector is
    /// stored to reuse its memory.
    metrics: Vec<f64>,
    /// Random numbers that break ties, by subframe.
    ties: Draws,
}

/// Metric of a candidate that gets no more RBGs.
const SERVED: f64 = f64::NEG_INFINITY;

/// Rate that marks an RBG that must not be assigned to the user.
pub(super) const NEVER_GIVEN: f32 = f32::NEG_INFINITY;

impl Scheduler {
    pub(super) fn new(
        policy: Policy,
        time_constant_slots: f64,
        max_users: u8,
        grid: &RbgGrid,
        lena_compat: bool,
        ties: Draws,
    ) -> Scheduler {
        // Four PRBs at the lowest MCS still carry headers and some data; fewer PRBs would carry no data.
        let most = usize::from(max_users).min(usize::from(grid.prbs / 4).max(1));
        Scheduler {
            policy,
            time_constant: time_constant_slots,
            max_users: most,
            lena_compat,
            first: 0,
            metrics: vec![],
            ties,
        }
    }

    /// A user's average rate one slot later, if the user gets no bits in that slot; at least one bit.
    ///
    /// R(t+1) = (1 - 1/t_c) R(t) + (1/t_c) bits
    pub(super) fn decayed(&self, average: f64) -> f64 {
        (average - average / self.time_constant).max(1.0)
    }

    /// Contribution of a block to its user's average rate.
    pub(super) fn gain(&self, block: Bits) -> f64 {
        block.0 as f64 / self.time_constant
    }

    /// Limits the priority (metric) of a user that was idle to the highest metric among the other users. For this, the
    /// average rate of the user that was idle is set to its rate divided by that metric.
    ///
    /// Chosen: if a user's average decayed while the user is idle, the newcomer would get the whole band for tens of
    /// ms, and the other users would get nothing. LENA behaves in this way.
    pub(super) fn place_newcomers(&self, candidates: &mut [Candidate]) {
        if self.policy != Policy::ProportionalFair || self.lena_compat {
            return;
        }
        let settled = candidates.iter().filter(|candidate| !candidate.is_newcomer);
        let best = settled.map(|candidate| candidate.rate / candidate.average).fold(0.0, f64::max);
        if best > 0.0 {
            for candidate in candidates.iter_mut().filter(|candidate| candidate.is_newcomer) {
                candidate.average = candidate.average.max(candidate.rate / best);
            }
        }
    }

    /// Assigns the `free` RBGs of slot `now`; `rates` contains the rows to which candidates refer. `has_place` reserves the
    /// DCI of a selected candidate in the control region, and returns `false` if the region has no space for the DCI.
    /// Afterwards, `candidates` contains only the candidates with at least one RBG.
    pub(super) fn share(
        &mut self,
        now: u64,
        grid: &RbgGrid,
        free: RbgMask,
        candidates: &mut Vec<Candidate>,
        rates: &[[f32; MAX_RBGS]],
        has_place: impl FnMut(&Candidate) -> bool,
    ) {
        if candidates.is_empty() {
            return;
        }
        self.pick(now, candidates);
        candidates.retain(has_place);
        let is_flat = candidates.iter().all(|candidate| candidate.rates.is_none());
        if let [candidate] = &mut candidates[..]
            && is_flat
        {
            candidate.given = grid.lowest_for(free, candidate.size, candidate.wanted);
            return;
        }
        let quota = match (self.lena_compat, self.policy) {
            // LENA's round robin assigns the same number of RBGs to every user and leaves the remainder idle.
            (true, Policy::RoundRobin) => {
                grid.rbg_prbs * (free.count_ones() as u16 / candidates.len() as u16).max(1)
            }
            _ => u16::MAX,
        };
        let metrics = &mut self.metrics;
        metrics.clear();
        metrics.extend(candidates.iter().map(|candidate| candidate.metric));
        let mut rest = free;
        while rest != 0 {
            let rbg = rest.trailing_zeros();
            let best = if is_flat {
                first_of_highest(metrics.iter().copied())
            } else {
                first_of_highest(candidates.iter().zip(&*metrics).map(|(candidate, &metric)| {
                    let row = candidate.rates.map(|row| &rates[usize::from(row)]);
                    row.map_or(metric, |row| self.policy.metric_on(metric, row[rbg as usize], candidate.rate))
                }))
            };
            rest &= rest - 1;
            let Some(best) = best else {
                if metrics.iter().all(|&metric| metric == SERVED) {
                    break;
                }
                // No candidate can get this RBG, but a candidate may still get one of the higher RBGs.
                continue;
            };
            let (candidate, metric) = (&mut candidates[best], &mut metrics[best]);
            candidate.given |= 1 << rbg;
            candidate.prbs += grid.prbs_of(rbg);
            let bits = candidate.size.bits(candidate.prbs);
            match self.policy {
                Policy::RoundRobin => *metric -= 1.0,
                Policy::ProportionalFair if !self.lena_compat => {
                    *metric = candidate.rate / (candidate.average + bits as f64 / self.time_constant);
                }
                _ => {}
            }
            if bits >= candidate.wanted || candidate.prbs >= quota {
                *metric = SERVED;
            }
        }
        candidates.retain(|candidate| candidate.given != 0);
        if is_flat {
            lay_side_by_side(free, candidates);
        }
    }

    /// Selects the users of this subframe, in an order that breaks ties.
    fn pick(&mut self, now: u64, candidates: &mut Vec<Candidate>) {
        let count = candidates.len();
        match self.policy {
            Policy::RoundRobin => {
                let turn = candidates.iter().position(|candidate| candidate.user >= self.first).unwrap_or(0);
                candidates.rotate_left(turn);
                // If all users fit into the subframe, the first user rotates. Otherwise, the users that were left out
                // are first in the next subframe.
                let next = if count > self.max_users { self.max_users } else { 1 % count };
                self.first = candidates[next].user;
            }
            Policy::MaxCi | Policy::ProportionalFair => {
                let by_average = self.policy == Policy::ProportionalFair;
                for candidate in candidates.iter_mut() {
                    candidate.metric = candidate.rate / if by_average { candidate.average } else { 1.0 };
                }
                if count > 1 {
                    candidates.rotate_left(self.ties.at(now, 0).below(count as u64) as usize);
                }
                if count > self.max_users {
                    candidates.select_nth_unstable_by(self.max_users, |a, b| b.metric.total_cmp(&a.metric));
                }
            }
        }
        candidates.truncate(self.max_users);
    }
}

impl Policy {
    /// A candidate's metric on an RBG on which its rate is `rate_here`, given its metric at its mean rate `rate`. Round
    /// robin counts RBGs, independent of their rate.
    fn metric_on(self, metric: f64, rate_here: f32, rate: f64) -> f64 {
        if rate_here == NEVER_GIVEN || metric == SERVED {
            return SERVED;
        }
        match self {
            Policy::RoundRobin => metric,
            Policy::MaxCi | Policy::ProportionalFair => metric * f64::from(rate_here) / rate,
        }
    }
}

/// The index of the first candidate with the highest metric; `None` if all candidates are [`SERVED`].
#[inline]
fn first_of_highest(metrics: impl Iterator<Item = f64>) -> Option<usize> {
    let (mut best, mut highest) = (None, SERVED);
    for (index, metric) in metrics.enumerate() {
        if metric > highest {
            (best, highest) = (Some(index), metric);
        }
    }
    best
}

/// The `count` lowest RBGs of a set.
pub(super) fn lowest(mut set: RbgMask, count: u32) -> RbgMask {
    let whole = set;
    for _ in 0..count {
        set &= set.wrapping_sub(1);
    }
    whole & !set
}

/// Reassigns the RBGs of `free` so that each candidate gets contiguous RBGs, from the lowest RBG on. The number of RBGs
/// of each candidate is unchanged.
fn lay_side_by_side(free: RbgMask, candidates: &mut [Candidate]) {
    let mut rest = free;
    for candidate in candidates {
        candidate.given = lowest(rest, candidate.given.count_ones());
        rest &= !candidate.given;
    }
}

#[cfg(test)]
mod tests {
    use airpace_core::Streams;

    use super::*;

    const SIZE: BlockSize = BlockSize::Lte { i_tbs: 16, codewords: 1 };

    fn scheduler(policy: Policy) -> (Scheduler, RbgGrid) {
        let grid = RbgGrid::new(100, false);
        (Scheduler::new(policy, 100.0, 8, &grid, false, Streams::new(1).draws("test")), grid)
    }

    fn user(index: u16, rate: f64, average: f64) -> Candidate {
        Candidate { rate, size: SIZE, ..Candidate::new(index, 0, u64::MAX, average, false) }
    }

    fn given(candidates: &[Candidate], index: u16) -> u32 {
        candidates.iter().find(|candidate| candidate.user == index).map_or(0, |c| c.given.count_ones())
    }

    #[test]
    fn a_grid_ends_with_a_smaller_group_except_in_lena() {
        let grid = RbgGrid::new(50, false);
        assert_eq!((grid.rbgs, grid.prbs_in(grid.all()), grid.prb_set(grid.all()).len()), (17, 50, 50));
        let lena = RbgGrid::new(50, true);
        assert_eq!((lena.rbgs, lena.prbs_in(lena.all())), (16, 48));
        assert_eq!(grid.touched(PrbSet::run(5, 2)), 0b110);
    }

    #[test]
    fn round_robin_deals_equal_shares_and_the_remainder_in_turn() {
        let (mut scheduler, grid) = scheduler(Policy::RoundRobin);
        let mut totals = [0; 3];
        for now in 0..30 {
            let mut users: Vec<_> = (0..3).map(|index| user(index, 1000.0, 1.0)).collect();
            scheduler.share(now, &grid, grid.all(), &mut users, &[], |_| true);
            for (index, total) in totals.iter_mut().enumerate() {
                *total += given(&users, index as u16);
            }
        }
        assert_eq!(totals, [250; 3]);
    }

    /// Two users, each with a good half and a bad half of the band. If `shuns`, the bad half must not be assigned.
    fn opposites(shuns: bool) -> (Vec<Candidate>, Vec<[f32; MAX_RBGS]>) {
        let bad = if shuns { NEVER_GIVEN } else { 100.0 };
        let row = |first: f32, second: f32| std::array::from_fn(|rbg| if rbg < 12 { first } else { second });
        let candidates = [0, 1].map(|index| Candidate { rates: Some(index), ..user(index, 1000.0, 1.0) });
        (candidates.into(), vec![row(1000.0, bad), row(bad, 1000.0)])
    }

    #[test]
    fn round_robin_counts_rbgs_and_not_what_they_are_worth() {
        let (mut scheduler, grid) = scheduler(Policy::RoundRobin);
        let (mut users, rates) = opposites(false);
        scheduler.share(0, &grid, grid.all(), &mut users, &rates, |_| true);
        assert!(given(&users, 0).abs_diff(given(&users, 1)) <= 1, "{users:?}");
        let (mut users, rates) = opposites(true);
        scheduler.share(0, &grid, grid.all(), &mut users, &rates, |_| true);
        assert_eq!((given(&users, 0), given(&users, 1)), (12, 13), "nobody gets what it must not have");
    }

    #[test]
    fn an_rbg_that_nobody_may_have_leaves_those_above_it_to_be_given() {
        for policy in [Policy::RoundRobin, Policy::ProportionalFair, Policy::MaxCi] {
            let (mut scheduler, grid) = scheduler(policy);
            let (mut users, mut rates) = opposites(true);
            rates.iter_mut().for_each(|row| row[5] = NEVER_GIVEN);
            scheduler.share(0, &grid, grid.all(), &mut users, &rates, |_| true);
            assert_eq!((given(&users, 0), given(&users, 1)), (11, 13), "{policy:?}");
        }
    }

    #[test]
    fn max_ci_serves_the_best_user_first_and_gives_the_next_what_is_left() {
        let (mut scheduler, grid) = scheduler(Policy::MaxCi);
        let mut users = vec![user(0, 900.0, 1.0), user(1, 1000.0, 1.0)];
        users[1].wanted = 5000;
        scheduler.share(0, &grid, grid.all(), &mut users, &[], |_| true);
        assert!(SIZE.bits(4 * given(&users, 1) as u16) >= 5000);
        assert_eq!(given(&users, 0) + given(&users, 1), 25);
    }

    #[test]
    fn proportional_fair_splits_a_subframe_between_equals() {
        let (mut scheduler, grid) = scheduler(Policy::ProportionalFair);
        let mut users = vec![user(0, 1300.0, 16000.0), user(1, 1300.0, 16000.0)];
        scheduler.share(0, &grid, grid.all(), &mut users, &[], |_| true);
        assert!(given(&users, 0).abs_diff(given(&users, 1)) <= 1);
        assert_eq!(
            users[0].given.count_ones(),
            users[0]
                .given
                .trailing_ones()
                .max((users[0].given >> users[0].given.trailing_zeros()).trailing_ones()),
            "side by side"
        );
    }

    #[test]
    fn a_newcomer_shares_at_once_and_starves_nobody() {
        let (mut scheduler, grid) = scheduler(Policy::ProportionalFair);
        let mut users = vec![user(0, 1300.0, 32000.0), user(1, 1300.0, 1.0)];
        users[1].is_newcomer = true;
        scheduler.place_newcomers(&mut users);
        scheduler.share(0, &grid, grid.all(), &mut users, &[], |_| true);
        assert!((12..=13).contains(&given(&users, 0)), "the incumbent keeps half: {}", given(&users, 0));
    }

    #[test]
    fn where_rbgs_differ_each_goes_to_who_hears_it_best() {
        let (mut scheduler, grid) = scheduler(Policy::MaxCi);
        let mut rows = [[1000.0_f32; MAX_RBGS]; 2];
        rows[1][7] = 1200.0;
        let mut users = vec![user(0, 1100.0, 1.0), user(1, 1100.0, 1.0)];
        for (row, candidate) in users.iter_mut().enumerate() {
            candidate.rates = Some(row as u16);
        }
        scheduler.share(0, &grid, grid.all(), &mut users, &rows, |_| true);
        let second =
            users.iter().find(|candidate| candidate.user == 1).expect("was given the RBG it is best on");
        assert_eq!(second.given >> 7 & 1, 1);
    }
}
