//! Runs one slot of one carrier, which is a subframe in LTE: first retransmissions, control users and data users are
//! scheduled, then the outcome of every block is drawn.

use std::collections::VecDeque;

use airpace_core::{Bits, Packet, Time};
use airpace_event::{Fate, Owner};
use airpace_radio::{Dci, PrbSet};

use super::adaptation::Step;
use super::air::Air;
use super::background::{Arrivals, Control};
use super::bler::Bler;
use super::harq::{CODEWORDS, Due, Groups, InFlight};
use super::region::DataRegion;
use super::rlc::Content;
use super::scheduler::{Candidate, MAX_RBGS, NEVER_GIVEN, RbgGrid, RbgMask, Scheduler, lowest};
use super::telemetry::Account;
use super::uplink::SentGrant;
use super::user::{RadioLink, SESSION_HEADER_BITS, Source, User};

/// One component carrier.
#[derive(Debug)]
pub(super) struct Carrier {
    pub air: Air,
    pub grid: RbgGrid,
    pub scheduler: Scheduler,
    pub control: Control,
    pub arrivals: Arrivals,
    /// Users that may have data for this carrier, as (user, link), in order of users.
    pub live: Vec<(u16, u8)>,
    /// Background users without a download.
    pub vacant: Vec<u16>,
    /// Pending retransmissions, in order of time.
    pub due: VecDeque<Due>,
    /// Acknowledgements in flight with the time of their arrival, in order of time.
    pub feedback: VecDeque<(Time, Feedback)>,
    /// Records of the slots of the last millisecond, by slot modulo the number of slots per millisecond.
    pub accounts: Vec<Account>,
    /// Shares of the slots of the last millisecond, in the same order.
    pub shares: Vec<SlotShare>,
    /// PRBs that were assigned in the last slot.
    pub used: PrbSet,
    /// The last slot that could carry data, and the number of users with new data in this slot.
    pub last_data_slot: Option<u64>,
    pub wanting: usize,
    pub candidates: Vec<Candidate>,
    pub rates: Vec<[f32; MAX_RBGS]>,
}

/// Use of the PRBs of one slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotShare {
    /// Number of the slot.
    pub slot: u64,
    /// The part of the slot that carries data.
    pub region: DataRegion,
    /// PRBs that can carry data.
    pub usable_prbs: u16,
    /// PRBs that were assigned.
    pub used_prbs: u16,
}

impl SlotShare {
    /// A slot in which nothing was assigned.
    pub(super) fn unused(slot: u64, region: DataRegion) -> SlotShare {
        SlotShare { slot, region, usable_prbs: 0, used_prbs: 0 }
    }
}

/// Information that an acknowledgement gives to link adaptation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    user: u16,
    link: u8,
    step: Step,
    is_received: bool,
}

/// State shared by the carriers of a cell while a subframe runs.
pub(super) struct Context<'a> {
    /// Number of the carrier's slot.
    pub slot: u64,
    /// Start of the slot.
    pub now: Time,
    /// The millisecond that starts with the slot; `None` if the slot is not the first of its millisecond.
    pub millisecond: Option<u64>,
    pub users: &'a mut [User],
    pub bler: &'a Bler,
    pub max_retransmissions: u8,
    pub max_users: usize,
    /// Whether a record of the grants is needed.
    pub wants_account: bool,
    /// Time at which devices pass on packets that are complete after the slot.
    pub leaves_at: Time,
    /// Called for packets that leave the cell, with the time at which they leave.
    pub release: &'a mut dyn FnMut(Time, Packet, Fate),
}

