//! One subframe of one uplink carrier: first the data of this subframe (PUSCH), then the grants for the data four
//! subframes later.
//!
//! HARQ is synchronous and not adaptive: the process of a block is its subframe modulo 8, and a lost block is
//! retransmitted 8 subframes later on the same PRBs, without a grant (PHICH). Therefore grants for subframe n+4 avoid
//! the PRBs of retransmissions in n+4, all of which are already known in subframe n.
//!
//! Source: TS 36.213 §8 (format 0 in n → PUSCH in n+4; PHICH or format 0 in n+4 → retransmission in n+8),
//! TS 36.321 §5.4.2.2

use std::collections::VecDeque;

use airpace_core::tables::lte;
use airpace_core::{Bits, Direction, Packet, Time};
use airpace_event::{Fate, Owner};
use airpace_radio::{Dci, DciFormat, PrbSet};

use super::super::adaptation::Step;
use super::super::background::Arrivals;
use super::super::harq::InFlight;
use super::super::lte::FEEDBACK;
use super::super::rlc::Content;
use super::super::scheduler::{BlockSize, Candidate, RbgGrid, Scheduler};
use super::user::{Shared, Source, UplinkLink, UplinkUser};

/// The number of HARQ processes of an uplink carrier. It is also the number of subframes from one transmission of a
/// block to the next.
///
/// Source: TS 36.213 §8
pub(super) const PROCESSES: u64 = 8;

/// Number of subframes from a grant to the granted transmission.
///
/// Source: TS 36.213 §8.0 (FDD: n+4)
pub(super) const GRANT_DELAY: u64 = 4;

/// One uplink component carrier.
#[derive(Debug)]
pub(super) struct UplinkCarrier {
    /// The PRBs that can carry data.
    pub region: PrbSet,
    /// Allocation granularity of the scheduler in PRBs.
    pub step_prbs: u16,
    pub scheduler: Scheduler,
    pub arrivals: Arrivals,
    /// Users that may be granted PRBs, as (user, link), in order of users.
    pub live: Vec<(u16, u8)>,
    /// Background users without an upload.
    pub vacant: Vec<u16>,
    /// Blocks to be sent, by subframe modulo 8.
    pub pusch: [Vec<Transmission>; PROCESSES as usize],
    /// Results of blocks with the time of the base station's reaction, in order of time.
    pub feedback: VecDeque<(Time, Feedback)>,
    /// PRBs with a transmission in the last subframe.
    pub used: PrbSet,
    /// Number of users that, according to the base station, needed PRBs for new data in the last subframe.
    pub wanting: usize,
    /// The grants sent in the last subframe, with their owners.
    pub grants: Vec<(Dci, Owner)>,
    pub candidates: Vec<Candidate>,
    /// An empty list of transmissions, stored to reuse its memory.
    pub spare: Vec<Transmission>,
}

/// A block to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub user: u16,
    pub link: u8,
    prbs: PrbSet,
    mcs: u8,
    flight: InFlight,
    report: Option<Report>,
}

/// A buffer status report that was sent in the subframe that starts at `sent_in`.
#[derive(Clone, Copy, Debug)]
struct Report {
    level: u8,
    sent_in: Time,
}

/// Result of the reception of a block at the base station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    pub user: u16,
    pub link: u8,
    /// Start of the block's subframe.
    sent_in: Time,
    step: Step,
    is_first: bool,
    is_received: bool,
    report: Option<Report>,
}

/// State shared by the carriers while a subframe runs.
pub(super) struct Turn<'a> {
    /// Number of the subframe.
    pub subframe: u64,
    /// Start of the subframe.
    pub now: Time,
    pub users: &'a mut [UplinkUser],
    pub shared: &'a Shared,
    /// Called for packets that leave the uplink.
    pub release: &'a mut dyn FnMut(Packet, Fate),
}

