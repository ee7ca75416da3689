//! One slot of one uplink carrier: first the data of this slot (PUSCH), then the grants for the data of later slots.
//!
//! HARQ of LTE is synchronous and not adaptive: the process of a block is its subframe modulo 8, and a lost block is
//! retransmitted 8 subframes later on the same PRBs, without a grant (PHICH). In subframe n, the base station knows all
//! retransmissions of subframe n+4, and grants other PRBs for that subframe. HARQ of NR is asynchronous: the base station
//! grants a lost block again, before new data, on the same number of PRBs. With configured grants, a device also sends in
//! PRBs that are reserved for it.
//!
//! Source: TS 36.213 §8 (format 0 in n → PUSCH in n+4; PHICH or format 0 in n+4 → retransmission in n+8),
//! TS 36.321 §5.4.2.2; TS 38.214 §6.1, TS 38.321 §5.4.2

use std::collections::VecDeque;

use airpace_core::{Bits, Packet, Time};
use airpace_event::{Fate, Owner};
use airpace_radio::{Dci, PrbSet};

use super::super::adaptation::Step;
use super::super::background::Arrivals;
use super::super::config::ConfiguredGrantConfig;
use super::super::harq::InFlight;
use super::super::rlc::{Content, Framing};
use super::super::scheduler::{Candidate, RbgGrid, Scheduler};
use super::adaptation::UplinkTable;
use super::air::UplinkAir;
use super::user::{Shared, Source, UplinkLink, UplinkUser};

/// Number of slots for which data can be granted in advance.
pub(super) const PUSCH_SLOTS: usize = 128;

/// One uplink component carrier.
#[derive(Debug)]
pub(super) struct UplinkCarrier {
    pub air: UplinkAir,
    pub framing: Framing,
    /// Number of bytes of a device's block that are not data: headers and buffer status report.
    pub header_bytes: u64,
    pub table: UplinkTable,
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
    /// Granted blocks, by slot modulo [`PUSCH_SLOTS`].
    pub pusch: Vec<Vec<Transmission>>,
    /// Lost blocks that need a grant for their retransmission, with the time of the base station's reaction, in order of
    /// time.
    pub lost: VecDeque<(Time, Transmission)>,
    /// Results of blocks with the time of the base station's reaction, in order of time.
    pub feedback: VecDeque<(Time, Feedback)>,
    /// PRBs with a transmission in the last slot, and PRBs of configured grants that were not used in it.
    pub used: PrbSet,
    pub unsent: PrbSet,
    /// PRBs that each device may use without a request; `None` if there are none.
    pub configured_grant: Option<ConfiguredGrantConfig>,
    /// Shares of the slots of the last millisecond, by slot modulo the number of slots per millisecond.
    pub shares: Vec<SlotShare>,
    /// Number of users that, according to the base station, needed PRBs for new data when grants were last sent.
    pub wanting: usize,
    /// The last slot in which grants were sent.
    pub granted_in: Option<u64>,
    /// The grants sent in the last slot, with their owners.
    pub grants: Vec<SentGrant>,
    pub candidates: Vec<Candidate>,
    /// An empty list of transmissions, stored to reuse its memory.
    pub spare: Vec<Transmission>,
}

/// Use of the PRBs of one slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotShare {
    /// Number of the slot.
    pub slot: u64,
    /// Whether the slot carries data.
    pub has_data: bool,
    /// PRBs without a transmission that no configured grant reserves.
    pub idle_prbs: u16,
}

/// A grant that was sent.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct SentGrant {
    pub dci: Dci,
    pub owner: Owner,
    /// The reserved MCS of a retransmission.
    pub reserved_mcs: Option<u8>,
    /// SINR in dB that the base station measured, from which the aggregation level of the DCI follows.
    pub sinr_db: f64,
}

/// A block to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    user: u16,
    link: u8,
    process: u8,
    prbs: PrbSet,
    mcs: u8,
    flight: InFlight,
    report: Option<Report>,
    /// Whether the device may send the block without a request, and sends nothing if it has no data.
    is_configured: bool,
}

/// A buffer status report that was sent in the slot that starts at `sent_in`.
#[derive(Clone, Copy, Debug)]
struct Report {
    level: u8,
    sent_in: Time,
}