impl Carrier {
    /// Runs one slot, whose control region also has these grants of uplink data.
    pub(super) fn run(&mut self, context: &mut Context<'_>, uplink_grants: &[SentGrant]) {
        self.used = PrbSet::EMPTY;
        self.air.begin(context.slot);
        for grant in uplink_grants {
            // Differs: a grant of uplink data is sent even if the control region has no candidate for it.
            self.air.place(grant.dci.rnti, grant.sinr_db);
        }
        if let Some(millisecond) = context.millisecond {
            self.arrive(context, millisecond);
            self.control.appear(self.grid.prbs);
        }
        self.control.waiting.extend(self.air.system_information());
        let has_data = self.air.region(context.slot).has_data();
        if has_data {
            self.last_data_slot = Some(context.slot);
            self.collect(context);
            self.make_room(context, uplink_grants.len());
        }
        let place = (context.slot % self.air.slots_per_ms()) as usize;
        self.accounts[place].begin(self.air.slot(context.slot), context.now, self.air.region(context.slot));
        let reserved = self.grid.touched(self.air.reserved());
        if has_data {
            let free = self.retransmit(context, self.grid.all() & !reserved);
            let free = self.serve_control(context, free);
            self.serve_data(context, free);
        }
        self.acknowledge(context);
        self.shares[place] = SlotShare {
            slot: context.slot,
            region: self.air.region(context.slot),
            usable_prbs: if has_data { self.grid.prbs - self.grid.prbs_in(reserved) } else { 0 },
            used_prbs: self.used.len(),
        };
        debug_assert!(self.used.len() <= self.grid.prbs);
    }

    /// The record of a slot of the last millisecond.
    pub(super) fn account_of(&mut self, slot: u64) -> &mut Account {
        let place = slot % self.accounts.len() as u64;
        &mut self.accounts[place as usize]
    }

    /// Whether the last data slot was one in which this user had data.
    pub(super) fn is_wanted_by(&self, link: &RadioLink) -> bool {
        self.last_data_slot.is_some() && link.wanted_in == self.last_data_slot
    }

    /// Starts, continues and ends background downloads.
    fn arrive(&mut self, context: &mut Context<'_>, millisecond: u64) {
        for (session, user) in self.arrivals.sessions(millisecond, &mut self.vacant) {
            context.users[usize::from(user)].source = Source::Session(session);
            let at = self.live.partition_point(|&(other, _)| other < user);
            self.live.insert(at, (user, 0));
        }
        let vacant = &mut self.vacant;
        self.live.retain(|&(index, link)| {
            let user = &mut context.users[usize::from(index)];
            let Source::Session(session) = &mut user.source else { return true };
            session.arrive();
            let is_over = session.is_over() && user.links[usize::from(link)].harq.is_idle();
            if is_over {
                vacant.push(index);
            }
            !is_over
        });
    }

    /// Collects the users with new data.
    fn collect(&mut self, context: &mut Context<'_>) {
        self.candidates.clear();
        let previous = self.air.previous(context.slot);
        for &(index, link_index) in &self.live {
            let user = &mut context.users[usize::from(index)];
            let is_reachable =
                user.is_active(link_index.into(), context.now) && user.is_listening(context.now);
            let wanted = if is_reachable { user.wanted_bits(link_index.into(), context.now) } else { 0 };
            let link = &mut user.links[usize::from(link_index)];
            link.adaptation.update(context.slot, &mut link.channel);
            link.average_bits = self.scheduler.decayed(link.average_bits);
            if wanted == 0 {
                continue;
            }
            let is_newcomer = link.wanted_in != previous;
            link.wanted_in = Some(context.slot);
            let average = link.average_bits;
            self.candidates.push(Candidate::new(index, link_index, wanted, average, is_newcomer));
        }
        self.wanting = self.candidates.len();
    }

    /// Chooses the size of the control region, which grows with the number of DCIs.
    fn make_room(&mut self, context: &Context<'_>, uplink_grants: usize) {
        let retransmissions = self.due.iter().take_while(|due| due.at <= context.now).count();
        let data = self.candidates.len().min(context.max_users);
        let dcis = retransmissions + self.control.waiting.len() + data + uplink_grants;
        self.air.make_room(dcis, self.grid.prbs);
    }