impl UplinkCarrier {
    /// Starts, continues and ends the uploads of background users.
    pub(super) fn arrive(&mut self, subframe: u64, users: &mut [UplinkUser]) {
        for (session, user) in self.arrivals.sessions(subframe, &mut self.vacant) {
            users[usize::from(user)].source = Source::Session(session, 0);
            let at = self.live.partition_point(|&(other, _)| other < user);
            self.live.insert(at, (user, 0));
        }
        let vacant = &mut self.vacant;
        self.live.retain(|&(index, _)| {
            let Source::Session(session, on_air) = &mut users[usize::from(index)].source else { return true };
            session.arrive();
            let is_over = session.is_over() && *on_air == 0;
            if is_over {
                vacant.push(index);
            }
            !is_over
        });
    }

    /// Lets devices fill the blocks granted for this subframe.
    pub(super) fn fill(&mut self, turn: &mut Turn<'_>) {
        for block in &mut self.pusch[(turn.subframe % PROCESSES) as usize] {
            if block.flight.held.transmissions() > 0 {
                continue;
            }
            if let Source::Device(sender, _) = &mut turn.users[usize::from(block.user)].source {
                let room = block.flight.block.bits.bytes().0 as u32;
                let (content, reports) = sender.build(turn.now, room);
                block.flight.content = content;
                block.report = reports.then_some(Report { level: 0, sent_in: turn.now });
            }
        }
    }

    /// Sends the blocks of this subframe and draws their outcome. The blocks of all carriers must have been filled
    /// before, because a buffer status report counts the data that remains after these blocks.
    pub(super) fn transmit(&mut self, turn: &mut Turn<'_>) {
        let process = (turn.subframe % PROCESSES) as usize;
        let mut blocks = std::mem::replace(&mut self.pusch[process], std::mem::take(&mut self.spare));
        self.used = PrbSet::EMPTY;
        for mut block in blocks.drain(..) {
            debug_assert!(self.used.intersection(block.prbs).is_empty(), "a PRB was granted twice");
            self.used = self.used.union(block.prbs);
            let (feedback, is_over) = send(&mut block, turn);
            self.feedback.push_back((turn.now + FEEDBACK, feedback));
            if !is_over {
                self.pusch[process].push(block);
            }
        }
        self.spare = blocks;
    }

    /// The base station's reaction to the blocks that were received four subframes ago.
    pub(super) fn learn(&mut self, turn: &mut Turn<'_>) {
        while let Some(&(known_from, feedback)) = self.feedback.front()
            && known_from <= turn.now
        {
            self.feedback.pop_front();
            let user = &mut turn.users[usize::from(feedback.user)];
            if feedback.is_first {
                let sounding = &mut user.links[usize::from(feedback.link)].sounding;
                sounding.on_first_transmission(feedback.step, feedback.is_received);
            }
            let Source::Device(sender, knowledge) = &mut user.source else { continue };
            match feedback.report {
                Some(report) => {
                    let reading = turn.shared.config.bsr_reading;
                    knowledge.report(report.sent_in, sender.levels().bytes(report.level, reading));
                }
                None if feedback.is_received => knowledge.full_block(feedback.sent_in),
                None => {}
            }
        }
    }

    /// Grants PRBs of the subframe four subframes later.
    pub(super) fn schedule(&mut self, turn: &mut Turn<'_>) {
        self.grants.clear();
        let process = ((turn.subframe + GRANT_DELAY) % PROCESSES) as usize;
        let repeated = self.pusch[process].iter().fold(PrbSet::EMPTY, |set, block| set.union(block.prbs));
        let mut free = self.region.without(repeated);
        self.collect(turn);
        let mut candidates = std::mem::take(&mut self.candidates);
        self.place_newcomers(turn, &mut candidates);
        candidates.retain(|candidate| {
            let link = &turn.users[usize::from(candidate.user)].links[usize::from(candidate.link)];
            // A HARQ process has only one block at a time.
            link.repeating >> process & 1 == 0
        });
        if !free.is_empty() && !candidates.is_empty() {
            let grid = RbgGrid {
                prbs: free.len(),
                rbg_prbs: self.step_prbs,
                rbgs: free.len().div_ceil(self.step_prbs),
            };
            // PRBs are shared in units of `step_prbs`; their position in the band is chosen afterwards.
            //
            // Chosen: users are compared by their rate over the whole band, because adjacent PRBs cannot be chosen
            // according to the fading of single RBGs.
            self.scheduler.share(turn.subframe, &grid, grid.all(), &mut candidates, &[], |_| true);
            // Only some numbers of PRBs are valid for a grant. PRBs that a user cannot use for this reason are offered
            // to the next user.
            let mut left_over = 0;
            for candidate in &candidates {
                let quota = left_over + grid.prbs_in(candidate.given);
                left_over = quota - self.grant(turn, candidate, quota, &mut free);
            }
        }
        self.candidates = candidates;
    }