/// Result of the reception of a block at the base station.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    user: u16,
    link: u8,
    process: u8,
    /// Start of the block's slot.
    sent_in: Time,
    step: Step,
    is_first: bool,
    is_received: bool,
    /// Whether the block will not be sent again.
    is_over: bool,
    report: Option<Report>,
}

/// State shared by the carriers while a slot runs.
pub(super) struct Turn<'a> {
    /// Number of the carrier's slot.
    pub slot: u64,
    /// Start of the slot.
    pub now: Time,
    /// The millisecond that starts with the slot; `None` if the slot is not the first of its millisecond.
    pub millisecond: Option<u64>,
    pub users: &'a mut [UplinkUser],
    pub shared: &'a Shared,
    /// Called for packets that leave the uplink.
    pub release: &'a mut dyn FnMut(Packet, Fate),
}

impl UplinkCarrier {
    /// Starts, continues and ends the uploads of background users.
    pub(super) fn arrive(&mut self, turn: &mut Turn<'_>) {
        let Some(millisecond) = turn.millisecond else { return };
        for (session, user) in self.arrivals.sessions(millisecond, &mut self.vacant) {
            turn.users[usize::from(user)].source = Source::Session(session, 0);
            let at = self.live.partition_point(|&(other, _)| other < user);
            self.live.insert(at, (user, 0));
        }
        let vacant = &mut self.vacant;
        self.live.retain(|&(index, _)| {
            let Source::Session(session, on_air) = &mut turn.users[usize::from(index)].source else {
                return true;
            };
            session.arrive();
            let is_over = session.is_over() && *on_air == 0;
            if is_over {
                vacant.push(index);
            }
            !is_over
        });
    }

    fn blocks_of(&mut self, slot: u64) -> &mut Vec<Transmission> {
        &mut self.pusch[slot as usize % PUSCH_SLOTS]
    }

    /// Lets devices fill the blocks granted for this slot.
    pub(super) fn fill(&mut self, turn: &mut Turn<'_>) {
        self.unsent = PrbSet::EMPTY;
        let mut unsent = PrbSet::EMPTY;
        self.blocks_of(turn.slot).retain_mut(|block| {
            if block.flight.held.transmissions() > 0 {
                return true;
            }
            let user = &mut turn.users[usize::from(block.user)];
            if let Source::Device(sender, _) = &mut user.source {
                if block.is_configured && !sender.has_data(turn.now) {
                    unsent = unsent.union(block.prbs);
                    user.links[usize::from(block.link)].set_busy(block.process, false);
                    return false;
                }
                if block.is_configured {
                    user.links[usize::from(block.link)].indicators ^= 1 << block.process;
                }
                let room = block.flight.block.bits.bytes().0 as u32;
                let (content, reports) = sender.build(turn.now, room);
                block.flight.content = content;
                block.report = reports.then_some(Report { level: 0, sent_in: turn.now });
            }
            true
        });
        self.unsent = unsent;
    }

    /// Sends the blocks of this slot and draws their outcome. The blocks of all carriers must have been filled before,
    /// because a buffer status report counts the data that remains after these blocks.
    pub(super) fn transmit(&mut self, turn: &mut Turn<'_>) {
        let spare = std::mem::take(&mut self.spare);
        let mut blocks = std::mem::replace(self.blocks_of(turn.slot), spare);
        self.used = PrbSet::EMPTY;
        let reaction = self.air.reaction(turn.slot);
        for mut block in blocks.drain(..) {
            debug_assert!(self.used.intersection(block.prbs).is_empty(), "a PRB was granted twice");
            self.used = self.used.union(block.prbs);
            let feedback = self.send(&mut block, turn);
            self.feedback.push_back((reaction, feedback));
            if feedback.is_over {
                continue;
            }
            match self.air.repeats_in(turn.slot) {
                Some(slot) => self.blocks_of(slot).push(block),
                None => self.lost.push_back((reaction, block)),
            }
        }
        self.spare = blocks;
        let place = turn.slot % self.shares.len() as u64;
        self.shares[place as usize] = SlotShare {
            slot: turn.slot,
            has_data: self.air.has_data(turn.slot),
            // Grants to others may scatter the idle PRBs. The base station could have placed these grants so that the idle
            // PRBs are contiguous. Therefore all idle PRBs count.
            idle_prbs: self.region.without(self.used).without(self.unsent).len(),
        };
    }