    /// Sends retransmissions that are due, oldest first, on as many RBGs as the first transmission needed, or as the lost code
    /// block groups need. If one of two codewords was received, that codeword carries new data next to the retransmission of
    /// the other. Returns the remaining RBGs, like [`Carrier::serve_control`].
    ///
    /// Source: TS 36.321 §5.3.2 (each codeword of a process has its own new-data indicator)
    fn retransmit(&mut self, context: &mut Context<'_>, mut free: RbgMask) -> RbgMask {
        let mut index = 0;
        while let Some(due) = self.due.get(index).copied()
            && due.at <= context.now
        {
            let user = &mut context.users[usize::from(due.user)];
            let is_interrupted = match &user.source {
                Source::Device(device) => device.handover.is_interrupted(context.now),
                _ => false,
            };
            let is_active = user.is_active(due.link.into(), context.now) && user.is_listening(context.now);
            let link = &mut user.links[usize::from(due.link)];
            let process = &link.harq.processes[usize::from(due.process)];
            // A handover may have flushed the process, and new data may have occupied it since then.
            if !process.is_waiting() || process.sent_in != due.sent_in || is_interrupted {
                self.due.remove(index);
                continue;
            }
            let rbgs = process.rbgs_in(self.air.region(context.slot));
            let has_space = free.count_ones() >= rbgs && link.served_in != Some(context.now);
            if !has_space || !self.air.place(user.rnti, link.adaptation.reported_sinr_db()) {
                index += 1;
                continue;
            }
            self.due.remove(index);
            let given = lowest(free, rbgs);
            free &= !given;
            let prbs = self.grid.prb_set(given);
            let grant = Grant { user: due.user, link: due.link, process: due.process, prbs };
            let mcs = link.adaptation.mcs_on(prbs, self.air.region(context.slot).cfi());
            if let Some(mcs) = mcs.filter(|_| is_active) {
                self.load(context, grant, mcs);
            }
            self.transmit(context, grant);
        }
        free
    }

    /// Sends control messages on contiguous PRBs from the highest PRB down; messages that do not fit wait.
    fn serve_control(&mut self, context: &mut Context<'_>, free: RbgMask) -> RbgMask {
        let mut taken: RbgMask = 0;
        let mut top = self.grid.prbs;
        let mut served = 0;
        for grant in &self.control.waiting {
            let Some(start) = top.checked_sub(grant.prbs) else { break };
            let prbs = PrbSet::run(start, grant.prbs);
            if self.grid.touched(prbs) & !free != 0 || !self.air.place(grant.rnti, CONTROL_SINR_DB) {
                break;
            }
            taken |= self.grid.touched(prbs);
            top = start;
            served += 1;
            self.used = self.used.union(prbs);
            if context.wants_account {
                let dci = self.air.control_dci(grant.rnti, prbs);
                let place = (context.slot % self.accounts.len() as u64) as usize;
                self.accounts[place].add(dci, Owner::Control, [None; CODEWORDS]);
            }
        }
        self.control.waiting.drain(..served);
        free & !taken
    }

    fn serve_data(&mut self, context: &mut Context<'_>, free: RbgMask) {
        let mut candidates = std::mem::take(&mut self.candidates);
        self.rates.clear();
        candidates.retain_mut(|candidate| {
            let link = &context.users[usize::from(candidate.user)].links[usize::from(candidate.link)];
            self.rate(context.slot, link, candidate)
        });
        // Newcomers are also compared with users that only get a retransmission in this subframe.
        self.scheduler.place_newcomers(&mut candidates);
        for candidate in candidates.iter().filter(|candidate| candidate.is_newcomer) {
            let link = &mut context.users[usize::from(candidate.user)].links[usize::from(candidate.link)];
            link.average_bits = candidate.average;
        }
        candidates.retain_mut(|candidate| {
            let link = &context.users[usize::from(candidate.user)].links[usize::from(candidate.link)];
            // A user gets at most one DCI per slot, or with code block groups a second one beside a retransmission.
            let is_left_out = link.served_in == Some(context.now) && link.code_block_groups == 0;
            let can_be_served = !is_left_out && link.harq.free_process(context.now).is_some();
            if can_be_served {
                self.rate_rbgs(context.slot, link, candidate);
            }
            can_be_served
        });
        let (users, air) = (&*context.users, &mut self.air);
        let has_place = |candidate: &Candidate| {
            let user = &users[usize::from(candidate.user)];
            let link = &user.links[usize::from(candidate.link)];
            air.place(user.rnti, link.adaptation.reported_sinr_db())
        };
        self.scheduler.share(context.slot, &self.grid, free, &mut candidates, &self.rates, has_place);
        for candidate in &candidates {
            self.send_new(context, candidate);
        }
        self.candidates = candidates;
    }

    /// Determines the mean rate of an RBG for a candidate. Returns `false` if the candidate is out of range.
    fn rate(&self, slot: u64, link: &RadioLink, candidate: &mut Candidate) -> bool {
        let region = self.air.region(slot);
        let Some(mcs) = link.adaptation.mcs(region.cfi()) else { return false };
        candidate.size = link.block_size(mcs, region);
        candidate.rate = candidate.size.bits(self.grid.rbg_prbs) as f64;
        true
    }