    /// Collects the users that need PRBs for new data.
    fn collect(&mut self, turn: &mut Turn<'_>) {
        self.candidates.clear();
        self.wanting = 0;
        let now = turn.now;
        let previous = turn.subframe.checked_sub(1).map(Time::from_millis);
        for &(index, link_index) in &self.live {
            let user = &mut turn.users[usize::from(index)];
            let is_active = usize::from(link_index) < user.active_links(now);
            let wanted = if is_active { user.wanted_bits(turn.shared) } else { 0 };
            let link = &mut user.links[usize::from(link_index)];
            link.sounding.update(turn.subframe, &turn.shared.table, &mut link.channel);
            link.average_bits = self.scheduler.decayed(link.average_bits);
            if wanted == 0 {
                continue;
            }
            let is_newcomer = link.wanted_in != previous;
            link.wanted_in = Some(now);
            self.wanting += 1;
            let Some(mcs) = link.sounding.mcs(&turn.shared.table, self.step_prbs) else { continue };
            let size = BlockSize::Lte { i_tbs: turn.shared.table.row(mcs).i_tbs, codewords: 1 };
            let mut candidate = Candidate::new(index, link_index, wanted, link.average_bits, is_newcomer);
            candidate.rate = size.bits(self.step_prbs) as f64;
            candidate.size = size;
            self.candidates.push(candidate);
        }
    }

    /// Sets the average of newcomers. Newcomers are also compared with users whose HARQ process is occupied by a
    /// retransmission.
    fn place_newcomers(&self, turn: &mut Turn<'_>, candidates: &mut [Candidate]) {
        self.scheduler.place_newcomers(candidates);
        for candidate in candidates.iter().filter(|candidate| candidate.is_newcomer) {
            let link = &mut turn.users[usize::from(candidate.user)].links[usize::from(candidate.link)];
            link.average_bits = candidate.average;
        }
    }

    /// Grants a user up to `quota` adjacent free PRBs for new data. Returns the number of granted PRBs.
    fn grant(&mut self, turn: &mut Turn<'_>, candidate: &Candidate, quota: u16, free: &mut PrbSet) -> u16 {
        let shared = turn.shared;
        let target = turn.subframe + GRANT_DELAY;
        let process = target % PROCESSES;
        let user = &mut turn.users[usize::from(candidate.user)];
        let link = &mut user.links[usize::from(candidate.link)];
        let prbs = place(*free, sufficient(shared, link, candidate.wanted, quota));
        let Some(mcs) = link.sounding.mcs_on(&shared.table, prbs).filter(|_| !prbs.is_empty()) else {
            return 0;
        };
        let size = prbs.len();
        let block = shared.table.block(mcs, size);
        // In the remaining PRBs, there may only be space for a block's headers.
        if block.bits.0 <= 8 * shared.header_bytes {
            return 0;
        }
        *free = free.without(prbs);
        link.indicators ^= 1 << process;
        link.average_bits += self.scheduler.gain(block.bits);
        self.grants.push((
            Dci {
                rnti: user.rnti,
                direction: Direction::Uplink,
                format: DciFormat::F0,
                prbs,
                mcs: [Some(mcs), None],
                tbs: [block.bits, Bits::ZERO],
                ndi: [Some(link.indicators >> process & 1 == 1), None],
                harq: Some(process as u8),
                layers: 1,
                ..Dci::default()
            },
            user.owner,
        ));
        let step = link.sounding.step();
        let payload_bits = user.source.grant(shared, Time::from_millis(target), block.bits.0);
        self.pusch[process as usize].push(Transmission {
            user: candidate.user,
            link: candidate.link,
            prbs,
            mcs,
            flight: InFlight::new(block, Content::default(), payload_bits, step),
            report: None,
        });
        size
    }