    /// Sends a block. Returns the result at the base station.
    fn send(&self, block: &mut Transmission, turn: &mut Turn<'_>) -> Feedback {
        let (now, shared) = (turn.now, turn.shared);
        let user = &mut turn.users[usize::from(block.user)];
        let flight = &mut block.flight;
        let is_first = flight.held.transmissions() == 0;
        if let (Some(report), Source::Device(sender, _), true) = (&mut block.report, &user.source, is_first) {
            report.level = sender.level(now);
        }
        let link = &mut user.links[usize::from(block.link)];
        let modulation = flight.block.modulation();
        let heard_db = link.channel.at(turn.slot).effective_sinr_db(block.prbs, modulation);
        let sinr_db = heard_db - link.sounding.thinning_db(block.prbs.len());
        flight.held.add(modulation, self.table.judged_db(block.mcs, sinr_db));
        // In NR, a slot may have several blocks of a device.
        let draw = if self.air.repeats_in(turn.slot).is_some() { 0 } else { u64::from(block.process) };
        let is_received =
            !link.luck.at(turn.slot, draw).chance(shared.bler.error(flight.block, &flight.held));
        let gives_up = !is_received && flight.held.transmissions() > shared.config.max_retransmissions;
        let is_over = is_received || gives_up;
        if self.air.repeats_in(turn.slot).is_some() {
            link.set_busy(block.process, !is_over);
        }
        link.sent.add(turn.slot, block.prbs.len());
        if is_received {
            user.source.received(now, flight.content, turn.release);
        } else if gives_up {
            user.source.failed(now, flight.content, flight.payload_bits);
        }
        let Transmission { user, link, process, .. } = *block;
        let report = block.report.filter(|_| is_received);
        let step = block.flight.step;
        Feedback { user, link, process, sent_in: now, step, is_first, is_received, is_over, report }
    }