    /// Determines the rate of each RBG for a candidate, if its RBGs differ.
    fn rate_rbgs(&mut self, slot: u64, link: &RadioLink, candidate: &mut Candidate) {
        if !link.has_subbands {
            return;
        }
        let region = self.air.region(slot);
        let bits_at = |mcs: u8| link.block_size(mcs, region).bits(self.grid.rbg_prbs);
        let mut row = [0.0; MAX_RBGS];
        let useless = if link.adaptation.shuns_bad_rbgs() { NEVER_GIVEN } else { 0.0 };
        for (rbg, rate) in (0..self.grid.rbgs).zip(&mut row) {
            *rate = link.adaptation.rbg_mcs(rbg, region.cfi()).map_or(useless, |mcs| bits_at(mcs) as f32);
        }
        candidate.rates = Some(self.rates.len() as u16);
        self.rates.push(row);
    }

    /// Sends new data on the RBGs assigned to a user.
    fn send_new(&mut self, context: &mut Context<'_>, candidate: &Candidate) {
        let now = context.now;
        let prbs = self.grid.prb_set(candidate.given);
        let user = &mut context.users[usize::from(candidate.user)];
        let link = &mut user.links[usize::from(candidate.link)];
        let Some(mcs) = link.adaptation.mcs_on(prbs, self.air.region(context.slot).cfi()) else { return };
        let Some(process_index) = link.harq.free_process(now) else { return };
        let process = &mut link.harq.processes[usize::from(process_index)];
        process.rbgs = candidate.given.count_ones() as u8;
        process.res_per_prb = self.air.region(context.slot).res_per_prb();
        let Candidate { user, link, .. } = *candidate;
        let grant = Grant { user, link, process: process_index, prbs };
        if self.load(context, grant, mcs) {
            self.transmit(context, grant);
        }
    }

    /// Puts new data into the empty codewords of a process; returns `false` if there was no data.
    fn load(&mut self, context: &mut Context<'_>, grant: Grant, mcs: u8) -> bool {
        let user = &mut context.users[usize::from(grant.user)];
        let link = &mut user.links[usize::from(grant.link)];
        let block = link.block(mcs, grant.prbs.len(), self.air.region(context.slot));
        let codewords = link.codewords();
        let process = &mut link.harq.processes[usize::from(grant.process)];
        let mut is_loaded = false;
        for codeword in 0..codewords {
            if process.blocks[codeword].is_some() {
                continue;
            }
            let source = &mut user.source;
            let Some((content, payload_bits)) = take_data(source, grant.link, context.now, block.bits) else {
                break;
            };
            if let Source::Device(device) = &mut user.source {
                device.life.on_grant(context.now);
            }
            process.ndi[codeword] = !process.ndi[codeword];
            let groups = Groups::of(block, link.code_block_groups);
            let flight = InFlight::new(block, content, payload_bits, link.adaptation.step());
            process.blocks[codeword] = Some(InFlight { groups, ..flight });
            link.average_bits += self.scheduler.gain(block.bits);
            is_loaded = true;
        }
        is_loaded
    }