    /// The blocks of the next subframe, whose number is `subframe`: (user, PRBs, MCS, number of earlier transmissions).
    #[cfg(test)]
    pub(super) fn due_in(&self, subframe: u64) -> impl Iterator<Item = (u16, PrbSet, u8, u8)> {
        let blocks = &self.pusch[(subframe % PROCESSES) as usize];
        blocks.iter().map(|block| (block.user, block.prbs, block.mcs, block.flight.held.transmissions()))
    }

    /// Discards all blocks and results of a user (handover).
    pub(super) fn forget(&mut self, user: u16) {
        self.pusch.iter_mut().for_each(|blocks| blocks.retain(|block| block.user != user));
        self.feedback.retain(|(_, feedback)| feedback.user != user);
    }
}

/// Sends a block. Returns the result at the base station, and whether this was the block's last transmission.
fn send(block: &mut Transmission, turn: &mut Turn<'_>) -> (Feedback, bool) {
    let (now, shared) = (turn.now, turn.shared);
    let user = &mut turn.users[usize::from(block.user)];
    let flight = &mut block.flight;
    let is_first = flight.held.transmissions() == 0;
    if let (Some(report), Source::Device(sender, _), true) = (&mut block.report, &user.source, is_first) {
        report.level = sender.level(now);
    }
    let link = &mut user.links[usize::from(block.link)];
    let modulation = flight.block.modulation();
    let heard_db = link.channel.at(turn.subframe).effective_sinr_db(block.prbs, modulation);
    let sinr_db = heard_db - link.sounding.thinning_db(block.prbs.len());
    flight.held.add(modulation, shared.table.judged_db(block.mcs, sinr_db));
    let is_received = !link.luck.at(turn.subframe, 0).chance(shared.bler.error(flight.block, &flight.held));
    let gives_up = !is_received && flight.held.transmissions() > shared.config.max_retransmissions;
    let is_over = is_received || gives_up;
    let process_bit = 1 << (turn.subframe % PROCESSES);
    link.repeating = if is_over { link.repeating & !process_bit } else { link.repeating | process_bit };
    link.sent_in = Some(now);
    link.sent_prbs = block.prbs.len();
    if is_received {
        user.source.received(now, flight.content, turn.release);
    } else if gives_up {
        user.source.failed(now, flight.content, flight.payload_bits);
    }
    let Transmission { user, link, .. } = *block;
    let report = block.report.filter(|_| is_received);
    let step = block.flight.step;
    (Feedback { user, link, sent_in: now, step, is_first, is_received, report }, is_over)
}

/// The smallest number of PRB pairs, at most `quota`, whose block has space for `wanted` bits. If no number up to
/// `quota` is sufficient, the number with the largest block.
fn sufficient(shared: &Shared, link: &UplinkLink, wanted: u64, quota: u16) -> u16 {
    let most = lte::pusch_size_within(quota);
    if !link.sounding.is_power_limited(most) && link.bits_on(&shared.table, most) <= wanted {
        return most;
    }
    let (mut best, mut best_bits) = (0, 0);
    let mut size = lte::pusch_size_from(1);
    while let Some(prbs) = size.filter(|&prbs| prbs <= most) {
        let bits = link.bits_on(&shared.table, prbs);
        if bits > best_bits {
            (best, best_bits) = (prbs, bits);
        }
        if bits >= wanted {
            break;
        }
        size = lte::pusch_size_from(prbs + 1);
    }
    best
}

/// Places `count` adjacent PRBs in the shortest free run that has space for them. If no run has space, the maximum
/// valid number of PRBs is placed in the longest run.
fn place(free: PrbSet, count: u16) -> PrbSet {
    let fitting = free.runs().filter(|&(_, len)| len >= count).min_by_key(|&(_, len)| len);
    let Some((start, len)) = fitting.or_else(|| free.runs().max_by_key(|&(_, len)| len)) else {
        return PrbSet::EMPTY;
    };
    PrbSet::run(start, lte::pusch_size_within(count.min(len)))
}