    /// The base station's reaction to received blocks.
    pub(super) fn learn(&mut self, turn: &mut Turn<'_>) {
        while let Some(&(known_from, feedback)) = self.feedback.front()
            && known_from <= turn.now
        {
            self.feedback.pop_front();
            let user = &mut turn.users[usize::from(feedback.user)];
            let link = &mut user.links[usize::from(feedback.link)];
            if feedback.is_first {
                link.sounding.on_first_transmission(feedback.step, feedback.is_received);
            }
            // In LTE, a later block may already use the process.
            if feedback.is_over && self.air.repeats_in(turn.slot).is_none() {
                link.set_busy(feedback.process, false);
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

    /// Updates the measurements of all users' channels.
    pub(super) fn measure(&mut self, turn: &mut Turn<'_>) {
        for &(index, link_index) in &self.live {
            let link = &mut turn.users[usize::from(index)].links[usize::from(link_index)];
            link.sounding.update(turn.slot, &self.table, &mut link.channel);
        }
    }

    /// Sends the grants of this slot.
    pub(super) fn schedule(&mut self, turn: &mut Turn<'_>) {
        self.grants.clear();
        let targets = self.air.targets(turn.slot);
        if !targets.is_empty() {
            self.granted_in = Some(turn.slot);
            self.wanting = 0;
        }
        for target in targets {
            self.grant_all(turn, target);
        }
    }

    /// Grants PRBs of slot `target`.
    fn grant_all(&mut self, turn: &mut Turn<'_>, target: u64) {
        let taken = self.blocks_of(target).iter().fold(PrbSet::EMPTY, |set, block| set.union(block.prbs));
        let mut free = self.region.without(taken);
        self.repeat_lost(turn, target, &mut free);
        self.collect(turn);
        self.configure(turn, target, &mut free);
        let mut candidates = std::mem::take(&mut self.candidates);
        self.place_newcomers(turn, &mut candidates);
        candidates.retain(|candidate| {
            let link = &turn.users[usize::from(candidate.user)].links[usize::from(candidate.link)];
            // A HARQ process has only one block at a time.
            self.air.process(target, link.busy).is_some()
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
            self.scheduler.share(turn.slot, &grid, grid.all(), &mut candidates, &[], |_| true);
            // Only some numbers of PRBs are valid for a grant. PRBs that a user cannot use for this reason are offered
            // to the next user.
            let mut left_over = 0;
            for candidate in &candidates {
                let quota = left_over + grid.prbs_in(candidate.given);
                left_over = quota - self.grant(turn, target, candidate, quota, &mut free);
            }
        }
        self.candidates = candidates;
    }

    /// Reserves the PRBs of slot `target` that devices may use without a request. A device gets none if there are too few
    /// adjacent PRBs, if its block would contain only headers, or if it is to be granted other PRBs.
    ///
    /// Source: TS 38.321 §5.4.1 (a grant replaces a configured one in its slot)
    fn configure(&mut self, turn: &mut Turn<'_>, target: u64, free: &mut PrbSet) {
        let Some(ConfiguredGrantConfig { period_ms, prbs: count }) = self.configured_grant else { return };
        for place in 0..self.live.len() {
            let (index, link_index) = self.live[place];
            let user = &mut turn.users[usize::from(index)];
            let is_first = user.active_links(turn.now).next() == Some(link_index.into());
            let offset_ms = u64::from(index) % u64::from(period_ms);
            let is_due = is_first && self.air.is_request_slot(target, period_ms.into(), offset_ms);
            let is_candidate =
                self.candidates.iter().any(|other| (other.user, other.link) == (index, link_index));
            if !is_due || is_candidate || !matches!(user.source, Source::Device(..)) {
                continue;
            }
            let link = &mut user.links[usize::from(link_index)];
            let prbs = self.place(*free, count);
            let mcs = link.sounding.mcs_on(&self.table, prbs).filter(|_| prbs.len() == count);
            let (Some(mcs), Some(process)) = (mcs, self.air.process(target, link.busy)) else { continue };
            let block = self.table.block(mcs, count);
            if block.bits.0 <= 8 * self.header_bytes {
                continue;
            }
            *free = free.without(prbs);
            link.set_busy(process, true);
            let flight = InFlight::new(block, Content::default(), 0, link.sounding.step());
            self.blocks_of(target).push(Transmission {
                user: index,
                link: link_index,
                process,
                prbs,
                mcs,
                flight,
                report: None,
                is_configured: true,
            });
        }
    }

    /// Grants the retransmissions of lost blocks, oldest first, on as many PRBs as before. Blocks without space wait.
    fn repeat_lost(&mut self, turn: &mut Turn<'_>, target: u64, free: &mut PrbSet) {
        let mut index = 0;
        while let Some((known_from, block)) = self.lost.get(index).copied()
            && known_from <= turn.now
        {
            let user = &turn.users[usize::from(block.user)];
            let prbs = self.place(*free, block.prbs.len());
            if prbs.len() < block.prbs.len() || !user.active_links(turn.now).contains(&block.link.into()) {
                index += 1;
                continue;
            }
            self.lost.remove(index);
            *free = free.without(prbs);
            let link = &user.links[usize::from(block.link)];
            let dci = Dci {
                rv: [Some(block.flight.redundancy_version()), None],
                retransmission: [true, false],
                ..self.dci(turn, target, &block, prbs)
            };
            let reserved_mcs = Some(block.flight.reserved_mcs());
            let sinr_db = link.sounding.known_sinr_db();
            self.grants.push(SentGrant { dci, owner: user.owner, reserved_mcs, sinr_db });
            self.blocks_of(target).push(Transmission { prbs, ..block });
        }
    }

    /// The DCI of a block on these PRBs in slot `target`.
    fn dci(&self, turn: &Turn<'_>, target: u64, block: &Transmission, prbs: PrbSet) -> Dci {
        let user = &turn.users[usize::from(block.user)];
        let indicators = user.links[usize::from(block.link)].indicators;
        Dci {
            rnti: user.rnti,
            prbs,
            mcs: [Some(block.mcs), None],
            tbs: [block.flight.block.bits, Bits::ZERO],
            ndi: [Some(indicators >> block.process & 1 == 1), None],
            harq: Some(block.process),
            ..self.air.grant(target - turn.slot)
        }
    }

    /// Collects the users that need PRBs for new data.
    fn collect(&mut self, turn: &mut Turn<'_>) {
        self.candidates.clear();
        let now = turn.now;
        let previous = self.air.previous(turn.slot).map(|slot| self.air.start(slot));
        for &(index, link_index) in &self.live {
            let user = &mut turn.users[usize::from(index)];
            let is_active = user.active_links(now).contains(&link_index.into());
            let wanted = if is_active { user.wanted_bits(turn.shared, self.header_bytes) } else { 0 };
            let link = &mut user.links[usize::from(link_index)];
            link.average_bits = self.scheduler.decayed(link.average_bits);
            if wanted == 0 {
                continue;
            }
            let is_counted = link.wanted_in == Some(now);
            let is_newcomer = link.wanted_in != previous && !is_counted;
            link.wanted_in = Some(now);
            self.wanting += usize::from(!is_counted);
            let Some(mcs) = link.sounding.mcs(&self.table, self.step_prbs) else { continue };
            let size = self.table.size(mcs);
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

    /// Grants a user up to `quota` adjacent free PRBs of slot `target` for new data. Returns the number of granted PRBs.
    fn grant(
        &mut self,
        turn: &mut Turn<'_>,
        target: u64,
        candidate: &Candidate,
        quota: u16,
        free: &mut PrbSet,
    ) -> u16 {
        let user = &mut turn.users[usize::from(candidate.user)];
        let link = &mut user.links[usize::from(candidate.link)];
        let Some(process) = self.air.process(target, link.busy) else { return 0 };
        let prbs = self.place(*free, self.sufficient(link, candidate.wanted, quota));
        let Some(mcs) = link.sounding.mcs_on(&self.table, prbs).filter(|_| !prbs.is_empty()) else {
            return 0;
        };
        let size = prbs.len();
        let block = self.table.block(mcs, size);
        // In the remaining PRBs, there may only be space for a block's headers.
        if block.bits.0 <= 8 * self.header_bytes {
            return 0;
        }
        *free = free.without(prbs);
        link.indicators ^= 1 << process;
        if self.air.repeats_in(target).is_none() {
            link.set_busy(process, true);
        }
        link.average_bits += self.scheduler.gain(block.bits);
        let step = link.sounding.step();
        let sinr_db = link.sounding.known_sinr_db();
        let payload_bits = user.source.grant(self.header_bytes, self.air.start(target), block.bits.0);
        let owner = user.owner;
        let sent = Transmission {
            user: candidate.user,
            link: candidate.link,
            process,
            prbs,
            mcs,
            flight: InFlight::new(block, Content::default(), payload_bits, step),
            report: None,
            is_configured: false,
        };
        let dci = self.dci(turn, target, &sent, prbs);
        self.grants.push(SentGrant { dci, owner, reserved_mcs: None, sinr_db });
        self.blocks_of(target).push(sent);
        size
    }

    /// The smallest number of PRB pairs, at most `quota`, whose block has space for `wanted` bits. If no number up to
    /// `quota` is sufficient, the number with the largest block.
    fn sufficient(&self, link: &UplinkLink, wanted: u64, quota: u16) -> u16 {
        let most = self.air.size_within(quota);
        if !link.sounding.is_power_limited(most) && link.bits_on(&self.table, most) <= wanted {
            return most;
        }
        let (mut best, mut best_bits) = (0, 0);
        let mut size = self.air.size_from(1);
        while let Some(prbs) = size.filter(|&prbs| prbs <= most) {
            let bits = link.bits_on(&self.table, prbs);
            if bits > best_bits {
                (best, best_bits) = (prbs, bits);
            }
            if bits >= wanted {
                break;
            }
            size = self.air.size_from(prbs + 1);
        }
        best
    }

    /// Places `count` adjacent PRBs in the shortest free run that has space for them. If no run has space, the maximum
    /// valid number of PRBs is placed in the longest run.
    fn place(&self, free: PrbSet, count: u16) -> PrbSet {
        let fitting = free.runs().filter(|&(_, len)| len >= count).min_by_key(|&(_, len)| len);
        let Some((start, len)) = fitting.or_else(|| free.runs().max_by_key(|&(_, len)| len)) else {
            return PrbSet::EMPTY;
        };
        PrbSet::run(start, self.air.size_within(count.min(len)))
    }

    /// The blocks of the next subframe, whose number is `subframe`: (user, PRBs, MCS, number of earlier transmissions).
    #[cfg(test)]
    pub(super) fn due_in(&self, subframe: u64) -> impl Iterator<Item = (u16, PrbSet, u8, u8)> {
        let blocks = &self.pusch[subframe as usize % PUSCH_SLOTS];
        blocks.iter().map(|block| (block.user, block.prbs, block.mcs, block.flight.held.transmissions()))
    }

    /// Discards all blocks and results of a user (handover).
    pub(super) fn forget(&mut self, user: u16) {
        self.pusch.iter_mut().for_each(|blocks| blocks.retain(|block| block.user != user));
        self.lost.retain(|(_, block)| block.user != user);
        self.feedback.retain(|(_, feedback)| feedback.user != user);
    }
}