    /// Sends the blocks of a process, draws their outcome and records the grant.
    fn transmit(&mut self, context: &mut Context<'_>, grant: Grant) {
        let now = context.now;
        let prbs = grant.prbs;
        self.used = self.used.union(prbs);
        let user = &mut context.users[usize::from(grant.user)];
        let link = &mut user.links[usize::from(grant.link)];
        let layers = link.layers_per_codeword();
        let process = &mut link.harq.processes[usize::from(grant.process)];
        let mut dci = Dci {
            rnti: user.rnti,
            prbs,
            harq: Some(grant.process),
            ..self.air.grant(context.slot, link.channel.layers())
        };
        let mut reserved_mcs = [None; CODEWORDS];
        let times = self.air.feedback_times(context.slot);
        // A second DCI of the slot has draws of its own.
        let first_draw = if link.served_in == Some(now) { CODEWORDS as u64 } else { 0 };
        let snapshot = link.channel.at(context.slot);
        for (codeword, reserved_mcs) in reserved_mcs.iter_mut().enumerate() {
            let Some(mut flight) = process.blocks[codeword] else { continue };
            dci.mcs[codeword] = Some(flight.block.mcs);
            dci.tbs[codeword] = flight.block.bits;
            dci.ndi[codeword] = Some(process.ndi[codeword]);
            dci.rv[codeword] = Some(flight.redundancy_version());
            dci.layers += layers;
            *reserved_mcs = Some(flight.reserved_mcs());
            let is_first = flight.held.transmissions() == 0;
            dci.retransmission[codeword] = !is_first;
            debug_assert!(
                is_first || now >= process.resend_from,
                "sent again before its feedback was acted on"
            );
            let modulation = flight.block.modulation();
            flight.held.add(modulation, snapshot.effective_sinr_db(prbs, modulation));
            let error = context.bler.error(flight.block, &flight.held);
            let is_received =
                flight.groups.send(error, link.luck.at(context.slot, first_draw + codeword as u64));
            if is_first {
                let Grant { user, link, .. } = grant;
                let feedback = Feedback { user, link, step: flight.step, is_received };
                self.feedback.push_back((times.known_at, feedback));
            }
            let gives_up = !is_received && flight.held.transmissions() > context.max_retransmissions;
            process.blocks[codeword] = if is_received || gives_up { None } else { Some(flight) };
            if is_received {
                if let Source::Device(device) = &mut user.source {
                    let at = context.leaves_at;
                    device.decoded(grant.link.into(), now, flight.content, at, context.release);
                }
            } else if gives_up {
                failed(&mut user.source, grant.link, now, &flight);
            }
            let was_decoded = link.served_in != Some(now) || link.decoded != Some(false);
            link.decoded = Some(was_decoded && is_received);
            link.served_in = Some(now);
        }
        let is_waiting = process.is_waiting();
        link.granted.add(context.slot, prbs.len());
        link.harq.sent(grant.process, now, times.resend_from);
        if is_waiting {
            let Grant { user, link, process, .. } = grant;
            self.due.push_back(Due { at: times.resend_from, sent_in: now, user, link, process });
        }
        if context.wants_account {
            self.account_of(context.slot).add(dci, user.owner, reserved_mcs);
        }
    }

    /// Passes acknowledgements that arrive in this subframe to link adaptation.
    fn acknowledge(&mut self, context: &mut Context<'_>) {
        while let Some(&(arrives_at, feedback)) = self.feedback.front()
            && arrives_at <= context.now
        {
            self.feedback.pop_front();
            let user = &mut context.users[usize::from(feedback.user)];
            let is_reachable = match &user.source {
                Source::Device(device) => !device.handover.is_interrupted(context.now),
                _ => true,
            };
            if is_reachable {
                let link = &mut user.links[usize::from(feedback.link)];
                link.adaptation.on_first_transmission(feedback.step, feedback.is_received);
            }
        }
    }
}

/// SINR in dB that the base station assumes for control messages, from which the aggregation level of their DCIs follows.
///
/// Chosen: 3 dB, because users at the edge of the cell must be able to receive them.
const CONTROL_SINR_DB: f64 = 3.0;

/// An assignment of PRBs to the blocks of a HARQ process.
#[derive(Clone, Copy, Debug)]
struct Grant {
    user: u16,
    link: u8,
    process: u8,
    prbs: PrbSet,
}

/// Takes data for a block of `bits` bits from `source`. Returns the RLC content, and the number of data bits if the
/// source is a download.
fn take_data(source: &mut Source, link: u8, now: Time, bits: Bits) -> Option<(Content, u64)> {
    match source {
        Source::Device(device) => {
            let content = device.fill(link.into(), now, bits.bytes().0 as u32);
            (!content.is_empty()).then_some((content, 0))
        }
        Source::Session(session) => {
            let payload_bits = session.waiting.min(bits.0.saturating_sub(SESSION_HEADER_BITS));
            session.waiting -= payload_bits;
            (payload_bits > 0).then_some((Content::default(), payload_bits))
        }
        Source::Endless => Some((Content::default(), 0)),
    }
}

fn failed(source: &mut Source, link: u8, now: Time, flight: &InFlight) {
    match source {
        Source::Device(device) => device.failed(link.into(), now, flight.content),
        Source::Session(session) => session.waiting += flight.payload_bits,
        Source::Endless => {}
    }
}
